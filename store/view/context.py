"""One look at a line: its session, the policy, the last position and the moment.

The verdicts of the rules, the cost of a view and the view itself all follow from these values, so
they are passed together.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..history import ChangeCounts, Line, Pointer, Segment, count_changes
from ..policy import Policy
from ..records import Compaction
from .visible_set import VisibleSet, build_visible_set, load_records, select_active_records


class ViewContext(NamedTuple):
    """A line as a policy sees it up to position ``last`` at a moment, ``now`` in ms.

    ``records`` are the compactions that count on the line, ``visible`` is the part that they leave.
    ``turn_over``: a new turn begins after ``last``, so the turn of ``last`` is finished.
    ``changes`` counts the redactions and erasures, which alone change or remove stored rows; after
    each, everything derived from these rows is computed again. ``made`` holds the values already
    computed from results (`made_once`).
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
        """The line itself, hidden positions included."""
        return Line(self.connection, self.pointer)

    def runs(self, first: int, last: int) -> list[Segment]:
        """Return the runs that hold the positions ``first`` to ``last`` of the line, in order."""
        return self.raw.runs(first, last)

    def shown(self, first: int, last: int) -> list[Segment]:
        """Return the runs of the positions ``first`` to ``last`` that no range hides."""
        runs = (self.runs(*span) for span in self.visible.shown_ranges(first, last))
        return [*chain.from_iterable(runs)]

    def visible_runs(self) -> list[Segment]:
        """Return the visible runs: the pinned positions, then the kept ones."""
        places = (place for place in self.visible.pinned if place <= self.last)
        pinned = (self.runs(place, place) for place in places)
        kept = self.shown(self.visible.first_kept, self.last)
        return [*chain.from_iterable(pinned), *kept]

    def told(self, first: int, last: int) -> list[dict[str, int]]:
        """Return the runs of `shown` as the values by which statements name them."""
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
    """Return a look at a line up to a position, with the visible set that its compactions leave."""
    changes = count_changes(connection, pointer.tree_id)
    known = load_records(connection, pointer, last, changes)
    visible = build_visible_set(connection, pointer, select_active_records(known))
    return ViewContext(
        connection, pointer, policy, known, visible, last, now, turn_over, changes, {}
    )
