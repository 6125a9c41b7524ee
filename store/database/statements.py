"""A statement as a constant.

A Core construct, compiled once per dialect, run on the pooled driver connection.

Building a construct for each call costs five to sixteen times what its text costs to run, and
Core's own execution four to five times; so every statement of the hot paths is a module constant of
this class, and this is the one place that runs text on the driver. The compiled texts are kept
under ``tests/sql/`` so that a review sees them change.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import cache, partial
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar, overload

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Select,
    Table,
    bindparam,
    column,
    insert,
    select,
)
from sqlalchemy import table as lightweight
from sqlalchemy.dialects import registry
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

from ..errors import (
    TOO_MANY_FILES,
    Damaged,
    InvalidValue,
    NotAStore,
    ReadOnly,
    StoreBusy,
    StoreError,
    StoreFull,
    Unavailable,
)
from .files import list_unusable_files
from .lease import get_driver, get_lease
from .seals import SEAL_COLUMN, compute_seal, list_sealed_columns

Row = tuple[Any, ...]
RowT = TypeVar("RowT", bound=Row)

_DRIVER_STYLES = {
    "sqlite": ("pysqlite", "named", "qmark"),
    "postgresql": ("psycopg", "pyformat", "format"),
}
"""The driver of each dialect, and how it writes values by name and by place."""
DIALECTS = tuple(_DRIVER_STYLES)


@cache
def _load_dialect(name: str, *, positional: bool = False) -> Dialect:
    """Return a dialect, loaded on first use: each costs tens of ms."""
    driver, named, by_place = _DRIVER_STYLES[name]
    loaded: Dialect = registry.load(f"{name}.{driver}")(
        paramstyle=by_place if positional else named
    )
    return loaded


class _CompiledText(NamedTuple):
    text: str
    constants: dict[str, Any]


class Statement(Generic[RowT]):
    """A statement of the store.

    Values are bound by the names of its ``bindparam``s. The results are plain tuples, or rows of
    the given ``NamedTuple``: its fields are then the statement's columns, in their order.
    """

    @overload
    def __init__(self: Statement[Row], construct: ClauseElement) -> None: ...
    @overload
    def __init__(self, construct: ClauseElement, row: type[RowT]) -> None: ...
    def __init__(self, construct: ClauseElement, row: type[Any] | None = None) -> None:
        self.row_type = row
        self._make: Callable[[Any], RowT] | None = partial(tuple.__new__, row) if row else None
        self._construct = construct
        self._named = cache(self._compile_named)

    def scan(self, connection: Connection, **values: Any) -> Iterable[RowT]:
        """Return the rows one by one, in the statement's order; for many, wide rows."""
        rows: Iterable[RowT] = self._execute(connection, values)
        return map(self._make, rows) if self._make else rows

    def rows(self, connection: Connection, **values: Any) -> list[RowT]:
        """Return all rows, in the statement's order."""
        rows: list[RowT] = self._execute(connection, values).fetchall()
        return list(map(self._make, rows)) if self._make else rows

    def row(self, connection: Connection, **values: Any) -> RowT | None:
        """Return the first row, or None if there is none."""
        row: RowT | None = self._execute(connection, values).fetchone()
        return self._make(row) if row and self._make else row

    def one(self, connection: Connection, **values: Any) -> RowT:
        """Return the first row of a statement that always has one.

        Raises StoreError if it has none: a row that others need is missing from the database.
        """
        row: RowT | None = self._execute(connection, values).fetchone()
        if row is None:
            raise StoreError(_MISSING_ROW)
        return self._make(row) if self._make else row

    def value(self, connection: Connection, **values: Any) -> Any:
        """Return the first column of the first row, or None if there is no row."""
        row = self._execute(connection, values).fetchone()
        return row[0] if row else None

    def values(self, connection: Connection, **values: Any) -> list[Any]:
        """Return the first column of all rows, in the statement's order."""
        return [row[0] for row in self._execute(connection, values)]

    def run(self, connection: Connection, **values: Any) -> int:
        """Run a writing statement; return how many rows it touched."""
        count: int = self._execute(connection, values).rowcount
        return count

    @property
    def selected(self) -> list[ColumnElement[Any]]:
        """The columns of the result, if they are known (those of a text are not)."""
        return list(getattr(self._construct, "selected_columns", ()))

    def text(self, dialect: str) -> str:
        """Return the compiled text for a dialect (``sqlite`` or ``postgresql``)."""
        return self._named(dialect).text

    def _execute(self, connection: Connection, values: dict[str, Any]) -> Any:
        text, constants = self._named(connection.dialect.name)
        return _execute_text(connection, text, {**constants, **values} if constants else values)

    def _compile_named(self, dialect: str) -> _CompiledText:
        compiled = self._construct.compile(dialect=_load_dialect(dialect))
        assert isinstance(compiled, SQLCompiler)
        constants = {
            name: bind.value for bind, name in compiled.bind_names.items() if not bind.required
        }
        return _CompiledText(str(compiled), constants)


class Insertion(Statement[Row]):
    """An insert into the named columns of a table (all, where none is named).

    The names are compared with the table once, when the statement is made: ``columns`` keeps them,
    and a row given to `insert` has its values in their order, whatever the order of the table.
    If the table has seals, each row gets its own.
    """

    def __init__(self, table: Table, *names: str) -> None:
        self.table = table
        self.columns = names or tuple(each.name for each in table.c if each.name != SEAL_COLUMN)
        _check_columns(table, self.columns)
        self._seals = _SealColumns.of(table, self.columns) if SEAL_COLUMN in table.c else None
        written = (*self.columns, SEAL_COLUMN) if self._seals else self.columns
        types = [(name, table.c[name].type) for name in written]
        into = lightweight(table.name, *(column(name, kind) for name, kind in types))
        named = {name: bindparam(name, type_=kind) for name, kind in types}
        super().__init__(insert(into).values(named))
        self._positional = cache(self._compile_positional)

    def inserted(self) -> Select[Any]:
        """Build the query for rows as `insert_many` takes them."""
        return select(*(self.table.c[name] for name in self.columns))

    def run(self, connection: Connection, **values: Any) -> int:
        """Insert a row of values by the names of their columns."""
        self.insert(connection, tuple(map(values.__getitem__, self.columns)))
        return 1

    def insert(self, connection: Connection, row: Row) -> None:
        """Insert a row of values in the order of ``columns``."""
        _execute_text(connection, self._positional(connection.dialect.name), self._whole(row))

    def insert_many(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Insert rows of values in the order of ``columns``."""
        if not rows:
            return
        text = self._positional(connection.dialect.name)
        cursor = get_driver(connection).cursor()
        try:
            cursor.executemany(text, map(self._whole, rows) if self._seals else rows)
        except _UNSTORABLE_ERRORS as error:
            raise _build_value_error(error) from error

    def _whole(self, row: Row) -> Row:
        """Return a row with its seal, where the table has seals."""
        if self._seals is None:
            return row
        return (*row, compute_seal(self._seals.names, self._seals.values(row)))

    def _compile_positional(self, dialect: str) -> str:
        return str(self._construct.compile(dialect=_load_dialect(dialect, positional=True)))


def _execute_text(connection: Connection, text: str, values: dict[str, Any] | Row) -> Any:
    driver = get_driver(connection)
    try:
        return driver.execute(text, values)
    except _UNSTORABLE_ERRORS as error:
        raise _build_value_error(error) from error


class _SealColumns(NamedTuple):
    """The columns that a table's seals cover, and a getter of their values from a row."""

    names: tuple[str, ...]
    values: Callable[[Row], Row]

    @staticmethod
    def of(table: Table, columns: tuple[str, ...]) -> _SealColumns:
        """Return those of rows of these columns."""
        names = tuple(name for name in list_sealed_columns(table) if name in columns)
        return _SealColumns(names, itemgetter(*map(columns.index, names)))


def _check_columns(table: Table, names: tuple[str, ...]) -> None:
    """Refuse names that are not columns or occur twice, and the lack of a required one."""
    needed = {each.name for each in table.c if (not each.nullable and each.server_default is None)}
    wrong = sorted({*names} - {*table.c.keys()} | needed - {*names})
    if wrong or len({*names}) < len(names):
        raise TypeError(f"an insert into {table.name} has other columns: {', '.join(wrong)}")


_MISSING_ROW = "the database lacks a row that others need; `convostore verify` says what is damaged"
_UNSTORABLE_ERRORS = (OverflowError, UnicodeEncodeError)


def _build_value_error(error: BaseException) -> InvalidValue:
    return InvalidValue(f"a value that no database can hold: {' '.join(str(error).split())}")


def list_driver_errors() -> tuple[type[Exception], ...]:
    """Return the exception types of the drivers.

    The errors of statements come straight from them, not through SQLAlchemy.
    """
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error, DBAPIError, *([psycopg.Error] if psycopg else []))


_CODE_ERRORS: dict[str, tuple[type[StoreError], str]] = {
    "SQLITE_BUSY": (
        StoreBusy,
        "another program held the database until the deadline; nothing was written, try again",
    ),
    "SQLITE_LOCKED": (
        StoreBusy,
        "another program held the database; nothing was written, try again",
    ),
    "SQLITE_FULL": (StoreFull, "the disk is full; nothing was written, make room and try again"),
    "SQLITE_IOERR_WRITE": (
        StoreFull,
        "the disk did not take the write; nothing was written, make room and try again",
    ),
    "SQLITE_IOERR_SHMSIZE": (
        StoreFull,
        "the disk has no room for the store's index; make room and try again",
    ),
    "SQLITE_NOTADB": (NotAStore, "{file} is no SQLite database; it was not touched"),
    "SQLITE_READONLY": (
        ReadOnly,
        "{file} or its folder cannot be written; check their permissions",
    ),
    "SQLITE_CANTOPEN": (
        StoreError,
        "{file} cannot be opened, or nothing be written beside it; check the permissions of both",
    ),
    "55P03": (
        StoreBusy,
        "another writer held what was needed until the deadline; nothing was written, try again",
    ),
    "40001": (StoreBusy, "another transaction was in the way; nothing was written, try again"),
    "40P01": (StoreBusy, "another transaction was in the way; nothing was written, try again"),
    "25006": (
        ReadOnly,
        "the server takes no writes: it is a standby, or read-only; nothing was written",
    ),
    "53100": (StoreFull, "the server's disk is full; nothing was written, make room and try again"),
    "SQLITE_CORRUPT": (
        Damaged,
        "{file} is damaged; restore a backup; where it opens `convostore verify` says what is hit",
    ),
}


LOST_STATES = ("57P01", "57P02", "57P05", "40003")
"""The states that a server reports when it ends a connection, in addition to class 08."""
UNKNOWN_COMMIT_STATE = "XX000"
"""The state that leaves the outcome of a COMMIT unknown."""


def is_breaking_error(error: BaseException, *, is_committing: bool) -> bool:
    """Tell whether a server's error leaves the connection, or the outcome of a commit, unknown."""
    state = _get_sqlstate(error)
    is_lost = state.startswith("08") or state in LOST_STATES
    return is_lost or (is_committing and state == UNKNOWN_COMMIT_STATE)


_CROWDED_SERVER_WORDS = (
    *("starting up", "shutting down", "in recovery mode", "not yet accepting connections"),
    *("too many", "remaining connection slots", "no more connections"),
)
"""The words of servers and poolers that have no free connection at the moment.

The driver has no SQLSTATE of an attempt to connect (57P03, 53300), only the server's text.
"""


def build_connection_error(error: Exception) -> StoreError:
    """Return the error for a connection to a server that could not be made.

    A server that responds and refuses the role or the database will do so again.
    """
    told = " ".join(str(_unwrap_error(error)).split())
    is_refused = _get_sqlstate(error)[:2] in ("28", "3D") or "FATAL:" in told
    if is_refused and not any(each in told for each in _CROWDED_SERVER_WORDS):
        return translate_error(error, None)
    return Unavailable(f"no connection to the server: {told}; nothing was written, try again later")


RETRIABLE_STATES = ("40001", "40P01")
"""The states of a failed transaction that may succeed if it is run again."""


def is_retriable(error: StoreError) -> bool:
    """Tell whether a server has asked for a transaction to be done from the beginning."""
    return getattr(error.__cause__, "sqlstate", None) in RETRIABLE_STATES


def get_lock_names(connection: Connection) -> list[str]:
    """Return the names that a transaction on a server has asked to lock, a list to append to."""
    return get_lease(connection).locked


def _has_free_descriptors() -> bool:
    """Tell whether the process can open the files of a connection: file, log, index."""
    with ExitStack() as opened:
        try:
            for _ in range(3):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError:
            return False
    return True


_PERMISSION_CODES = ("SQLITE_READONLY", "SQLITE_CANTOPEN")
_UNDECODED_MESSAGE = "Could not decode to UTF-8"
"""The message of Python's driver for invalid text; it has no code for it."""


def _unwrap_error(error: BaseException) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _get_sqlstate(error: BaseException) -> str:
    """Return the SQLSTATE of a server's error, empty if it has none."""
    return getattr(_unwrap_error(error), "sqlstate", None) or ""


def translate_error(error: Exception, file: str | None) -> StoreError:
    """Return the store's own error for one of a driver's, on a file or on a server (None)."""
    original = _unwrap_error(error)
    if any(kind.__name__ == "DataError" for kind in type(original).__mro__):  # of whichever driver
        return _build_value_error(original)
    name, state = getattr(original, "sqlite_errorname", ""), _get_sqlstate(original)
    if name == "SQLITE_CANTOPEN" and not _has_free_descriptors():
        return StoreError(TOO_MANY_FILES)
    if file and name.startswith(_PERMISSION_CODES) and (closed := list_unusable_files(file)):
        return ReadOnly(
            f"{' and '.join(closed)} cannot be written by this user; check the permissions there"
        )
    if str(original).startswith(_UNDECODED_MESSAGE):
        return Damaged(f"{file} is damaged: {original}; `convostore verify` says where")
    for prefix, (kind, text) in _CODE_ERRORS.items():
        if name.startswith(prefix) or state == prefix:
            return kind(text.format(file=file))
    return StoreError(f"the database refused: {original}")
