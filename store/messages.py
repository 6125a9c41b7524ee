"""What goes in: a message as the caller gave it, taken apart into columns and put together again, equal.

Columns take a value only where they can hold it exactly; whatever they cannot hold stays in the *rest*, a JSON text
beside them. So the way back is always the same: decode the rest, put the columns' values in. Nothing here knows SQL.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple, TypeGuard

from .errors import InvalidMessage

Message = dict[str, Any]

PLAIN_FORMS = frozenset({"text", "null"})
"""Forms whose column is the value itself; the third, ``json``, holds the value's JSON text."""

DEPTH_LIMIT = 200
SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes a message may take as stored text: beyond it engines slow down, then refuse."""

ID_LIMIT = 512
"""Code points a caller's message id may have to count; a longer one is kept like any other key."""

_WRAPPED = "="  # no JSON text begins with it
_INTEGER_LIMIT = 2**63
_DIGITS_LIMIT = 13_000  # bits; Python itself refuses to print numbers of over 4,300 digits


class StoredCall(NamedTuple):
    """One tool call of a message as columns; ``extra`` None means the usual shape with nothing left over."""

    call_id: str | None
    name: str | None
    arguments_form: str | None
    arguments: str | None
    extra: str | None


class Prepared(NamedTuple):
    """A message as columns, made before any transaction begins; ``extra`` None means that nothing was left over."""

    role: str
    name: str | None
    status: str | None
    tool_call_id: str | None
    created_at: int | None
    message_id: str | None
    digest: bytes
    extra: str | None
    content_form: str | None
    content: str | None
    calls: tuple[StoredCall, ...]
    message: Message
    text_size: int | None = None
    """Bytes of a content that is text, in UTF-8, where they were counted."""


def content_text(content: object) -> str:
    """Return the text of a content: a string as it is, a part list's text parts joined, "" for anything else."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "".join(text for text in texts if isinstance(text, str))


def encode(value: object) -> str:
    """Return a JSON value as text that every engine can hold and that decodes to an equal value.

    Lone surrogates are written as escapes. Two halves side by side, which a JSON reader would join to one character,
    are wrapped whole (base64 of the text, after ``=``).
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if is_text(text):
        return text
    escaped = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    if json.loads(escaped) == value:
        return escaped
    return _WRAPPED + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def decode(text: str) -> Any:
    """Return the JSON value that `encode` wrote."""
    if text.startswith(_WRAPPED):
        text = base64.b64decode(text[1:]).decode("utf-8", "surrogatepass")
    return json.loads(text)


def is_text(value: object) -> TypeGuard[str]:
    """Tell whether a text column of every engine holds this value exactly: a string without NUL or surrogates."""
    if not isinstance(value, str) or "\0" in value:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def utf8_size(text: str) -> int:
    """Return the bytes of a text in UTF-8, in which a lone surrogate takes three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_integer(value: object) -> TypeGuard[int]:
    """Tell whether an integer column holds this value exactly: a whole number of at most 64 bits, no bool."""
    return type(value) is int and -_INTEGER_LIMIT <= value < _INTEGER_LIMIT


def milliseconds(value: object) -> int | None:
    """Return the moment that any number tells, floored (A0.9), None where an integer column cannot hold it."""
    whole = math.floor(value) if isinstance(value, float) and math.isfinite(value) else value
    return whole if is_integer(whole) else None


def prepare(message: object, index: int = 0) -> Prepared:
    """Return a message as columns, with its digest.

    Raises InvalidMessage, naming ``index`` and the key, for what cannot be stored: not an object, a role that is not
    text, NaN or infinite numbers, nesting over 200 levels, more than 64 MiB, values that JSON does not have.
    """
    if not isinstance(message, dict):
        raise InvalidMessage(index, None, f"a message is an object, this is {type(message).__name__}")
    rest = dict(message)
    role = _split_text(rest, "role")
    if not role:
        raise InvalidMessage(index, "role", "a role is a non-empty text")
    calls = _split_usual_calls(rest)
    name, status = _split_text(rest, "name"), _split_text(rest, "messageStatus")
    tool_call_id = _split_text(rest, "tool_call_id")
    created_at = milliseconds(rest.get("timestamp"))
    if is_integer(rest.get("timestamp")):
        del rest["timestamp"]
    _check(rest, index)
    message_id = _split_id(rest) if "id" in rest else None
    content_form, content = _split_value(rest, "content")
    calls = calls or _split_calls(rest)
    extra = encode(rest) if rest else None
    columns = (role, name, status, tool_call_id, created_at, message_id, extra, content_form, content)
    narrow, wide = _bytes(columns, calls)
    if len(narrow) + len(wide) > SIZE_LIMIT:
        _check_size(message, index, (*columns, *chain.from_iterable(calls)))
    return Prepared(
        *columns[:6],
        sha256(narrow + wide).digest(),
        *columns[6:],
        calls,
        message,
        len(wide) if content_form == "text" else None,
    )


def digest_of(columns: tuple[object, ...], calls: tuple[StoredCall, ...]) -> bytes:
    """Return the SHA-256 over everything a message's rows hold, so that a changed byte anywhere shows.

    ``columns``: role, name, status, tool_call_id, created_at, message_id, extra, content_form, content.
    """
    return sha256(b"".join(_bytes(columns, calls))).digest()


def _bytes(columns: tuple[object, ...], calls: tuple[StoredCall, ...]) -> tuple[bytes, bytes]:
    """Return all that a message's rows hold, in UTF-8: everything but the content as JSON, then the content."""
    *narrow, content = columns
    return json.dumps((*narrow, *calls)).encode(), b"" if content is None else str(content).encode()


def assemble(columns: Sequence[Any], calls: list[Any] | None) -> Message:
    """Return the message that went in, from its columns and its joined calls (None where it has none).

    ``columns``: role, name, status, tool_call_id, created_at, message_id, extra, content_form, content.
    """
    role, name, status, tool_call_id, created_at, message_id, extra, content_form, content = columns
    message: Message = {"role": role}
    if content_form is not None:
        message["content"] = content if content_form in PLAIN_FORMS else decode(content or "null")
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
    if extra is not None:
        message.update(decode(extra))
    return message


def join_call(
    call_id: str | None, name: str | None, arguments_form: str | None, arguments: str | None, extra: str | None
) -> Any:
    """Return one entry of ``tool_calls`` as it went in."""
    if extra is None:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    call = decode(extra)
    if not isinstance(call, dict):
        return call
    if call_id is not None:
        call["id"] = call_id
    function = call["function"] if isinstance(call.get("function"), dict) else call
    if name is not None:
        function["name"] = name
    if arguments_form is not None:
        function["arguments"] = arguments if arguments_form in PLAIN_FORMS else decode(arguments or "null")
    return call


def _split_text(rest: Message, key: str) -> str | None:
    """Take a text that a column can hold out of the rest."""
    return rest.pop(key) if key in rest and is_text(rest[key]) else None


def _split_value(rest: Message, key: str) -> tuple[str | None, str | None]:
    """Take a value out of the rest: (None, None) where the key is missing, else its form and its text."""
    if key not in rest:
        return None, None
    value = rest.pop(key)
    if value is None:
        return "null", None
    return ("text", str.__str__(value)) if is_text(value) else ("json", encode(value))  # not what a subclass says


def _split_id(rest: Message) -> str | None:
    """Return the key under which the message is idempotent; a whole number counts by its digits."""
    given = rest.get("id")
    if type(given) is int:
        return str(given)
    return rest.pop("id") if given and is_text(given) and len(given) <= ID_LIMIT else None


_CALL_KEYS = {"id", "type", "function"}
_FUNCTION_KEYS = {"name", "arguments"}


def _split_usual_calls(rest: Message) -> tuple[StoredCall, ...]:
    """Take the calls out of the rest where each has the usual shape and nothing else: most have, and it is quick."""
    given = rest.get("tool_calls")
    if not given or type(given) is not list:
        return ()
    calls = []
    for call in given:
        if type(call) is not dict or call.keys() != _CALL_KEYS or call["type"] != "function":
            return ()
        call_id, function = call["id"], call["function"]
        if type(function) is not dict or function.keys() != _FUNCTION_KEYS:
            return ()
        name, arguments = function["name"], function["arguments"]
        if not (is_text(call_id) and is_text(name) and is_text(arguments)):
            return ()
        calls.append(StoredCall(call_id, name, "text", arguments, None))
    del rest["tool_calls"]
    return tuple(calls)


def _split_calls(rest: Message) -> tuple[StoredCall, ...]:
    """Take a non-empty list of tool calls out of the rest; anything else stays there."""
    given = rest.get("tool_calls")
    if not isinstance(given, list) or not given:
        return ()
    del rest["tool_calls"]
    return tuple(_split_call(call) for call in given)


def _split_call(call: object) -> StoredCall:
    if not isinstance(call, dict):
        return StoredCall(None, None, None, None, encode(call))
    rest = function = dict(call)
    if isinstance(rest.get("function"), dict):
        function = rest["function"] = dict(rest["function"])
    call_id = rest.pop("id") if is_text(rest.get("id")) else None
    name = function.pop("name") if is_text(function.get("name")) else None
    form, arguments = _split_value(function, "arguments")
    usual = call_id is not None and name is not None and form == "text" and rest == {"type": "function", "function": {}}
    return StoredCall(call_id, name, form, arguments, None if usual else encode(rest))


def _check(message: Message, index: int) -> None:
    """Refuse what JSON does not have, naming the top-level key it is under."""
    for key, value in message.items():
        if not isinstance(key, str):
            raise InvalidMessage(index, str(key), "keys are text")
        if value is None or isinstance(value, str):
            continue
        problem = _problem(value, DEPTH_LIMIT)
        if problem:
            raise InvalidMessage(index, key, problem)


def _problem(value: object, levels: int) -> str | None:
    """Say why JSON cannot hold a value of at most so many nested levels; None where it can."""
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} is no JSON number"
    if isinstance(value, int):
        return None if value.bit_length() < _DIGITS_LIMIT else "a whole number of more than 3,900 digits"
    if not isinstance(value, dict | list):
        return f"JSON has no {type(value).__name__}"
    if not levels:
        return f"nested more than {DEPTH_LIMIT} levels deep"
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        return "keys are text"
    below = value.values() if isinstance(value, dict) else value
    return next(filter(None, (_problem(each, levels - 1) for each in below)), None)


def _check_size(message: Message, index: int, columns: tuple[object, ...]) -> None:
    """Refuse a message whose columns hold too much, naming the key that holds most of it."""
    size = sum(len(column.encode()) for column in columns if isinstance(column, str))
    if size > SIZE_LIMIT:
        largest = max(message, key=lambda key: len(encode(message[key])))
        raise InvalidMessage(index, largest, f"the message takes {size:,} bytes, the limit is {SIZE_LIMIT:,}")
