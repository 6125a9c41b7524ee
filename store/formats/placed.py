"""A message in its place in a request, before it is written for a provider."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..messages import Message

System = str | list[Message] | None
"""What is said apart from the messages, in the shape that its format has for it."""


class ApiCall(NamedTuple):
    """A tool call as it is sent: its place in its message, and an id that is unique there.

    ``id`` and ``name`` are texts that can be sent, ``arguments`` are as they went in.
    """

    position: int
    id: str
    name: str
    arguments: Any


new_call: Callable[[tuple[Any, ...]], ApiCall] = partial(tuple.__new__, ApiCall)
"""Makes one of its fields; without a step of Python, for there may be thousands."""


class Placed(NamedTuple):
    """A message in its place."""

    seq: int | None
    """Its position; None where it is not a stored message."""
    message: Message
    """As it went in, with its content replaced where a rule says so."""
    repair: str | None = None
    """What was mended, or why the store made it."""
    calls: tuple[ApiCall, ...] = ()
    """The calls that are sent with it."""
    call_id: str | None = None
    """The id of the call that it answers."""
    sound: str | None = None
    """The content, where it is known that nothing in it has to be mended before it is sent."""
    rule: str | None = None
    """The rule by which the store made it."""
    compaction: int | None = None
    """The compaction of the newest summary in it."""
    cached: bool = False
    """Whether a cache is to be asked to keep the request up to its end."""
    marked: bool = False
    """Whether the markers for a cache are sent that it came in with."""

    @property
    def is_made_up_call(self) -> bool:
        """Whether it stands before a result only because no stored message calls for that."""
        return self.seq is None and bool(self.calls)
