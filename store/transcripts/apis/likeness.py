"""Compare a message that is sent again with the original, as clients change many details.

They omit ids, states and empty values, move cache markers, and write a text as a part.
"""

from __future__ import annotations

from typing import Any

from ...text import as_list
from ..events import fields_of, telling, without

UNSAID = ("status", "cache_control", "annotations", "citations", "logprobs", "caller", "phase")
"""Keys that clients leave out, or set anew, where they send a message again."""
TEXTS = ("text", "input_text", "output_text")


def shared(line: list[Any], sent: list[Any]) -> int:
    """Return with how many messages of a line a request begins."""
    count = 0
    for one, other in zip(line, sent, strict=False):
        if not is_same(one, other):
            break
        count += 1
    return count


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two messages are one."""
    named = fields_of(one).get("id"), fields_of(other).get("id")
    if None not in named:
        return named[0] == named[1]
    return bool(_outline(one) == _outline(other))


def _outline(message: Any) -> Any:
    """Return what makes a message the one that it is."""
    fields = dict(_said(without(fields_of(message), "id")))
    if "role" in fields:
        fields.pop("type", None)
    if "content" in fields:
        parts = map(_part, as_list(fields["content"]))
        fields["content"] = [*parts]
    return fields


def _part(part: Any) -> Any:
    kind = fields_of(part).get("type")
    return part["text"] if kind in TEXTS and "text" in part else part


def _said(value: Any) -> Any:
    """Return a value without what clients leave out."""
    if isinstance(value, list):
        return [*map(_said, value)]
    if not isinstance(value, dict):
        return value
    said = {key: _said(held) for key, held in value.items()}
    return telling(without(said, *UNSAID))
