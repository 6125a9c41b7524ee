"""The record of erasures and redactions: counts of changes, and erasures that are not finished.

Caches of messages are checked by the counts. Unfinished erasures are looked for whenever a store is
opened, and rarely found.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
)

from ..database import BIG_INTEGER, Statement, branches, erasures, redactions, select_positions


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
        func.coalesce(_newest_erasure.scalar_subquery(), literal_column("0")).label("erasures"),
    ),
    row=ChangeCounts,
)


def count_changes(connection: Connection, tree_id: int) -> ChangeCounts:
    """Return the numbers of redactions and erasures in a tree."""
    return CHANGE_COUNTS.one(connection, tree_id=tree_id)


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


def match_left_places(
    branch: ColumnElement[int], seq: ColumnElement[int], *, is_open: bool = False
) -> ColumnElement[bool]:
    """Build the condition for places that an erasure takes from a session: its branches or ends.

    The values are ``tree_id``, ``erasure`` and the array ``left`` of whole branches. With
    ``is_open`` the last place that stays of a branch is matched too, if messages after it go.
    """
    beyond = seq > erasures.c.kept
    if is_open:
        was_longer = erasures.c.messages > literal_column("0")
        beyond = or_(beyond, and_(seq == erasures.c.kept, was_longer))
    is_cut = exists().where(
        erasures.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        erasures.c.erasure == bindparam("erasure"),
        erasures.c.branch == branch,
        beyond,
    )
    return or_(branch.in_(select_positions("left")), is_cut)
