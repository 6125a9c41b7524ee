"""Markers in Anthropic's requests: up to which block its cache is asked to keep them.

A request holds at most four, and behind a marker the provider looks back over 20 blocks only, so a
long turn gets one in its middle.
"""

from __future__ import annotations

from ..messages import Message

CACHE = "cache_control"
EPHEMERAL = {"type": "ephemeral"}
UNMARKED = ("thinking", "redacted_thinking")
"""Types of blocks that have no marker."""
LOOK_BACK = 20
"""Blocks that the provider looks back from a marker for what it has kept."""


def mark(blocks: list[Message]) -> None:
    """Mark the end of blocks for the cache: the last one that can have a marker."""
    for place in range(len(blocks) - 1, -1, -1):
        if blocks[place]["type"] not in UNMARKED:
            blocks[place][CACHE] = EPHEMERAL.copy()
            return


def mark_between(blocks: list[Message]) -> None:
    """Mark a block in the middle where the last marker is too far from the one before it."""
    places = [place for place, block in enumerate(blocks) if CACHE in block]
    before, last = [0, 0, *places][-2:]
    if last - before > LOOK_BACK:
        mark(blocks[: last - LOOK_BACK + 1])
