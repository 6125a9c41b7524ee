"""The columns of a message's rows: the way from a given message to them, and the way back.

A column takes a value only if it can hold it exactly; all other values stay in the *rest*, a JSON
text beside the columns. So the way back is always the same: decode the rest, put the columns'
values in.

The rest is an object. If columns and rest would not return the keys in their original order, it is
a list of two: all keys in their order, and that object.

Messages from the caller are split into the values of their rows before any transaction
(`prepare_message`). Messages for the caller are copies: changing one changes nothing in the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

from ..clock import is_moment, parse_moment
from ..errors import InvalidMessage, quote_value
from ..text import as_plain_str, encode_utf8, is_text
from .attached_bytes import (
    ATTACHED_MARK,
    DETACHED_FORMS,
    FIRST_CALL_NUMBER,
    REST_NUMBER,
    AttachedBytes,
    detach_bytes,
)
from .json_text import SIZE_LIMIT, build_encoder, decode, encode, find_json_problem

Message = dict[str, Any]
"""A message: a dict of the OpenAI chat shape, or of another wire format; unknown keys are kept."""

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


make_columns: Callable[[tuple[Any, ...]], Columns] = partial(tuple.__new__, Columns)
"""Make columns from their values; without a step of Python, as there may be thousands."""


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
    said = {} if calls is None else {0: calls}
    return assemble_rows([(0, 0, b"", None, *columns)], said)[0][1]


def assemble_rows(
    rows: Iterable[tuple[Any, ...]], calls: Mapping[int, list[Any]]
) -> list[tuple[int, Message, int, bytes]]:
    """Return the messages of rows, each with its position, time of storing and digest.

    A row has these three and its wire format before its `Columns`; ``calls`` are the joined calls
    by position. This is one loop without calls, since there may be thousands of rows.
    """
    whole = []
    for (
        seq,
        stored_at,
        digest,
        _,
        role,
        name,
        status,
        tool_call_id,
        created_at,
        message_id,
        extra,
        content_form,
        content,
    ) in rows:
        order = _orders.get(extra, _NO_ORDER)
        message = order.copy()
        message["role"] = role
        if content_form is not None:
            plain = content_form in PLAIN_FORMS
            message["content"] = content if plain else decode(content or "null")
        if seq in calls:
            message["tool_calls"] = calls[seq]
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
        if extra is not None and len(message) != len(order):
            message = _merge_rest(message, extra)
        whole.append((seq, message, stored_at, digest))
    return whole


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


EMPTY_CALL_TEXT = encode(
    {"id": None, "type": "function", "function": {"name": None, "arguments": None}}
)
"""The rest of a call of the usual shape whose arguments are no text."""
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
    if extra == EMPTY_CALL_TEXT:
        given = _decode_column(arguments_form or "null", arguments)
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": given}}
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


_encode_row = build_encoder(json.encoder.encode_basestring_ascii, (", ", ": "))


if TYPE_CHECKING:
    from pydantic import BaseModel

GivenMessage: TypeAlias = "Mapping[str, Any] | BaseModel"
"""A message as callers give it: a dict, a typed one of a provider's client, or its object."""

MESSAGE_ID_LIMIT = 512
"""Maximum code points of a message id with a column; a longer one is kept like any other key."""

TIME_KEYS = ("timestamp", "created_at", "createdAt", "time")
"""Keys that may hold the time of a message; the first that holds a moment counts."""
_TIME_KEY_SET = frozenset(TIME_KEYS)
has_no_time = _TIME_KEY_SET.isdisjoint
"""Tell that a message has none of these keys, as most have not: one test looks for all of them."""


class TextSize(NamedTuple):
    """The size of a text: its code points, and its bytes in UTF-8."""

    length: int
    size: int


class DetachedMessage(NamedTuple):
    """The columns and calls of a message without its large pictures and files, and these."""

    columns: Columns
    calls: tuple[StoredCall, ...]
    attached: tuple[AttachedBytes, ...]


class PreparedMessage(NamedTuple):
    """A message split into columns before any transaction begins, and the digest of its values."""

    columns: Columns
    calls: tuple[StoredCall, ...]
    message: Message
    digest: bytes
    text_size: int | None = None
    """The number of UTF-8 bytes of a text content, if they were counted."""
    wire_format: str | None = None
    """The format in which it was given, None for a chat message."""
    said: TextSize | None = None
    """The size of all text that a model is sent, if it was counted."""
    came: Message | None = None
    """The message of a format that went in, with the last of its rows."""
    detached: DetachedMessage | None = None
    """Its rows without large pictures and files, if it has any; ``columns`` hold all of it."""

    @property
    def stored_columns(self) -> Columns:
        """The columns as its row has them."""
        return self.columns if self.detached is None else self.detached.columns

    @property
    def stored_calls(self) -> tuple[StoredCall, ...]:
        """The calls as their rows have them."""
        return self.calls if self.detached is None else self.detached.calls


def detach_message(message: PreparedMessage) -> PreparedMessage:
    """Return a message with its large pictures and files beside its rows, if it has any."""
    columns, calls = message.columns, [*message.calls]
    attached: list[AttachedBytes] = []
    is_json = columns.content_form == "json"
    if is_json and (held := detach_bytes(columns.content or "")):
        columns = columns._replace(content_form=DETACHED_FORMS["json"], content=held.text)
        attached += held.attached
    if held := detach_bytes(columns.extra or "", REST_NUMBER):
        extra = f"{held.text[0]}{ATTACHED_MARK}{held.text[1:]}"
        columns = columns._replace(extra=extra)
        attached += held.attached
    for number, call in enumerate(message.calls):
        if held := detach_bytes(call.arguments or "", FIRST_CALL_NUMBER + number):
            form = DETACHED_FORMS[call.arguments_form]
            calls[number] = call._replace(arguments_form=form, arguments=held.text)
            attached += held.attached
    apart = DetachedMessage(columns, tuple(calls), tuple(attached))
    return message._replace(detached=apart) if attached else message


def prepare_message(message: object, index: int = 0) -> PreparedMessage:
    """Return a message as columns, with its digest.

    Raises InvalidMessage, naming ``index`` and the key, for a message that cannot be stored: not an
    object, a role that is not text, NaN or infinite numbers, nesting over 200 levels, more than 64
    MiB, values that JSON does not have. A pydantic object is taken with its set fields only, and a
    datetime that tells the time of the message as its ISO text.
    """
    return prepare_object(dump_to_object(message, index), index)


def prepare_object(given: Message, index: int) -> PreparedMessage:
    """Do the same as `prepare_message`, for an object of JSON."""
    rest = dict(given)
    columns, calls, wide = _split_message(rest, index)
    if rest:
        order = [*given]
        whole = {**assemble_message(columns, [*calls] or None), **rest}
        columns = columns._replace(extra=encode(rest if [*whole] == order else [order, rest]))
    narrow = encode_narrow_bytes(columns, calls)
    if len(narrow) + len(wide) > SIZE_LIMIT:
        values = (*columns, *chain.from_iterable(calls))
        size = sum(len(value.encode()) for value in values if isinstance(value, str))
        if size > SIZE_LIMIT:
            largest = max(given, key=lambda key: len(encode(given[key])))
            problem = f"the message takes {size:,} bytes, the limit is {SIZE_LIMIT:,}"
            raise InvalidMessage(index, largest, problem)
    text_size = len(wide) if columns.content_form == "text" else None
    return PreparedMessage(columns, calls, given, sha256(narrow + wide).digest(), text_size)


def dump_to_object(message: object, index: int) -> Message:
    """Return a message as an object of JSON, if it is one or can be dumped to one.

    Raises InvalidMessage.
    """
    if not isinstance(message, dict):
        if not isinstance(message, Mapping) and is_model(message):
            try:
                message = message.model_dump(mode="json", exclude_unset=True)
            except Exception as error:  # a foreign class may raise anything
                raise InvalidMessage(index, None, f"it has no JSON: {error}") from error
        if not isinstance(message, Mapping):
            given = type(message).__name__
            raise InvalidMessage(index, None, f"a message must be an object, not {given}")
        message = dict(message)
    if has_no_time(message):
        return message
    times = {key: message[key] for key in TIME_KEYS if isinstance(message.get(key), datetime)}
    if not times:
        return message
    return {**message, **{key: time.isoformat() for key, time in times.items()}}


def is_model(given: object) -> TypeGuard[BaseModel]:
    """Tell a pydantic object, such as a provider's; a dict is never asked, so it imports none."""
    from pydantic import BaseModel

    return isinstance(given, BaseModel)


def _split_message(rest: Message, index: int) -> tuple[Columns, tuple[StoredCall, ...], bytes]:
    """Move all values that columns can hold out of the rest; refuse values that JSON does not have.

    The content is returned in UTF-8 as well, so its checks, its size and its digest need one pass.
    Values known to be text need no check for JSON, so they are taken first.
    """
    order = tuple(rest)
    role = _split_text(rest, "role")
    if not role:
        raise InvalidMessage(
            index, "role", f"a role must be a non-empty text{_hint_at_shape(rest)}"
        )
    calls = split_usual_calls(rest["tool_calls"]) if "tool_calls" in rest else ()
    if calls:
        del rest["tool_calls"]
    if _has_no_text(rest):
        name, status, tool_call_id = [None] * len(_TEXT_KEYS)
    else:
        name, status, tool_call_id = [
            _split_text(rest, key) if key in rest else None for key in _TEXT_KEYS
        ]
    moment = None
    if not has_no_time(rest):
        time = rest.get("timestamp")
        moment = time if is_moment(time) else find_message_time(rest)
        if type(time) is int and time == moment:
            del rest["timestamp"]
    _check_json_values(rest, index)
    message_id, given_id = None, rest.get("id")
    if type(given_id) is int:
        message_id = str(given_id)  # so a number is the same id as its digits
    elif given_id and is_text(given_id) and len(given_id) <= MESSAGE_ID_LIMIT:
        message_id = as_plain_str(rest.pop("id"))
    wide = encode_utf8(rest.get("content"))
    form: str | None = "text"
    if wide is None:
        form, content = _split_value(rest, "content")
        wide = b"" if content is None else content.encode()
    else:
        content = as_plain_str(rest.pop("content"))
    if "tool_calls" in rest:
        calls = _split_calls(rest)
    extra = None if rest else render_key_order(order)
    columns = Columns(role, name, status, tool_call_id, moment, message_id, extra, form, content)
    return columns, calls, wide


def _hint_at_shape(given: Message) -> str:
    """Return a hint about an object without a role that a provider may have sent."""
    if "choices" in given:
        return "; of an answer append choices[0].message"
    kind = given.get("type")
    if not isinstance(kind, str):
        return ""
    return (
        f"; an item of type {quote_value(kind)}, which no chat has, is taken with the name of its "
        "format: append(…, format='responses')"
    )


@lru_cache(maxsize=MOST_ORDERS)
def render_key_order(order: tuple[str, ...]) -> str | None:
    """Return the rest of a message that columns hold wholly: its order, None if it is theirs."""
    if [*filter(order.__contains__, COLUMN_KEYS)] == [*order]:
        return None
    return encode([order, {}])


def decode_rest(extra: str) -> Message:
    """Return the values of a message that its columns do not hold, by their keys."""
    rest = decode(extra)
    return rest if isinstance(rest, dict) else rest[1]


_TEXT_KEYS = ("name", "messageStatus", "tool_call_id")
_has_no_text = frozenset(_TEXT_KEYS).isdisjoint


def _split_text(rest: Message, key: str) -> str | None:
    """Move a text that a column can hold out of the rest."""
    return as_plain_str(rest.pop(key)) if key in rest and is_text(rest[key]) else None


def find_message_time(message: Message) -> int | None:
    """Return when a message was said (ms), None if it does not tell."""
    if has_no_time(message):
        return None
    for key in TIME_KEYS:
        given = message.get(key)
        moment = None if given is None else parse_moment(given)
        if moment is not None:
            return moment
    return None


def _split_value(rest: Message, key: str) -> tuple[str | None, str | None]:
    """Move a value out of the rest as its form and its text; both None if the key is missing."""
    if key not in rest:
        return None, None
    value = rest.pop(key)
    if value is None:
        return "null", None
    if is_text(value):
        return "text", as_plain_str(value)
    return "json", encode(value)


_CALL_KEYS = ["id", "type", "function"]
_FUNCTION_KEYS = ["name", "arguments"]


def split_usual_calls(given: object) -> tuple[StoredCall, ...]:
    """Return calls as rows if all have the usual shape, as most have; () for any other value."""
    if not given or type(given) is not list:
        return ()
    calls = []
    for call in given:
        usual = _parse_usual_call(call)
        if usual is None:
            return ()
        calls.append(usual)
    return tuple(calls)


def _parse_usual_call(call: Any) -> StoredCall | None:
    if type(call) is not dict or [*call] != _CALL_KEYS or call["type"] != "function":
        return None
    function = call["function"]
    if type(function) is not dict or [*function] != _FUNCTION_KEYS:
        return None
    call_id, name, arguments = call["id"], function["name"], function["arguments"]
    if is_text(call_id) and is_text(name) and is_text(arguments):
        return StoredCall(
            as_plain_str(call_id), as_plain_str(name), "text", as_plain_str(arguments), None
        )
    return None


def _split_calls(rest: Message) -> tuple[StoredCall, ...]:
    """Move a non-empty list of tool calls out of the rest; any other value stays there."""
    given = rest.get("tool_calls")
    if not isinstance(given, list) or not given:
        return ()
    del rest["tool_calls"]
    return tuple(_parse_usual_call(call) or _split_call(call) for call in given)


def _split_call(call: object) -> StoredCall:
    if not isinstance(call, dict):
        return StoredCall(None, None, None, None, encode(call))
    rest = dict(call)
    if isinstance(rest.get("function"), dict):
        rest["function"] = dict(rest["function"])
    function = get_call_function(rest)
    call_id = _split_text(rest, "id")
    name = _split_text(function, "name")
    form, arguments = _split_value(function, "arguments")
    # So a value that is put back gets its old place.
    places = {key: rest.get(key) for key in call}
    if isinstance(rest.get("function"), dict):
        places["function"] = {key: rest["function"].get(key) for key in call["function"]}
    return StoredCall(call_id, name, form, arguments, encode(places))


def _check_json_values(message: Message, index: int) -> None:
    """Refuse values that JSON does not have, naming their top-level key."""
    for key, value in message.items():
        if not isinstance(key, str):
            raise InvalidMessage(index, str(key), "keys are text")
        if value is None or isinstance(value, str):
            continue
        problem = find_json_problem(value)
        if problem:
            raise InvalidMessage(index, key, problem)


def copy_message(message: Message) -> Message:
    """Return a copy of a message that shares no mutable value with the original."""
    for value in message.values():
        if isinstance(value, list | dict):
            return {key: copy_value(each) for key, each in message.items()}
    return message.copy()


def copy_value(value: Any) -> Any:
    """Return a copy of a JSON value that shares no mutable value with the original."""
    if isinstance(value, dict):
        return copy_message(value)
    if isinstance(value, list):
        return [copy_value(each) for each in value]
    return value
