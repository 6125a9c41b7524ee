"""The log of changes as which VS Code keeps a chat: a whole state, then what was set in it.

An entry has its ``kind``, the path ``k`` of what it changes, and a value ``v``.
"""

from __future__ import annotations

from typing import Any

from ...text import JsonFields
from ..events import get_fields

WHOLE, SET, PUSH, DELETE = range(4)


def is_log_entry(value: object) -> bool:
    """Tell whether a JSON value is an entry of such a log."""
    fields = get_fields(value)
    return type(fields.get("kind")) is int and not fields.keys().isdisjoint("kv")


def apply_log_entry(state: Any, entry: JsonFields) -> Any:
    """Return the state behind an entry: the same object, changed, unless the entry is a whole one.

    Raises LookupError, TypeError or ValueError where the entry does not fit the state.
    """
    if entry["kind"] == WHOLE:
        return entry["v"]
    *way, last = entry["k"]
    holder = state
    for key in way:
        holder = holder[key]
    if entry["kind"] == SET:
        holder[last] = entry["v"]
    elif entry["kind"] == DELETE:
        holder.pop(last, None)
    elif entry["kind"] == PUSH:
        held = holder.get(last) or []
        del held[entry.get("i", len(held)) :]
        holder[last] = [*held, *entry.get("v", ())]
    else:
        raise ValueError("no kind of an entry")
    return state
