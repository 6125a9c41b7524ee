"""From a path or URL to a database that keeps its promises.

SQLAlchemy's SQLite defaults lose updates without a word: reads run outside of transactions and DDL
is not rolled back. Here the driver's own transaction handling is off; a read begins with BEGIN, a
write with BEGIN IMMEDIATE once the fair queue lets it through. The database file is never opened by
other means than SQLite, because closing any file of it drops the locks that the process holds on
it.

Connections are reused: an operation takes an idle one, or has one made, and puts it back at its
end; taking one from SQLAlchemy's pool each time costs more than a short read. The lease knows the
progress of an operation. This module keeps the set of connections, and closes them all, at the end,
after a fork, or when their database is collected. Nothing that SQLAlchemy keeps for the whole
process refers to a database, so an unused one is collected, and closes its connections.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from io import FileIO
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sqlalchemy import URL, Connection, Engine, event

from ..cancellation import wake_on_leave
from ..clock import Now
from ..errors import (
    ConnectionLost,
    InvalidValue,
    ReadOnly,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreForked,
    check_choice,
    quote_value,
)
from . import fork_safety
from .cache import DEFAULT_CACHE_BYTES, Cache
from .connections import connect_apart, create_file_engine, create_server_engine
from .driver_errors import (
    build_connection_error,
    get_sqlstate,
    list_driver_errors,
    translate_error,
)
from .files import KnownFile, is_private_target, parse_url, remove_private_folder, resolve_path
from .fork_safety import FORKED_STORE_MESSAGE, leak_object
from .group_commit import GroupedWrite, get_group
from .lease import CheckedDriver, Lease, RowCheck, compute_lock_timeout, get_lease
from .operation_counters import Counters
from .read_only import READ_ONLY_MESSAGE, load_read_state, open_read_only
from .server_limits import ServerLimits
from .write_ahead import (
    LONG_PURGE_MESSAGE,
    MAX_PURGE_SECONDS,
    PURGE_PATIENCE,
    STEPS_PER_CHECK,
    STOPPED_PURGE_MESSAGE,
    WriteAheadLog,
    empty_log,
    switch_to_log,
)
from .writer_queue import HAS_FLOCK, LOCK_SUFFIX, WriterQueue

if TYPE_CHECKING:
    from .listener import Listener

SYNCHRONOUS_LEVELS = {"full": "FULL", "normal": "NORMAL"}
"""The meaning of ``durability`` on SQLite.

NORMAL may lose the last commits at a power cut (never at a killed process).
"""

POOLER_SETTING = "pooler"
"""The setting of a URL by which a server is behind a pooler."""
LOST_STATES = ("57P01", "57P02", "57P05", "40003")
"""The states that a server reports when it ends a connection, in addition to class 08."""
UNKNOWN_COMMIT_STATE = "XX000"
"""The state that leaves the outcome of a COMMIT unknown."""

CITUS_SETTING = "citus.propagate_set_commands"
"""The setting of Citus by which the limits of a transaction reach the nodes; others ignore it."""
_ASKS_CITUS = "SELECT to_regclass('pg_dist_node') IS NOT NULL"

_LOST_CONNECTION = "the connection to the server was lost; nothing was written, try again"
_UNKNOWN_COMMIT = (
    "the connection to the server was lost while it committed, so nobody knows whether it did; "
    "read what is there, or repeat the call: messages with an `id` are not stored twice"
)

SERVER_PURGE_MESSAGE = (
    "a server writes nothing anew for us: what is erased stays in its files until it writes over"
    " it; `VACUUM FULL`, by whoever runs it, leaves nothing of it in the tables"
)

NESTED_WRITE_MESSAGE = (
    "this thread is inside `atomically`: what writes is called on what that gives, the store itself"
    " would wait for its end"
)

WorkT = TypeVar("WorkT")

NO_LIMITS = ServerLimits()

RETRY_KEY, WAIT_KEY = ("retry",), ("queue",)
LEAST_WAIT = 0.001
"""Seconds from which a writer counts as one that waited for others."""

MAX_TIMEOUT = 2_000_000
"""Seconds that a writer may wait: SQLite counts them as ms in 32 bits."""


class Database:
    """An engine and what guards it; ``reading`` and ``writing`` are the only ways in."""

    write_number = 0
    """A number that every write changes; no other write has the same."""
    _write_numbers = count(1)
    _is_distributed: bool | None = None
    _settings = ""
    listener: Listener | None = None
    """Hears of changes on a server; None for a file, and behind a pooler."""

    def __init__(
        self,
        target: str | os.PathLike[str] | URL,
        *,
        durability: str = "full",
        timeout: float = 30.0,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        check: RowCheck | None = None,
        read_only: bool = False,
        pooler: bool = False,
        limits: ServerLimits = NO_LIMITS,
    ) -> None:
        check_settings(durability, timeout, cache_bytes, read_only)
        self._kept_bytes, self._check, self.is_read_only = cache_bytes, check, read_only
        self._synchronous, self._timeout = SYNCHRONOUS_LEVELS[durability], timeout
        folder = tempfile.mkdtemp(prefix="convostore-") if is_private_target(target) else None
        self._discard = weakref.finalize(self, remove_private_folder, folder, os.getpid())
        self.url = parse_url(os.path.join(folder, "chat.db") if folder else target)
        self._is_pooled = self._read_pooler(pooler)
        self.dialect = self.url.get_backend_name()
        self.path = resolve_path(self.url) if self.dialect == "sqlite" else None
        self._limits = limits.checked(is_file=bool(self.path))
        writes_file = self.path and not read_only
        self._queue = WriterQueue(f"{self.path}{LOCK_SUFFIX}", timeout) if writes_file else None
        self._log = WriteAheadLog(self.path) if self.path else None
        self._closed = self._forked = False
        self._inside: dict[object, int] = {}
        self._hosts: set[int] = set()
        with fork_safety.fork_lock:
            if self.path in fork_safety.unusable_files:
                raise StoreForked(FORKED_STORE_MESSAGE)
            self._file = KnownFile(self.path, create=not read_only) if self.path else None
            self._connect()
            fork_safety.register_forkable(self)

    def build_reader(self, url: str | URL, check: RowCheck | None) -> Database:
        """Return a database that is only read, with the settings of this one."""
        return Database(
            url,
            durability="full",
            timeout=self._timeout,
            cache_bytes=self._kept_bytes,
            check=check,
            read_only=True,
            pooler=self._is_pooled,
            limits=self._limits,
        )

    def _connect(self) -> None:
        self.counters = Counters()
        self._places = self._limits.build_places(self._timeout)
        self.cache = Cache(self._kept_bytes, self.counters)
        # A server flushes the commits of several connections together by itself.
        self._group = get_group(self._file, self._synchronous) if self._file else None
        if self.path:
            self._engine = create_file_engine(self.url, self.path, self._synchronous, self._timeout)
            if self.is_read_only:
                open_read_only(self._engine, self.path)
            self._reader = self._writer = self._engine
        else:
            self._engine = self._writer = self._create_server_engine()
            self._reader = self._engine.execution_options()
            self._build_listener()

        file = self._file  # not of self: an engine that holds its owner keeps it from being freed

        @event.listens_for(self._engine, "do_connect")
        def check_identity(*_: object) -> None:
            if file:
                file.check()

        @event.listens_for(self._engine, "begin")
        def begin_transaction(connection: Connection) -> None:
            lease = get_lease(connection)
            lease.is_core = True
            lease.begin()
            if lease.is_on_server:
                lease.driver.leave()

        @event.listens_for(self._engine, "commit")
        @event.listens_for(self._engine, "rollback")
        def end_transaction(connection: Connection) -> None:
            get_lease(connection).begun = False  # the next statement begins another one

        self._idle: dict[Engine, list[Lease]] = {self._reader: [], self._writer: []}
        self._forgotten = weakref.finalize(self, _close_idle, self._idle, self._engine)

    def _create_server_engine(self) -> Engine:
        """Return the engine of a server, with the settings of its transactions."""
        level = "on" if self._synchronous == "FULL" else "off"
        settings = {"synchronous_commit": level}
        settings["lock_timeout"] = str(compute_lock_timeout(self._timeout))
        settings[CITUS_SETTING] = "local"
        if (longest := self._limits.statement_timeout) is not None:
            settings["statement_timeout"] = str(compute_lock_timeout(longest))
        if self._is_pooled:
            each = (f"set_config('{x}', '{settings[x]}', true)" for x in settings)
            self._settings = f"SELECT {', '.join(each)}"
        seconds = self._limits.connect_timeout or self._timeout
        return create_server_engine(self.url, settings, seconds, pooler=self._is_pooled)

    def _build_listener(self) -> None:
        """Give a server's store its listener, unless it is behind a pooler."""
        if not self._is_pooled:
            from .listener import Listener  # a file needs none

            self.listener = Listener(partial(connect_apart, self._engine))
            weakref.finalize(self, self.listener.end)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection whose read transaction sees one state of the store.

        It begins at the first statement.
        """
        with self._lent(self._reader) as lease:
            yield lease.connection

    def read(self, work: Callable[[Connection], WorkT]) -> WorkT:
        """Do work that reads; if the connection to a server breaks, do it once more."""
        try:
            with self._lent(self._reader) as lease:
                return work(lease.connection)
        except ConnectionLost:
            self.counters.add(RETRY_KEY)
            with self._lent(self._reader) as lease:
                return work(lease.connection)

    def write(self, work: Callable[[Connection], WorkT]) -> WorkT:
        """Do work that writes, as a whole or not at all."""
        with self._lent(self._writer, writes=True) as lease, wake_on_leave(lease.give_up):
            done = work(lease.connection)
            lease.commit()
        return done

    def write_in_group(self, work: Callable[[Connection], WorkT]) -> WorkT:
        """Do work that writes as `write` does, on a file in one transaction with others that wait.

        So its transaction may be another one's, in another thread. It should do before all that it
        can do without a connection.
        """
        group = self._group
        if group is None:
            return self.write(work)
        if self._hosts:
            self._check_writer()
        write = GroupedWrite(work)
        try:
            if group.join(write, self._timeout):
                lent = self._lent(self._writer, writes=True, patience=write.patience)
                with lent as lease, wake_on_leave(lease.give_up):
                    write.result = group.lead(write, lease)
            group.leave(write)
        except BaseException:  # also one that came while it left
            group.leave(write)
            raise
        if write.patience is not None:
            self.counters.add(WAIT_KEY, self._timeout - write.patience)
        result: WorkT = write.result
        return result

    @contextmanager
    def writing(self, patience: float | None = None) -> Iterator[Connection]:
        """Give a connection in a write transaction, which commits at the end.

        It begins at the first statement. Work done before the first statement holds up nobody. Any
        error rolls everything back. It waits for others up to the timeout of the store, or for
        ``patience`` seconds.
        """
        lent = self._lent(self._writer, writes=True, patience=patience)
        with lent as lease, wake_on_leave(lease.give_up):
            yield lease.connection
            lease.commit()

    @contextmanager
    def writing_for_host(self) -> Iterator[Connection]:
        """Give a connection in a write transaction in which a host's own code runs.

        The host's exceptions are not translated. Raises StoreError if the host writes by other
        means meanwhile: it would wait for itself.
        """
        thread = threading.get_ident()
        with self.writing() as connection:
            self._hosts.add(thread)
            try:
                yield connection
            finally:
                self._hosts.discard(thread)

    def seen(self) -> tuple[object, ...] | None:
        """Return a value that is equal as long as nobody has written to a file; None on a server.

        A connection to a file counts the commits of others, and its own writes.
        """
        if self.path is None:
            return None
        with self._lent(self._reader) as lease:
            return lease, *lease.written()

    def open_lock_file(self) -> FileIO | None:
        """Open the lock file of the writers' queue once more; None where there is none.

        Raises StoreError.
        """
        return self._queue.open_file() if self._queue and HAS_FLOCK else None

    @contextmanager
    def _lent(
        self, engine: Engine, *, writes: bool = False, patience: float | None = None
    ) -> Iterator[Lease]:
        """Lend a connection, an idle one or a new one, for the time of an operation.

        It is a generator on purpose: where a signal strikes between its steps and their end, the
        generator is closed with the frame that holds it, and gives the connection back.
        """
        operation, lease, is_lost = object(), None, False
        try:
            with fork_safety.fork_lock:
                self._check_use(writes=writes)
                self._inside[operation] = threading.get_ident()
            self._places.take(operation)
            idle = self._idle[engine]
            try:
                with suppress(IndexError):
                    lease = idle.pop()
                if lease is None or lease.is_outdated:
                    lease = self._replace(lease, engine)
                lease.writes, lease.is_lent, lease.waited = writes, True, 0.0
                lease.patience = self._timeout if patience is None else patience
                yield lease
                is_idle = lease.end()
            except BaseException as error:
                if lease:
                    # It is asked before it is dropped, which may close it.
                    is_lost = is_connection_loss(lease, error)
                    lease.drop()
                    if is_lost:
                        self._forget_idle()
                raise
            if is_idle:
                if lease.waited > LEAST_WAIT:
                    self.counters.add(WAIT_KEY, lease.waited)
                idle.append(lease)
        except list_driver_errors() as error:
            raise choose_error(error, lease, self.path, is_lost=is_lost) from error
        finally:
            if writes:  # after its commit, before the caller goes on
                self.write_number = next(self._write_numbers)
            self._inside.pop(operation, None)
            self._places.give_back(operation)
            if self._closed:
                self._end()  # the store was closed meanwhile, too early to close this connection

    def _new(self, engine: Engine) -> Lease:
        lease = Lease(
            engine.connect(),
            self._queue,
            self._log,
            self._file,
            self._timeout,
            self.cache,
        )
        if self._check:
            lease.driver = CheckedDriver(lease, self._check)
        lease.settings = self._settings
        if not self.path:
            if self._is_distributed is None:
                asked = lease.driver.execute(_ASKS_CITUS)
                (self._is_distributed,) = asked.fetchone()
            lease.is_distributed = self._is_distributed
        if self.path and self.is_read_only:
            lease.file_state = load_read_state(self.path)
        return lease

    def _forget_idle(self) -> None:
        """Drop all idle connections: to a server, if one broke, since the others most likely broke.

        Also those to a file that is only read, if others wrote to it. The cache is dropped as well.
        Another server may replace the first, and have fewer rows: the numbers of the missing rows
        are then used again.
        """
        self.cache = Cache(self._kept_bytes, self.counters)
        for idle in self._idle.values():
            while lease := _take_idle_lease(idle):
                lease.connection.invalidate()
                lease.close()
        self._engine.dispose()

    def _replace(self, outdated: Lease | None, engine: Engine) -> Lease:
        """Return a new connection in place of one to an older state of a file, or of none."""
        if outdated:
            self._idle[engine].append(outdated)
            self._forget_idle()
        while not self._places.has_room(self._idle.values()):
            for idle in self._idle.values():  # the engines share the driver's connections
                if extra := _take_idle_lease(idle):
                    extra.close()
        return self._new(engine)

    def open_connections(self) -> None:
        """Open the least connections of a pool. Raises Unavailable, StoreError."""
        least = self._limits.pool[0] if self._limits.pool else 0
        with ExitStack() as opened:
            try:
                for _ in range(least):
                    opened.enter_context(self._engine.connect())
            except list_driver_errors() as error:
                raise build_connection_error(error) from error

    def _read_pooler(self, pooler: bool) -> bool:
        """Take the setting of a pooler out of the URL; tell whether there is a pooler.

        Raises InvalidValue.
        """
        check_switch(POOLER_SETTING, pooler)
        asked = self.url.query.get(POOLER_SETTING, "0")
        if asked not in ("0", "1"):
            raise InvalidValue(f"{POOLER_SETTING} in the URL must be 0 or 1, not {asked!r}")
        self.url = self.url.difference_update_query([POOLER_SETTING])
        return pooler or asked == "1"

    def _check_use(self, *, writes: bool) -> None:
        """Raise StoreClosed, StoreForked, ReadOnly or StoreError where no operation may begin."""
        if self._closed:
            raise StoreClosed("the store is closed; open it again")
        if self._forked:
            raise StoreForked(FORKED_STORE_MESSAGE)
        if writes:
            self._check_writer()

    def _check_writer(self) -> None:
        """Raise ReadOnly or StoreError for a write that must not begin."""
        if self.is_read_only:
            raise ReadOnly(READ_ONLY_MESSAGE)
        if threading.get_ident() in self._hosts:
            raise StoreError(NESTED_WRITE_MESSAGE)

    def close(self) -> None:
        """Give back all connections; a file's write-ahead log is folded in by SQLite."""
        if self._closed:
            return
        self._closed = True
        if self.listener:
            self.listener.close()
        self._end()
        self._discard()

    def _end(self) -> None:
        if not self._forked:
            _close_idle(self._idle, self._engine)

    def set_wal(self) -> None:
        """Switch a new file to write-ahead logging.

        This happens under the queue, since SQLite refuses one of two at once.
        """
        if self.path:
            with self._alone() as lease:
                switch_to_log(lease.driver, self._timeout)

    def empty_log(self) -> None:
        """Fold a file's write-ahead log in, so that its room can be used again.

        Raises StoreBusy while a connection reads an older state.
        """
        if self.path:
            with self._alone() as lease:
                empty_log(lease.driver)

    def fold_log(self, patience: float | None = None) -> float:
        """Fold a file's write-ahead log in, as far as no connection reads an older state.

        Others wait only while it works, and not for readers. Returns the seconds of this work.
        Raises StoreBusy.
        """
        if self.path is None:
            return 0.0
        with self._alone(patience) as lease:
            begun = time.monotonic()
            lease.driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return time.monotonic() - begun

    def purge(
        self,
        note: Callable[[Connection], object],
        *,
        before: Callable[[Connection], object],
        longest: float = MAX_PURGE_SECONDS,
        patience: float | None = None,
    ) -> None:
        """Leave no erased byte in a file: write it anew, then fold in and empty its log.

        Rows that moved when a page was split or joined leave copies at their old places, which
        secure_delete does not overwrite. Writers wait meanwhile, so a purge that takes more than
        ``longest`` seconds is given up. ``before`` is called in a transaction before it, ``note``
        in one after it, with no other writer's between. Raises StoreBusy, StoreFull, StoreError on
        a server; then nothing else has changed.
        """
        if self.path is None:
            raise StoreError(SERVER_PURGE_MESSAGE)
        with self._alone(patience) as lease:
            waits = PURGE_PATIENCE if patience is None else int(patience * 1000)
            before(lease.connection)
            lease.commit()
            # Readers of an older state are waited for ``patience`` ms. It goes in three parts that
            # take about as long: the rows are copied, the copy is logged, the log is folded in.
            # Only the first one can be cut off, so after a third of ``longest`` seconds it is.
            driver = lease.driver
            empty_log(driver, waits)
            ends = time.monotonic() + longest / 3
            driver.set_progress_handler(lambda: time.monotonic() > ends, STEPS_PER_CHECK)
            try:
                driver.execute("VACUUM")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname == "SQLITE_INTERRUPT":
                    # An exception of a signal, raised in that function, ends it before its time.
                    is_late = time.monotonic() > ends
                    message = LONG_PURGE_MESSAGE if is_late else STOPPED_PURGE_MESSAGE
                    raise StoreBusy(message.format(longest)) from error
                raise
            finally:
                driver.set_progress_handler(None, 0)
            empty_log(driver, waits)
            note(lease.connection)
            lease.commit()

    @contextmanager
    def _alone(self, patience: float | None = None) -> Iterator[Lease]:
        """Give a lease on a file outside of any transaction.

        No other of our writers is at work meanwhile.
        """
        self._check_writer()
        with self._lent(self._reader, patience=patience) as lease:
            with wake_on_leave(lease.give_up):
                lease.wait_in_line()
            lease.check_file()
            yield lease

    def is_busy_elsewhere(self) -> bool:
        """Tell whether an operation is going on in another thread."""
        return any(thread != threading.get_ident() for thread in list(self._inside.values()))

    def start_in_child(self) -> None:
        """Begin anew in a forked child, with connections of its own.

        The idle connections to a file are closed, which frees SQLite's state of the file; this is
        impossible while one is in use, and then the child must not use the file.
        """
        if self._closed:
            return
        if self._queue:
            self._queue.leave_to_parent()
        self._forgotten.detach()
        if self.path and not self._inside:
            _close_idle(self._idle, self._engine)
        else:
            leak_object((self._engine, self._idle, self.listener))
        if self.path and self._inside:
            self._forked = True
            fork_safety.unusable_files.add(self.path)
        else:
            self._connect()


def check_settings(durability: str, timeout: float, cache_bytes: int, read_only: object) -> None:
    """Raise InvalidValue for settings that a database cannot have."""
    check_choice(SYNCHRONOUS_LEVELS, "durability", durability)
    if not isinstance(timeout, int | float) or not 0 <= timeout <= MAX_TIMEOUT:
        raise InvalidValue(
            f"timeout must be in seconds, from 0 to {MAX_TIMEOUT:,}, not {quote_value(timeout)}"
        )
    if type(cache_bytes) is not int or cache_bytes < 0:
        raise InvalidValue(
            f"cache_bytes must be a number of bytes, 0 for none, not {cache_bytes!r}"
        )
    check_switch("read_only", read_only)


def check_switch(name: str, value: object) -> None:
    """Raise InvalidValue for a setting that is neither True nor False."""
    if type(value) is not bool:
        raise InvalidValue(f"{name} must be True or False, not {quote_value(value)}")


class Transactions(NamedTuple):
    """The transactions of an operation that needs several, opened one after the other.

    It is passed to such an operation instead of a connection, and gives the time to each.

    ``soon`` is for work that can be done later: it gives up while others write. ``clock`` returns a
    moment in ms; for None it reads the clock anew.
    """

    reading: Callable[[], AbstractContextManager[Connection]]
    writing: Callable[[], AbstractContextManager[Connection]]
    soon: Callable[[], AbstractContextManager[Connection]]
    clock: Callable[[Now], int]


def _close_idle(leases: dict[Engine, list[Lease]], engine: Engine) -> None:
    """Close the connections that no operation uses."""
    for idle in leases.values():
        while lease := _take_idle_lease(idle):
            lease.close()
    engine.pool.dispose()


def _take_idle_lease(idle: list[Lease]) -> Lease | None:
    try:
        return idle.pop()
    except IndexError:
        return None


def is_connection_loss(lease: Lease, error: BaseException) -> bool:
    """Tell whether an error came with the loss of the connection to a server.

    It leaves the connection, or the outcome of a commit, unknown.
    """
    if lease.is_lost or not lease.is_on_server:
        return lease.is_lost
    state = get_sqlstate(error)
    is_ended = state.startswith("08") or state in LOST_STATES
    return is_ended or (lease.is_committing and state == UNKNOWN_COMMIT_STATE)


def choose_error(
    error: Exception, lease: Lease | None, file: str | None, *, is_lost: bool
) -> StoreError:
    """Return the store's error for a driver's error; without a lease no connection was made."""
    if lease is None and file is None:
        return build_connection_error(error)
    if lease and is_lost:
        return ConnectionLost(_UNKNOWN_COMMIT if lease.is_committing else _LOST_CONNECTION)
    return translate_error(error, file)


@contextmanager
def translate_host_errors(connection: Connection) -> Iterator[None]:
    """Raise the store's own errors in a step of a host's transaction, as at its end."""
    lease = get_lease(connection)
    try:
        yield
    except list_driver_errors() as error:
        is_lost = is_connection_loss(lease, error)
        raise choose_error(error, lease, lease.path, is_lost=is_lost) from error
