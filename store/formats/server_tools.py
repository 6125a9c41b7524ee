"""Find calls and results of a provider's own tools, which its server runs, without each other.

Both are blocks of the assistant. A request with one of them but not the other is refused, as with
the tools of a client: a call must be followed by its result, which may be in a later answer. Calls
may only be open at the end of the last answer, so that the provider continues with them. An answer
that was interrupted, hidden or overwritten in part leaves a call or a result alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..messages import Message
from .turns import Turn

CALLS = ("server_tool_use", "mcp_tool_use")
"""Types of blocks that are calls of the provider's own tools."""
RESULT = "_tool_result"
"""The ending of the types of their results."""


class Spot(NamedTuple):
    """The place of a block."""

    blocks: list[Message]
    number: int


def left_alone(turns: Sequence[Turn]) -> list[Spot]:
    """Return the places of calls and results without each other, or under a used id."""
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
    last = len(turns) - 1
    if last > 0 and turns[last].is_users and _are_results(turns[last].said):
        last -= 1
    going_on = None if last < 0 or turns[last].is_users else turns[last].said
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


def _are_results(blocks: Sequence[Message]) -> bool:
    return all(block["type"] == "tool_result" for block in blocks)
