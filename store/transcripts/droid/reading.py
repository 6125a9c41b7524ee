"""Droid's sessions: files of entries that tell which one they follow, or rows of a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..blocks import parse_blocks
from ..events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_text,
    list_omission_notes,
    note_unread_value,
    render_sketch,
    render_titles,
    split_metadata,
)
from ..shelf import Shelf, ShelfMapping
from ..source import TranscriptSource
from ..trees import Tree, build_tree_events
from . import stream
from .entries import DROID_ROLES, HIDDEN_VISIBILITY, parse_droid_entry

DROID_HEAD_TYPE = "session_start"

DROID_INIT_KEYS = ("type", "subtype", "cwd", "session_id", "model")
"""Keys of a stream's first row that its session says."""


def is_droid_value(value: Any) -> bool:
    """Tell whether a value is a session's head, or a row of a stream."""
    fields = get_fields(value)
    return (fields.get("type") == DROID_HEAD_TYPE and "id" in fields) or stream.is_droid_row(value)


def parse_droid(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches, then the notes."""
    rows: list[JsonFields] = []
    with Shelf() as shelf:
        chat = _DroidSession({"id": source.stem}, shelf)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
            elif stream.is_droid_row(item.value):
                rows.append(item.value)
            elif is_droid_value(item.value):
                yield from chat.events()
                chat = _DroidSession(item.value, shelf)
            elif rows:
                yield NoteEvent(
                    item.row, f"left out {render_sketch(item.value)}", left_out=1, thing="row"
                )
            elif get_text(get_fields(item.value).get("type")):
                chat.take(item.value)
            else:
                yield note_unread_value(item.row, item.value, "no entry of a session")
        yield from chat.events()
    yield from _parse_droid_stream(rows, source.stem)


def _parse_droid_stream(rows: list[JsonFields], stem: str) -> Iterator[Event]:
    """Yield the session of a stream."""
    messages = stream.parse_droid_rows(rows)
    if not messages:
        return
    heads = (row for row in rows if row["type"] == stream.INIT)
    head = next(heads, rows[0])
    name = get_text(rows[0].get("session_id")) or stem
    told = drop_keys(head, *DROID_INIT_KEYS) if head["type"] == stream.INIT else {}
    metadata = drop_empty_fields({"model": get_text(head.get("model")), "droid": told})
    yield SessionEvent(name, find_title(messages), get_text(head.get("cwd")), metadata)
    yield from map(SessionMessage, messages)


class _DroidSession:
    """A session: its head, its entries under their ids, and which one each follows."""

    def __init__(self, head: JsonFields, shelf: Shelf) -> None:
        self._head = head
        self._entries = ShelfMapping(shelf)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None
        self._unsaid: Counter[tuple[str, str]] = Counter()

    def take(self, entry: JsonFields) -> None:
        """Take the next entry; one that does not tell follows the message before it."""
        said = get_fields(entry.get("message"))
        is_sent = said.get("role") in DROID_ROLES and said.get("visibility") != HIDDEN_VISIBILITY
        if not (is_sent and parse_blocks(said.get("content")) is not None):
            self._unsaid[str(entry["type"]), ""] += 1
            return
        name = get_text(entry.get("id")) or f"entry-{len(self._entries) + 1}"
        parent = get_text(entry.get("parentId"))
        self._parents[name] = parent if parent in self._parents else self._last
        self._entries[name] = entry
        self._last = name

    def events(self) -> Iterator[Event]:
        """Return the session, its branches, and the notes."""
        if self._entries:
            opened, notes = self._opened()
            yield from build_tree_events(Tree(self._parents, self._last, self._messages_of), opened)
            yield from list_omission_notes(self._unsaid, "entry")
            yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        return parse_droid_entry(name, self._entries[name])

    def _opened(self) -> tuple[SessionEvent, list[NoteEvent]]:
        head = self._head
        asked = find_title(chain.from_iterable(map(self._messages_of, self._entries)))
        titles = render_titles((head.get("sessionTitle"), head.get("title"), asked))
        told = drop_keys(head, "type", "id", "title", "sessionTitle", "cwd")
        kept, notes = split_metadata(drop_empty_fields(told))
        parent = find_first_text((head.get("callingSessionId"), head.get("parent")))
        metadata = drop_empty_fields({"parent_session": parent, "droid": kept})
        title, root = find_first_text(titles), get_text(head.get("cwd"))
        return SessionEvent(str(head["id"]), title, root, metadata, titles=titles), notes
