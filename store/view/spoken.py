"""The calls of messages, as they went in and as they are sent."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..formats import ApiCall, made_up_id, new_call
from ..history import CALLS_IN_RUN
from ..messages import UNKNOWN_TOOL, Message, join_call
from ..text import is_text


class Spoken(NamedTuple):
    """The calls of a message as they went in, and by their ids those of them that can be sent."""

    given: list[Any] | None
    sent: dict[str, ApiCall]

    @property
    def calls(self) -> tuple[ApiCall, ...]:
        """Those that can be sent, in their order."""
        return (*self.sent.values(),)


SILENT = Spoken(None, {})
"""What is said of a message without calls."""


def spoken_in(connection: Connection, run: dict[str, int]) -> dict[int, Spoken]:
    """Return the calls of a run's messages, by position.

    One in the usual shape is known to have texts that can be sent: columns hold no others.
    """
    found: dict[int, Spoken] = {}
    for seq, call_id, name, form, arguments, extra in CALLS_IN_RUN.rows(connection, **run):
        if seq not in found:
            given: list[Any] = []
            sent: dict[str, ApiCall] = {}
            found[seq] = Spoken(given, sent)
        call = join_call(call_id, name, form, arguments, extra)
        if extra is None and call_id and name and call_id not in sent:
            sent[call_id] = new_call((len(given), call_id, name, arguments))
        else:
            _add(sent, seq, len(given), call)
        given.append(call)
    return found


def api_calls(seq: int, given: list[Any]) -> tuple[ApiCall, ...]:
    """Return the calls of the message at a position that can be sent.

    Each has an id that is its own in the message.
    """
    sent: dict[str, ApiCall] = {}
    for position, call in enumerate(given):
        _add(sent, seq, position, call)
    return (*sent.values(),)


def _add(sent: dict[str, ApiCall], seq: int, position: int, call: Any) -> None:
    """Add the call at a place to those of its message, under an id that none of them has."""
    if not isinstance(call, dict):
        return
    call_id = text_of(call, "id")
    if call_id is None or call_id in sent:
        call_id = _untaken(made_up_id(seq, position), sent)
    sent[call_id] = _api_call(position, call_id, call)


def _untaken(made_up: str, taken: Container[str]) -> str:
    """Return an id that is made up as one that no call of the message has."""
    while made_up in taken:
        made_up += "_"
    return made_up


def _api_call(position: int, call_id: str, call: Message) -> ApiCall:
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    name = text_of(function, "name") or UNKNOWN_TOOL
    return ApiCall(position, call_id, name, function.get("arguments"))


def text_of(of: Message, key: str) -> str | None:
    """Return a text that can be sent as it is; ids that differ must not become one by mending."""
    value = of.get(key)
    return value if value and is_text(value) else None
