"""Items of the Responses API: in a list, under ``input`` and ``output``, or one a row.

Each is kept as it is, as a message of its own format: so it goes out as it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from ...text import JsonFields
from ..other_programs import ITEM_TYPES, RESPONSES_PROGRAM
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_keys,
    find_title,
    get_fields,
    get_list,
    get_text,
    note_unread_value,
    split_metadata,
)
from ..source import SourceValue, TranscriptSource
from . import openai
from .answers import RESPONSES_API as API
from .answers import parse_answer_cost, parse_answer_timestamp

__all__ = ["find_responses_lookalike", "has_responses_items", "parse_responses"]

ITEM_LIST_KEYS = ("input", "messages", "items", "output")
"""Keys under which an object has items, in their order."""


def has_responses_items(value: Any) -> bool:
    """Tell whether a JSON value is an item, or holds some."""
    if openai.find_openai_lookalike(value) == RESPONSES_PROGRAM:
        return True
    fields = get_fields(value)
    if fields.get("object") == "response":
        return isinstance(fields.get("output"), list)
    held = filter(None, map(_list_api_items, _split_item_lists(value)))
    every = (get_fields(item) for items in held for item in items)
    return any("role" not in item and item.get("type") in ITEM_TYPES for item in every)


def find_responses_lookalike(value: Any) -> str | None:
    """Return the program whose messages only look like these, None where they can be read."""
    program = openai.find_openai_lookalike(value)
    return None if program == RESPONSES_PROGRAM else program


def parse_responses(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions and items of a file, and a note for each thing that is none."""
    names = SessionNames(source.stem)
    values = source.values()
    for item in values:
        if isinstance(item, NoteEvent):
            yield item
        elif _list_api_items(item.value) is None and _is_api_item(item.value):
            yield from _parse_item_stream(names.name(source.stem), chain([item], values))
        else:
            for conversation in _split_item_lists(item.value):
                items = _list_api_items(conversation)
                if items is None:
                    yield note_unread_value(item.row, conversation, "no item, and holds none")
                else:
                    yield from _parse_item_conversation(
                        get_fields(conversation), items, names, source.stem, item.row
                    )


def _split_item_lists(value: Any) -> list[Any]:
    is_several = isinstance(value, list) and value and all(map(_list_api_items, value))
    return value if is_several else [value]


def _parse_item_conversation(
    fields: JsonFields, items: list[Any], names: SessionNames, stem: str, row: int | None
) -> Iterator[Event]:
    session_id = names.name(get_text(fields.get("id")) or stem)
    metadata, notes = split_metadata(drop_keys(fields, *ITEM_LIST_KEYS))
    yield SessionEvent(session_id, find_title(filter(get_fields, items)), None, metadata)
    moment, spent = parse_answer_timestamp(fields), parse_answer_cost(API, fields)
    for number, item in enumerate(items, 1):
        event = _parse_item(item, row, f"item {number} of {session_id}")
        is_last = number == len(items) and isinstance(event, SessionMessage)
        told = {"moment": moment, "spent": spent} if is_last else {"moment": moment}
        yield event._replace(**told) if isinstance(event, SessionMessage) else event
    yield from notes


def _parse_item_stream(
    session_id: str, values: Iterable[SourceValue | NoteEvent]
) -> Iterator[Event]:
    """Return the one session of a file that has an item a row."""
    events = iter(_parse_item_rows(values))
    first = list(islice(events, openai.TITLE_LOOK_AHEAD))
    title = find_title(event.message for event in first if isinstance(event, SessionMessage))
    yield SessionEvent(session_id, title, None, {})
    yield from first
    yield from events


def _parse_item_rows(
    values: Iterable[SourceValue | NoteEvent],
) -> Iterator[SessionMessage | NoteEvent]:
    for item in values:
        if isinstance(item, NoteEvent):
            yield item
        else:
            yield _parse_item(item.value, item.row, f"line {item.row}")


def _parse_item(value: Any, row: int | None, place: str) -> SessionMessage | NoteEvent:
    if _is_api_item(value):
        return SessionMessage(value, API.format)
    return note_unread_value(
        row, value, "no item: an object with a type or a role was expected", place
    )


def _is_api_item(value: Any) -> bool:
    fields = get_fields(value)
    return bool(get_text(fields.get("type")) or get_text(fields.get("role")))


def _list_api_items(value: Any) -> list[Any] | None:
    """Return the items of a conversation, None for any other value, such as a single item."""
    if isinstance(value, list):
        return value
    fields = get_fields(value)
    if "type" in fields or "role" in fields or not set(ITEM_LIST_KEYS) & fields.keys():
        return None
    items: list[Any] = []
    for held in map(fields.get, ITEM_LIST_KEYS):
        # A text is what the user said.
        items += [{"role": "user", "content": held}] if isinstance(held, str) else get_list(held)
    return items
