"""Files that hold whole conversations: each of their values is one, or a list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..text import wrap_in_list
from .events import Event, NoteEvent, SessionNames, note_unread_value
from .source import SourceValue, TranscriptSource

ConversationParser = Callable[[SourceValue, SessionNames], Iterator[Event]]
"""How one conversation is read, which gets an id of its own from the names of its file."""


def parse_conversations(
    source: TranscriptSource,
    is_one: Callable[[Any], object],
    expected: str,
    read: ConversationParser,
) -> Iterator[Event]:
    """Return what each conversation of a file says, and a note for each value that is none.

    ``expected`` says in words what such a value is no one of.
    """
    names = SessionNames(source.stem)
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
            continue
        for each in wrap_in_list(item.value):
            if is_one(each):
                yield from read(SourceValue(item.row, each), names)
            else:
                yield note_unread_value(item.row, each, f"no {expected}")
