"""The session of each row of a Claude Code file, if one file was appended to another.

A resumed session continues under another id, so an id alone tells nothing: a row that follows or
repeats a row of another session belongs to the same session. A row that starts anew does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...text import JsonFields
from ..events import NoteEvent, get_fields, get_text
from ..shelf import Shelf
from ..source import SourceValue, TranscriptSource
from .collecting import ConversationCollector
from .rows import CONVERSATION_ROW_TYPES


class SessionSorter:
    """Read each session of a file by itself.

    Rows of a new id wait for the first one of its conversation, which tells where they belong.
    """

    def __init__(self, shelf: Shelf, *, keeps_beside: bool) -> None:
        self._new = partial(ConversationCollector, shelf, keeps_beside=keeps_beside)
        self.readings = [self._new()]
        self._last = self.readings[0]
        self._homes: dict[str, ConversationCollector] = {}
        self._waiting: dict[str, list[SourceValue]] = {}

    def read(self, source: TranscriptSource) -> Iterator[NoteEvent]:
        """Read a whole file; return a note for each row that is broken."""
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
            else:
                yield from self._take(item)
        for items in self._waiting.values():
            yield from self._give(items)

    def _take(self, item: SourceValue) -> Iterator[NoteEvent]:
        fields = get_fields(item.value)
        name = get_text(fields.get("sessionId"))
        items = [item]
        if name and name not in self._homes:
            items = self._waiting.setdefault(name, [])
            items.append(item)
            if self._homes and fields.get("type") not in CONVERSATION_ROW_TYPES:
                return
            self._homes[name] = self._home_of(self._waiting.pop(name))
        self._last = self._homes[name] if name else self._last
        yield from self._give(items)

    def _give(self, items: list[SourceValue]) -> Iterator[NoteEvent]:
        yield from filter(None, map(self._last.take, items))

    def _home_of(self, items: list[SourceValue]) -> ConversationCollector:
        """Return the session that knows one of some rows, a new one where one of them is a root."""
        rows = [get_fields(item.value) for item in items]
        for reading in self.readings:
            if any(map(reading.knows, rows)):
                return reading
        return self._begun() if self._homes and any(map(_is_root_row, rows)) else self._last

    def _begun(self) -> ConversationCollector:
        self.readings.append(self._new())
        return self.readings[-1]


def _is_root_row(row: JsonFields) -> bool:
    """Tell whether a row has no parent; a row with a missing parent is cut off instead."""
    return bool(row.get("uuid")) and row.get("parentUuid") is None
