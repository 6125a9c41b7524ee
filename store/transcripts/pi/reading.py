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
from ...text import Fields
from ..events import (
    Compacted,
    Event,
    Noted,
    Opened,
    fields_of,
    first_text,
    iso_milliseconds,
    omissions,
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
from ..trees import Tree, ancestors, tree_events, with_compactions
from .messages import is_told, message_of, told_by

HEAD, COMPACTION, NAMED = "session", "compaction", "session_info"
USED = (HEAD, COMPACTION, NAMED)
"""Types of entries that are read although they are not messages."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is the head of a session."""
    fields = fields_of(value)
    return fields.get("type") == HEAD and {"id", "cwd", "timestamp"} <= fields.keys()


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches, then the notes."""
    with Shelf() as shelf:
        chat = _Chat({"id": source.stem}, shelf)
        for item in source.values():
            if isinstance(item, Noted):
                yield item
            elif looks(item.value):
                yield from chat.events()
                chat = _Chat(item.value, shelf)
            elif text_of(fields_of(item.value).get("type")):
                chat.take(item.value)
            else:
                yield unread(item.row, item.value, "no entry of a session")
        yield from chat.events()


class _Chat:
    """A session: its head, its entries by id, and the entry before each of them."""

    def __init__(self, head: Fields, shelf: Shelf) -> None:
        self._head = head
        self._entries = Shelved(shelf)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None

    def take(self, entry: Fields) -> None:
        """Take the next entry; an entry that names no other follows the one before it."""
        name = text_of(entry.get("id")) or f"entry-{len(self._entries) + 1}"
        told = entry.get("parentId", self._last)
        parent = text_of(told)
        is_known = told is None or parent in self._parents
        self._parents[name] = parent if is_known else self._last
        self._entries[name] = entry
        self._last = name

    def events(self) -> Iterator[Event]:
        """Return the session, its branches, and the notes."""
        if not self._entries:
            return
        path = list(ancestors(self._parents, self._last))[::-1]
        opened, notes = self._opened(path)
        tree = Tree(self._parents, self._last, self._messages_of)
        yield from with_compactions(tree_events(tree, opened), dict(self._compactions(path)))
        left = (entry for entry in self._entries.values() if not is_told(entry))
        kinds = (str(entry["type"]) for entry in left)
        unsaid = Counter((kind, "") for kind in kinds if kind not in USED)
        yield from omissions(unsaid, "entry")
        yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        entry = self._entries[name]
        if not is_told(entry):
            return []
        return [message_of(entry) | {"id": name} | _moment_of(entry)]

    def _opened(self, path: list[str]) -> tuple[Opened, list[Noted]]:
        said = (message for name in path for message in self._messages_of(name))
        named = self._from_the_last(path)
        names = (entry.get("name") for entry in named if entry["type"] == NAMED)
        titles = title_lines((*names, self._head.get("title"), title_of(said)))
        kept, notes = split_metadata(telling(without(self._head, "type", "id", "cwd")))
        models = (told_by(entry).get("model") for entry in self._from_the_last(path))
        model = first_text(chain(models, [self._head.get("modelId")]))
        metadata = telling({"model": model}) | {"pi": kept}
        root = text_of(self._head.get("cwd"))
        title = first_text(titles)
        return Opened(str(self._head["id"]), title, root, metadata, titles=titles), notes

    def _from_the_last(self, path: list[str]) -> Iterator[Fields]:
        return map(self._entries.__getitem__, reversed(path))

    def _compactions(self, path: list[str]) -> Iterator[tuple[int, Compacted]]:
        """Yield the compactions of a path, each with the number of messages before it."""
        before: dict[str, int] = {}
        count = 0
        for name in path:
            before[name] = count
            entry = self._entries[name]
            count += is_told(entry)
            summary = text_of(entry.get("summary"))
            kept = before.get(str(entry.get("firstKeptEntryId")), count)
            if entry["type"] == COMPACTION and summary and kept:
                yield count, Compacted(kept, summary)


def _moment_of(entry: Fields) -> Fields:
    """Return the time of a message in ms; empty if it has none."""
    told = told_by(entry).get("timestamp")
    moment = told if type(told) is int else iso_milliseconds(entry.get("timestamp"))
    return {} if moment is None else {"timestamp": moment}
