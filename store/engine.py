"""From a path or URL to a database that keeps its promises: settings, BEGIN, the writers' queue, the file's identity.

SQLAlchemy's SQLite defaults lose updates without a word: reads run outside of transactions and DDL is not rolled
back. Here the driver's own transaction handling is off; a read begins with BEGIN, a write with BEGIN IMMEDIATE once
the fair queue lets it through. The database file is never opened by other means than SQLite, because closing any
file of it drops the locks that the process holds on it.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import SQLAlchemyError

from .errors import InvalidValue, StoreBusy, StoreClosed, StoreForked, StoreFull, StoreMoved
from .places import Identity, identity_of, opened, remove_private, resolved, url_of
from .statements import driver_errors, translate
from .writer_queue import WriterQueue

SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
"""What ``durability`` means on SQLite: NORMAL may lose the last commits at a power cut (never at a killed process)."""

PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",  # otherwise REPLACE deletes rows without firing their triggers
    "PRAGMA trusted_schema = OFF",
    "PRAGMA secure_delete = ON",  # an erased message leaves no bytes behind in freed pages
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA mmap_size = 0",
    "PRAGMA fullfsync = ON",  # where flushing a file is no flush of the disk: on macOS
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA cache_size = -16000",
)

LONGEST = 2_000_000
"""Seconds that a writer may wait: SQLite counts them as ms in 32 bits."""

PURGE_PATIENCE = 1000
"""How many ms a purge waits for readers: it keeps the queue meanwhile, and what it cannot do is done later."""

LOG_BOUND = 8 * 1024 * 1024
"""How large the write-ahead log may get before a writer stops to empty it."""
LOG_CHECKED_EVERY = 32
"""How many writes go by between two looks at the log's size."""

REWRITE_LIMIT = 256 * 1024 * 1024
"""How large a file is written anew to leave nothing behind: writers wait for about a second per 100 MB."""


class Database:
    """An engine and what guards it; ``reading`` and ``writing`` are the only ways in."""

    def __init__(
        self, target: str | os.PathLike[str] | URL, *, durability: str = "full", timeout: float = 30.0
    ) -> None:
        if durability not in SYNCHRONOUS:
            raise InvalidValue(f"durability is one of {', '.join(SYNCHRONOUS)}, not {durability!r}")
        if not isinstance(timeout, int | float) or not 0 <= timeout <= LONGEST:
            raise InvalidValue(f"timeout is in seconds, from 0 to {LONGEST:,}, not {timeout!r}")
        private = tempfile.mkdtemp(prefix="convostore-") if str(target) == ":memory:" else None
        self._discard = weakref.finalize(self, remove_private, private, os.getpid())
        self.url = url_of(os.path.join(private, "chat.db") if private else target)
        self.dialect = self.url.get_backend_name()
        self.path = resolved(self.url) if self.dialect == "sqlite" else None
        self._synchronous, self._timeout = SYNCHRONOUS[durability], timeout
        self._queue = WriterQueue(f"{self.path}-lock", timeout) if self.path else None
        self._closed = self._forked = False
        self._writes, self._log_bound = 0, LOG_BOUND
        self._inside: list[int] = []
        with _door:
            self._connect()
            self._identity = self._opened()
            _alive.add(self)

    def _connect(self) -> None:
        self._engine = _engine(self.url, self.path, self._synchronous, self._timeout)
        event.listen(self._engine, "do_connect", self._connecting)
        event.listen(self._engine, "begin", self._begin)
        reading = {} if self.path else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._reader = self._engine.execution_options(**reading)
        self._writer = self._reader if self.path else self._engine
        self._idle: dict[Engine, list[Connection]] = {self._reader: [], self._writer: []}

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection whose read transaction sees one state of the store, begun at the first statement."""
        with self._connection(self._reader) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection whose write transaction begins at the first statement and commits at the end.

        Work done before the first statement holds up nobody. Any error rolls everything back.
        """
        with self._connection(self._writer, writes=True) as connection:
            yield connection
            _same_process(connection)
            if connection.in_transaction():
                connection.commit()
            elif connection.info.pop("begun", False):
                connection.connection.driver_connection.commit()  # type: ignore[union-attr]

    @contextmanager
    def _connection(self, engine: Engine, *, writes: bool = False) -> Iterator[Connection]:
        """Give an idle connection, or a new one; taking one from the pool each time costs more than a short read."""
        with _door:
            self._check_open()
            self._inside.append(threading.get_ident())
        try:
            idle = self._idle[engine]
            connection = _popped(idle) or engine.connect()
            info = connection.info
            info["writes"], info["begin"] = writes, self._begin
            try:
                yield connection
                self._put_back(connection, info, idle)
            except BaseException:
                _drop(connection, info)
                raise
            finally:
                self._leave_queue(info)
        except driver_errors() as error:
            raise translate(error) from error
        finally:
            self._inside.remove(threading.get_ident())
            if self._closed:
                self._end()  # the store was closed meanwhile, and what this used came too late for it

    def _opened(self) -> Identity | None:
        if self.path in _unusable:
            raise StoreForked(FORKED)
        return opened(self.path) if self.path else None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed; open it anew")
        if self._forked:
            raise StoreForked(FORKED)

    def _put_back(self, connection: Connection, info: dict[Any, Any], idle: list[Connection]) -> None:
        """Keep a connection for the next operation; one that SQLAlchemy itself ran on may still hold a cursor open."""
        if connection.in_transaction() or info["process"] != os.getpid():
            _drop(connection, info)
            return
        driver: Any = connection.connection.driver_connection
        if info.pop("begun", False):
            driver.rollback()
        if info.pop("queued", False) and self._queue:
            self._bound_log(driver)
            self._queue.release()
        idle.append(connection)

    def _leave_queue(self, info: dict[Any, Any]) -> None:
        """Let the next writer in, after COMMIT or ROLLBACK has returned; in a forked child it is not ours to leave."""
        if info["process"] == os.getpid() and info.pop("queued", False) and self._queue:
            self._queue.release()

    def _bound_log(self, driver: sqlite3.Connection) -> None:
        """Empty a write-ahead log that readers, one always at work, never let begin anew; try less often if in vain."""
        self._writes += 1
        if self._writes % LOG_CHECKED_EVERY:
            return
        size = os.stat(f"{self.path}-wal").st_size
        if size > self._log_bound:
            self._log_bound = LOG_BOUND if _fold_in(driver) else size * 2

    def close(self) -> None:
        """Give back all connections; a file's write-ahead log is folded in by SQLite."""
        if self._closed:
            return
        self._closed = True
        self._end()
        self._discard()

    def _end(self) -> None:
        if not self._forked:
            self._dispose()
        if self._queue:
            self._queue.close()

    def _dispose(self) -> None:
        for idle in self._idle.values():
            while connection := _popped(idle):
                connection.close()
        self._engine.pool.dispose()

    def set_wal(self) -> None:
        """Switch a new file to write-ahead logging; under the queue, since of two at once SQLite refuses one."""
        if self._queue:
            with self._alone() as driver:
                driver.execute("PRAGMA journal_mode = WAL")

    def purge(self) -> bool:
        """Leave no erased byte in the files; tell whether that was possible (SQLite only).

        Rows that moved when a page was split or joined leave copies where they were, which secure_delete does not
        overwrite. So a file of up to REWRITE_LIMIT is written anew; then the write-ahead log is folded in and emptied.
        """
        if self._queue is None:
            return False
        try:
            with self._alone() as driver:
                return _rewrite(driver) & _fold_in(driver)
        except (StoreBusy, StoreFull):
            return False

    @contextmanager
    def _alone(self) -> Iterator[Any]:
        """Give a file's driver connection outside of any transaction, while no other of our writers is at work."""
        with self._connection(self._reader) as connection:
            self._enter_queue(connection)
            yield connection.connection.driver_connection

    def _enter_queue(self, connection: Connection) -> None:
        assert self._queue is not None
        self._queue.acquire()
        connection.info["queued"] = True

    def _connecting(self, _dialect: object, record: Any, *_: object) -> None:
        """Let a connection be made to the file that was opened and to no other, and remember whose it is."""
        if self.path:
            self._same_file()
        record.info["process"] = os.getpid()

    def _begin(self, connection: Connection) -> None:
        """Begin a transaction; a write on SQLite goes in line first, then the file must still be the same."""
        info = connection.info
        if info.get("begun"):
            return
        _same_process(connection)
        info["begun"] = True
        if self._queue is None:
            return
        writes = info["writes"]
        if writes:
            self._enter_queue(connection)
            self._same_file()
        driver: Any = connection.connection.driver_connection
        driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")

    def _same_file(self) -> None:
        assert self.path is not None
        if identity_of(self.path) != self._identity:
            raise StoreMoved(f"{self.path} is no longer the file that was opened; nothing was written, open it anew")

    def is_busy_elsewhere(self) -> bool:
        """Tell whether an operation is going on in another thread."""
        return any(thread != threading.get_ident() for thread in self._inside)

    def start_in_child(self) -> None:
        """Begin anew in a forked child, with connections of its own.

        SQLite keeps one state per file and process, locks and all, which a child inherits but the locks themselves it
        does not. So the idle connections are closed here, which frees that state; where one is in use it cannot be
        freed, and this process is better off without the file.
        """
        if self._closed:
            return
        if self._queue:
            self._queue.leave_to_parent()
        if self.path and not self._inside:
            self._dispose()
        else:
            _never_collect((self._engine, self._idle))
        if self.path and self._inside:
            self._forked = True
            _unusable.add(self.path)
        else:
            self._connect()


FORK_PATIENCE = 1.0
"""How many seconds a fork waits for operations of other threads to end."""

FORKED = (
    "the process was forked inside an operation on the store, and SQLite has no way to open its file in the child; "
    "fork between operations, or start a new process"
)

_alive: weakref.WeakSet[Database] = weakref.WeakSet()
_unusable: set[str] = set()
_door = threading.RLock()  # taken to begin an operation or to create a file: shut while the process forks


def _before_fork() -> None:
    """Let the operations of other threads end and none begin, so that the child finds nothing half done."""
    _door.acquire()
    deadline = time.monotonic() + FORK_PATIENCE
    while any(database.is_busy_elsewhere() for database in list(_alive)) and time.monotonic() < deadline:
        time.sleep(0.001)


def _after_fork() -> None:
    _door.release()
    for database in list(_alive):
        database.start_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_door.release, after_in_child=_after_fork)


def _popped(idle: list[Connection]) -> Connection | None:
    try:
        return idle.pop()
    except IndexError:
        return None


def _drop(connection: Connection, info: dict[Any, Any]) -> None:
    """Close a connection that is not to be used again; in a forked child leave it alone."""
    if info["process"] != os.getpid():
        _never_collect(connection)
        return
    info.pop("begun", None)
    connection.close()


def _never_collect(inherited: object) -> None:
    """Keep what a forked child inherited, even past the interpreter's end: closed, it would end the parent's work."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _rewrite(driver: sqlite3.Connection) -> bool:
    (size,) = driver.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
    if size <= REWRITE_LIMIT:
        driver.execute("VACUUM")
    return bool(size <= REWRITE_LIMIT)


def _fold_in(driver: sqlite3.Connection) -> bool:
    (patience,) = driver.execute("PRAGMA busy_timeout").fetchone()
    driver.execute(f"PRAGMA busy_timeout = {min(patience, PURGE_PATIENCE)}")
    busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    driver.execute(f"PRAGMA busy_timeout = {patience}")
    return not busy


def _same_process(connection: Connection) -> None:
    if connection.info["process"] != os.getpid():
        raise StoreForked(FORKED)


def _engine(url: URL, path: str | None, synchronous: str, timeout: float) -> Engine:
    """Return an engine with our settings on each connection."""
    if path is None:
        level = "on" if synchronous == "FULL" else "off"
        options = (*url.normalized_query.get("options", ()), f"-c synchronous_commit={level}")
        return _created(url, connect_args={"options": " ".join(options)})
    engine = _created(url.set(database=path), connect_args={"timeout": timeout})

    @event.listens_for(engine, "connect")
    def settle(driver: sqlite3.Connection, _record: object) -> None:
        driver.isolation_level = None
        for pragma in (*PRAGMAS, f"PRAGMA synchronous = {synchronous}"):
            driver.execute(pragma)

    return engine


def _created(url: URL, **options: Any) -> Engine:
    try:
        # Idle connections are kept by the database, so the pool sees them as taken: a limit there would be waited for.
        return sqlalchemy.create_engine(url, pool_size=16, max_overflow=-1, **options)
    except (SQLAlchemyError, ImportError, ValueError, TypeError) as error:
        raise InvalidValue(f"{url.render_as_string()} cannot be opened: {error}") from error


@contextmanager
def translated() -> Iterator[None]:
    """Turn the drivers' errors into the store's own, chained."""
    try:
        yield
    except driver_errors() as error:
        raise translate(error) from error
