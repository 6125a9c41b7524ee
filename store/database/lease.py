"""A connection on loan to one operation, and how far its transaction has come.

A lease lives as long as its connection and is lent to one operation after another. Its transaction
begins at the first statement, not before: what an operation does until then (counting tokens,
hashing, encoding) holds up nobody. It ends with the operation, in one of three ways. `commit` keeps
what was written. `end` rolls back what was not committed, and gives the connection back. `drop`
closes it, because after an error nobody knows what state it is in. Only when COMMIT or ROLLBACK has
returned does the next writer get its turn, and from then on this operation touches the lease no
more: it may be another one's already.

A lease knows nothing of the database that it was made by, and its connection holds it weakly. So a
database that nobody uses any more goes at once, and its connections with it.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
import weakref
from contextlib import suppress
from typing import Any, Protocol

from sqlalchemy import Connection

from ..cancellation import bind_caller
from ..errors import StoreError, StoreForked
from .cache import Cache, invalidate_tree, invalidations
from .connection_settings import lock_timeout
from .files import KnownFile
from .fork_safety import FORKED, leak_object
from .queue import QueuePlace, WriterQueue
from .write_ahead import WriteAheadLog, has_log, switch_to_log

_KEY = "_convostore_lease"
"""Where a connection keeps its lease: each statement asks, so among what is its own.

Its `info` is found through the pool, by as many steps as a short statement takes altogether.
"""

GIVEN_BACK = "the operation that this connection was lent to has ended; nothing was done"
DEADLINE_STEP = 0.1
"""How many seconds a deadline may move before the database is told that fewer or more are left."""


class Lease:
    """A connection, whether the operation that has it writes, has begun, holds the writers' queue.

    ``queue``, ``log`` and ``file`` are None on a server, which has its own; there a transaction
    waits ``timeout`` seconds for others. ``kept`` is what its store keeps in memory. ``patience``
    is how many seconds the next transaction waits. ``locked`` names what a transaction on a server
    has asked to lock. ``since`` says what a reader may keep (`kept`), ``taken_out`` names the trees
    of which a writer takes something out. Transactions begin only while it ``is_lent``.
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
        self.is_committing = self.is_lent = False
        self.locked: list[str] = []
        self.since: int | None = None
        self.taken_out: set[int] = set()
        self._deadline = 0.0
        self.patience = timeout
        self._granted = math.inf  # nobody knows: the pool may have it from an earlier lease
        self._process = os.getpid()
        vars(connection)[_KEY] = weakref.ref(self)

    @property
    def path(self) -> str | None:
        """The path of the file; None on a server."""
        return self._file.path if self._file else None

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked child, and the connection its parent's."""
        return self._process != os.getpid()

    def begin(self) -> None:
        """Begin the transaction, if it has not begun.

        A write to a file goes in line first; then the file must still be the same. Raises
        StoreBusy, StoreMoved, StoreForked, StoreError for a connection that was given back.
        """
        if self.begun:
            return
        if not self.is_lent:
            raise StoreError(GIVEN_BACK)
        self._check_process()
        self.begun = True
        self.since = None if self.writes else invalidations.times
        if self._file is None:
            self._granted = self._timeout
            self._deadline = time.monotonic() + self.patience
            return
        if self.writes:
            if self._place and not self._place.is_open:
                self._file.check()  # before a lock file is made beside another one
            self.wait_in_line()
            self._file.check()
            if not self._is_logged:
                self._log_ahead()
        else:
            self._grant(self.patience)
        self.driver.execute("BEGIN IMMEDIATE" if self.writes else "BEGIN")

    def keep_deadline(self) -> None:
        """Grant the next statement on a server no more time for waiting than is left.

        A server counts the time anew for each lock.
        """
        left = self._deadline - time.monotonic()
        if self._granted - left > DEADLINE_STEP and self._granted > 0:
            self._granted = max(0.0, left)
            self.driver.execute(f"SET LOCAL lock_timeout = {lock_timeout(left)}")

    @property
    def is_lost(self) -> bool:
        """Whether the connection to the server has broken."""
        return self.is_on_server and bool(self.driver.closed)

    def written(self) -> tuple[int, int]:
        """Return what grows when others commit to a file, and what grows when this writes to it."""
        (version,) = self.driver.execute("PRAGMA data_version").fetchone()
        return version, self.driver.total_changes

    def wait_in_line(self) -> None:
        """Wait until no other writer of ours is at work on the file; then run to the end.

        What is left of the patience is for those who do not stand in line.
        """
        if self._place is not None:
            self._queued = True
            over = time.monotonic() + self.patience
            self._place.take(self.patience)
            self._grant(over - time.monotonic())
            bind_caller()

    def _log_ahead(self) -> None:
        """Give a file that was a copy its write-ahead log, unless a reader is in the way."""
        left = self._granted
        if not has_log(self.driver):
            self._grant(0.0)
            with suppress(sqlite3.OperationalError):
                switch_to_log(self.driver, 0.0)
            self._grant(left)
        self._is_logged = has_log(self.driver)

    def check_file(self) -> None:
        """Raise StoreMoved where the file is no longer the one that was opened."""
        if self._file is not None:
            self._file.check()

    def _grant(self, seconds: float) -> None:
        """Let SQLite wait so long for other programs."""
        if abs(seconds - self._granted) > DEADLINE_STEP:
            self.driver.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
            self._granted = seconds

    def give_up(self) -> None:
        """Let the operation wait for others no longer; called from another thread."""
        if self._place:
            self._place.give_up()
        if self.is_on_server:
            with suppress(Exception):  # where the connection is lost, nothing waits
                self.driver.cancel_safe()

    def commit(self) -> None:
        """Keep what was written.

        Raises StoreForked in a child that was forked meanwhile, Cancelled where the caller has left
        a server before.
        """
        self._check_process()
        bind_caller()
        self.is_committing = True
        try:
            self._commit()
        finally:
            self._forget()
        self.is_committing = False

    def _commit(self) -> None:
        if self.connection.in_transaction():
            self.connection.commit()
        elif self.begun:
            self.begun = False
            self.driver.commit()

    def _forget(self) -> None:
        """Keep nothing in memory of the trees of which something was taken out."""
        while self.taken_out:
            invalidate_tree(self.taken_out.pop())

    def end(self) -> bool:
        """End the operation; tell whether the connection can be lent again.

        One that SQLAlchemy itself ran on may still hold a cursor open, and is dropped.
        """
        if self.is_inherited or self.connection.in_transaction():
            self.drop()
            return False
        if self.begun:
            self.begun = False
            self.driver.rollback()
        if self._is_in_transaction():
            raise AssertionError("a connection is given back inside a transaction")
        self.is_lent = False
        self.taken_out.clear()
        if self.locked:
            self.locked = []
        if self._queued and self._log:
            self._keep_log_short(self._log)
        if self._queued and self._place:
            self._queued = False
            self._place.leave()
        return True

    def _is_in_transaction(self) -> bool:
        """Tell whether the driver's connection is inside a transaction."""
        if self.is_on_server:
            return self.driver.info.transaction_status.name in ("ACTIVE", "INTRANS", "INERROR")
        return bool(self.driver.in_transaction)

    def _keep_log_short(self, log: WriteAheadLog) -> None:
        try:
            log.keep_short(self.driver)
        except (sqlite3.Error, OSError):  # what was committed is; the next one tries again
            return

    def drop(self) -> None:
        """Close the connection, and leave the queue; in a forked child leave both alone."""
        if self.is_inherited:
            leak_object(self.connection)
        else:
            self.close()

    def close(self) -> None:
        """Close the connection, and leave the queue."""
        try:
            self.begun = False
            if self.is_lost:
                self.connection.invalidate()  # a rollback would fail, with a traceback in the log
            self.connection.close()
        finally:
            if self._place:
                self._place.close()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise StoreForked(FORKED)


def lease_of(connection: Connection) -> Lease:
    """Return the lease that a connection is on."""
    lease: Lease = vars(connection)[_KEY]()
    return lease


def invalidate_at_end(connection: Connection, tree_id: int) -> None:
    """Keep nothing of a tree in memory when a transaction has ended that takes some of it out."""
    lease_of(connection).taken_out.add(tree_id)


def get_read_mark(connection: Connection) -> int | None:
    """Return what is to be said of what is read in a transaction, and kept."""
    return lease_of(connection).since


def get_reader_cache(connection: Connection) -> Cache | None:
    """Return what the store of a connection keeps in memory; None where nothing may be."""
    lease = lease_of(connection)
    return lease.kept if lease.kept.limit and not lease.writes else None


def get_cache(connection: Connection) -> Cache:
    """Return the same for a writer, too, who finds what is kept there and adds nothing."""
    return lease_of(connection).kept


def driver_of(connection: Connection) -> Any:
    """Return the driver's connection, the transaction begun.

    What ran before the first statement ran outside of it. Each statement comes by here.
    """
    lease: Lease = vars(connection)[_KEY]()
    if not lease.begun:
        lease.begin()
    elif lease.is_on_server:
        lease.keep_deadline()
    return lease.driver


class ReadCheck(Protocol):
    """What compares rows with what was stored."""

    def __call__(
        self, connection: Connection, text: str, values: dict[str, Any], seen: set[Any], /
    ) -> None:
        """Compare the rows that a query is going to read. Raises Damaged.

        ``seen`` is for what was compared in the same transaction.
        """


class CheckedDriver:
    """Passes everything on to the driver's connection of a lease, a reader's queries checked."""

    def __init__(self, lease: Lease, check: ReadCheck) -> None:
        self._driver, self._check = lease.driver, check
        self._lease = weakref.ref(lease)
        self._seen: set[Any] = set()
        self._is_checking = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def execute(self, text: str, values: Any = ()) -> Any:
        """Run a statement; what the check itself reads is not checked again."""
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
