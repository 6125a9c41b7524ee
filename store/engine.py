"""From a path or URL to a database that keeps its promises: settings, BEGIN, the writers' queue, the file's identity.

SQLAlchemy's SQLite defaults lose updates without a word: reads run outside of transactions and DDL is not rolled
back. Here the driver's own transaction handling is off; a read begins with BEGIN, a write with BEGIN IMMEDIATE once
the fair queue lets it through. The database file is never opened by other means than SQLite, because closing any
file of it drops the locks that the process holds on it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError

from .errors import InvalidValue, NotAStore, StoreBusy, StoreClosed, StoreError, StoreForked, StoreFull, StoreMoved
from .statements import driver_errors, translate
from .writer_queue import WriterQueue

DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg")

SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
"""What ``durability`` means on SQLite: NORMAL may lose the last commits at a power cut (never at a killed process)."""

PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",  # otherwise REPLACE deletes rows without firing their triggers
    "PRAGMA trusted_schema = OFF",
    "PRAGMA secure_delete = ON",  # an erased message leaves no bytes behind in freed pages
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA mmap_size = 0",
    "PRAGMA cache_size = -16000",
)

PURGE_PATIENCE = 1000
"""How many ms a purge waits for readers: it keeps the queue meanwhile, and what it cannot do is done later."""

REWRITE_LIMIT = 256 * 1024 * 1024
"""How large a file is written anew to leave nothing behind: writers wait for about a second per 100 MB."""


class _Identity(NamedTuple):
    device: int
    inode: int


class Database:
    """An engine and what guards it; ``reading`` and ``writing`` are the only ways in."""

    def __init__(
        self, target: str | os.PathLike[str] | URL, *, durability: str = "full", timeout: float = 30.0
    ) -> None:
        if durability not in SYNCHRONOUS:
            raise InvalidValue(f"durability is one of {', '.join(SYNCHRONOUS)}, not {durability!r}")
        private = tempfile.mkdtemp(prefix="convostore-") if str(target) == ":memory:" else None
        self._discard = weakref.finalize(self, _remove_private, private, os.getpid())
        self.url = _url(os.path.join(private, "chat.db") if private else target)
        self.dialect = self.url.get_backend_name()
        self.path = _resolved(self.url) if self.dialect == "sqlite" else None
        self._synchronous, self._timeout = SYNCHRONOUS[durability], timeout
        self._queue = WriterQueue(f"{self.path}-lock", timeout) if self.path else None
        self._closed = self._forked = False
        self._inside: list[int] = []
        with _door:
            self._connect()
            self._identity = _opened(self.path) if self.path else None
            _alive.add(self)

    def _connect(self) -> None:
        self._engine = _engine(self.url, self.path, self._synchronous, self._timeout)
        event.listen(self._engine, "do_connect", self._connecting)
        event.listen(self._engine, "begin", self._begin)
        reading = {} if self.path else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._reader = self._engine.execution_options(**reading)
        self._writer = self._engine.execution_options(writes=True)

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
        with self._connection(self._writer) as connection:
            yield connection
            _same_process(connection)
            connection.commit()

    @contextmanager
    def _connection(self, engine: Engine) -> Iterator[Connection]:
        with _door:
            self._check_open()
            self._inside.append(threading.get_ident())
        try:
            with translated():
                connection = engine.connect()
                info = connection.info
                try:
                    yield connection
                finally:
                    self._finish(connection, info)
        finally:
            self._inside.remove(threading.get_ident())

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed; open it anew")
        if self._forked:
            raise StoreForked(FORKED)

    def _finish(self, connection: Connection, info: dict[Any, Any]) -> None:
        """Leave the queue after COMMIT or ROLLBACK has returned; in a forked child leave the connection alone."""
        if info["process"] != os.getpid():
            _never_collect(connection)
            return
        queued = info.pop("queued", False)
        try:
            connection.close()
        finally:
            if queued and self._queue:
                self._queue.release()

    def close(self) -> None:
        """Give back all connections; a file's write-ahead log is folded in by SQLite."""
        if self._closed:
            return
        self._closed = True
        if not self._forked:
            self._engine.dispose()
        if self._queue:
            self._queue.close()
        self._discard()

    def set_wal(self) -> None:
        """Switch a new file to write-ahead logging; under the queue, and again while others read the file.

        SQLite's busy handler is not asked here, so waiting is up to us.
        """
        deadline = time.monotonic() + self._timeout
        while self._queue:
            try:
                with self._alone() as driver:
                    driver.execute("PRAGMA journal_mode = WAL")
                return
            except StoreBusy:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.002)

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
        with self._connection(self._engine) as connection:
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
        _same_process(connection)
        if self._queue is None:
            return
        writes = connection.get_execution_options().get("writes", False)
        if writes:
            self._enter_queue(connection)
            self._same_file()
        driver: Any = connection.connection.driver_connection
        driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")

    def _same_file(self) -> None:
        assert self.path is not None
        if _identity(self.path) != self._identity:
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
            self._engine.dispose()
        else:
            _never_collect(self._engine)
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


def _url(target: str | os.PathLike[str] | URL) -> URL:
    """Return the URL of a path or URL text."""
    if isinstance(target, URL) or (isinstance(target, str) and "://" in target):
        try:
            url = make_url(target)
        except SQLAlchemyError as error:
            raise InvalidValue(f"{target!r} is no database URL: {error}") from error
        if url.drivername not in DRIVERS:
            raise InvalidValue(f"a store's URL begins with one of {', '.join(DRIVERS)}, not with {url.drivername}")
        return url
    if not isinstance(target, str | os.PathLike):
        raise InvalidValue(f"a store is named by a path or a URL, not by {target!r:.80}")
    return URL.create("sqlite", database=os.path.expanduser(os.fsdecode(target)))


def _remove_private(folder: str | None, process: int) -> None:
    """Remove the folder of a temporary store, unless this is a forked child and the folder the parent's."""
    if folder and os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _resolved(url: URL) -> str:
    """Return the real path of the database file; its folder must exist."""
    if not url.database or url.database == ":memory:" or "\0" in url.database:
        raise InvalidValue("name a file; `Store(':memory:')` gives a private temporary one")
    path = os.path.realpath(url.database)
    if os.path.isdir(path):
        raise NotAStore(f"{path} is a folder; name a file in it")
    if not os.path.isdir(os.path.dirname(path)):
        raise InvalidValue(f"the folder of {path} does not exist; create it first")
    return path


def _opened(path: str) -> _Identity | None:
    """Create the file if need be, readable by its owner alone; SQLite gives its companions the same mode."""
    if path in _unusable:
        raise StoreForked(FORKED)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(f"cannot create {path}: {error.strerror}; check the folder's permissions") from error
    return _identity(path)


def _identity(path: str) -> _Identity | None:
    """Return what tells the file from another; a second name (hard link) would get a log of its own: refused."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if status.st_nlink > 1:
        raise StoreMoved(f"{path} has {status.st_nlink} names (hard links); remove the others, or copy the file")
    return _Identity(status.st_dev, status.st_ino)


def _engine(url: URL, path: str | None, synchronous: str, timeout: float) -> Engine:
    """Return an engine with our settings on each connection."""
    if path is None:
        level = "on" if synchronous == "FULL" else "off"
        return _created(url, connect_args={"options": f"-c synchronous_commit={level}"})
    engine = _created(url.set(database=path), connect_args={"timeout": timeout}, pool_size=16, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def settle(driver: sqlite3.Connection, _record: object) -> None:
        driver.isolation_level = None
        for pragma in (*PRAGMAS, f"PRAGMA synchronous = {synchronous}"):
            driver.execute(pragma)

    return engine


def _created(url: URL, **options: Any) -> Engine:
    try:
        return sqlalchemy.create_engine(url, **options)
    except (SQLAlchemyError, ImportError, ValueError, TypeError) as error:
        raise InvalidValue(f"{url.render_as_string()} cannot be opened: {error}") from error


@contextmanager
def translated() -> Iterator[None]:
    """Turn the drivers' errors into the store's own, chained."""
    try:
        yield
    except driver_errors() as error:
        raise translate(error) from error
