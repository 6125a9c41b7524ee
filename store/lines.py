"""A session's line: where its head is, and which runs of which branches hold its positions.

A line is read as a few range scans, ancestors first: the segments are found by walking up the branches, then each is
one scan of a table's key. Joining the segments with ``messages`` under an ORDER BY would sort every text instead.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, case, func, literal_column, select
from sqlalchemy.sql.selectable import CTE

from .errors import InvalidValue, PositionOutOfRange, SessionNotFound
from .messages import is_text
from .schema import BIG, branches, message_facts, messages, session_ids, sessions
from .statements import Statement


class Pointer(NamedTuple):
    """Where a session stands; ``parent_position`` is where its head branch begins (0: at the root).

    ``head_turn`` and ``head_tokens`` are how many turns and estimated tokens the line has, None where an ancestor
    holds the head.
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


class Segment(NamedTuple):
    """A run of a line: the positions first to last, held by one branch."""

    branch: int
    first: int
    last: int


_POINTER = (
    select(
        sessions.c.tree_id,
        sessions.c.id,
        sessions.c.head_branch,
        sessions.c.head,
        branches.c.parent_position,
        sessions.c.last_rewind,
        sessions.c.project_root,
        sessions.c.fold_case,
        message_facts.c.turn,
        message_facts.c.tokens_through,
    )
    .select_from(session_ids)
    .join(sessions, (sessions.c.tree_id == session_ids.c.tree_id) & (sessions.c.id == session_ids.c.id))
    .join(branches, (branches.c.tree_id == sessions.c.tree_id) & (branches.c.branch == sessions.c.head_branch))
    .outerjoin(
        message_facts,
        (message_facts.c.tree_id == sessions.c.tree_id)
        & (message_facts.c.branch == sessions.c.head_branch)
        & (message_facts.c.seq == sessions.c.head),
    )
    .where(session_ids.c.id == bindparam("session_id"))
)
POINTER = Statement(_POINTER)
SESSION_LOCK = Statement(
    select(sessions.c.tree_id)
    .select_from(session_ids)
    .join(sessions, (sessions.c.tree_id == session_ids.c.tree_id) & (sessions.c.id == session_ids.c.id))
    .where(session_ids.c.id == bindparam("session_id"))
    .with_for_update(of=sessions)
)

LEFT_BRANCH = Statement(
    select(
        branches.c.parent_position,
        select(func.max(messages.c.seq))
        .where(messages.c.tree_id == bindparam("tree_id"), messages.c.branch == bindparam("branch"))
        .scalar_subquery(),
    ).where(
        branches.c.tree_id == bindparam("tree_id"),
        branches.c.branch == bindparam("branch"),
        branches.c.session_id == bindparam("session_id"),
    )
)
TREE_LOCK = Statement(
    select(branches.c.branch)
    .where(branches.c.tree_id == bindparam("tree_id"))
    .order_by(branches.c.branch)
    .limit(literal_column("1"))
    .with_for_update(key_share=True)
)


def segments_cte() -> CTE:
    """Build the runs that hold the positions ``start`` to ``last``: up from a head branch, then cut to the range."""
    start, last = bindparam("start", type_=BIG), bindparam("last", type_=BIG)
    top = (
        select(
            branches.c.branch,
            branches.c.parent_branch,
            (branches.c.parent_position + literal_column("1")).label("first"),
            last.label("last"),
        )
        .where(branches.c.tree_id == bindparam("tree_id"), branches.c.branch == bindparam("branch"))
        .cte("walk", recursive=True)
    )
    parents = branches.alias("parents")
    walk = top.union_all(
        select(
            parents.c.branch,
            parents.c.parent_branch,
            parents.c.parent_position + literal_column("1"),
            case((top.c.first <= last, top.c.first - literal_column("1")), else_=last),
        )
        .join(top, parents.c.branch == top.c.parent_branch)
        .where(parents.c.tree_id == bindparam("tree_id"), top.c.first > start)
    )
    first = case((walk.c.first < start, start), else_=walk.c.first)
    return select(walk.c.branch, first.label("first"), walk.c.last).where(first <= walk.c.last).cte("segments")


_walk = segments_cte()
SEGMENTS = Statement(select(_walk.c.branch, _walk.c.first, _walk.c.last).order_by(_walk.c.first))


def find(connection: Connection, session_id: str, branch: int | None = None) -> Pointer:
    """Return where a session stands, or stood at the end of a branch of its own that it left.

    Raises SessionNotFound, and InvalidValue for a branch that is not the session's.
    """
    row = POINTER.row(connection, session_id=session_id) if is_text(session_id) else None
    if row is None:
        raise SessionNotFound(session_id)
    pointer = Pointer._make(row)
    if branch is None or branch == pointer.branch:
        return pointer
    row = LEFT_BRANCH.row(connection, tree_id=pointer.tree_id, branch=branch, session_id=session_id)
    if row is None:
        raise InvalidValue(f"branch {branch!r} is not one of session {session_id!r}; its head moves name them")
    parent_position, last = row
    head = parent_position if last is None else last
    return pointer._replace(branch=branch, head=head, parent_position=parent_position, head_turn=None, head_tokens=None)


def lock(connection: Connection, session_id: str) -> Pointer:
    """Return where a session stands, keeping other writers from moving it until the transaction ends.

    A server's lock is taken apart, since what is read with it may be older; and again where it waited for a session
    that was erased in the end, while there is another one of that id by now.
    """
    if connection.dialect.name == "sqlite":
        return find(connection, session_id)
    while True:
        locked = SESSION_LOCK.row(connection, session_id=session_id) if is_text(session_id) else None
        pointer = find(connection, session_id)
        if locked == (pointer.tree_id,):
            return pointer


def lock_tree(connection: Connection, session_id: str) -> Pointer:
    """Return where a session stands, keeping other writers from adding branches to its tree or moving it."""
    if connection.dialect.name == "sqlite":
        return find(connection, session_id)
    tree_id = None
    while (found := find(connection, session_id).tree_id) != tree_id:  # once locked, a session stays in its tree
        tree_id = found
        TREE_LOCK.row(connection, tree_id=tree_id)
    return lock(connection, session_id)


def segments(connection: Connection, pointer: Pointer, start: int, last: int) -> list[Segment]:
    """Return the runs that hold the positions ``start`` to ``last`` of a line, in order."""
    if start > last:
        return []
    if pointer.parent_position < start:
        return [Segment(pointer.branch, start, last)]
    rows = SEGMENTS.rows(connection, tree_id=pointer.tree_id, branch=pointer.branch, start=start, last=last)
    return [Segment._make(row) for row in rows]


def span(start: int, stop: int | None, last: int) -> tuple[int, int]:
    """Return the first and last position of a range of a line of ``last`` messages; -20 is the 20th from its end.

    Raises InvalidValue for what are no positions: only where a range begins may be counted from the end.
    """
    if type(start) is not int or (stop is not None and type(stop) is not int):
        raise InvalidValue(f"a range is two positions, not {start!r} to {stop!r}")
    if stop is not None and stop < 0:
        raise InvalidValue(f"a range ends with a position, not {stop}; only its start counts from the end if negative")
    first = start if start >= 0 else last + 1 + start
    return max(1, first), last if stop is None else min(stop, last)


def position(pointer: Pointer, given: int | None) -> int:
    """Return a position of the line (None: its head; 0: before the first). Raises PositionOutOfRange."""
    if given is None:
        return pointer.head
    if type(given) is not int or not 0 <= given <= pointer.head:
        raise PositionOutOfRange(pointer.session_id, given, pointer.head)
    return given
