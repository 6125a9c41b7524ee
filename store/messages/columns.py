"""The columns of a message's rows, and the way back from them to the original message.

A column takes a value only if it can hold it exactly; all other values stay in the *rest*, a JSON
text beside the columns. So the way back is always the same: decode the rest, put the columns'
values in.

The rest is an object. If columns and rest would not return the keys in their original order, it is
a list of two: all keys in their order, and that object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from .json_text import decode

Message = dict[str, Any]

PLAIN_FORMS = frozenset({"text", "null"})
"""Forms whose column is the value itself; the third, ``json``, holds the value's JSON text."""


class StoredCall(NamedTuple):
    """One tool call of a message as columns.

    ``extra`` None means the usual shape with nothing left over.
    """

    call_id: str | None
    name: str | None
    arguments_form: str | None
    arguments: str | None
    extra: str | None


class Columns(NamedTuple):
    """The values of a message's row, named like its columns.

    ``extra`` None means that nothing was left over.
    """

    role: str
    name: str | None
    status: str | None
    tool_call_id: str | None
    created_at: int | None
    message_id: str | None
    extra: str | None
    content_form: str | None
    content: str | None


def extract_content_text(content: object) -> str:
    """Return the text of a content: a string as it is, the texts of a part list joined, else ""."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(map(extract_part_text, content))


def extract_part_text(part: object) -> str:
    """Return the text of a part; "" if it has none."""
    text = part.get("text", part.get("refusal")) if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


COLUMN_KEYS = (
    *("role", "content", "tool_calls", "tool_call_id", "name"),
    *("timestamp", "messageStatus", "id"),
)
"""The keys that have columns, in the order in which `assemble_message` returns them."""


def assemble_message(columns: Sequence[Any], calls: list[Any] | None) -> Message:
    """Return the original message from its columns and its joined calls (None: it has none).

    ``columns`` are the values of a row of `Columns`.
    """
    role, name, status, tool_call_id, created_at, message_id, extra, content_form, content = columns
    order = _orders.get(extra, _NO_ORDER)
    message = order.copy()
    message["role"] = role
    if content_form in PLAIN_FORMS:
        message["content"] = content
    elif content_form is not None:
        message["content"] = _decode_column(content_form, content)
    if calls is not None:
        message["tool_calls"] = calls
    if tool_call_id is not None:
        message["tool_call_id"] = tool_call_id
    if name is not None:
        message["name"] = name
    if created_at is not None:
        message["timestamp"] = created_at
    if status is not None:
        message["messageStatus"] = status
    if message_id is not None:
        message["id"] = message_id
    if extra is None or len(message) == len(order):
        return message
    return _merge_rest(message, extra)


def _merge_rest(held: Message, text: str) -> Message:
    """Return a message from the values of its columns and the rest, which may hold the order."""
    rest = decode(text)
    if isinstance(rest, dict):
        return {**held, **rest}
    keys, others = rest
    # Keys missing from the order were read from other keys and are not returned. A key that a
    # damaged row lacks, which its digest shows, is None.
    whole = {**held, **others}
    message = {key: whole.get(key) for key in keys}
    if not others:
        if len(_orders) >= MOST_ORDERS:
            _orders.clear()  # in one step: other threads go on reading and adding
        _orders[text] = dict.fromkeys(keys)
    return message


MOST_ORDERS = 256
"""The number of orders that a process remembers, by their texts."""
_NO_ORDER: Message = {}
_orders: dict[str | None, Message] = {}
"""Messages with nothing but their order of keys: a copy that is filled in keeps it.

The keys are the texts of rests that hold nothing else. There are few of them, in many messages:
half of a coding session are results, whose keys came in one order.
"""


def join_call(
    call_id: str | None,
    name: str | None,
    arguments_form: str | None,
    arguments: str | None,
    extra: str | None,
) -> Any:
    """Return one entry of ``tool_calls`` as it was given."""
    if extra is None:
        function = {"name": name, "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}
    call = decode(extra)
    if not isinstance(call, dict):
        return call
    if call_id is not None:
        call["id"] = call_id
    function = get_call_function(call)
    if name is not None:
        function["name"] = name
    if arguments_form is not None:
        function["arguments"] = _decode_column(arguments_form, arguments)
    return call


def get_call_function(call: dict[str, Any]) -> dict[str, Any]:
    """Return the object with a call's name and arguments: its function, or the call itself."""
    function = call.get("function")
    return function if isinstance(function, dict) else call


def _decode_column(form: str, text: str | None) -> Any:
    return text if form in PLAIN_FORMS else decode(text or "null")


def digest_content(columns: Columns, calls: tuple[StoredCall, ...]) -> bytes:
    """Return the SHA-256 over all given values of a message; a digest of version 1."""
    content = columns.content
    return sha256(
        b"".join(
            (encode_narrow_bytes(columns, calls), b"" if content is None else str(content).encode())
        )
    ).digest()


def digest_row(content: bytes, stored_at: int, wire_format: str | None = None) -> bytes:
    """Return the digest of a message's rows, version 2.

    The SHA-256 over the digest of the given values, the time of storing (ms), and the wire format.
    """
    return sha256(content + f"{stored_at} {wire_format or ''}".encode()).digest()


def find_digest_version(
    columns: Columns,
    calls: tuple[StoredCall, ...],
    digest: object,
    stored_at: int,
    wire_format: str | None,
) -> int | None:
    """Return the version of the digest of a message's rows; None if it does not match."""
    try:
        content = digest_content(columns, calls)
    except (TypeError, ValueError):  # values of types that no column has
        return None
    if digest_row(content, stored_at, wire_format) == digest:
        return 2
    return 1 if content == digest and wire_format is None else None


def encode_narrow_bytes(columns: Columns, calls: tuple[StoredCall, ...]) -> bytes:
    """Return the values of a message's rows, except the content, as JSON in UTF-8."""
    return _encode_row((*columns[:-1], *calls)).encode()


def _build_row_encoder() -> Callable[[Any], str]:
    """Return a function that writes a row as JSON: one in C, if there is one, made only once."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder().encode
    text, separators = json.encoder.encode_basestring_ascii, (": ", ", ")
    pieces = make(None, None, text, None, *separators, False, False, True)
    return lambda value: "".join(pieces(value, 0))


_encode_row = _build_row_encoder()
