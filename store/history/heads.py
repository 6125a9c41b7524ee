"""Where a session points: fork, rewind, undo, and the log of every move.

All take the same time however long the line is: no message is touched.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, and_, bindparam, exists, func, literal_column, select

from ..clock import Now, given
from ..database import BIG, Insertion, Statement, branches, compaction_records, head_moves, sessions
from ..errors import NothingToUndo
from ..records import HeadMove, Session
from . import lines
from .places import Pointer
from .sessions import (
    Stem,
    checked_text,
    claim,
    id_for,
    insert_branch,
    insert_session,
    newest_record,
    session,
)

_in_tree = branches.c.tree_id == bindparam("tree_id", type_=BIG)
_newest_branch = func.max(branches.c.branch)
NEXT_BRANCH = Statement(select(_newest_branch + 1).where(_in_tree))
_of_session = and_(
    head_moves.c.tree_id == bindparam("tree_id", type_=BIG),
    head_moves.c.session_id == bindparam("session_id"),
)
FORKED_SESSION = Statement(
    select(sessions).where(
        sessions.c.tree_id == bindparam("tree_id"),
        sessions.c.id == bindparam("session_id"),
    )
)
POINT_TO = lines.change(
    head_branch=bindparam("branch"),
    head=bindparam("to"),
    last_rewind=bindparam("rewind"),
    updated_at=bindparam("now"),
)
STEM = Statement(
    select(
        branches.c.parent_branch,
        branches.c.parent_position,
        branches.c.records_seen,
        exists().where(
            compaction_records.c.tree_id == bindparam("tree_id"),
            compaction_records.c.branch == bindparam("branch"),
            compaction_records.c.head == bindparam("position"),
            compaction_records.c.compaction <= bindparam("newest"),
            compaction_records.c.outcome != literal_column("'running'"),
        ),
    ).where(
        branches.c.tree_id == bindparam("tree_id"),
        branches.c.branch == bindparam("branch"),
    )
)
_newest_move = func.coalesce(func.max(head_moves.c.move), 0)
NEXT_MOVE = Statement(select(_newest_move + 1).where(_of_session))
INSERT_MOVE = Insertion(head_moves)
MOVE = Statement(
    select(
        head_moves.c.from_branch,
        head_moves.c.from_position,
        head_moves.c.earlier_rewind,
    )
    .where(_of_session)
    .where(head_moves.c.move == bindparam("move"))
)
MOVES = Statement(
    select(*(head_moves.c[name] for name in HeadMove._fields))
    .where(_of_session)
    .order_by(head_moves.c.move),
    row=HeadMove,
)


def fork(
    connection: Connection,
    source: str,
    at: int | None = None,
    session_id: str | None = None,
    *,
    title: str | None = None,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Create a session that continues another one from position ``at`` (its head).

    Copies no message. ``expected`` is the revision that the source is to have (None: any). Raises
    SessionNotFound, SessionExists, Conflict, PositionOutOfRange.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, source, expected)
    position = lines.position(pointer, at)
    values = _stored(connection, pointer)
    stem = _next_branch(connection, pointer, position)
    values["id"] = claim(connection, id_for(session_id, moment), pointer.tree_id)
    values |= _where_a_fork_stands(source, stem.branch, position, moment)
    if title is not None:
        values["title"] = checked_text("title", title)
    created = insert_session(connection, values, stem)
    target = pointer._replace(session_id=created.id, branch=stem.branch, head=position)
    _log_move(connection, "fork", pointer, target, moment)
    return created


def _stored(connection: Connection, pointer: Pointer) -> dict[str, Any]:
    """Return the row of a session, by the names of its columns."""
    row = FORKED_SESSION.one(connection, **pointer.session)
    return dict(zip(sessions.c.keys(), row, strict=True))


def _where_a_fork_stands(
    source: str,
    branch: int,
    position: int,
    moment: int,
) -> dict[str, Any]:
    """Return what a fork has of its own in place of what its source has."""
    return {
        "head_branch": branch,
        "head": position,
        "last_rewind": None,
        "created_at": moment,
        "updated_at": moment,
        "forked_from": source,
        "forked_at": position,
    }


def rewind(
    connection: Connection,
    session_id: str,
    to: int,
    *,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Move a session's head back to position ``to`` (0: before the first message).

    Deletes nothing, and can be undone. ``expected`` is the revision that the session is to have
    (None: any). Raises SessionNotFound, Conflict, PositionOutOfRange.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    position = lines.position(pointer, -1 if to is None else to)
    if position == pointer.head:
        return session(connection, session_id)
    stem = _next_branch(connection, pointer, position)
    insert_branch(connection, pointer.tree_id, stem, session_id, moment)
    target = pointer._replace(branch=stem.branch, head=position)
    move = _log_move(connection, "rewind", pointer, target, moment)
    _point(connection, target._replace(last_rewind=move), moment)
    return session(connection, session_id)


def undo_rewind(
    connection: Connection,
    session_id: str,
    *,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Move a session's head back to where its last rewind took it from.

    Undoing again goes one rewind further. What was appended since stays stored, on the branch that
    the head leaves. ``expected`` is the revision that the session is to have (None: any). Raises
    SessionNotFound, Conflict, NothingToUndo.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    if pointer.last_rewind is None:
        raise NothingToUndo(f"session {session_id!r} has no rewind to undo")
    undone = MOVE.one(connection, **pointer.session, move=pointer.last_rewind)
    branch, position, earlier = undone
    target = pointer._replace(branch=branch, head=position, last_rewind=earlier)
    _log_move(connection, "undo", pointer, target, moment)
    _point(connection, target, moment)
    return session(connection, session_id)


def moves(connection: Connection, session_id: str) -> list[HeadMove]:
    """Return a session's head-move log: every fork into it, rewind and undo, oldest first.

    Raises SessionNotFound.
    """
    pointer = lines.find(connection, session_id)
    return MOVES.rows(connection, **pointer.session)


def _next_branch(connection: Connection, pointer: Pointer, position: int) -> Stem:
    """Return a new branch, which hangs on the ancestor that really holds the position.

    A branch that begins at the position and was compacted there is hung on too, though it holds no
    message: its records are of the line, but for one that still runs, which may end elsewhere. What
    the line may not know of an ancestor's later records, the new branch may not either.
    """
    number = NEXT_BRANCH.value(connection, tree_id=pointer.tree_id)
    branch, seen = pointer.branch, newest_record(connection, pointer.tree_id)
    while True:
        stem = STEM.one(
            connection, tree_id=pointer.tree_id, branch=branch, position=position, newest=seen
        )
        parent, parent_position, records_seen, recorded = stem
        if position > parent_position or (position == parent_position and recorded):
            return Stem(number, branch, position, seen)
        if parent is None:
            return Stem(number, None, position, seen)
        branch, seen = parent, records_seen


def _log_move(
    connection: Connection, kind: str, source: Pointer, target: Pointer, moment: int
) -> int:
    """Record a move of the target session's head; return its number."""
    number: int = NEXT_MOVE.value(connection, **target.session)
    INSERT_MOVE.run(
        connection,
        **target.session,
        move=number,
        kind=kind,
        from_branch=source.branch,
        from_position=source.head,
        to_branch=target.branch,
        to_position=target.head,
        earlier_rewind=source.last_rewind if kind == "rewind" else None,
        moved_at=moment,
    )
    return number


def _point(connection: Connection, target: Pointer, moment: int) -> None:
    """Let a session point to where a pointer says that it stands."""
    POINT_TO.run(
        connection,
        **target.changed(),
        branch=target.branch,
        to=target.head,
        rewind=target.last_rewind,
        now=moment,
    )
