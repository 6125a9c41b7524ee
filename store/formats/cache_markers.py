"""Markers in Anthropic's requests: the blocks up to which its cache keeps a request.

A request holds at most four, and from a marker the provider looks back over 20 blocks only, so a
long turn gets one in its middle. Markers that came in with messages belong to the requests of that
time; they are sent only on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..messages import Message
from .kept import find_wire_values
from .placed import Placed

CACHE_KEY = "cache_control"
CACHE_MARKER = {"type": "ephemeral"}
UNMARKABLE_TYPES = ("thinking", "redacted_thinking")
"""Types of blocks that cannot have a marker."""
CACHE_MARKER_LIMIT = 4
"""Markers that a request may hold."""
CACHE_LOOK_BACK = 20
"""Blocks before a marker in which the provider looks for a cached beginning."""


def mark_last_block(blocks: list[Message]) -> None:
    """Mark the end of blocks for the cache, at the last block that can have a marker."""
    for place in range(len(blocks) - 1, -1, -1):
        if blocks[place]["type"] not in UNMARKABLE_TYPES:
            blocks[place][CACHE_KEY] = CACHE_MARKER.copy()
            return


def mark_middle_block(blocks: list[Message]) -> None:
    """Mark a block in the middle if the last marker is too far from the one before it."""
    places = [place for place, block in enumerate(blocks) if CACHE_KEY in block]
    before, last = [0, 0, *places][-2:]
    if last - before > CACHE_LOOK_BACK:
        mark_last_block(blocks[: last - CACHE_LOOK_BACK + 1])


def keep_own_markers(placed: Sequence[Placed], name: str) -> list[Placed]:
    """Return a request that sends the markers its messages came in with, up to the limit."""
    left = CACHE_MARKER_LIMIT
    marked: list[Placed] = []
    for each in reversed(placed):
        held = find_wire_values(each.message, name)
        number = (
            0
            if held is None
            else sum(CACHE_KEY in block for block in _list_markable_blocks(each.message, held))
        )
        left -= number
        marked.append(each._replace(marked=True) if number and left >= 0 else each)
    return marked[::-1]


def _list_markable_blocks(message: Message, held: Message) -> Iterator[Any]:
    """Yield the blocks of a message that can have a marker."""
    if isinstance(message.get("content"), list):
        yield from (part for part in message["content"] if isinstance(part, dict))
    yield from held.get("calls", {}).values()
    yield held.get("block", {})
