"""One look at a line: whose view, by which policy, up to where and when.

Everything that the rules say, what a view costs and the view itself follow from these values, so
they travel together.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection

from ..history import Line, Pointer, Segment, redaction
from ..policy import Policy
from ..records import Compaction
from .hiding import active, records, visible_after
from .standing import Visible


class Look(NamedTuple):
    """A line as a policy sees it up to position ``last`` at a moment, ``now`` in ms.

    ``known`` are the records that count on the line, ``visible`` is what they leave of it.
    ``turn_over``: a new turn begins behind ``last``, so the turn that ``last`` is in is finished.
    ``redacted`` is how many messages of the tree are, by a policy that names what was in results:
    with each, such names are found anew.
    """

    connection: Connection
    pointer: Pointer
    policy: Policy
    known: list[Compaction]
    visible: Visible
    last: int
    now: int
    turn_over: bool = False
    redacted: int = 0

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
        runs = (self.runs(*span) for span in self.visible.spans(first, last))
        return [*chain.from_iterable(runs)]

    def told(self, first: int, last: int) -> list[dict[str, int]]:
        """Return these runs as the values by which statements name them."""
        return [run.within(self.pointer.tree_id) for run in self.shown(first, last)]


def look_at(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    *,
    last: int,
    now: int,
    turn_over: bool = False,
) -> Look:
    """Return a look at a line up to a position, with what its compactions leave visible there."""
    known = records(connection, pointer, last)
    visible = visible_after(connection, pointer, active(known))
    redacted = redaction.count(connection, pointer.tree_id) if policy.any_tool else 0
    return Look(connection, pointer, policy, known, visible, last, now, turn_over, redacted)
