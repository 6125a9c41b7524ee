"""Conversations of OpenHands: lists of events, of V1 (the SDK) or V0, or results of evaluations.

Events sent to the model become messages (`conversation`). The other fields of an event are kept
under one extra key, ``openhands``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ...text import Fields, as_list
from ..events import Event, Noted, SessionNames, fields_of, first_text, sketch, unread, without
from ..source import Source, Value
from .conversation import Conversation
from .program_events import is_v0, is_v1

HISTORIES = ("history", "trajectory", "events", "items")
"""Keys under which an object may hold its events."""

NAMES = ("instance_id", "conversation_id", "id")
"""Keys of an object that name it."""

_LOOKED_AT = 20  # the number of events that are inspected to recognize a list


def looks(value: Any) -> bool:
    """Tell whether a JSON value is an event, a list of them, or an object that holds one."""
    events = [value] if _is_event(value) else _events_in(value) or []
    return any(map(_is_event, events[:_LOOKED_AT]))


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file, and notes.

    Each list of events is a session; all events that are rows of their own form one session.
    """
    names = SessionNames(source.stem)
    loose = Conversation()
    for item in source.values():
        if isinstance(item, Noted):
            yield item
        elif _is_event(item.value):
            loose.take(item.value)
        else:
            yield from _listed(item, names)
    if not loose.is_empty:
        yield from loose.events(names.name(loose.name), {})


def _listed(item: Value, names: SessionNames) -> Iterator[Event]:
    """Return the session of one list of events, or of an object that holds one."""
    events = _events_in(item.value)
    if events is None:
        what = "neither an event nor a record with a list of them"
        yield unread(item.row, item.value, what)
        return
    fields = fields_of(item.value)
    wanted = first_text(fields.get(key) for key in NAMES)
    name = names.name(f"{names.stem}-{wanted:.80}" if wanted else None)
    conversation = Conversation()
    for number, event in enumerate(events, 1):
        if _is_event(event):
            conversation.take(event)
        else:
            text = f"event {number} of {name!r:.80} is none: {sketch(event)}"
            yield Noted(item.row, text, broken=True)
    history = _history_of(fields) or ""
    yield from conversation.events(name, without(fields, history))


def _is_event(value: Any) -> bool:
    return is_v1(value) or is_v0(value)


def _events_in(value: Any) -> list[Any] | None:
    """Return the events of a list, or of an object that holds one; V0 once kept them in pairs."""
    if isinstance(value, dict):
        value = value.get(_history_of(value) or "")
    if not isinstance(value, list):
        return None
    return list(chain.from_iterable(map(as_list, value)))


def _history_of(fields: Fields) -> str | None:
    lists = (key for key in HISTORIES if isinstance(fields.get(key), list))
    return next(lists, None)
