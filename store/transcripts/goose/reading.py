"""Sessions of goose: documents with a ``conversation``, or a head and messages on lines after it.

Messages that goose compacted are no longer visible to its agent, and precede the visible ones.
"""

from __future__ import annotations

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
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_nested,
    get_text,
    note_omission,
    note_unread_value,
    parse_iso_milliseconds,
    render_titles,
    split_metadata,
)
from ..source import TranscriptSource
from ..trees import insert_compactions
from .messages import is_goose_message, is_goose_only_message, parse_goose_message

MessageGroups = list[list[Message]]
"""What each message of goose's amounts to."""

GOOSE_SESSION_KEYS = ("id", "name", "description", "working_dir", "conversation", "created_at")


def is_goose_value(value: Any) -> bool:
    """Tell whether a value is a session, the head of one, or a message that only goose writes."""
    fields = get_fields(value)
    return (
        "working_dir" in fields and (_has_goose_conversation(fields) or _is_goose_head(fields))
    ) or is_goose_only_message(value)


def _has_goose_conversation(fields: JsonFields) -> bool:
    return isinstance(fields.get("conversation"), list)


def _is_goose_head(fields: JsonFields) -> bool:
    return not {"description", "message_count"}.isdisjoint(fields)


def parse_goose(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file or a database, and the notes."""
    names = SessionNames(source.stem)
    lines: list[Any] = []
    head: JsonFields = {}
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif _has_goose_conversation(get_fields(item.value)):
            yield from _parse_goose_session(item.value, names.name(get_text(item.value.get("id"))))
        elif not lines and not head and _is_goose_head(get_fields(item.value)):
            head = item.value
        else:
            lines.append(item.value)
    if lines:
        yield from _parse_goose_session({**head, "conversation": lines}, names.name())


def _parse_goose_session(told: JsonFields, name: str) -> Iterator[Event]:
    known = list(filter(is_goose_message, told["conversation"]))
    made = [
        parse_goose_message(get_text(each.get("id")) or f"message-{place}", each)
        for place, each in enumerate(known, 1)
    ]
    messages = list(chain.from_iterable(made))
    if not messages:
        return
    given = map(told.get, ("name", "description"))
    titles = render_titles((*given, find_title(messages)))
    kept, notes = split_metadata(drop_empty_fields(drop_keys(told, *GOOSE_SESSION_KEYS)))
    metadata = drop_empty_fields(
        {"model": get_text(get_nested(told, "model_config", "model_name"))}
    ) | drop_empty_fields({"goose": kept})
    created = parse_iso_milliseconds(told.get("created_at"))
    root = get_text(told.get("working_dir"))
    opened = SessionEvent(
        name, find_first_text(titles), root, metadata, titles=titles, created_at=created
    )
    events: Iterator[Event] = chain([opened], map(SessionMessage, messages))
    yield from insert_compactions(events, _find_goose_compactions(known, made))
    yield from _list_goose_omissions(told, made, len(known))
    yield from notes


def _find_goose_compactions(
    known: list[JsonFields], made: MessageGroups
) -> dict[int, CompactionEvent]:
    """Return where the first messages went out of sight, if they did and others followed."""
    hidden = 0
    for told, said in zip(known, made, strict=True):
        if get_nested(told, "metadata", "agentVisible") is not False:
            return {hidden: CompactionEvent(hidden)} if hidden else {}
        hidden += len(said)
    return {}


def _list_goose_omissions(told: JsonFields, made: MessageGroups, known: int) -> Iterator[NoteEvent]:
    for each in told["conversation"]:
        if not is_goose_message(each):
            yield note_unread_value(None, each, "no message")
    silent = known - sum(map(bool, made))
    if silent:
        yield note_omission(silent, "notice", ", which were for the screen")
