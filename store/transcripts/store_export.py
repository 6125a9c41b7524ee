"""A whole store as `export --all` writes it: the rows of its tables, each an object of one key.

The key is the name of the table. The first row, ``{"convostore": {...}}``, tells their schema and
the number of trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .parser_events import Event, NoteEvent, StoreRow, get_fields, render_sketch
from .source import SourceValue, TranscriptSource

__all__ = ["STORE_HEAD_KEY", "is_store_head", "parse_exported_store"]

STORE_HEAD_KEY = "convostore"
"""The kind of a whole store's export, and the key of its first row."""


def is_store_head(value: Any) -> bool:
    """Tell whether a JSON value is the head of a store."""
    fields = get_fields(value)
    return fields.keys() == {STORE_HEAD_KEY} and "schema" in get_fields(fields[STORE_HEAD_KEY])


def parse_exported_store(source: TranscriptSource) -> Iterator[Event]:
    """Return the rows of a file as they are."""
    for item in source.values():
        yield item if isinstance(item, NoteEvent) else _parse_store_row(item)


def _parse_store_row(item: SourceValue) -> StoreRow | NoteEvent:
    fields = get_fields(item.value)
    if len(fields) == 1:
        for table, held in fields.items():
            if isinstance(held, dict):
                return StoreRow(table, held, item.row)
    return NoteEvent(
        item.row, f"this is no row of a store: {render_sketch(item.value)}", broken=True
    )
