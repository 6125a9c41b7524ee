"""The calls of a stored message that can be sent, each under an id that is unique in it."""

from __future__ import annotations

from typing import Any

from ..messages import UNKNOWN_TOOL, Message
from ..text import is_text
from .call_names import make_call_id
from .request_messages import ApiCall


def select_sendable_calls(seq: int, stored: list[Any]) -> tuple[ApiCall, ...]:
    """Return the calls of the message at a position that can be sent.

    The id of each is unique in the message.
    """
    sendable: dict[str, ApiCall] = {}
    for position, call in enumerate(stored):
        add_sendable_call(sendable, seq, position, call)
    return (*sendable.values(),)


def add_sendable_call(sendable: dict[str, ApiCall], seq: int, position: int, call: Any) -> None:
    """Add a call to the sendable calls of its message, under a unique id."""
    if not isinstance(call, dict):
        return
    call_id = get_sendable_text(call, "id")
    if call_id is None or call_id in sendable:
        call_id = make_call_id(seq, position)
        while call_id in sendable:
            call_id += "_"
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    name = get_sendable_text(function, "name") or UNKNOWN_TOOL
    sendable[call_id] = ApiCall(position, call_id, name, function.get("arguments"))


def get_sendable_text(message: Message, key: str) -> str | None:
    """Return the text under a key if it can be sent unchanged.

    Other texts are not repaired: different ids must not become one id.
    """
    value = message.get(key)
    return value if value and is_text(value) else None
