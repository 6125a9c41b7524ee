"""Whether SQLite finds its own structures sound: pages, indexes, foreign keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sqlalchemy import Connection, text

from ..database import Row, Statement
from ..records import Finding


def structures(connection: Connection) -> Iterator[Finding]:
    """Yield what SQLite finds wrong with its own structures.

    A server checks them itself, and keeps its foreign keys.
    """
    if connection.dialect.name == "sqlite":
        yield from damaged_pages(connection)
        yield from _orphans(connection)


def damaged_pages(connection: Connection, table: str | None = None) -> Iterator[Finding]:
    """Yield what SQLite finds wrong with the pages of a table and its indexes, or of the file."""
    for (problem,) in _pragma(table).rows(connection):
        if problem != "ok":
            yield Finding("integrity", table or "the file", problem)


@cache
def _pragma(table: str | None) -> Statement[Row]:
    return Statement(
        text(f"PRAGMA integrity_check({table})" if table else "PRAGMA integrity_check")
    )


def _orphans(connection: Connection) -> Iterator[Finding]:
    for table, rowid, parent, _ in connection.execute(text("PRAGMA foreign_key_check")):
        where = table if rowid is None else f"{table}, row {rowid}"  # narrow rows have no number
        yield Finding("orphan", where, f"what it belongs to is not in {parent}")
