"""Counts of the changes to a tree's stored messages, by which caches of them are checked."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from ..database import Statement, erasures, redactions


class ChangeCounts(NamedTuple):
    """The number of redacted messages of a tree, and the number of erasures of its sessions.

    Nothing else changes a stored message. The first number gets smaller only when the second grows,
    because an erasure begins by deleting the redactions of its messages. So no pair of numbers
    occurs twice.
    """

    redactions: int
    erasures: int


_redaction_count = select(func.count()).where(redactions.c.tree_id == bindparam("tree_id"))
_newest_erasure = select(func.max(erasures.c.erasure)).where(
    erasures.c.tree_id == bindparam("tree_id")
)
CHANGE_COUNTS = Statement(
    select(
        _redaction_count.scalar_subquery().label("redactions"),
        func.coalesce(_newest_erasure.scalar_subquery(), 0).label("erasures"),
    ),
    row=ChangeCounts,
)


def count_changes(connection: Connection, tree_id: int) -> ChangeCounts:
    """Return the numbers of redactions and erasures in a tree."""
    return CHANGE_COUNTS.one(connection, tree_id=tree_id)
