"""Sessions of Gemini CLI: one document, or lines that are replayed (``$set``, ``$rewindTo``).

A line has a whole message, and is repeated when the message has grown: the last one counts, at the
position of the first. Messages taken back by ``$rewindTo`` are a branch of the session. A replaced
context (``messages`` in ``$set``) changes the model's view, not the conversation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, MutableMapping
from itertools import chain, takewhile
from typing import Any

from ...messages import Message
from ...text import Fields, format_count
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    Stem,
    fields_of,
    first_text,
    list_of,
    omissions,
    split_metadata,
    text_of,
    title_lines,
    title_of,
    unread,
    without,
)
from ..shelf import Shelf, Shelved
from ..source import Source, Value
from .records import is_said, messages_of, model_of

HEAD = {"sessionId", "projectHash"}

Records = MutableMapping[str, Fields]
"""The records of a session's messages, each under its id."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a session's head, or a message that can be read."""
    fields = fields_of(value)
    if not fields.keys() >= HEAD:
        return {"id", "timestamp"} <= fields.keys() and is_said(fields)
    messages = list_of(fields.get("messages"))
    return not messages or any(map(is_said, messages))


def parse(source: Source) -> Iterator[Event]:
    """Return the session of a file, then each stretch of it that was taken back, then the notes."""
    with Shelf() as shelf:
        chat = _Chat(shelf)
        for item in source.values():
            if isinstance(item, Noted):
                yield item
            else:
                yield from chat.take(item)
        yield from chat.events(source.stem)


class _Chat:
    """Replay a file.

    ``_left`` are the parts taken back, each with the number of messages before it.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._head: Fields = {}
        self._records: Records = Shelved(shelf)
        self._left: list[tuple[int, Records]] = []
        self._contexts: list[Fields] = []

    def take(self, item: Value) -> Iterator[Noted]:
        """Take one value; yield a note if it cannot be read."""
        fields = fields_of(item.value)
        if text_of(fields.get("$rewindTo")):
            self._rewind(fields["$rewindTo"])
        elif text_of(fields.get("id")):
            self._records[fields["id"]] = fields
        elif "$set" in fields or "sessionId" in fields:
            self._set(fields_of(fields.get("$set", fields)))
        else:
            yield unread(item.row, item.value, "no line of a session")

    def events(self, stem: str) -> Iterator[Event]:
        """Return all sessions, their messages, and the notes."""
        name = text_of(self._head.get("sessionId")) or stem
        metadata, notes = self._metadata()
        titles = (self._head.get("summary"), title_of(_said(self._records)))
        known = title_lines(titles)
        yield Opened(name, first_text(known), None, metadata, titles=known)
        yield from map(Said, _said(self._records))
        yield from self._branches(name)
        yield from self._notes()
        yield from notes

    def _branches(self, name: str) -> Iterator[Event]:
        for after, records in self._left:
            branch = f"{name}/branch-{next(iter(records))}"
            link: Fields = {"parent_session": name, "forked_at": after}
            count = _count_of(records)
            if count:
                title = title_of(_said(records))
                yield Opened(branch, title, None, link, stem=Stem(name, after))
                yield from map(Said, _said(records))
                messages = format_count(count, "message")
                yield Noted(None, f"{messages} that were taken back are session {branch!r}")

    def _rewind(self, to: str) -> None:
        """Take out a message and all after it; all messages where it is none of them."""
        names = list(self._records)
        self._cut(names.index(to) if to in self._records else 0)

    def _cut(self, place: int) -> None:
        names = list(self._records)
        taken = Shelved(self._shelf)
        for name in names[place:]:
            taken[name] = self._records.pop(name)
        if taken:
            self._left.append((_count_of(self._records), taken))

    def _set(self, fields: Fields) -> None:
        self._head |= without(fields, "messages")
        messages = map(fields_of, list_of(fields.get("messages")))
        told = {each["id"]: each for each in messages if text_of(each.get("id"))}
        if told:
            self._replace(told)

    def _replace(self, told: Records) -> None:
        """Take a context: add its new messages; those missing at its end were taken back."""
        pairs = zip(self._records, told, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if same == len(self._records):
            for name, each in told.items():
                self._records[name] = _longer(self._records.get(name), each)
        elif same == len(told):
            self._cut(same)
        else:
            self._note_context(told)

    def _note_context(self, told: Records) -> None:
        new = [each for name, each in told.items() if name not in self._records]
        after = _count_of(self._records)
        self._contexts.append({"after": after, "messages": len(told), "new": new})

    def _metadata(self) -> tuple[Fields, list[Noted]]:
        extra = without(self._head, "sessionId", "summary")
        if self._contexts:
            extra["contexts"] = self._contexts
        kept, notes = split_metadata(extra)
        answers = map(self._records.__getitem__, [*self._records][::-1])
        model = first_text(map(model_of, answers))
        return ({"model": model} if model else {}) | {"gemini_cli": kept}, notes

    def _notes(self) -> Iterator[Noted]:
        left = (records.values() for _, records in self._left)
        every = chain(self._records.values(), *left)
        unsaid = (str(each.get("type")) for each in every if not is_said(each))
        yield from omissions(Counter((kind, "") for kind in unsaid), "message")
        if self._contexts:
            places = ", ".join(str(each["after"]) for each in self._contexts)
            text = f"the context was replaced after message {places}"
            yield Noted(None, f"{text}: all messages stay, what is new in it is metadata")


def _said(records: Records) -> Iterator[Message]:
    for name, each in records.items():
        if is_said(each):
            yield from messages_of(name, each)


def _count_of(records: Records) -> int:
    return sum(1 for _ in _said(records))


def _longer(known: Fields | None, told: Fields) -> Fields:
    """Return the record that says more: results are shortened in a context, never in a line."""
    if known is None:
        return told
    return max(known, told, key=lambda each: len(json.dumps(each)))
