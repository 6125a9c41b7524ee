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
from .turns import SideTurn

SERVER_CALL_TYPES = ("server_tool_use", "mcp_tool_use")
"""Types of blocks that are calls of the provider's own tools."""
SERVER_RESULT_SUFFIX = "_tool_result"
"""The ending of the types of their results."""


class BlockPlace(NamedTuple):
    """The place of a block."""

    blocks: list[Message]
    number: int


def find_unpaired_blocks(turns: Sequence[SideTurn]) -> list[BlockPlace]:
    """Return the places of calls and results without each other, or under a used id."""
    calls: dict[str, BlockPlace] = {}
    answered: set[str] = set()
    alone: list[BlockPlace] = []
    for turn in turns:
        for kind, name, spot in _list_server_blocks(turn):
            if kind in SERVER_CALL_TYPES and name not in calls and not turn.is_users:
                calls[name] = spot
            elif (
                kind not in SERVER_CALL_TYPES
                and name in calls.keys() - answered
                and not turn.is_users
            ):
                answered.add(name)
            else:
                alone.append(spot)
    last = len(turns) - 1
    if last > 0 and turns[last].is_users and _has_only_results(turns[last].said):
        last -= 1
    going_on = None if last < 0 or turns[last].is_users else turns[last].said
    unanswered = (spot for name, spot in calls.items() if name not in answered)
    return alone + [spot for spot in unanswered if spot.blocks is not going_on]


def _list_server_blocks(turn: SideTurn) -> Iterator[tuple[str, str, BlockPlace]]:
    """Yield the type, the call's id and the place of each call and result."""
    for number, block in enumerate(turn.said):
        kind = block["type"]
        if kind in SERVER_CALL_TYPES:
            yield kind, str(block.get("id")), BlockPlace(turn.said, number)
        elif kind.endswith(SERVER_RESULT_SUFFIX):
            yield kind, str(block.get("tool_use_id")), BlockPlace(turn.said, number)


def _has_only_results(blocks: Sequence[Message]) -> bool:
    return all(block["type"] == "tool_result" for block in blocks)
