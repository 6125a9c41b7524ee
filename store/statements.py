"""A statement as a constant: a Core construct, compiled once per dialect, run on the pooled driver connection.

Building a construct for each call costs five to sixteen times what its text costs to run, and Core's own execution
four to five times; so every statement of the hot paths is a module constant of this class, and this is the one place
that runs text on the driver. The compiled texts are kept under ``tests/sql/`` so that a review sees them change.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Dialect
from sqlalchemy.dialects import registry
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

from .errors import InvalidValue, NotAStore, StoreBusy, StoreError, StoreFull

Row = tuple[Any, ...]

_STYLES = {"sqlite": ("pysqlite", "named", "qmark"), "postgresql": ("psycopg", "pyformat", "format")}
"""The driver of each dialect, and how it writes values by name and by place."""
DIALECTS = tuple(_STYLES)


@cache
def _dialect(name: str, *, positional: bool = False) -> Dialect:
    """Return a dialect, loaded on first use: each costs tens of ms."""
    driver, named, by_place = _STYLES[name]
    loaded: Dialect = registry.load(f"{name}.{driver}")(paramstyle=by_place if positional else named)
    return loaded


class _Compiled(NamedTuple):
    text: str
    constants: dict[str, Any]


class Statement:
    """A statement of the store; values go in by the names of its ``bindparam``s, plain tuples come out."""

    def __init__(self, construct: ClauseElement) -> None:
        self._construct = construct
        self._named = cache(self._compile_named)
        self._positional = cache(self._compile_positional)

    def scan(self, connection: Connection, **values: Any) -> Iterable[Row]:
        """Return the rows one by one, in the statement's order; for many, wide rows."""
        rows: Iterable[Row] = self._execute(connection, values)
        return rows

    def rows(self, connection: Connection, **values: Any) -> list[Row]:
        """Return all rows, in the statement's order."""
        rows: list[Row] = self._execute(connection, values).fetchall()
        return rows

    def row(self, connection: Connection, **values: Any) -> Row | None:
        """Return the first row, or None where there is none."""
        row: Row | None = self._execute(connection, values).fetchone()
        return row

    def run(self, connection: Connection, **values: Any) -> int:
        """Run a writing statement; return how many rows it touched."""
        count: int = self._execute(connection, values).rowcount
        return count

    def run_many(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Run an insert for each row of values, given in the order of its columns."""
        if rows:
            text = self._positional(connection.dialect.name)
            cursor = _driver(connection).cursor()
            try:
                cursor.executemany(text, rows)
            except _UNSTORABLE as error:
                raise _unstorable(error) from error

    def text(self, dialect: str) -> str:
        """Return the compiled text for a dialect (``sqlite`` or ``postgresql``)."""
        return self._named(dialect).text

    def _execute(self, connection: Connection, values: dict[str, Any]) -> Any:
        text, constants = self._named(connection.dialect.name)
        driver = _driver(connection)
        try:
            return driver.execute(text, {**constants, **values} if constants else values)
        except _UNSTORABLE as error:
            raise _unstorable(error) from error

    def _compile_named(self, dialect: str) -> _Compiled:
        compiled = self._construct.compile(dialect=_dialect(dialect))
        assert isinstance(compiled, SQLCompiler)
        constants = {name: bind.value for bind, name in compiled.bind_names.items() if not bind.required}
        return _Compiled(str(compiled), constants)

    def _compile_positional(self, dialect: str) -> str:
        return str(self._construct.compile(dialect=_dialect(dialect, positional=True)))


_UNSTORABLE = (OverflowError, UnicodeEncodeError)


def _unstorable(error: Exception) -> InvalidValue:
    return InvalidValue(f"a value that no database can hold: {' '.join(str(error).split())}")


def _driver(connection: Connection) -> Any:
    """Return the driver's connection, the transaction begun: what ran before the first statement ran outside of it."""
    pooled = connection.connection
    begin = pooled.info.pop("begin", None)
    if begin is not None:
        begin(connection)
    return pooled.dbapi_connection


def driver_errors() -> tuple[type[Exception], ...]:
    """Return what drivers raise; the errors of statements come straight from them, not through SQLAlchemy."""
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error, DBAPIError, *([psycopg.Error] if psycopg else []))


_CODES: dict[str, tuple[type[StoreError], str]] = {
    "SQLITE_BUSY": (StoreBusy, "another program held the database until the deadline; nothing was written, try again"),
    "SQLITE_LOCKED": (StoreBusy, "another program held the database; nothing was written, try again"),
    "SQLITE_FULL": (StoreFull, "the disk is full; nothing was written, make room and try again"),
    "SQLITE_IOERR_WRITE": (StoreFull, "the disk did not take the write; nothing was written, make room and try again"),
    "SQLITE_IOERR_SHMSIZE": (StoreFull, "the disk has no room for the store's index; make room and try again"),
    "SQLITE_NOTADB": (NotAStore, "the file is no SQLite database; it was not touched"),
    "SQLITE_READONLY": (StoreError, "the file or its folder cannot be written; check their permissions"),
    "SQLITE_CANTOPEN": (StoreError, "the file cannot be opened; check its and its folder's permissions"),
    "40001": (StoreBusy, "another transaction was in the way; nothing was written, try again"),
    "40P01": (StoreBusy, "another transaction was in the way; nothing was written, try again"),
    "53100": (StoreFull, "the server's disk is full; nothing was written, make room and try again"),
    "SQLITE_CORRUPT": (StoreError, "the file is damaged; restore a backup, `convostore verify` says what is hit"),
}


def translate(error: Exception) -> StoreError:
    """Return the store's own error for one of a driver's."""
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if any(kind.__name__ == "DataError" for kind in type(original).__mro__):  # of whichever driver
        return _unstorable(original)
    name = getattr(original, "sqlite_errorname", "")
    state = getattr(original, "sqlstate", None) or ""
    for prefix, (kind, text) in _CODES.items():
        if name.startswith(prefix) or state == prefix:
            return kind(text)
    return StoreError(f"the database refused: {original}")
