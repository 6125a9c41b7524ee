"""From a path or URL to a database that keeps its promises: settings, BEGIN, the writers' queue, the file's identity.

SQLAlchemy's SQLite defaults lose updates without a word: reads run outside of transactions and DDL is not rolled
back. Here the driver's own transaction handling is off; a read begins with BEGIN, a write with BEGIN IMMEDIATE once
the fair queue lets it through. The database file is never opened by other means than SQLite, because closing any
file of it drops the locks that the process holds on it.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from .errors import InvalidValue, NotAStore, StoreBusy, StoreClosed, StoreError, StoreForked, StoreFull, StoreMoved
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
    "PRAGMA cache_size = -16000",
)


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
        self._private = tempfile.TemporaryDirectory(prefix="convostore-") if str(target) == ":memory:" else None
        self.url = _url(os.path.join(self._private.name, "chat.db") if self._private else target)
        self.dialect = self.url.get_backend_name()
        self.path = _resolved(self.url) if self.dialect == "sqlite" else None
        self._durability, self._timeout = durability, timeout
        self._identity: _Identity | None = None
        self._queue = WriterQueue(f"{self.path}-lock", timeout) if self.path else None
        self._operation = threading.local()
        self._open()
        _alive.add(self)

    def _open(self) -> None:
        self._pid, self._closed = os.getpid(), False
        if self.path:
            _create_private(self.path)
            self._identity = _identity(self.path)
        self._engine = _engine(self.url, self.path, SYNCHRONOUS[self._durability], self._timeout)
        reading = {} if self.path else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._reader = self._engine.execution_options(**reading)
        self._writer = self._engine.execution_options(writes=self._enter_queue) if self.path else self._engine

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
            self._same_process()
            connection.commit()

    @contextmanager
    def _connection(self, engine: Engine) -> Iterator[Connection]:
        if self._closed:
            raise StoreClosed("the store is closed; open it anew")
        self._operation.pid = os.getpid()
        with translated():
            connection = engine.connect()
            try:
                yield connection
            finally:
                self._finish(connection)

    def _finish(self, connection: Connection) -> None:
        """Leave the queue after COMMIT or ROLLBACK has returned; in a forked child leave the connection alone."""
        if os.getpid() != self._operation.pid:
            _inherited.append(connection)
            return
        queued = connection.info.pop("queued", False)
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
        if os.getpid() == self._pid:
            self._engine.dispose()
        if self._queue:
            self._queue.close()
        if self._private:
            self._private.cleanup()

    def set_wal(self) -> None:
        """Switch a new file to write-ahead logging; under the queue, since SQLite's busy handler is not asked here."""
        if self._queue is None:
            return
        self._queue.acquire()
        try:
            with translated(), self._engine.connect() as connection:
                connection.connection.driver_connection.execute("PRAGMA journal_mode = WAL")  # type: ignore[union-attr]
        finally:
            self._queue.release()

    def purge(self) -> bool:
        """Fold the write-ahead log into the file and empty it; tell whether that was possible (SQLite only)."""
        if self._queue is None:
            return False
        self._queue.acquire()
        try:
            with translated(), self._engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not busy
        finally:
            self._queue.release()

    def _enter_queue(self, connection: Connection) -> None:
        """Begin a write on SQLite: in line first, then the file must still be the one that was opened."""
        assert self._queue is not None
        self._queue.acquire()
        connection.info["queued"] = True
        self._same_file()
        connection.connection.driver_connection.execute("BEGIN IMMEDIATE")  # type: ignore[union-attr]

    def _same_file(self) -> None:
        assert self.path is not None
        if _identity(self.path) != self._identity:
            raise StoreMoved(f"{self.path} is no longer the file that was opened; nothing was written, open it anew")

    def _same_process(self) -> None:
        if os.getpid() != self._operation.pid:
            raise StoreForked("the process was forked inside an operation; open the store anew in the child")

    def _reopen_in_child(self) -> None:
        """After a fork: leave the parent's connections alone, neither used nor closed, and open new ones."""
        if self._closed:
            return
        _inherited.append(self._engine)
        self._engine.dispose(close=False)
        if self._queue:
            self._queue.close()
            self._queue.forget()
        self._open()


_alive: weakref.WeakSet[Database] = weakref.WeakSet()
_inherited: list[Engine | Connection] = []  # kept for ever: collecting them would close files the parent still uses
_creating = threading.Lock()


def _after_fork() -> None:
    for database in list(_alive):
        database._reopen_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _url(target: str | os.PathLike[str] | URL) -> URL:
    """Return the URL of a path or URL text."""
    if isinstance(target, URL) or (isinstance(target, str) and "://" in target):
        try:
            url = make_url(target)
        except SQLAlchemyError as error:
            raise InvalidValue(f"{target!r} is no database URL: {error}") from error
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise InvalidValue(f"convostore runs on SQLite and PostgreSQL, not on {url.get_backend_name()}")
        return url
    return URL.create("sqlite", database=os.path.expanduser(os.fspath(target)))


def _resolved(url: URL) -> str:
    """Return the real path of the database file; its folder must exist."""
    if not url.database or url.database == ":memory:":
        raise InvalidValue("name a file; `Store(':memory:')` gives a private temporary one")
    path = os.path.realpath(url.database)
    if os.path.isdir(path):
        raise NotAStore(f"{path} is a folder; name a file in it")
    if not os.path.isdir(os.path.dirname(path)):
        raise InvalidValue(f"the folder of {path} does not exist; create it first")
    return path


def _create_private(path: str) -> None:
    """Create the file readable by its owner alone; SQLite gives its companions the same mode."""
    with _creating:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            pass
        except OSError as error:
            raise StoreError(f"cannot create {path}: {error.strerror}; check the folder's permissions") from error


def _identity(path: str) -> _Identity | None:
    """Return what tells the file from another; a second name (hard link) would get a log of its own: refused."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if status.st_nlink > 1:
        raise StoreMoved(f"{path} has {status.st_nlink} names (hard links); remove the others, or copy the file")
    return _Identity(status.st_dev, status.st_ino)


def _engine(url: URL, path: str | None, synchronous: str, timeout: float) -> Engine:
    """Return an engine with our settings on each connection and our BEGIN on each transaction."""
    if path is None:
        level = "on" if synchronous == "FULL" else "off"
        return sqlalchemy.create_engine(url, connect_args={"options": f"-c synchronous_commit={level}"})
    engine = sqlalchemy.create_engine(
        url.set(database=path), connect_args={"timeout": timeout}, pool_size=16, max_overflow=-1
    )

    @event.listens_for(engine, "connect")
    def settle(driver: sqlite3.Connection, _record: object) -> None:
        driver.isolation_level = None
        for pragma in (*PRAGMAS, f"PRAGMA synchronous = {synchronous}"):
            driver.execute(pragma)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        enter = connection.get_execution_options().get("writes")
        if enter:
            enter(connection)
        else:
            connection.connection.driver_connection.execute("BEGIN")  # type: ignore[union-attr]

    return engine


@contextmanager
def translated() -> Iterator[None]:
    """Turn the drivers' errors into the store's own, chained."""
    try:
        yield
    except (sqlite3.Error, DBAPIError) as error:
        raise _translate(error) from error


_CODES: dict[str, tuple[type[StoreError], str]] = {
    "SQLITE_BUSY": (StoreBusy, "another program held the database until the deadline; nothing was written, try again"),
    "SQLITE_LOCKED": (StoreBusy, "another program held the database; nothing was written, try again"),
    "SQLITE_FULL": (StoreFull, "the disk is full; nothing was written, make room and try again"),
    "SQLITE_IOERR_WRITE": (StoreFull, "the disk did not take the write; nothing was written, make room and try again"),
    "SQLITE_NOTADB": (NotAStore, "the file is no SQLite database; it was not touched"),
    "SQLITE_READONLY": (StoreError, "the file or its folder cannot be written; check their permissions"),
    "SQLITE_CANTOPEN": (StoreError, "the file cannot be opened; check its and its folder's permissions"),
    "40001": (StoreBusy, "another transaction was in the way; nothing was written, try again"),
    "40P01": (StoreBusy, "another transaction was in the way; nothing was written, try again"),
    "53100": (StoreFull, "the server's disk is full; nothing was written, make room and try again"),
    "SQLITE_CORRUPT": (StoreError, "the file is damaged; restore a backup, `convostore verify` says what is hit"),
}


def _translate(error: Exception) -> StoreError:
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    name = getattr(original, "sqlite_errorname", "")
    state = getattr(original, "sqlstate", None) or ""
    for prefix, (kind, text) in _CODES.items():
        if name.startswith(prefix) or state == prefix:
            return kind(text)
    return StoreError(f"the database refused: {original}")
