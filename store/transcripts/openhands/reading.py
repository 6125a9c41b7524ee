"""Conversations of OpenHands: lists of events, of V1 (the SDK) or V0, or results of evaluations.

Events sent to the model become messages (`conversation`). The other fields of an event are kept
under one extra key, ``openhands``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...text import JsonFields, wrap_in_list
from ..events import (
    Event,
    NoteEvent,
    SessionNames,
    drop_keys,
    find_first_text,
    get_fields,
    note_unread_value,
    render_sketch,
)
from ..source import SourceValue, TranscriptSource
from .conversation import OpenhandsConversation
from .program_events import is_v0_event, is_v1_event

EVENT_LIST_KEYS = ("history", "trajectory", "events", "items")
"""Keys under which an object may hold its events."""

OPENHANDS_NAME_KEYS = ("instance_id", "conversation_id", "id")
"""Keys of an object that name it."""

_INSPECTED_EVENTS = 20  # the number of events that are inspected to recognize a list


def is_openhands_history(value: Any) -> bool:
    """Tell whether a JSON value is an event, a list of them, or an object that holds one."""
    events = [value] if _is_openhands_event(value) else _find_event_list(value) or []
    return any(map(_is_openhands_event, events[:_INSPECTED_EVENTS]))


def parse_openhands(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, and notes.

    Each list of events is a session; all events that are rows of their own form one session.
    """
    names = SessionNames(source.stem)
    loose = OpenhandsConversation()
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif _is_openhands_event(item.value):
            loose.take(item.value)
        else:
            yield from _parse_event_list(item, names)
    if not loose.is_empty:
        yield from loose.events(names.name(loose.name), {})


def _parse_event_list(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Return the session of one list of events, or of an object that holds one."""
    events = _find_event_list(item.value)
    if events is None:
        what = "neither an event nor a record with a list of them"
        yield note_unread_value(item.row, item.value, what)
        return
    fields = get_fields(item.value)
    wanted = find_first_text(fields.get(key) for key in OPENHANDS_NAME_KEYS)
    name = names.name(f"{names.stem}-{wanted:.80}" if wanted else None)
    conversation = OpenhandsConversation()
    for number, event in enumerate(events, 1):
        if _is_openhands_event(event):
            conversation.take(event)
        else:
            text = f"event {number} of {name!r:.80} is none: {render_sketch(event)}"
            yield NoteEvent(item.row, text, broken=True)
    history = _find_event_list_key(fields) or ""
    yield from conversation.events(name, drop_keys(fields, history))


def _is_openhands_event(value: Any) -> bool:
    return is_v1_event(value) or is_v0_event(value)


def _find_event_list(value: Any) -> list[Any] | None:
    """Return the events of a list, or of an object that holds one; V0 once kept them in pairs."""
    if isinstance(value, dict):
        value = value.get(_find_event_list_key(value) or "")
    if not isinstance(value, list):
        return None
    return list(chain.from_iterable(map(wrap_in_list, value)))


def _find_event_list_key(fields: JsonFields) -> str | None:
    lists = (key for key in EVENT_LIST_KEYS if isinstance(fields.get(key), list))
    return next(lists, None)
