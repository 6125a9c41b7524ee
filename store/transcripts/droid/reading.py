"""Droid's sessions: files of entries that tell which one they follow, or rows of a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    fields_of,
    first_text,
    omissions,
    sketch,
    split_metadata,
    telling,
    text_of,
    title_lines,
    title_of,
    unread,
    without,
)
from ..shelf import Shelf, Shelved
from ..source import Source
from ..trees import Tree, tree_events
from . import stream
from .entries import is_told, messages_of

HEAD = "session_start"

UNKEPT = ("type", "subtype", "cwd", "session_id", "model")
"""Keys of a stream's first row that its session says."""


def looks(value: Any) -> bool:
    """Tell whether a value is a session's head, or a row of a stream."""
    fields = fields_of(value)
    return (fields.get("type") == HEAD and "id" in fields) or stream.is_row(value)


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches, then the notes."""
    rows: list[Fields] = []
    with Shelf() as shelf:
        chat = _Chat({"id": source.stem}, shelf)
        for item in source.values():
            if isinstance(item, Noted):
                yield item
            elif stream.is_row(item.value):
                rows.append(item.value)
            elif looks(item.value):
                yield from chat.events()
                chat = _Chat(item.value, shelf)
            elif rows:
                yield Noted(item.row, f"left out {sketch(item.value)}", left_out=1, thing="row")
            elif text_of(fields_of(item.value).get("type")):
                chat.take(item.value)
            else:
                yield unread(item.row, item.value, "no entry of a session")
        yield from chat.events()
    yield from _streamed(rows, source.stem)


def _streamed(rows: list[Fields], stem: str) -> Iterator[Event]:
    """Yield the session of a stream."""
    messages = stream.messages_of(rows)
    if not messages:
        return
    heads = (row for row in rows if row["type"] == stream.INIT)
    head = next(heads, rows[0])
    name = text_of(rows[0].get("session_id")) or stem
    told = without(head, *UNKEPT) if head["type"] == stream.INIT else {}
    metadata = telling({"model": text_of(head.get("model")), "droid": told})
    yield Opened(name, title_of(messages), text_of(head.get("cwd")), metadata)
    yield from map(Said, messages)


class _Chat:
    """A session: its head, its entries under their ids, and which one each follows."""

    def __init__(self, head: Fields, shelf: Shelf) -> None:
        self._head = head
        self._entries = Shelved(shelf)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None
        self._unsaid: Counter[tuple[str, str]] = Counter()

    def take(self, entry: Fields) -> None:
        """Take the next entry; one that does not tell follows the message before it."""
        if not is_told(entry):
            self._unsaid[str(entry["type"]), ""] += 1
            return
        name = text_of(entry.get("id")) or f"entry-{len(self._entries) + 1}"
        parent = text_of(entry.get("parentId"))
        self._parents[name] = parent if parent in self._parents else self._last
        self._entries[name] = entry
        self._last = name

    def events(self) -> Iterator[Event]:
        """Return the session, its branches, and the notes."""
        if self._entries:
            opened, notes = self._opened()
            yield from tree_events(Tree(self._parents, self._last, self._messages_of), opened)
            yield from omissions(self._unsaid, "entry")
            yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        return messages_of(name, self._entries[name])

    def _opened(self) -> tuple[Opened, list[Noted]]:
        head = self._head
        asked = title_of(chain.from_iterable(map(self._messages_of, self._entries)))
        titles = title_lines((head.get("sessionTitle"), head.get("title"), asked))
        told = without(head, "type", "id", "title", "sessionTitle", "cwd")
        kept, notes = split_metadata(telling(told))
        parent = first_text((head.get("callingSessionId"), head.get("parent")))
        metadata = telling({"parent_session": parent, "droid": kept})
        title, root = first_text(titles), text_of(head.get("cwd"))
        return Opened(str(head["id"]), title, root, metadata, titles=titles), notes
