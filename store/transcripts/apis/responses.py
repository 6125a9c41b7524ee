"""Items of the Responses API: in a list, under ``input`` and ``output``, or one a row.

Each is kept as it is, as a message of its own format: so it goes out as it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from ...text import Fields
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    fields_of,
    list_of,
    split_metadata,
    text_of,
    title_of,
    unread,
    without,
)
from ..foreign import ITEM_TYPES, RESPONSES
from ..source import Source, Value
from . import openai
from .answers import RESPONSES as API
from .answers import cost_of, moment_of

LISTS = ("input", "messages", "items", "output")
"""Keys under which an object has items, in their order."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is an item, or holds some."""
    if openai.foreign(value) == RESPONSES:
        return True
    fields = fields_of(value)
    if fields.get("object") == "response":
        return isinstance(fields.get("output"), list)
    held = filter(None, map(_items, _listed(value)))
    return any(_is_typed(item) for items in held for item in items)


def foreign(value: Any) -> str | None:
    """Return the program whose messages only look like these, None where they can be read."""
    program = openai.foreign(value)
    return None if program == RESPONSES else program


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions and items of a file, and a note for each thing that is none."""
    names = SessionNames(source.stem)
    values = source.values()
    for item in values:
        if isinstance(item, Noted):
            yield item
        elif _items(item.value) is None and _is_item(item.value):
            yield from _streamed(names.name(source.stem), chain([item], values))
        else:
            for conversation in _listed(item.value):
                items = _items(conversation)
                if items is None:
                    yield unread(item.row, conversation, "no item, and holds none")
                else:
                    yield from _conversation(
                        fields_of(conversation), items, names, source.stem, item.row
                    )


def _listed(value: Any) -> list[Any]:
    is_several = isinstance(value, list) and value and all(map(_items, value))
    return value if is_several else [value]


def _conversation(
    fields: Fields, items: list[Any], names: SessionNames, stem: str, row: int | None
) -> Iterator[Event]:
    session_id = names.name(text_of(fields.get("id")) or stem)
    metadata, notes = split_metadata(without(fields, *LISTS))
    yield Opened(session_id, title_of(filter(fields_of, items)), None, metadata)
    moment, spent = moment_of(fields), cost_of(API, fields)
    for number, item in enumerate(items, 1):
        event = _said(item, row, f"item {number} of {session_id}")
        is_last = number == len(items) and isinstance(event, Said)
        told = {"moment": moment, "spent": spent} if is_last else {"moment": moment}
        yield event._replace(**told) if isinstance(event, Said) else event
    yield from notes


def _streamed(session_id: str, values: Iterable[Value | Noted]) -> Iterator[Event]:
    """Return the one session of a file that has an item a row."""
    events = iter(_events(values))
    first = list(islice(events, openai.LOOK_AHEAD))
    title = title_of(event.message for event in first if isinstance(event, Said))
    yield Opened(session_id, title, None, {})
    yield from first
    yield from events


def _events(values: Iterable[Value | Noted]) -> Iterator[Said | Noted]:
    for item in values:
        if isinstance(item, Noted):
            yield item
        else:
            yield _said(item.value, item.row, f"line {item.row}")


def _said(value: Any, row: int | None, place: str) -> Said | Noted:
    if _is_item(value):
        return Said(value, API.format)
    return unread(row, value, "no item: an object with a type or a role was expected", place)


def _is_item(value: Any) -> bool:
    fields = fields_of(value)
    return bool(text_of(fields.get("type")) or text_of(fields.get("role")))


def _is_typed(value: Any) -> bool:
    """Tell an item by its type."""
    fields = fields_of(value)
    return "role" not in fields and fields.get("type") in ITEM_TYPES


def _items(value: Any) -> list[Any] | None:
    """Return the items of a conversation, None for any other value, such as a single item."""
    if isinstance(value, list):
        return value
    fields = fields_of(value)
    if "type" in fields or "role" in fields or not set(LISTS) & fields.keys():
        return None
    return [each for key in LISTS for each in _said_under(fields.get(key))]


def _said_under(held: Any) -> list[Any]:
    """Return the items under a key, where a text is what the user said."""
    return [{"role": "user", "content": held}] if isinstance(held, str) else list_of(held)
