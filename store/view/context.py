"""One look at a line: whose view, by which policy, up to where and when.

Everything that the rules say, what a view costs and the view itself follow from these values, so
they travel together.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..history import ChangeCounts, Line, Pointer, Segment, count_changes
from ..policy import Policy
from ..records import Compaction
from .visible_set import VisibleSet, build_visible_set, load_records, select_active


class ViewContext(NamedTuple):
    """A line as a policy sees it up to position ``last`` at a moment, ``now`` in ms.

    ``records`` are those that count on the line, ``visible`` is what they leave of it.
    ``turn_over``: a new turn begins behind ``last``, so the turn that ``last`` is in is finished.
    ``changes`` tells how often rows that never change were taken out or written over all the same:
    with each time, what was made of them is made anew. ``made`` is what was made of results already
    (`made_once`).
    """

    connection: Connection
    pointer: Pointer
    policy: Policy
    records: list[Compaction]
    visible: VisibleSet
    last: int
    now: int
    turn_over: bool
    changes: ChangeCounts
    made: dict[Any, Any]

    @property
    def line(self) -> dict[str, int]:
        """The values by which statements name the line."""
        return self.pointer.line

    @property
    def raw(self) -> Line:
        """The line itself, whatever is visible of it."""
        return Line(self.connection, self.pointer)

    def runs(self, first: int, last: int) -> list[Segment]:
        """Return the runs that hold the positions ``first`` to ``last`` of the line, in order."""
        return self.raw.runs(first, last)

    def shown(self, first: int, last: int) -> list[Segment]:
        """Return the runs of what no range hides of the positions ``first`` to ``last``."""
        runs = (self.runs(*span) for span in self.visible.shown_ranges(first, last))
        return [*chain.from_iterable(runs)]

    def visible_runs(self) -> list[Segment]:
        """Return the runs that are visible: the pinned positions, then what is kept."""
        places = (place for place in self.visible.pinned if place <= self.last)
        pinned = (self.runs(place, place) for place in places)
        kept = self.shown(self.visible.first_kept, self.last)
        return [*chain.from_iterable(pinned), *kept]

    def told(self, first: int, last: int) -> list[dict[str, int]]:
        """Return these runs as the values by which statements name them."""
        return [run.within(self.pointer.tree_id) for run in self.shown(first, last)]


def load_view_context(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    *,
    last: int,
    now: int,
    turn_over: bool = False,
) -> ViewContext:
    """Return a look at a line up to a position, with what its compactions leave visible there."""
    changes = count_changes(connection, pointer.tree_id)
    known = load_records(connection, pointer, last, changes)
    visible = build_visible_set(connection, pointer, select_active(known))
    return ViewContext(
        connection, pointer, policy, known, visible, last, now, turn_over, changes, {}
    )
