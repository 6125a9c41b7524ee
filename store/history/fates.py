"""The effect of an erasure on branches: the positions of each that other sessions still need."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from ..database import BIG_INTEGER, Statement, branches

BRANCH_OWNERS = Statement(
    select(
        branches.c.branch,
        branches.c.parent_branch,
        branches.c.parent_position,
        branches.c.session_id,
    )
    .where(branches.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER))
    .order_by(branches.c.branch.desc())
)
NO_POSITION = -1
"""A position before all others, including that of an empty line."""


class BranchErasure(NamedTuple):
    """The effect of an erasure on a branch that no session owns any more.

    Its positions up to ``kept`` stay for other lines. The branch itself ``stays`` if another branch
    is attached to it, even without any position.
    """

    branch: int
    first: int
    kept: int
    stays: bool

    @property
    def kept_messages(self) -> int:
        """The number of its messages that stay."""
        return self.kept - self.first + 1

    @property
    def told_to(self) -> int:
        """The last position whose records stay."""
        return self.kept if self.stays else NO_POSITION


def plan_branch_erasures(
    connection: Connection, tree_id: int, session_id: str
) -> list[BranchErasure]:
    """Return the fates of the session's branches and of those left by earlier erasures.

    The newest branch comes first. A position stays if a branch of another session continues from it
    or from a later one; children have higher numbers than their parents, so a single pass from the
    newest branch knows all needs of a branch before it reaches it.
    """
    needed: dict[int, int] = {}
    found = []
    for branch, parent, parent_position, owner in BRANCH_OWNERS.rows(connection, tree_id=tree_id):
        lost = owner in (None, session_id)
        stays = branch in needed
        if lost:
            kept = needed.setdefault(branch, parent_position)
            found.append(BranchErasure(branch, parent_position + 1, kept, stays))
        if parent is not None and (stays or not lost):
            needed[parent] = max(needed.get(parent, 0), parent_position)
    return found
