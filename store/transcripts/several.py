"""Files that hold whole conversations: each of their values is one, or a list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..text import as_list
from .events import Event, Noted, SessionNames, unread
from .source import Source, Value

Reading = Callable[[Value, SessionNames], Iterator[Event]]
"""How one conversation is read, which gets an id of its own from the names of its file."""


def conversations(
    source: Source, is_one: Callable[[Any], object], expected: str, read: Reading
) -> Iterator[Event]:
    """Return what each conversation of a file says, and a note for each value that is none.

    ``expected`` says in words what such a value is no one of.
    """
    names = SessionNames(source.stem)
    for item in source.values():
        if isinstance(item, Noted):
            yield item
            continue
        for each in as_list(item.value):
            if is_one(each):
                yield from read(Value(item.row, each), names)
            else:
                yield unread(item.row, each, f"no {expected}")
