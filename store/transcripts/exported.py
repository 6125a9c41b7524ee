"""A whole store as `export --all` writes it: the rows of its tables, each an object of one key.

The key is the name of the table. The first row, ``{"convostore": {...}}``, tells their schema and
the number of trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .events import Event, Noted, StoreRow, fields_of, sketch
from .source import Source, Value

HEAD = "convostore"


def looks(value: Any) -> bool:
    """Tell whether a JSON value is the head of a store."""
    fields = fields_of(value)
    return fields.keys() == {HEAD} and "schema" in fields_of(fields[HEAD])


def parse(source: Source) -> Iterator[Event]:
    """Return the rows of a file as they are."""
    for item in source.values():
        yield item if isinstance(item, Noted) else _row(item)


def _row(item: Value) -> StoreRow | Noted:
    fields = fields_of(item.value)
    if len(fields) == 1:
        for table, held in fields.items():
            if isinstance(held, dict):
                return StoreRow(table, held, item.row)
    return Noted(item.row, f"this is no row of a store: {sketch(item.value)}", broken=True)
