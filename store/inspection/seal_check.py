"""Whether the rows that have seals are still as they were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, select

from ..database import SEALED, SEALED_TABLES, Statement, seal, sealed_names
from ..records import Finding
from .line_check import STREAMING, resumable, unchecked


def check_seals(connection: Connection) -> Iterator[Finding]:
    """Yield the rows that are not what was sealed; after damage, go on with the next table."""
    for table in SEALED_TABLES:
        try:
            with resumable(connection):
                yield from _check_table(connection, table)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other tables are checked
            yield unchecked(table.name, error)


def _check_table(connection: Connection, table: Table) -> Iterator[Finding]:
    rows = connection.execute(_sealed_rows(table), execution_options=STREAMING)
    with closing(rows):
        yield from _broken_seals(table, rows)


def check_seals_of(connection: Connection, table: Table, tree_id: int | None) -> Iterator[Finding]:
    """Yield the rows of a table, of a tree or of all, that are not what was sealed."""
    is_of_tree = tree_id is not None and "tree_id" in table.c
    values = {"tree_id": tree_id} if is_of_tree else {}
    rows = _statement(table, is_of_tree=is_of_tree).scan(connection, **values)
    return _broken_seals(table, rows)


@cache
def _statement(table: Table, *, is_of_tree: bool) -> Statement[Any]:
    rows = _sealed_rows(table)
    return Statement(rows.where(table.c.tree_id == bindparam("tree_id")) if is_of_tree else rows)


def _sealed_rows(table: Table) -> Select[Any]:
    return select(*(table.c[name] for name in (*sealed_names(table), SEALED)))


def _broken_seals(table: Table, rows: Iterable[Any]) -> Iterator[Finding]:
    names = sealed_names(table)
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
