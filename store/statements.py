"""A statement as a constant: a Core construct, compiled once per dialect, run on the pooled driver connection.

Building a construct for each call costs five to sixteen times what its text costs to run, and Core's own execution
four to five times; so every statement of the hot paths is a module constant of this class, and this is the one place
that runs text on the driver. The compiled texts are kept under ``tests/sql/`` so that a review sees them change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Dialect
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement

Row = tuple[Any, ...]

_NAMED: dict[str, Dialect] = {
    "sqlite": pysqlite.dialect(paramstyle="named"),
    "postgresql": psycopg.dialect(paramstyle="pyformat"),  # type: ignore[no-untyped-call]
}
_POSITIONAL: dict[str, Dialect] = {
    "sqlite": pysqlite.dialect(paramstyle="qmark"),
    "postgresql": psycopg.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}
DIALECTS = tuple(_NAMED)


class _Compiled(NamedTuple):
    text: str
    constants: dict[str, Any]


class Statement:
    """A statement of the store; values go in by the names of its ``bindparam``s, plain tuples come out."""

    def __init__(self, construct: ClauseElement) -> None:
        self._construct = construct
        self._named = cache(self._compile_named)
        self._positional = cache(self._compile_positional)

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
            _driver(connection).cursor().executemany(text, rows)

    def text(self, dialect: str) -> str:
        """Return the compiled text for a dialect (``sqlite`` or ``postgresql``)."""
        return self._named(dialect).text

    def _execute(self, connection: Connection, values: dict[str, Any]) -> Any:
        text, constants = self._named(connection.dialect.name)
        return _driver(connection).execute(text, {**constants, **values} if constants else values)

    def _compile_named(self, dialect: str) -> _Compiled:
        compiled = self._construct.compile(dialect=_NAMED[dialect])
        assert isinstance(compiled, SQLCompiler)
        constants = {name: bind.value for bind, name in compiled.bind_names.items() if not bind.required}
        return _Compiled(str(compiled), constants)

    def _compile_positional(self, dialect: str) -> str:
        return str(self._construct.compile(dialect=_POSITIONAL[dialect]))


def _driver(connection: Connection) -> Any:
    """Return the driver's connection, the transaction begun: what ran before the first statement ran outside of it."""
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.driver_connection
