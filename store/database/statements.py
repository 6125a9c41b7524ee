"""A statement as a constant.

A Core construct, compiled once per dialect, run on the pooled driver connection.

Building a construct for each call costs five to sixteen times what its text costs to run, and
Core's own execution four to five times; so every statement of the hot paths is a module constant of
this class, and this is the one place that runs text on the driver. The compiled texts are kept
under ``tests/sql/`` so that a review sees them change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from hashlib import sha256
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
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

from ..errors import (
    StoreError,
)
from .driver_errors import UNSTORABLE_ERRORS, build_value_error
from .lease import get_driver, wait_for_answers
from .schema import SEAL_COLUMN

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
    the given ``NamedTuple``: its fields are then the statement's columns, in their order. A server
    may be asked by another construct with the same values and columns.
    """

    @overload
    def __init__(
        self: Statement[Row],
        construct: ClauseElement,
        *,
        on_server: ClauseElement | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        construct: ClauseElement,
        row: type[RowT],
        *,
        on_server: ClauseElement | None = None,
    ) -> None: ...
    def __init__(
        self,
        construct: ClauseElement,
        row: type[Any] | None = None,
        *,
        on_server: ClauseElement | None = None,
    ) -> None:
        self.row_type = row
        self._make: Callable[[Any], RowT] | None = partial(tuple.__new__, row) if row else None
        self._construct = construct
        self._on_server = construct if on_server is None else on_server
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

    def send(self, connection: Connection, **values: Any) -> None:
        """Send a query to a server ahead, before it is asked for; a file is asked at its time.

        Asked for with the same values later in the transaction, it has its answer in the round
        trip of the answers before it.
        """
        if connection.dialect.name == "postgresql":
            self._execute(connection, values, ahead=True)

    def run(self, connection: Connection, **values: Any) -> None:
        """Run a statement for its effect; a server's error appears later in the transaction."""
        self._execute(connection, values)

    def run_many(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Run a statement for its effect with each of some rows of values."""
        if len(rows) == 1:
            self.run(connection, **rows[0])
        elif rows:
            _run_many(connection, self.text(connection.dialect.name), rows)

    def count_changed(self, connection: Connection, **values: Any) -> int:
        """Run a writing statement; return how many rows it touched."""
        cursor = self._execute(connection, values)
        wait_for_answers(connection)
        count: int = cursor.rowcount
        return count

    @property
    def selected(self) -> list[ColumnElement[Any]]:
        """The columns of the result, if they are known (those of a text are not)."""
        return list(getattr(self._construct, "selected_columns", ()))

    def text(self, dialect: str) -> str:
        """Return the compiled text for a dialect (``sqlite`` or ``postgresql``)."""
        return self._named(dialect).text

    def _execute(
        self, connection: Connection, values: dict[str, Any], *, ahead: bool = False
    ) -> Any:
        text, constants = self._named(connection.dialect.name)
        if constants:
            values = {**constants, **values}
        try:
            driver = get_driver(connection)
            return driver.send(text, values) if ahead else driver.execute(text, values)
        except UNSTORABLE_ERRORS as error:
            raise build_value_error(error) from error

    def _compile_named(self, dialect: str) -> _CompiledText:
        construct = self._on_server if dialect == "postgresql" else self._construct
        compiled = construct.compile(dialect=_load_dialect(dialect))
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
        needed = {
            each.name for each in table.c if not each.nullable and each.server_default is None
        }
        named = {*self.columns}
        wrong = sorted(named - {*table.c.keys()} | needed - named)
        if wrong or len(named) < len(self.columns):
            raise TypeError(f"an insert into {table.name} has other columns: {', '.join(wrong)}")
        self._select: Callable[[dict[str, Any]], Row] = itemgetter(*self.columns)
        self._seals: _SealColumns | None = None
        if SEAL_COLUMN in table.c:
            sealed = tuple(each for each in list_sealed_columns(table) if each in self.columns)
            values = itemgetter(*map(self.columns.index, sealed))
            self._seals = _SealColumns(sealed, values)
        written = (*self.columns, SEAL_COLUMN) if self._seals else self.columns
        types = [(name, table.c[name].type) for name in written]
        into = lightweight(table.name, *(column(name, kind) for name, kind in types))
        bound = {name: bindparam(name, type_=kind) for name, kind in types}
        super().__init__(insert(into).values(bound))
        self._positional: Callable[[str], str] = cache(
            lambda name: str(self._construct.compile(dialect=_load_dialect(name, positional=True)))
        )

    def inserted(self) -> Select[Any]:
        """Build the query for rows as `insert_many` takes them."""
        return select(*(self.table.c[name] for name in self.columns))

    def run(self, connection: Connection, **values: Any) -> None:
        """Insert a row of values by the names of their columns."""
        self.insert(connection, self._select(values))

    def insert(self, connection: Connection, row: Row) -> None:
        """Insert a row of values in the order of ``columns``."""
        text = self._positional(connection.dialect.name)
        if self._seals:
            row = (*row, compute_seal(self._seals.names, self._seals.values(row)))
        try:
            get_driver(connection).execute(text, row)
        except UNSTORABLE_ERRORS as error:
            raise build_value_error(error) from error

    def insert_many(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Insert rows of values in the order of ``columns``."""
        if len(rows) == 1:
            self.insert(connection, rows[0])
        elif rows:
            text, seals = self._positional(connection.dialect.name), self._seals
            if seals:
                rows = [(*each, compute_seal(seals.names, seals.values(each))) for each in rows]
            _run_many(connection, text, rows)


def _run_many(connection: Connection, text: str, rows: Sequence[Any]) -> None:
    cursor = get_driver(connection).cursor()
    try:
        cursor.executemany(text, rows)
    except UNSTORABLE_ERRORS as error:
        raise build_value_error(error) from error


class _SealColumns(NamedTuple):
    """The columns that a table's seals cover, and a getter of their values from a row."""

    names: tuple[str, ...]
    values: Callable[[Row], Row]


_MISSING_ROW = "the database lacks a row that others need; `convostore verify` says what is damaged"


def list_sealed_columns(table: Table) -> tuple[str, ...]:
    """Return the columns that a table's seals cover, in the order of their names.

    These are all columns except those that may change.
    """
    columns = (each for each in table.c if not each.info.get("changes"))
    return tuple(sorted(str(each.name) for each in columns if each.name != SEAL_COLUMN))


def compute_seal(names: Iterable[str], values: Iterable[object]) -> bytes:
    """Return the seal of a row's values, given with the names of their columns, in that order.

    It is the SHA-256 of everything in the row that never changes once it is written. It is stored
    beside the row, so it reveals changes made without the store. It has no key: it detects damage
    and carelessness, not somebody who seals his own changes.

    NULL values are left out. So a revision may add a column that is NULL in existing rows, and
    their seals stay valid; a revision that fills it seals these rows anew.
    """
    row = zip(names, values, strict=True)
    held = {name: value for name, value in row if value is not None}
    return sha256(_load_json_encoder()(held, bytes_mode="hex")).digest()


@cache
def _load_json_encoder() -> Callable[..., bytes]:
    """Return the encoder of pydantic, loaded on first use."""
    from pydantic_core import to_json

    return to_json
