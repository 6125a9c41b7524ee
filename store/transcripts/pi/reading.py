"""Sessions of pi: a head, and entries that each name the entry before them.

The path to the last entry is the session; a path abandoned by a step back in the tree is a branch.
Files of the first version are one path, whose entries have no ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_text,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
    render_titles,
    split_metadata,
)
from ..shelf import Shelf, ShelfMapping
from ..source import TranscriptSource
from ..trees import Tree, build_tree_events, insert_compactions, list_ancestors
from .messages import find_entry_message, is_message_entry, parse_pi_message

HEAD, COMPACTION, NAMED = "session", "compaction", "session_info"
PI_ENTRY_TYPES = (HEAD, COMPACTION, NAMED)
"""Types of entries that are read although they are not messages."""


def is_pi_header(value: Any) -> bool:
    """Tell whether a JSON value is the head of a session."""
    fields = get_fields(value)
    return fields.get("type") == HEAD and {"id", "cwd", "timestamp"} <= fields.keys()


def parse_pi(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches, then the notes."""
    with Shelf() as shelf:
        chat = _PiSession({"id": source.stem}, shelf)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
            elif is_pi_header(item.value):
                yield from chat.events()
                chat = _PiSession(item.value, shelf)
            elif get_text(get_fields(item.value).get("type")):
                chat.take(item.value)
            else:
                yield note_unread_value(item.row, item.value, "no entry of a session")
        yield from chat.events()


class _PiSession:
    """A session: its head, its entries by id, and the entry before each of them."""

    def __init__(self, head: JsonFields, shelf: Shelf) -> None:
        self._head = head
        self._entries = ShelfMapping(shelf)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None

    def take(self, entry: JsonFields) -> None:
        """Take the next entry; an entry that names no other follows the one before it."""
        name = get_text(entry.get("id")) or f"entry-{len(self._entries) + 1}"
        told = entry.get("parentId", self._last)
        parent = get_text(told)
        is_known = told is None or parent in self._parents
        self._parents[name] = parent if is_known else self._last
        self._entries[name] = entry
        self._last = name

    def events(self) -> Iterator[Event]:
        """Return the session, its branches, and the notes."""
        if not self._entries:
            return
        path = list(list_ancestors(self._parents, self._last))[::-1]
        opened, notes = self._opened(path)
        tree = Tree(self._parents, self._last, self._messages_of)
        yield from insert_compactions(
            build_tree_events(tree, opened), dict(self._compactions(path))
        )
        left = (entry for entry in self._entries.values() if not is_message_entry(entry))
        kinds = (str(entry["type"]) for entry in left)
        unsaid = Counter((kind, "") for kind in kinds if kind not in PI_ENTRY_TYPES)
        yield from list_omission_notes(unsaid, "entry")
        yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        entry = self._entries[name]
        if not is_message_entry(entry):
            return []
        return [parse_pi_message(entry) | {"id": name} | _parse_pi_timestamp(entry)]

    def _opened(self, path: list[str]) -> tuple[SessionEvent, list[NoteEvent]]:
        said = (message for name in path for message in self._messages_of(name))
        named = self._from_the_last(path)
        names = (entry.get("name") for entry in named if entry["type"] == NAMED)
        titles = render_titles((*names, self._head.get("title"), find_title(said)))
        kept, notes = split_metadata(drop_empty_fields(drop_keys(self._head, "type", "id", "cwd")))
        models = (find_entry_message(entry).get("model") for entry in self._from_the_last(path))
        model = find_first_text(chain(models, [self._head.get("modelId")]))
        metadata = drop_empty_fields({"model": model}) | {"pi": kept}
        root = get_text(self._head.get("cwd"))
        title = find_first_text(titles)
        return SessionEvent(str(self._head["id"]), title, root, metadata, titles=titles), notes

    def _from_the_last(self, path: list[str]) -> Iterator[JsonFields]:
        return map(self._entries.__getitem__, reversed(path))

    def _compactions(self, path: list[str]) -> Iterator[tuple[int, CompactionEvent]]:
        """Yield the compactions of a path, each with the number of messages before it."""
        before: dict[str, int] = {}
        count = 0
        for name in path:
            before[name] = count
            entry = self._entries[name]
            count += is_message_entry(entry)
            summary = get_text(entry.get("summary"))
            kept = before.get(str(entry.get("firstKeptEntryId")), count)
            if entry["type"] == COMPACTION and summary and kept:
                yield count, CompactionEvent(kept, summary)


def _parse_pi_timestamp(entry: JsonFields) -> JsonFields:
    """Return the time of a message in ms; empty if it has none."""
    told = find_entry_message(entry).get("timestamp")
    moment = told if type(told) is int else parse_iso_milliseconds(entry.get("timestamp"))
    return {} if moment is None else {"timestamp": moment}
