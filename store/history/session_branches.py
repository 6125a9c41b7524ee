"""The branches that a session can go back to: those that it left, and those that its source left.

A session leaves a branch with each rewind, switch and undo, and its log of moves records the end of
the branch at that time. Nothing else has to be stored: the moves that leave a branch tell how far
it goes, and the last move of a session tells its present branch.

A fork sees the branches that its source had left when the fork was made. So its first move records
the number of moves of its source by then, and the newest compaction record: messages, moves and
compactions of the source after that are not visible to the fork. The branches that the source saw
of a source of its own are visible through it likewise; the chain ends at a session that is erased.

A session never moves to a branch that is not its own, since its owner may go on with it. Its head
moves to a new branch, which continues the other one from its end and replaces it from then on.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, literal_column, select

from ..database import Queries, Statement, branches, head_moves, messages
from ..errors import InvalidValue, quote_value
from ..records import Branch
from . import lines
from .lines import NO_LIMIT, Pointer


class SeenBranchEnd(NamedTuple):
    """Where a branch begins and ends, and the newest record on it that counts."""

    parent_position: int
    head: int
    records: int


USAGES_PER_POSITION = 2**32
"""The most usages at a position; the rest of a usage's number tells when it was recorded."""
BRANCH_QUERIES = Queries(
    lines.LINES_PATH,
    Path(__file__).with_name("session_branches.sql"),
    texts=("session_id",),
    places=str(USAGES_PER_POSITION),
)
SESSION_BRANCHES = BRANCH_QUERIES.statement("branches", Branch)
INHERITED_END = BRANCH_QUERIES.statement("inherited", SeenBranchEnd)
_last_branch_position = select(func.max(messages.c.seq)).where(lines.match_branch(messages))
_first_moves = (
    select(head_moves.c.kind, head_moves.c.to_branch)
    .where(
        head_moves.c.tree_id == bindparam("tree_id"),
        head_moves.c.session_id == bindparam("session_id"),
    )
    .order_by(head_moves.c.move)
    .limit(literal_column("2"))
    .subquery("first_moves")
)
_forgetful_branch = select(func.max(_first_moves.c.to_branch)).where(
    _first_moves.c.kind == literal_column("'forget'")
)
OWN_BRANCH_END = Statement(
    select(branches.c.parent_position, _last_branch_position.scalar_subquery())
    .where(lines.match_branch(branches))
    .where(branches.c.session_id == bindparam("session_id"))
    .where(
        branches.c.branch >= func.coalesce(_forgetful_branch.scalar_subquery(), literal_column("0"))
    )
)
"""A branch of the session that it did not forget: older ones are parts of its line at most."""


def find_line_pointer(
    connection: Connection, session_id: str, branch: int | None = None
) -> Pointer:
    """Return the position of a session, or the end of a branch that it can go back to.

    Raises SessionNotFound, and InvalidValue for any other branch.
    """
    pointer = lines.load_pointer(connection, session_id)
    return pointer if branch is None else find_branch_end(connection, pointer, branch)


def find_branch_end(connection: Connection, pointer: Pointer, branch: int | None) -> Pointer:
    """Return the end of a branch as a session sees it.

    Raises InvalidValue for a branch that the session cannot go back to.
    """
    if branch == pointer.branch:
        return pointer
    end = None
    if type(branch) is int:
        place = {**pointer.session, "branch": branch}
        own = OWN_BRANCH_END.row(connection, **place)
        if own is None:
            end = INHERITED_END.row(connection, **place, never=NO_LIMIT)
        else:
            start, last = own
            end = SeenBranchEnd(start, start if last is None else last, NO_LIMIT)
    if branch is None or end is None:
        told = (
            f"session {quote_value(pointer.session_id)} has no branch {quote_value(branch)} "
            "to go back to"
        )
        raise InvalidValue(f"{told}; `branches` lists those that it has")
    return pointer.at_end_of(branch, *end)


def find_switch_target(
    connection: Connection, pointer: Pointer, branch: int | None, of: str | None
) -> Pointer:
    """Return the end of a branch to which a session goes, of its own or of another session.

    Raises SessionNotFound, and InvalidValue for a branch, or a session of another tree.
    """
    if of is None or of == pointer.session_id:
        return find_branch_end(connection, pointer, branch)
    end = find_line_pointer(connection, of, branch)
    if end.tree_id != pointer.tree_id:
        told = f"session {quote_value(of)} shares nothing with {quote_value(pointer.session_id)}"
        raise InvalidValue(f"{told}: neither is a fork of the other's tree")
    newest = min(end.newest, NO_LIMIT - 1)
    return pointer.at_end_of(end.branch, end.parent_position, end.head, newest)


def list_branches(connection: Connection, session_id: str) -> list[Branch]:
    """Return the branches that a session can go back to with `switch`, and its present one.

    Oldest first. A fork also has the branches that its source had left when the fork was made, as
    they were then; where the fork continues one itself, its own branch replaces it. Raises
    SessionNotFound.
    """
    pointer = lines.load_pointer(connection, session_id)
    rows = SESSION_BRANCHES.rows(connection, **pointer.session, never=NO_LIMIT)
    return [each._replace(current=bool(each.current)) for each in rows]
