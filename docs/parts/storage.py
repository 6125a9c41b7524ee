"""The tables, triggers and views of a store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import store
from store import inspection
from store.database import schema

from .markdown import as_table


def tables() -> str:
    """Return each table: its key, its other columns, what it refers to."""
    parts = []
    for table in schema.METADATA.sorted_tables:
        key = [column.name for column in table.primary_key.columns]
        rest = [_column(column) for column in table.columns if column.name not in key]
        refers = sorted({each.referred_table.name for each in table.foreign_key_constraints})
        parts.append(
            (
                f"`{table.name}`",
                f"`{', '.join(key)}`",
                ", ".join(rest),
                ", ".join(f"`{r}`" for r in refers),
            )
        )
    return as_table(["table", "key", "other columns", "refers to"], sorted(parts))


def _column(column: Any) -> str:
    return f"`{column.name}`" + ("?" if column.nullable else "")


def triggers() -> str:
    """Return each trigger of the database and what it says when it refuses."""
    rows = [(f"`{name}`", f"`{table}`", found[1]) for name, table, found in _triggers()]
    return as_table(["trigger", "on", "refuses with"], rows)


def _triggers() -> Iterator[tuple[str, str, re.Match[str]]]:
    for name, table, text in _master(
        "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY 1"
    ):
        found = re.search(r"RAISE\(ABORT, '(.*)'\)", text)
        assert found
        yield name, table, found


def views() -> str:
    """Return each view for people and its columns."""
    with store.Store(":memory:") as made:
        found = inspection.views(made.database.url)
    rows = ((f"`{name}`", ", ".join(f"`{each}`" for each in found[name])) for name in found)
    return as_table(["view", "columns"], rows)


def changing() -> str:
    """Return the columns of each table that may change after a row was written."""
    rows = []
    for table in sorted(schema.METADATA.sorted_tables, key=lambda each: each.name):
        may = [f"`{column.name}`" for column in table.columns if column.info.get("changes")]
        if may:
            rows.append((f"`{table.name}`", ", ".join(may)))
    return as_table(["table", "columns that may change"], rows)


def _master(query: str) -> list[Any]:
    with store.Store(":memory:") as made, made.database.reading() as connection:
        return list(connection.exec_driver_sql(query))
