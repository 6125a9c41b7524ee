"""Whether what is stored of a tree was changed: all that is kept of it elsewhere goes by this."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from ..database import Statement, erasures, redactions


class ChangeCounts(NamedTuple):
    """How many messages of a tree were redacted, and how often one of its sessions was erased.

    Nothing else changes what is stored of a message. The first number gets smaller only where the
    second grows: an erasure takes the redactions of its messages out as it begins. So the two never
    come again together.
    """

    redactions: int
    erasures: int


_redacted = select(func.count()).where(redactions.c.tree_id == bindparam("tree_id"))
_erased = select(func.max(erasures.c.erasure)).where(erasures.c.tree_id == bindparam("tree_id"))
CHANGES = Statement(
    select(
        _redacted.scalar_subquery().label("redactions"),
        func.coalesce(_erased.scalar_subquery(), 0).label("erasures"),
    ),
    row=ChangeCounts,
)


def count_changes(connection: Connection, tree_id: int) -> ChangeCounts:
    """Return how often anything of a tree was redacted or erased."""
    return CHANGES.one(connection, tree_id=tree_id)
