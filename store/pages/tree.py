"""The tree of a session: its branches and forks as lines over positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..exporting import list_sessions_of_tree
from ..records import Branch, Session
from .page_rendering import Values, Visit, page

TREE_WIDTH = 560
LANE_HEIGHT = 26


class TreeLane(NamedTuple):
    """A branch: its positions, in pixels too, and the sessions whose heads are on it.

    ``session`` is one that can show it, ``parent`` the row of the branch that it continues. Up to
    the position ``kept`` other branches continue it; it is the end if a head is on it.
    """

    row: int
    parent: int | None
    branch: Branch
    session: Session
    heads: list[Session]
    kept: int
    x: float
    end: float

    @property
    def kept_end(self) -> float:
        """Where the part ends that other branches continue."""
        share = (self.kept - self.branch.forked_at) / max(
            1, self.branch.head - self.branch.forked_at
        )
        return self.x + share * (self.end - self.x)

    @property
    def y(self) -> int:
        """The height of the lane."""
        return LANE_HEIGHT * self.row + LANE_HEIGHT // 2

    @property
    def top(self) -> int:
        """The height of the branch that it continues."""
        row = self.row if self.parent is None else self.parent
        return LANE_HEIGHT * row + LANE_HEIGHT // 2


@page("/tree/{session_id:path}", "tree.html")
def show_tree(visit: Visit) -> Values:
    """Return the tree that a session is in."""
    session = visit.face.session(visit.session_id)
    sessions = list_sessions_of_tree(visit.face, session.id)
    lanes = [*place_lanes(visit, sessions)]
    height = LANE_HEIGHT * max(1, len(lanes))
    load_title = visit.face.title
    titles = {each.id: each.title or load_title(each.id) or each.id for each in sessions}
    values = {"session": session, "tab": "tree", "lanes": lanes, "titles": titles}
    scale = TREE_WIDTH / max([1, *(lane.branch.head for lane in lanes)])
    return values | {"height": height, "width": TREE_WIDTH, "scale": scale}


def place_lanes(visit: Visit, sessions: list[Session]) -> Iterator[TreeLane]:
    """Yield the branches of sessions, each below the one that it continues."""
    found: dict[int, tuple[Branch, Session]] = {}
    heads: dict[int, list[Session]] = {}
    for session in sessions:
        heads.setdefault(session.branch, []).append(session)
        for branch in visit.face.branches(session.id):
            is_empty = branch.head == branch.forked_at and not branch.current
            known = found.get(branch.branch)
            if not is_empty and (known is None or known[0].head < branch.head):
                found[branch.branch] = branch, session
    scale = TREE_WIDTH / max([1, *(branch.head for branch, _ in found.values())])
    rows: dict[int, int] = {}
    for row, number in enumerate(_order_branches([branch for branch, _ in found.values()])):
        branch, session = found[number]
        rows[number] = row
        parent = None if branch.parent is None else rows.get(branch.parent)
        here = heads.get(number, [])
        forks = (each.forked_at for each, _ in found.values() if each.parent == number)
        kept = branch.head if here else max(forks, default=branch.forked_at)
        start, end = branch.forked_at * scale, branch.head * scale
        yield TreeLane(row, parent, branch, session, here, kept, start, end)


def _order_branches(branches: list[Branch]) -> Iterator[int]:
    """Yield the numbers of branches, each followed by those that continue it."""
    known = {each.branch for each in branches}
    following: dict[int | None, list[int]] = {}
    for each in sorted(branches, reverse=True):
        parent = each.parent if each.parent in known else None
        following.setdefault(parent, []).append(each.branch)
    waiting = following.get(None, [])
    while waiting:
        number = waiting.pop()
        yield number
        waiting.extend(following.get(number, []))
