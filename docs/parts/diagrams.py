"""The diagrams of how it works, drawn from the tables of the code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, get_args

from store import Policy
from store.cli.chart import Paint, Point, Rectangle, draw_arrow, draw_block, draw_picture
from store.formats import FORMATS
from store.policy import STANDARD_POLICY
from store.view.rules import RULES, render_explanations

from .markdown import as_table

WIDTH = 860
STAGE = Paint("#3867c9")
STEP = Paint("#c9d1d9", "#24292f")
GOOD = Paint("#2f7d68")
BAD = Paint("#b0532a")
_ROW, _GAP = 24, 4
_STAGE_WIDTH = 110


def pipeline() -> str:
    """Return the stages between what is stored and what is sent, and what each of them does."""
    parts: list[str] = []
    heads: list[Rectangle] = []
    y = 0.0
    for name, steps in _stages().items():
        high = len(steps) * (_ROW + _GAP) - _GAP
        heads.append(Rectangle(0, y, _STAGE_WIDTH, high))
        parts.append(draw_block(heads[-1], STAGE, name))
        for number, step in enumerate(steps):
            x = _STAGE_WIDTH + 16
            place = Rectangle(x, y + number * (_ROW + _GAP), WIDTH - x, _ROW)
            parts.append(draw_block(place, STEP, step))
        y += high + 22
    middle = _STAGE_WIDTH / 2
    parts += [
        draw_arrow(Point(middle, upper.bottom + 3), Point(middle, lower.y - 3))
        for upper, lower in pairwise(heads)
    ]
    return draw_picture(WIDTH, y - 20, "line, visible, rules, repair, format", parts)


def _stages() -> dict[str, list[str]]:
    reasons = render_explanations(STANDARD_POLICY)
    return {
        "line": ["the stored messages from 1 to the head, through every branch, as they were said"],
        "visible": [
            "what the compactions in force on this line hide is left out",
            "the summaries that stand for it take its place; system messages stay",
        ],
        "rules": [f"{rule}: {reasons[rule]}" for rule in RULES],
        "repair": [
            f"a call without result: {_choices('unanswered')}",
            f"a result without call: {_choices('orphans')}",
            "each result right behind its call, each id once in its message",
        ],
        "format": ["the whole request as its model takes it: " + ", ".join(FORMATS)],
    }


def _choices(field: str) -> str:
    """Return what a field of a policy may be, its default first."""
    choices = get_args(Policy.model_fields[field].annotation)
    default = getattr(STANDARD_POLICY, field)
    others = [each for each in choices if each != default]
    return f"{default} (or {', '.join(others)})"


class Change(NamedTuple):
    """A step from one state of a compaction to another, and what makes it."""

    before: str
    after: str
    why: str


CHANGES = (
    Change("asked", "nothing", "nothing may be hidden; no record is made"),
    Change("asked", "running", "a record begins; its summary is made outside of any transaction"),
    Change("asked", "rejected", "another compaction of the session is running; no record is made"),
    Change(
        "running", "applied", "the line still runs through the range, and the view gets smaller"
    ),
    Change("running", "rejected", "the line has moved, or the view would not get small enough"),
    Change(
        "running", "failed", "there is no summary, or the program that was to make it has ended"
    ),
    Change("applied", "undone", "`undo_compaction`: a record of its own; nothing is deleted"),
)
"""The states that a compaction goes through."""
_PLACES = {
    "asked": (0, 70, STAGE),
    "nothing": (250, 0, STEP),
    "running": (250, 70, STAGE),
    "rejected": (500, 140, BAD),
    "applied": (500, 0, GOOD),
    "failed": (500, 70, BAD),
    "undone": (750, 0, STEP),
}
_STATE_WIDTH, _STATE_HEIGHT = 110, 28


def states() -> str:
    """Return a compaction's states, and the ways from one to the next."""
    blocks = {
        name: Rectangle(x, y, _STATE_WIDTH, _STATE_HEIGHT) for name, (x, y, _) in _PLACES.items()
    }
    shown = [draw_block(blocks[name], paint, name) for name, (_, _, paint) in _PLACES.items()]
    return draw_picture(WIDTH, 170, "a compaction's states", [*shown, *_ways(blocks)])


def _ways(blocks: dict[str, Rectangle]) -> Iterator[str]:
    for change in CHANGES:
        before, after = blocks[change.before], blocks[change.after]
        begin = Point(before.right + 4, before.y + _STATE_HEIGHT / 2)
        yield draw_arrow(begin, Point(after.x - 4, after.y + _STATE_HEIGHT / 2))


def changes() -> str:
    """Return the steps between a compaction's states as a table."""
    rows = ((f"`{each.before}`", f"`{each.after}`", each.why) for each in CHANGES)
    return as_table(["from", "to", "when"], rows)
