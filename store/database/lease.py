"""A connection on loan to one operation, and how far its transaction has come.

A lease lives as long as its connection and is lent to one operation after another. Its transaction
begins at the first statement, not before: earlier work of an operation (counting tokens, hashing,
encoding) holds up nobody. It ends with the operation, in one of three ways. `commit` keeps all
writes. `end` rolls back uncommitted writes, and gives the connection back. `drop` closes the
connection, because its state after an error is unknown. The next writer gets its turn only after
COMMIT or ROLLBACK has returned, and from then on this operation does not touch the lease: it may
belong to another one already.

A lease does not refer to the database that made it, and its connection holds it weakly. So an
unused database is collected at once, and its connections with it.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, Protocol

from sqlalchemy import Connection

from ..cancellation import bind_caller
from ..errors import StoreError, StoreForked
from .cache import Cache, SessionTrees, invalidate_trees, invalidation_count
from .files import KnownFile
from .fork_safety import FORKED_STORE_MESSAGE, leak_object
from .operation_counters import CounterKey
from .pipeline import PipelinedDriver
from .read_only import ReadState, load_read_state
from .write_ahead import WriteAheadLog, has_log, switch_to_log
from .writer_queue import QueuePlace, WriterQueue

_LEASE_ATTRIBUTE = "_convostore_lease"
"""The attribute of a connection that holds its lease, since each statement asks for it.

Access to its `info` goes through the pool, and takes as many steps as a short statement.
"""

ENDED_LOAN_MESSAGE = "the operation that this connection was lent to has ended; nothing was done"
_step_numbers = count(1)
DEADLINE_STEP = 0.1
"""The seconds that a deadline may move before the database is told of the new time left."""


class Lease:
    """A connection and the state of its operation: writes, has begun, holds the writers' queue.

    ``queue``, ``log`` and ``file`` are None on a server, which has its own; there a transaction
    waits ``timeout`` seconds for others. ``kept`` is the cache of its store. ``patience`` is the
    seconds that the next transaction waits. ``locked`` holds the names that a transaction on a
    server has asked to lock. It ``is_core`` once SQLAlchemy itself began a transaction on it.
    ``since`` is the mark by which a reader's values may be cached, ``taken_out`` are the trees
    whose rows a writer takes out, ``heard`` those for whose changes somebody may wait. Transactions
    begin only while it ``is_lent``. ``file_state`` is the state of a file that is only read, at the
    time when the connection was made; ``settings`` are statements with which each transaction
    begins on a server behind a pooler; ``is_distributed`` tells that a server has other nodes.
    ``waited`` are the seconds for which the operation waited in line, ``counted`` is added to the
    counters of the store if it commits.
    """

    def __init__(
        self,
        connection: Connection,
        queue: WriterQueue | None,
        log: WriteAheadLog | None,
        file: KnownFile | None,
        timeout: float,
        kept: Cache,
    ) -> None:
        self.connection, self.kept = connection, kept
        self.driver: Any = connection.connection.dbapi_connection
        self.writes = self.begun = self._queued = self._is_logged = False
        self._place = QueuePlace(queue) if queue else None
        self._log, self._file, self._timeout = log, file, timeout
        self.is_on_server = file is None
        if self.is_on_server:
            self.driver = PipelinedDriver(self.driver)
        self.is_committing = self.is_lent = self.is_core = False
        self.locked: list[str] = []
        self.since: int | None = None
        self.taken_out: set[int] = set()
        self.heard: set[int] = set()
        self.counted: list[tuple[CounterKey, float]] = []
        self.waited = 0.0
        self.file_state: ReadState | None = None
        self.settings = ""
        self.is_distributed = False
        self._deadline = 0.0
        self.patience = timeout
        self._granted = math.inf  # nobody knows: the pool may have it from an earlier lease
        self._process = os.getpid()
        vars(connection)[_LEASE_ATTRIBUTE] = weakref.ref(self)

    @property
    def path(self) -> str | None:
        """The path of the file; None on a server."""
        return self._file.path if self._file else None

    @property
    def is_outdated(self) -> bool:
        """Whether others wrote to a file that is only read, after the connection was made."""
        state = self.file_state
        return bool(state and self.path and state != load_read_state(self.path))

    def begin(self) -> None:
        """Begin the transaction, if it has not begun.

        A write to a file waits in line first; then the file must still be the same. Raises
        StoreBusy, StoreMoved, StoreForked, StoreError for a connection that was given back.
        """
        if self.begun:
            return
        if not self.is_lent:
            raise StoreError(ENDED_LOAN_MESSAGE)
        if self._process != os.getpid():
            raise StoreForked(FORKED_STORE_MESSAGE)
        self.begun = True
        self.since = None if self.writes else invalidation_count.times
        if self._file is None:
            # Other nodes know no setting of the connection, but those of a transaction.
            is_unknown = self.is_distributed and self.writes
            self._granted = math.inf if is_unknown else self._timeout
            self._deadline = time.monotonic() + self.patience
            self.driver.begin(self.settings, writes=self.writes)
            return
        if self.writes:
            if self._place and self._place.file is None:
                self._file.check()  # before a lock file is made beside another one
            self.wait_in_line()
            self._file.check()
            if not self._is_logged:
                self._log_ahead()
        else:
            self._grant(self.patience)
        self.driver.execute("BEGIN IMMEDIATE" if self.writes else "BEGIN")

    def keep_deadline(self) -> None:
        """Limit the lock wait of the next statement on a server to the time that is left.

        A server counts the time anew for each lock.
        """
        left = self._deadline - time.monotonic()
        if self._granted - left > DEADLINE_STEP and self._granted > 0:
            self._granted = max(0.0, left)
            self.driver.execute(f"SET LOCAL lock_timeout = {compute_lock_timeout(left)}")

    @property
    def is_lost(self) -> bool:
        """Whether the connection to the server has broken."""
        return self.is_on_server and bool(self.driver.closed)

    def written(self) -> tuple[int, int]:
        """Return a count of the commits of others to a file, and a count of own changes to it."""
        (version,) = self.driver.execute("PRAGMA data_version").fetchone()
        return version, self.driver.total_changes

    def wait_in_line(self) -> None:
        """Wait until no other writer of ours is at work on the file; then run to the end.

        The rest of the patience is for programs that do not use the queue.
        """
        if self._place is not None:
            self._queued = True
            begun = time.monotonic()
            self._place.take(self.patience)
            self.waited = time.monotonic() - begun
            self._grant(self.patience - self.waited)
            bind_caller()

    def _log_ahead(self) -> None:
        """Give a file that was a copy its write-ahead log, unless a reader prevents it."""
        left = self._granted
        if not has_log(self.driver):
            self._grant(0.0)
            with suppress(sqlite3.OperationalError):
                switch_to_log(self.driver, 0.0)
            self._grant(left)
        self._is_logged = has_log(self.driver)

    def check_file(self) -> None:
        """Raise StoreMoved if the file is no longer the one that was opened."""
        if self._file is not None:
            self._file.check()

    def _grant(self, seconds: float) -> None:
        """Let SQLite wait for other programs for some seconds."""
        if abs(seconds - self._granted) > DEADLINE_STEP:
            self.driver.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            self._granted = seconds

    def give_up(self) -> None:
        """End the operation's wait for others; called from another thread."""
        if self._place:
            self._place.give_up()
        if self.is_on_server:
            with suppress(Exception):  # where the connection is lost, nothing waits
                self.driver.cancel_safe()

    def commit(self) -> None:
        """Commit all writes, then drop the cached values of the trees whose rows were taken out.

        Raises StoreForked in a child that was forked meanwhile, Cancelled if the caller has left a
        server before.
        """
        if self._process != os.getpid():
            raise StoreForked(FORKED_STORE_MESSAGE)
        bind_caller()
        self.is_committing = True
        try:
            if self.is_core and self.connection.in_transaction():
                self.connection.commit()
                if self.heard:
                    self.driver.notify(self.heard)
            elif self.begun:
                self.begun = False
                self.driver.commit(*([self.heard] if self.heard else []))
        except Exception:
            if self.is_on_server and self.driver.has_failed:
                self.is_committing = False  # a statement failed before, the commit was skipped
            raise
        finally:
            if self.taken_out:
                invalidate_trees(self.taken_out)
                self.taken_out.clear()
        self.is_committing = False
        self.heard.clear()
        while self.counted:
            self.kept.counters.add(*self.counted.pop())

    def end(self) -> bool:
        """End the operation; tell whether the connection can be lent again.

        A connection that SQLAlchemy itself used may still hold a cursor open, and is dropped.
        """
        if self._process != os.getpid() or (self.is_core and self.connection.in_transaction()):
            self.drop()
            return False
        if self.begun:
            self.begun = False
            self.driver.rollback()
        if not self.is_on_server and self.driver.in_transaction:
            raise AssertionError("a connection is given back inside a transaction")
        self.is_lent = False
        self.taken_out.clear()
        self.heard.clear()
        self.counted.clear()
        if self.locked:
            self.locked = []
        if self._queued and self._log:
            with suppress(sqlite3.Error, OSError):  # the commit holds; the next one tries again
                self._log.keep_short(self.driver)
        if self._queued and self._place:
            self._queued = False
            self._place.leave()
        return True

    def drop(self) -> None:
        """Close the connection, and leave the queue; in a forked child leave both alone."""
        if self._process != os.getpid():
            leak_object((self.connection, self.driver))
        else:
            self.close()

    def close(self) -> None:
        """Close the connection, and leave the queue."""
        try:
            self.begun = False
            if self.is_on_server:
                with suppress(Exception):  # where it is lost
                    self.driver.leave()
            if self.is_lost:
                self.connection.invalidate()  # a rollback would fail, with a traceback in the log
            self.connection.close()
        finally:
            if self._place:
                self._place.close()


def compute_lock_timeout(seconds: float) -> int:
    """Return the lock timeout of a server in ms; never 0, which would wait for ever."""
    return max(1, int(seconds * 1000))


def get_lease(connection: Connection) -> Lease:
    """Return the lease that a connection is on."""
    lease: Lease = vars(connection)[_LEASE_ATTRIBUTE]()
    return lease


def invalidate_at_end(connection: Connection, tree_id: int) -> None:
    """Drop the cached values of a tree at the end of a transaction that takes out its rows."""
    get_lease(connection).taken_out.add(tree_id)


def notify_at_commit(connection: Connection, tree_id: int) -> None:
    """Tell those who wait for a tree on a server if the transaction commits."""
    get_lease(connection).heard.add(tree_id)


def count_at_commit(connection: Connection, key: CounterKey, value: float = 1) -> None:
    """Add a value to the counters of a store if the transaction commits."""
    get_lease(connection).counted.append((key, value))


def get_read_mark(connection: Connection) -> int | None:
    """Return the mark that a value read in a transaction must have to be cached."""
    return get_lease(connection).since


def get_session_trees(connection: Connection) -> SessionTrees:
    """Return what the store of a connection knows of the trees of sessions."""
    return get_lease(connection).kept.trees


def get_lock_names(connection: Connection) -> list[str]:
    """Return the names that a transaction on a server has asked to lock, a list to append to."""
    return get_lease(connection).locked


def get_driver(connection: Connection) -> Any:
    """Return the driver's connection, after the transaction has begun.

    Work before the first statement runs outside of it. Each statement calls this function.
    """
    lease: Lease = vars(connection)[_LEASE_ATTRIBUTE]()
    if not lease.begun:
        lease.begin()
    if lease.is_on_server:
        lease.keep_deadline()
    return lease.driver


def wait_for_answers(connection: Connection) -> None:
    """Wait on a server for all statements; raise the error of the first one that failed."""
    lease = get_lease(connection)
    if lease.is_on_server:
        lease.driver.wait()


@contextmanager
def open_step(connection: Connection) -> Iterator[None]:
    """Roll back the writes of a block that an error ends; its transaction may go on.

    The name of each savepoint is new. So the driver reads the answer to its rollback, and learns
    that statements may not be prepared as it believes.
    """
    name = f"step_{next(_step_numbers)}"
    get_driver(connection).execute(f"SAVEPOINT {name}")
    try:
        yield
        wait_for_answers(connection)
    except BaseException:
        lease = get_lease(connection)
        if lease.is_on_server:
            lease.driver.drain()
        lease.driver.execute(f"ROLLBACK TO SAVEPOINT {name}")
        raise
    get_driver(connection).execute(f"RELEASE SAVEPOINT {name}")


class RowCheck(Protocol):
    """A check of rows against their digests and seals."""

    def __call__(
        self, connection: Connection, text: str, values: dict[str, Any], seen: set[Any], /
    ) -> None:
        """Compare the rows that a query is going to read. Raises Damaged.

        ``seen`` is for the rows already compared in the same transaction.
        """


class CheckedDriver:
    """Passes everything on to the driver's connection of a lease, a reader's queries checked."""

    def __init__(self, lease: Lease, check: RowCheck) -> None:
        self._driver, self._check = lease.driver, check
        self._lease = weakref.ref(lease)
        self._seen: set[Any] = set()
        self._is_checking = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def execute(self, text: str, values: Any = ()) -> Any:
        """Run a statement; the reads of the check itself are not checked again."""
        lease = self._lease()
        if lease and isinstance(values, dict) and not (lease.writes or self._is_checking):
            self._is_checking = True
            try:
                self._check(lease.connection, text, values, self._seen)
            finally:
                self._is_checking = False
        return self._driver.execute(text, values)

    def rollback(self) -> None:
        """End a reader's transaction."""
        self._seen = set()
        self._driver.rollback()
