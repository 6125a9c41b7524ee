"""A session of a store as `export --all` writes it: a head that tells all of it, then its messages.

A row ``{"convostore": {...}}`` says which session it is, and what is known of it beside the
messages of its whole line. These follow, one a row, as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..text import Fields
from .events import (
    Event,
    Noted,
    Opened,
    SessionNames,
    Stem,
    as_message,
    fields_of,
    text_of,
)
from .source import Source

HEAD = "convostore"


def looks(value: Any) -> bool:
    """Tell whether a JSON value is the head of a session."""
    fields = fields_of(value)
    return fields.keys() == {HEAD} and isinstance(fields[HEAD], dict)


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file, each with its messages as they are."""
    names = SessionNames()
    for item in source.values():
        if isinstance(item, Noted):
            yield item
        elif looks(item.value):
            yield _opened(item.value[HEAD], source.stem, names)
        else:
            yield as_message(item.value, row=item.row, place=f"line {item.row}")


def _opened(told: Fields, stem: str, names: SessionNames) -> Opened:
    return Opened(
        names.name(text_of(told.get("session_id")) or stem),
        text_of(told.get("title")),
        text_of(told.get("project_root")),
        fields_of(told.get("metadata")),
        text_of(told.get("owner")),
        shares=_shares(fields_of(told.get("fork"))),
        created_at=_moment(told.get("created_at")),
        active_at=_moment(told.get("updated_at")),
        archived=told.get("archived") is True,
    )


def _shares(fork: Fields) -> Stem | None:
    source, at = text_of(fork.get("of")), _moment(fork.get("at"))
    return None if source is None or at is None else Stem(source, at)


def _moment(value: object) -> int | None:
    """Return a whole number that is not negative and fits any column, None for anything else."""
    return value if type(value) is int and 0 <= value < 2**53 else None
