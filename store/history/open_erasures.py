"""Unfinished erasures: looked for whenever a store is opened, and rarely found."""

from __future__ import annotations

from sqlalchemy import Connection, and_, null, select

from ..database import Statement, branches, erasures

OPEN_ERASURE_JOIN = and_(
    erasures.c.finished_at.is_(null()),
    branches.c.session_id.is_(null()),
    branches.c.tree_id == erasures.c.tree_id,
    branches.c.branch == erasures.c.branch,
)
"""Joins the open lines to their branches; a branch that a session owns is never touched."""
OPEN_TREES = Statement(select(erasures.c.tree_id).where(OPEN_ERASURE_JOIN).distinct())


def list_open_trees(connection: Connection) -> list[int]:
    """Return the trees with lines that are still to erase."""
    return OPEN_TREES.values(connection)
