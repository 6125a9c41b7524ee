"""Where things stand: a session on its line, the runs of a line, and a message in its table."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import PositionOutOfRange

NO_LIMIT = 2**62
"""A number beyond all positions, moves and records."""


def new_revision() -> str:
    """Return a text that no session ever had for a revision.

    By chance, not by count: a store that was restored from a copy would count the same again.
    """
    return os.urandom(8).hex()


class Pointer(NamedTuple):
    """Where a session stands; ``parent_position`` is where its head branch begins (0: at the root).

    ``head_turn`` and ``head_tokens`` are how many turns and estimated tokens the line has, None
    where an ancestor holds the head. ``owner`` is whose the session is. ``newest`` is the newest
    compaction record that may count on the head branch: any, but on a branch that another session
    may go on with.
    """

    tree_id: int
    session_id: str
    branch: int
    head: int
    parent_position: int
    last_rewind: int | None
    project_root: str | None
    fold_case: int
    head_turn: int | None
    head_tokens: int | None
    revision: str
    owner: str | None = None
    newest: int = NO_LIMIT

    @property
    def is_own(self) -> bool:
        """Whether its branch is the session's own, so that the head can stand there."""
        return self.newest == NO_LIMIT

    @property
    def line(self) -> dict[str, int]:
        """The names under which statements are given a line: its tree and its head branch."""
        return {"tree_id": self.tree_id, "branch": self.branch}

    @property
    def whole(self) -> dict[str, int]:
        """The names under which statements are given a line from its first position to its last."""
        return {**self.line, "start": 1, "last": self.head}

    @property
    def session(self) -> dict[str, Any]:
        """The names under which statements are given a session."""
        return {"tree_id": self.tree_id, "session_id": self.session_id}

    def at_end_of(self, branch: int, parent_position: int, head: int, newest: int) -> Pointer:
        """Return where the session would stand at the end of another branch."""
        return self._replace(
            branch=branch,
            head=head,
            parent_position=parent_position,
            head_turn=None,
            head_tokens=None,
            newest=newest,
        )

    def changed(self) -> dict[str, Any]:
        """Return the names under which statements are given the row of a session to change.

        With each change it gets another revision.
        """
        return {
            "tree": self.tree_id,
            "session_id": self.session_id,
            "revision": new_revision(),
        }

    def holds(self, position: int) -> bool:
        """Tell whether the line has a position (0: the one before its first message)."""
        return type(position) is int and 0 <= position <= self.head

    def check_message(self, position: int) -> None:
        """Raise PositionOutOfRange where there is no message of the line."""
        if not self.holds(position) or position == 0:
            raise PositionOutOfRange(self.session_id, position, self.head)


PLACE = ("tree_id", "branch", "seq")
"""The columns that say where a message stands, first in each table of what hangs on it."""


class Segment(NamedTuple):
    """A run of a line: the positions first to last, held by one branch."""

    branch: int
    first: int
    last: int

    def within(self, tree_id: int) -> dict[str, int]:
        """Return the values by which statements name the run, in the tree that holds it."""
        branch, first, last = self
        return {"tree_id": tree_id, "branch": branch, "first": first, "last": last}

    def of(self, places: Sequence[int]) -> Sequence[int]:
        """Return those of some positions, given in order, that the run holds."""
        return places[bisect_left(places, self.first) : bisect_right(places, self.last)]
