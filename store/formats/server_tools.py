"""Calls of a provider's own tools, which its server answers itself, and what the server answered.

Both stand in what the assistant says. A request in which one of them is without the other is
refused, as it is where a client's tool is: a call must have its result behind it, though maybe in a
later answer. Only behind the last answer may calls be open, so that the provider goes on with them.
An answer that was interrupted, hidden or written over in part leaves one of the two alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..messages import Message
from .turns import Turn

CALLS = ("server_tool_use", "mcp_tool_use")
"""Types of blocks that are calls of the provider's own tools."""
RESULT = "_tool_result"
"""What types of blocks end with that are their results."""


class Spot(NamedTuple):
    """Where a block stands."""

    blocks: list[Message]
    number: int


def left_alone(turns: Sequence[Turn]) -> list[Spot]:
    """Return where calls are without a result, or under an id that is taken, and the reverse."""
    calls: dict[str, Spot] = {}
    answered: set[str] = set()
    alone: list[Spot] = []
    for turn in turns:
        for kind, name, spot in _of_server(turn):
            if kind in CALLS and name not in calls and not turn.is_users:
                calls[name] = spot
            elif kind not in CALLS and name in calls.keys() - answered and not turn.is_users:
                answered.add(name)
            else:
                alone.append(spot)
    going_on = _going_on(turns)
    unanswered = (spot for name, spot in calls.items() if name not in answered)
    return alone + [spot for spot in unanswered if spot.blocks is not going_on]


def _of_server(turn: Turn) -> Iterator[tuple[str, str, Spot]]:
    """Yield the type, the call's id and the place of each call and result."""
    for number, block in enumerate(turn.said):
        kind = block["type"]
        if kind in CALLS:
            yield kind, str(block.get("id")), Spot(turn.said, number)
        elif kind.endswith(RESULT):
            yield kind, str(block.get("tool_use_id")), Spot(turn.said, number)


def _going_on(turns: Sequence[Turn]) -> list[Message] | None:
    """Return the blocks of the last answer, if only results of the client's own stand behind it."""
    last = len(turns) - 1
    if last > 0 and turns[last].is_users and _are_results(turns[last].said):
        last -= 1
    return None if last < 0 or turns[last].is_users else turns[last].said


def _are_results(blocks: Sequence[Message]) -> bool:
    return all(block["type"] == "tool_result" for block in blocks)
