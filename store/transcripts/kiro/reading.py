"""Sessions of Kiro: chats in its database, files of lines or records, and the files next to them.

Kiro CLI kept a database, then a file of lines for each session. Newer sessions, and those of the
IDE from 1.0, are folders with a file of records.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import (
    Compacted,
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    fields_of,
    first_text,
    iso_milliseconds,
    left_out,
    list_of,
    omissions,
    split_metadata,
    telling,
    text_of,
    title_lines,
    title_of,
    unread,
    within,
    without,
)
from ..source import Source
from ..trees import Tree, ancestors, tree_events, with_compactions
from . import messages, records, turns

TOLD = ("history", "conversation_id", "cwd", "created_at", "transcript", "tools", "model_info")
"""Keys of a chat that are read into its session, repeat it, or define its tools."""

FOLDER = ("user", "env_context", "env_state", "current_working_directory")
"""The path of keys to the folder in which a turn was asked."""

UNKEPT = ("session_state", "session_id", "cwd", "title")
"""Keys of the file next to a session that are read into the session, or repeat it."""

BESIDE_RECORDS = "session.json"
"""The file with the metadata of a session, next to its file of records."""

KNOWN = ("id", "title", "modelId", "workspacePaths", "createdAt", "rootConversationId")
"""Keys of that file that are read into the session."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a chat, or a line of a file."""
    fields = fields_of(value)
    is_chat = any(map(turns.is_turn, list_of(fields.get("history"))))
    is_empty = fields.get("history") == [] and "conversation_id" in fields
    is_line = messages.is_line(value) and messages.is_told(fields)
    return is_chat or is_empty or is_line or records.is_record(value)


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a database, or the one of a file."""
    names = SessionNames(source.stem)
    lines: list[Fields] = []
    written: list[Fields] = []
    for item in source.values():
        if isinstance(item, Noted):
            yield item
        elif messages.is_line(item.value):
            lines.append(item.value)
        elif records.is_record(item.value):
            written.append(item.value)
        elif looks(item.value):
            yield from _chat(item.value, names)
        else:
            yield unread(item.row, item.value, "no line of a session")
    yield from _file(source, lines)
    yield from _folder(source, written)


def _chat(chat: Fields, names: SessionNames) -> Iterator[Event]:
    told = list_of(chat["history"])
    known = [turn for turn in told if turns.is_turn(turn)]
    made = (turns.messages_of(turn, place) for place, turn in enumerate(known, 1))
    said = list(chain.from_iterable(made))
    if not said:
        return
    kept, notes = split_metadata(telling(without(chat, *TOLD)))
    info = fields_of(chat.get("model_info"))
    models = map(info.get, ("model_id", "model_name"))
    model = first_text((*models, chat.get("model")))
    metadata = telling({"model": model, "kiro": kept})
    created = chat.get("created_at")
    opened = Opened(
        names.name(text_of(chat.get("conversation_id"))),
        title_of(said),
        _root(chat, known),
        metadata,
        created_at=created if type(created) is int and created > 10**12 else None,
    )
    yield opened
    yield from map(Said, said)
    if len(known) < len(told):
        unread = left_out(len(told) - len(known), "turn", " that cannot be read")
        yield unread._replace(broken=True)
    yield from notes


def _root(chat: Fields, known: list[Fields]) -> str | None:
    """Return the folder of a chat: from the database, else from its last turn."""
    folders = (within(turn, *FOLDER) for turn in known[::-1])
    return first_text((chat.get("cwd"), *folders))


def _file(source: Source, lines: list[Fields]) -> Iterator[Event]:
    """Yield the session of a file, with the metadata from the file next to it."""
    told = [line for line in lines if messages.is_told(line)]
    said = list(chain.from_iterable(map(messages.messages_of, told)))
    if not said:
        return
    beside = _beside(source.path.with_suffix(".json"))
    titles = title_lines((beside.get("title"), title_of(said)))
    kept, notes = split_metadata(telling(without(beside, *UNKEPT)))
    name = text_of(beside.get("session_id")) or source.stem
    root = text_of(beside.get("cwd"))
    metadata = telling({"kiro": kept})
    yield Opened(name, first_text(titles), root, metadata, titles=titles)
    yield from map(Said, said)
    others = (line for line in lines if not messages.is_told(line))
    unsaid = Counter((str(line["kind"]), "") for line in others)
    yield from omissions(unsaid, "line")
    yield from notes


class _Line:
    """Follow the messages of a folder's records: each message, and the one that it follows."""

    def __init__(self) -> None:
        self.said: dict[str, Message] = {}
        self.parents: dict[str, str | None] = {}
        self.last: str | None = None
        self._summaries: list[tuple[str | None, str]] = []

    def take(self, written: list[Fields]) -> None:
        """Take records, which may take back messages or replace all messages before them."""
        kept: list[Fields] = []
        for record in written:
            begun = records.taken_back_from(record)
            is_said = begun is None and not records.is_summary(record)
            if is_said:
                kept.append(record)
                continue
            self._say(kept)
            kept = []
            if begun is None:
                self._summaries.append((self.last, records.text_in(record)))
            else:
                self.last = self.parents.get(begun, self.last)
        self._say(kept)

    def _say(self, kept: list[Fields]) -> None:
        for message in records.messages_in(kept):
            name = self._name(text_of(message.get("id")))
            self.said[name], self.parents[name] = message, self.last
            self.last = name

    def _name(self, told: str | None) -> str:
        """Return an unused name for a message: its id, else one with its number."""
        name = told
        if name is None or name in self.said:
            name = f"{told or 'message'}-{len(self.said) + 1}"
        while name in self.said:
            name += "+"
        return name

    def present(self) -> list[str]:
        """Return the names of the messages that no record took back."""
        return list(ancestors(self.parents, self.last))[::-1]

    def compactions(self) -> dict[int, Compacted]:
        """Return each summary, by the number of present messages that it replaces."""
        places = {name: place for place, name in enumerate(self.present(), 1)}
        counts = ((places.get(name or ""), summary) for name, summary in self._summaries)
        return {count: Compacted(count, summary or None) for count, summary in counts if count}


def _folder(source: Source, written: list[Fields]) -> Iterator[Event]:
    """Yield the session of a folder's records, with the metadata from the file next to them.

    Messages that were taken back are a branch.
    """
    line = _Line()
    line.take(written)
    if not line.said:
        return
    beside = _beside(source.path.with_name(BESIDE_RECORDS))
    name = text_of(beside.get("id")) or source.path.absolute().parent.name
    opened, notes = _opened(name, beside, [line.said[each] for each in line.present()])
    tree = Tree(line.parents, line.last, lambda each: [line.said[each]])
    yield from with_compactions(tree_events(tree, opened), line.compactions())
    states = (record for record in written if records.type_of(record) not in records.SPOKEN)
    yield from omissions(Counter((str(records.type_of(each)), "") for each in states), "record")
    yield from notes


def _opened(name: str, beside: Fields, said: list[Message]) -> tuple[Opened, list[Noted]]:
    kept, notes = split_metadata(telling(without(beside, *KNOWN)))
    root = text_of(beside.get("rootConversationId"))
    parent = root if root != name else None
    told = {"model": beside.get("modelId"), "parent_session": parent, "kiro": kept}
    titles = title_lines((beside.get("title"), title_of(said)))
    opened = Opened(
        name,
        first_text(titles),
        first_text(list_of(beside.get("workspacePaths"))),
        telling(told),
        titles=titles,
        created_at=iso_milliseconds(beside.get("createdAt")),
    )
    return opened, notes


def _beside(path: Path) -> Fields:
    """Return the metadata from the file next to a session; empty if there is no such file."""
    with suppress(OSError, ValueError, RecursionError):
        return fields_of(json.loads(path.read_bytes()))
    return {}
