"""Compare a message that is sent again with the original, as clients change many details.

They omit ids, states and empty values, move cache markers, and write a text as a part.
"""

from __future__ import annotations

from typing import Any

from ...text import wrap_in_list
from ..events import drop_empty_fields, drop_keys, get_fields

OMITTED_KEYS = (
    "status",
    "cache_control",
    "annotations",
    "citations",
    "logprobs",
    "caller",
    "phase",
)
"""Keys that clients leave out, or set anew, where they send a message again."""
EQUAL_TEXT_TYPES = ("text", "input_text", "output_text")


def count_shared_messages(line: list[Any], sent: list[Any]) -> int:
    """Return with how many messages of a line a request begins."""
    count = 0
    for one, other in zip(line, sent, strict=False):
        if not is_equal_message(one, other):
            break
        count += 1
    return count


def is_equal_message(one: Any, other: Any) -> bool:
    """Tell whether two messages are one."""
    named = get_fields(one).get("id"), get_fields(other).get("id")
    if None not in named:
        return named[0] == named[1]
    return bool(_normalize_message(one) == _normalize_message(other))


def _normalize_message(message: Any) -> Any:
    """Return what makes a message the one that it is."""
    fields = dict(_drop_omitted_keys(drop_keys(get_fields(message), "id")))
    if "role" in fields:
        fields.pop("type", None)
    if "content" in fields:
        parts = map(_normalize_part, wrap_in_list(fields["content"]))
        fields["content"] = [*parts]
    return fields


def _normalize_part(part: Any) -> Any:
    kind = get_fields(part).get("type")
    return part["text"] if kind in EQUAL_TEXT_TYPES and "text" in part else part


def _drop_omitted_keys(value: Any) -> Any:
    """Return a value without what clients leave out."""
    if isinstance(value, list):
        return [*map(_drop_omitted_keys, value)]
    if not isinstance(value, dict):
        return value
    said = {key: _drop_omitted_keys(held) for key, held in value.items()}
    return drop_empty_fields(drop_keys(said, *OMITTED_KEYS))
