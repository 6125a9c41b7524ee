"""What a stored message keeps beside its chat shape of the format in which it came.

``_wire`` holds it: ``format``, the name of the format; ``part``, which piece of how many of what
went in this message is, counted from 0; ``outer``, the message's own keys; ``block``, keys of the
item that it is; ``plan``, in which order its parts and calls stand; ``calls``, what those say that
no chat's do; ``said``, under which key of a response its text stood; ``keys``, ``was`` and
``moved``, of a chat's message the keys in their order, and those that the row says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..messages import WIRE, Message
from .placed import ApiCall

PART, CALL = "part", "call"
"""The places of a plan that are a part of the content, and a call; a block stands for itself."""


def kept(message: Message, name: str) -> Message | None:
    """Return what a message keeps of a format; None where it came in another."""
    if WIRE not in message:
        return None
    held = message[WIRE]
    if isinstance(held, dict) and held.get("format") == name:
        return held
    return None


def planned(
    plan: Sequence[Any],
    parts: Sequence[Any],
    calls: Mapping[int, Any],
) -> Iterator[tuple[str, Any]]:
    """Yield the places of a plan with what stands there, then what the plan does not know.

    A block that stands for itself comes as it is, under an empty name; calls that are not sent are
    left out.
    """
    left = iter(parts)
    number = 0
    for place in plan:
        if place == CALL:
            if number in calls:
                yield CALL, calls[number]
            number += 1
        elif place == PART:
            yield from ((PART, part) for part in islice(left, 1))
        else:
            yield "", place
    yield from ((PART, part) for part in left)
    yield from ((CALL, call) for position, call in calls.items() if position >= number)


def by_position(calls: Sequence[ApiCall]) -> dict[int, ApiCall]:
    """Return calls by their places in their message."""
    return {call.position: call for call in calls}
