"""What the rows of a message hold, and the way back from them to the message that went in.

Columns take a value only where they can hold it exactly; whatever they cannot hold stays in the
*rest*, a JSON text beside them. So the way back is always the same: decode the rest, put the
columns' values in.

The rest is an object. Where columns and rest would not come out in the order in which the keys were
given, it is a list of two: all keys in their order, and that object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from operator import itemgetter
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
    """What the columns of a message's row say of it, named as they are.

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


def content_text(content: object) -> str:
    """Return the text of a content: a string as it is, the texts of a part list joined, else ""."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(map(part_text, content))


def part_text(part: object) -> str:
    """Return the text of a part; "" where it has none."""
    text = part.get("text", part.get("refusal")) if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


KEYS = (
    *("role", "content", "tool_calls", "tool_call_id", "name"),
    *("timestamp", "messageStatus", "id"),
)
"""What columns hold of a message, in the order in which they give it back."""


def assemble(columns: Sequence[Any], calls: list[Any] | None) -> Message:
    """Return the message that went in, from its columns and its joined calls (None: it has none).

    ``columns`` are the values of a row of `Columns`.
    """
    extra = columns[_EXTRA]
    if extra is None:
        return _held(columns, calls)
    order = _orders.get(extra)
    if order is None:
        return _with_rest(_held(columns, calls), extra)
    if order.row and calls is None and columns[_FORM] == "text":
        values = order.row(columns)
        if None not in values:
            return dict(zip(order.keys, values))  # noqa: B905 - it takes a third of the time
    return order.of(_held(columns, calls))


_EXTRA, _FORM = map(Columns._fields.index, ("extra", "content_form"))


def _held(columns: Sequence[Any], calls: list[Any] | None) -> Message:
    """Return what the columns alone hold of a message."""
    role, name, status, tool_call_id, created_at, message_id, _, content_form, content = columns
    message: Message = {"role": role}
    if content_form in PLAIN_FORMS:
        message["content"] = content
    elif content_form is not None:
        message["content"] = _value(content_form, content)
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
    return message


def _with_rest(held: Message, text: str) -> Message:
    """Return a message of what its columns hold and of the rest, which may know the order."""
    if text.endswith(_ORDER_ALONE):
        return _remembered(text).of(held)
    rest = decode(text)
    if isinstance(rest, dict):
        return {**held, **rest}
    keys, others = rest
    return _ordered({**held, **others}, keys)


def _ordered(whole: Message, keys: Iterable[str]) -> Message:
    """Return a message with its keys in their order.

    What the order leaves out was read from other keys and is not given out. A damaged row may lack
    a key of the order, which shows in its digest.
    """
    return {key: whole[key] for key in keys if key in whole}


_Values = Callable[[Any], tuple[Any, ...]]


class _Order(NamedTuple):
    """An order of keys, and what takes their values out of a message.

    ``row`` takes them out of a row of `Columns`, where they all stand there: most orders are those
    of a result's few keys, and half of a coding session are results.
    """

    keys: tuple[str, ...]
    values: _Values
    row: _Values | None = None

    def of(self, held: Message) -> Message:
        """Return a message in this order."""
        try:
            return dict(zip(self.keys, self.values(held), strict=True))
        except KeyError:
            return _ordered(held, self.keys)


_ORDER_ALONE = "],{}]"
"""How a rest ends that holds the order of keys and nothing else: few texts, in many messages."""
MOST_ORDERS = 256
"""Orders that a process remembers by their texts."""
_orders: dict[str, _Order] = {}
_PLACES = {"timestamp": "created_at", "messageStatus": "status", "id": "message_id"}
"""The columns of keys that are named otherwise."""


def _from_row(keys: list[str]) -> _Values | None:
    """Return what takes the values of keys out of a row; None where one does not stand there."""
    names = [_PLACES.get(key, key) for key in keys]
    if {*names} <= _KEPT:
        return itemgetter(*map(Columns._fields.index, names))
    return None


_KEPT = frozenset(_PLACES.get(key, key) for key in KEYS) - {"tool_calls"}
"""The columns that hold the values of keys."""


def _remembered(text: str) -> _Order:
    keys, _ = decode(text)
    order = _Order(tuple(keys), lambda held: tuple(held[key] for key in keys))
    if len(keys) > 1:
        order = order._replace(values=itemgetter(*keys), row=_from_row(keys))
    if len(_orders) >= MOST_ORDERS:
        _orders.clear()  # in one step: other threads go on reading and adding
    _orders[text] = order
    return order


def join_call(
    call_id: str | None,
    name: str | None,
    arguments_form: str | None,
    arguments: str | None,
    extra: str | None,
) -> Any:
    """Return one entry of ``tool_calls`` as it went in."""
    if extra is None:
        function = {"name": name, "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}
    call = decode(extra)
    if not isinstance(call, dict):
        return call
    if call_id is not None:
        call["id"] = call_id
    function = function_of(call)
    if name is not None:
        function["name"] = name
    if arguments_form is not None:
        function["arguments"] = _value(arguments_form, arguments)
    return call


def function_of(call: dict[str, Any]) -> dict[str, Any]:
    """Return what holds a call's name and arguments: its function, or the call itself."""
    function = call.get("function")
    return function if isinstance(function, dict) else call


def _value(form: str, text: str | None) -> Any:
    return text if form in PLAIN_FORMS else decode(text or "null")


def content_digest(columns: Columns, calls: tuple[StoredCall, ...]) -> bytes:
    """Return the SHA-256 over everything that was given of a message; a digest of version 1."""
    return sha256(b"".join(bytes_of(columns, calls))).digest()


def dated_digest(content: bytes, stored_at: int, wire_format: str | None = None) -> bytes:
    """Return the digest of a message's rows, version 2.

    The SHA-256 over that of what was given, when it was stored (ms), and in which format it came.
    """
    return sha256(content + f"{stored_at} {wire_format or ''}".encode()).digest()


def bytes_of(columns: Columns, calls: tuple[StoredCall, ...]) -> tuple[bytes, bytes]:
    """Return in UTF-8 what a message's rows hold: all but the content as JSON, then the content."""
    content = columns.content
    return narrow_bytes(columns, calls), b"" if content is None else str(content).encode()


def narrow_bytes(columns: Columns, calls: tuple[StoredCall, ...]) -> bytes:
    """Return as JSON, in UTF-8, all that a message's rows hold but the content."""
    return _written((*columns[:-1], *calls)).encode()


def _encoder() -> Callable[[Any], str]:
    """Return what writes a row as JSON: where it is in C, made once and not for each text."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder().encode
    text, separators = json.encoder.encode_basestring_ascii, (": ", ", ")
    pieces = make(None, None, text, None, *separators, False, False, True)
    return lambda value: "".join(pieces(value, 0))


_written = _encoder()
