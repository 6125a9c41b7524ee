"""Sessions of goose: documents with a ``conversation``, or a head and messages on lines after it.

Messages that goose compacted are no longer visible to its agent, and precede the visible ones.
"""

from __future__ import annotations

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
    Said,
    SessionNames,
    fields_of,
    first_text,
    iso_milliseconds,
    left_out,
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
from ..trees import with_compactions
from .messages import is_message, is_own, messages_of

Made = list[list[Message]]
"""What each message of goose's amounts to."""

TOLD = ("id", "name", "description", "working_dir", "conversation", "created_at")


def looks(value: Any) -> bool:
    """Tell whether a value is a session, the head of one, or a message that only goose writes."""
    fields = fields_of(value)
    return ("working_dir" in fields and (_is_whole(fields) or _is_head(fields))) or is_own(value)


def _is_whole(fields: Fields) -> bool:
    return isinstance(fields.get("conversation"), list)


def _is_head(fields: Fields) -> bool:
    return not {"description", "message_count"}.isdisjoint(fields)


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file or a database, and the notes."""
    names = SessionNames(source.stem)
    lines: list[Any] = []
    head: Fields = {}
    for item in source.values():
        if isinstance(item, Noted):
            yield item
        elif _is_whole(fields_of(item.value)):
            yield from _session(item.value, names.name(text_of(item.value.get("id"))))
        elif not lines and not head and _is_head(fields_of(item.value)):
            head = item.value
        else:
            lines.append(item.value)
    if lines:
        yield from _session({**head, "conversation": lines}, names.name())


def _session(told: Fields, name: str) -> Iterator[Event]:
    known = list(filter(is_message, told["conversation"]))
    made = [_said(each, place) for place, each in enumerate(known, 1)]
    messages = list(chain.from_iterable(made))
    if not messages:
        return
    given = map(told.get, ("name", "description"))
    titles = title_lines((*given, title_of(messages)))
    kept, notes = split_metadata(telling(without(told, *TOLD)))
    metadata = telling({"model": _model(told)}) | telling({"goose": kept})
    created = iso_milliseconds(told.get("created_at"))
    root = text_of(told.get("working_dir"))
    opened = Opened(name, first_text(titles), root, metadata, titles=titles, created_at=created)
    events: Iterator[Event] = chain([opened], map(Said, messages))
    yield from with_compactions(events, _compactions(known, made))
    yield from _left(told, made, len(known))
    yield from notes


def _said(told: Fields, place: int) -> list[Message]:
    return messages_of(text_of(told.get("id")) or f"message-{place}", told)


def _compactions(known: list[Fields], made: Made) -> dict[int, Compacted]:
    """Return where the first messages went out of sight, if they did and others followed."""
    hidden = 0
    for told, said in zip(known, made, strict=True):
        if within(told, "metadata", "agentVisible") is not False:
            return {hidden: Compacted(hidden)} if hidden else {}
        hidden += len(said)
    return {}


def _model(told: Fields) -> str | None:
    return text_of(within(told, "model_config", "model_name"))


def _left(told: Fields, made: Made, known: int) -> Iterator[Noted]:
    for each in told["conversation"]:
        if not is_message(each):
            yield unread(None, each, "no message")
    silent = known - sum(map(bool, made))
    if silent:
        yield left_out(silent, "notice", ", which were for the screen")
