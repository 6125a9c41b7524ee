"""Whether the rows that have seals are still as they were written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from sqlalchemy import Connection, Table, select

from ..database import SEALED, SEALED_TABLES, seal, sealed_names
from ..records import Finding
from .line_check import DAMAGE, STREAMING, unreadable


def check_seals(connection: Connection) -> Iterator[Finding]:
    """Yield the rows that are not what was sealed; after damage, go on with the next table."""
    for table in SEALED_TABLES:
        try:
            yield from _check_table(connection, table)
        except DAMAGE as error:
            yield Finding("integrity", table.name, unreadable(error))


def _check_table(connection: Connection, table: Table) -> Iterator[Finding]:
    names = sealed_names(table)
    columns = select(*(table.c[name] for name in (*names, SEALED)))
    rows = connection.execute(columns, execution_options=STREAMING)
    with closing(rows):
        for *values, sealed in rows:
            if not _holds(names, values, sealed):
                where = _place(table, names, values)
                yield Finding("seal", where, "is not what was written")


def _holds(names: tuple[str, ...], values: list[object], sealed: object) -> bool:
    """Tell whether a seal is that of its row."""
    try:
        return seal(names, values) == sealed
    except (TypeError, ValueError):
        return False


def _place(table: Table, names: tuple[str, ...], values: list[object]) -> str:
    """Return the place of a row: its table, and its key."""
    row = dict(zip(names, values, strict=True))
    keys = (f"{key.name} {row[key.name]!r}" for key in table.primary_key)
    return f"{table.name}, {', '.join(keys)}"
