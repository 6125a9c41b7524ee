"""A message in its place in a request, before it is written for a provider."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..messages import Message

System = str | list[Message] | None
"""System text outside the messages, in the shape of its format."""


class ApiCall(NamedTuple):
    """A tool call as it is sent: its place in its message, and an id that is unique there.

    ``id`` and ``name`` are texts that can be sent; ``arguments`` are unchanged.
    """

    position: int
    id: str
    name: str
    arguments: Any


make_api_call: Callable[[tuple[Any, ...]], ApiCall] = partial(tuple.__new__, ApiCall)
"""Makes a call from its fields without running Python code, as there may be thousands."""


class PlacedMessage(NamedTuple):
    """A message in its place."""

    seq: int | None
    """Its position; None if it is not a stored message."""
    message: Message
    """The original message, with its content replaced if a rule requires it."""
    repair: str | None = None
    """The repair that was made, or the reason why the store made the message."""
    calls: tuple[ApiCall, ...] = ()
    """The calls that are sent with it."""
    call_id: str | None = None
    """The id of the call that it answers."""
    sound: str | None = None
    """The content, if it is known to need no repair before it is sent."""
    rule: str | None = None
    """The rule by which the store made it."""
    compaction: int | None = None
    """The compaction of the newest summary in it."""
    cached: bool = False
    """Whether the request asks a cache to keep it up to the end of this message."""
    marked: bool = False
    """Whether the cache markers that it came in with are sent."""
    call_seq: int | None = None
    """The position of the message with the call that it answers, if that is known."""
    written: list[Message] | None = None
    """The parts that its format sends of it, if they are written already."""

    @property
    def is_made_up_call(self) -> bool:
        """Whether it precedes a result only because no stored message has the call."""
        return self.seq is None and bool(self.calls)
