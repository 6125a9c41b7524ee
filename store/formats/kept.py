"""Read the values of its original format that a stored message keeps beside its chat shape.

``_wire`` holds them: ``format``, the name of the format; ``part``, the number of this piece of the
original message, from 0, and the number of pieces; ``outer``, the message's own keys; ``block``,
the keys of the item that it is; ``plan``, the order of its parts and calls; ``calls``, the values
of calls that a chat has no key for; ``said``, the key of a response that held its text; ``keys``,
``was`` and ``moved``, for a chat's message its keys in order, and the keys that the row has
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..messages import WIRE_KEY, Message
from .placed import ApiCall

PART, CALL = "part", "call"
"""The places of a plan for a part of the content and for a call; any other place is a block."""


def find_wire_values(message: Message, name: str) -> Message | None:
    """Return the values that a message keeps of a format; None if it came in another."""
    if WIRE_KEY not in message:
        return None
    held = message[WIRE_KEY]
    if isinstance(held, dict) and held.get("format") == name:
        return held
    return None


def order_by_plan(
    plan: Sequence[Any],
    parts: Sequence[Any],
    calls: Mapping[int, Any],
) -> Iterator[tuple[str, Any]]:
    """Yield the places of a plan with their values, then the values that have no place in it.

    A block in the plan itself is yielded unchanged, under an empty name; calls that are not sent
    are left out.
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


def index_calls_by_position(calls: Sequence[ApiCall]) -> dict[int, ApiCall]:
    """Return calls by their places in their message."""
    return {call.position: call for call in calls}
