"""Messages of a chat with usual keys and values, as nearly all have, prepared in one look.

A message's keys, in their order, tell at once how it is stored. Its values are only compared with
the types that the columns hold, and its texts are encoded once, for check, size and digest. Any
other message goes the general way (`prepare_object`), which gives the same for these.
"""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from ..clock import is_moment
from ..text import encode_utf8, is_text
from .columns import (
    MOST_ORDERS,
    PreparedMessage,
    StoredCall,
    TextSize,
    make_columns,
    render_key_order,
    split_usual_calls,
)
from .json_text import SIZE_LIMIT, count_utf8_bytes

PLAIN_ROLES = frozenset(("user", "assistant", "tool", "system", "developer"))
_PLAIN_KEYS = frozenset(("role", "content", "tool_calls", "tool_call_id", "timestamp"))
_encode_text = json.encoder.encode_basestring_ascii


class PlainShape(NamedTuple):
    """The columns and flags that follow from the keys of a plain message, in their order."""

    extra: str | None
    extra_json: str
    has_calls: bool
    has_call_id: bool
    has_time: bool


@lru_cache(maxsize=MOST_ORDERS)
def find_plain_shape(keys: tuple[str, ...]) -> PlainShape | None:
    """Return the shape of a message by its keys in order, all of them plain; None without text."""
    if not {"role", "content"} <= {*keys}:
        return None
    extra = render_key_order(keys)
    has = ("tool_calls" in keys, "tool_call_id" in keys, "timestamp" in keys)
    return PlainShape(extra, "null" if extra is None else _encode_text(extra), *has)


def prepare_plain_message(message: Any) -> PreparedMessage | None:
    """Return a plain message as `prepare_message` does; None for any other message."""
    # Keys are looked at before anything of them is kept: they may be words that are redacted later.
    is_plain = type(message) is dict and _PLAIN_KEYS.issuperset(message)
    shape = find_plain_shape(tuple(message)) if is_plain else None
    if shape is None:
        return None
    role, content = message["role"], message["content"]
    moment, call_id = message.get("timestamp"), message.get("tool_call_id")
    wide = b"" if content is None else encode_utf8(content) if type(content) is str else None
    if (
        wide is None
        or type(role) is not str
        or role not in PLAIN_ROLES
        or (shape.has_time and not is_moment(moment))
        or (shape.has_call_id and not (type(call_id) is str and is_text(call_id)))
    ):
        return None
    form, text_size = ("null", None) if content is None else ("text", len(wide))
    id_json = "null" if call_id is None else _encode_text(call_id)
    time_json = "null" if moment is None else moment
    narrow = f'["{role}", null, null, {id_json}, {time_json}, null, {shape.extra_json}, "{form}"'
    calls: tuple[StoredCall, ...] = ()
    said = TextSize(len(content or ""), len(wide))
    if shape.has_calls:
        calls = split_usual_calls(message["tool_calls"])
        if not calls:
            return None
        narrow += "".join(map(_encode_call, calls))
        said = _measure_said(content, calls)
    if len(narrow) + len(wide) >= SIZE_LIMIT:
        return None
    columns = make_columns((role, None, None, call_id, moment, None, shape.extra, form, content))
    digest = sha256(f"{narrow}]".encode() + wide).digest()
    return PreparedMessage(columns, calls, message, digest, text_size, None, said)


def _measure_said(content: str | None, calls: tuple[StoredCall, ...]) -> TextSize:
    """Return the size of a content, and of the names and arguments of calls, a line each."""
    called = ((call.name, call.arguments) for call in calls)
    text = "\n".join(filter(None, chain((content,), *called)))
    return TextSize(len(text), count_utf8_bytes(text))


def _encode_call(call: StoredCall) -> str:
    """Return a usual call as it follows the narrow columns in the JSON of a row."""
    call_id, name, _, arguments, _ = map(_encode_text, map(str, call))
    return f', [{call_id}, {name}, "text", {arguments}, null]'
