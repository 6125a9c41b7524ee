"""The session of each row of a Claude Code file, if one file was appended to another.

A resumed session continues under another id, so an id alone tells nothing: a row that follows or
repeats a row of another session belongs to the same session. A row that starts anew does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...text import Fields
from ..events import Noted, fields_of, text_of
from ..shelf import Shelf
from ..source import Source, Value
from .collecting import Reading
from .rows import CONVERSATION


class Sessions:
    """Read each session of a file by itself.

    Rows of a new id wait for the first one of its conversation, which tells where they belong.
    """

    def __init__(self, shelf: Shelf, *, keeps_beside: bool) -> None:
        self._new = partial(Reading, shelf, keeps_beside=keeps_beside)
        self.readings = [self._new()]
        self._last = self.readings[0]
        self._homes: dict[str, Reading] = {}
        self._waiting: dict[str, list[Value]] = {}

    def read(self, source: Source) -> Iterator[Noted]:
        """Read a whole file; return a note for each row that is broken."""
        for item in source.values():
            if isinstance(item, Noted):
                yield item
            else:
                yield from self._take(item)
        for items in self._waiting.values():
            yield from self._give(items)

    def _take(self, item: Value) -> Iterator[Noted]:
        fields = fields_of(item.value)
        name = text_of(fields.get("sessionId"))
        items = [item]
        if name and name not in self._homes:
            items = self._waiting.setdefault(name, [])
            items.append(item)
            if self._homes and fields.get("type") not in CONVERSATION:
                return
            self._homes[name] = self._home_of(self._waiting.pop(name))
        self._last = self._homes[name] if name else self._last
        yield from self._give(items)

    def _give(self, items: list[Value]) -> Iterator[Noted]:
        yield from filter(None, map(self._last.take, items))

    def _home_of(self, items: list[Value]) -> Reading:
        """Return the session that knows one of some rows, a new one where one of them is a root."""
        rows = [fields_of(item.value) for item in items]
        for reading in self.readings:
            if any(map(reading.knows, rows)):
                return reading
        return self._begun() if self._homes and any(map(_is_root, rows)) else self._last

    def _begun(self) -> Reading:
        self.readings.append(self._new())
        return self.readings[-1]


def _is_root(row: Fields) -> bool:
    """Tell whether a row has no parent; a row with a missing parent is cut off instead."""
    return bool(row.get("uuid")) and row.get("parentUuid") is None
