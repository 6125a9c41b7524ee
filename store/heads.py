"""Where a session points: fork, rewind, undo, and the log of every move. All are O(1): no message is touched."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, exists, func, insert, literal_column, select, update

from . import lines
from .clock import Now, given
from .errors import NothingToUndo
from .lines import Pointer
from .records import HeadMove, Session
from .schema import BIG, branches, compaction_records, head_moves, sessions
from .sessions import INSERT_BRANCH, checked_text, claim, insert_session, newest_record, session
from .statements import Statement

NEXT_BRANCH = Statement(
    select(func.max(branches.c.branch) + 1).where(branches.c.tree_id == bindparam("tree_id", type_=BIG))
)
FORKED_SESSION = Statement(
    select(sessions).where(sessions.c.tree_id == bindparam("tree_id"), sessions.c.id == bindparam("session_id"))
)
POINT_TO = Statement(
    update(sessions)
    .where(sessions.c.tree_id == bindparam("tree"), sessions.c.id == bindparam("session_id"))
    .values(
        head_branch=bindparam("branch"),
        head=bindparam("to"),
        last_rewind=bindparam("rewind"),
        updated_at=bindparam("now"),
    )
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
    ).where(branches.c.tree_id == bindparam("tree_id"), branches.c.branch == bindparam("branch"))
)
NEXT_MOVE = Statement(
    select(func.coalesce(func.max(head_moves.c.move), 0) + 1).where(
        head_moves.c.tree_id == bindparam("tree_id", type_=BIG), head_moves.c.session_id == bindparam("session_id")
    )
)
INSERT_MOVE = Statement(
    insert(head_moves).values({column.name: bindparam(column.name, type_=column.type) for column in head_moves.columns})
)
MOVE = Statement(
    select(head_moves.c.from_branch, head_moves.c.from_position, head_moves.c.earlier_rewind).where(
        head_moves.c.tree_id == bindparam("tree_id"),
        head_moves.c.session_id == bindparam("session_id"),
        head_moves.c.move == bindparam("move"),
    )
)
MOVES = Statement(
    select(
        head_moves.c.move,
        head_moves.c.kind,
        head_moves.c.from_position,
        head_moves.c.to_position,
        head_moves.c.moved_at,
        head_moves.c.from_branch,
        head_moves.c.to_branch,
    )
    .where(head_moves.c.tree_id == bindparam("tree_id"), head_moves.c.session_id == bindparam("session_id"))
    .order_by(head_moves.c.move)
)


def fork(
    connection: Connection,
    source: str,
    at: int | None = None,
    session_id: str | None = None,
    *,
    title: str | None = None,
    now: Now = None,
) -> Session:
    """Create a session that continues another one from position ``at`` (its head); copies no message.

    Raises SessionNotFound, SessionExists, PositionOutOfRange.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, source)
    position = lines.position(pointer, at)
    row = FORKED_SESSION.row(connection, tree_id=pointer.tree_id, session_id=source)
    assert row is not None
    values = dict(zip(sessions.columns.keys(), row, strict=True))
    stem = _next_branch(connection, pointer, position)
    values |= {
        "id": claim(connection, session_id, pointer.tree_id, moment),
        "head_branch": stem.number,
        "head": position,
        "last_rewind": None,
        "created_at": moment,
        "updated_at": moment,
        "forked_from": source,
        "forked_at": position,
        "title": values["title"] if title is None else checked_text("title", title),
    }
    created = insert_session(
        connection, values, parent=stem.parent, position=stem.position, records_seen=stem.records_seen
    )
    target = pointer._replace(session_id=created.id, branch=stem.number, head=position, last_rewind=None)
    _log_move(connection, "fork", pointer, target, moment)
    return created


def rewind(connection: Connection, session_id: str, to: int, *, now: Now = None) -> Session:
    """Move a session's head back to position ``to`` (0: before the first message); deletes nothing, can be undone.

    Raises SessionNotFound, PositionOutOfRange.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id)
    position = lines.position(pointer, -1 if to is None else to)
    if position == pointer.head:
        return session(connection, session_id)
    stem = _next_branch(connection, pointer, position)
    INSERT_BRANCH.run(
        connection,
        tree_id=pointer.tree_id,
        branch=stem.number,
        parent_branch=stem.parent,
        parent_position=stem.position,
        session_id=session_id,
        created_at=moment,
        records_seen=stem.records_seen,
    )
    target = pointer._replace(branch=stem.number, head=position)
    move = _log_move(connection, "rewind", pointer, target, moment)
    return _point(connection, target, move, moment)


def undo_rewind(connection: Connection, session_id: str, *, now: Now = None) -> Session:
    """Move a session's head back to where its last rewind took it from; undoing again goes one rewind further.

    What was appended since stays stored, on the branch that the head leaves. Raises SessionNotFound, NothingToUndo.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id)
    if pointer.last_rewind is None:
        raise NothingToUndo(f"session {session_id!r} has no rewind to undo")
    row = MOVE.row(connection, tree_id=pointer.tree_id, session_id=session_id, move=pointer.last_rewind)
    assert row is not None
    branch, position, earlier = row
    target = pointer._replace(branch=branch, head=position)
    _log_move(connection, "undo", pointer, target, moment)
    return _point(connection, target, earlier, moment)


def moves(connection: Connection, session_id: str) -> list[HeadMove]:
    """Return a session's head-move log: every fork into it, rewind and undo, oldest first. Raises SessionNotFound."""
    pointer = lines.find(connection, session_id)
    rows = MOVES.rows(connection, tree_id=pointer.tree_id, session_id=session_id)
    return [HeadMove._make(row) for row in rows]


class _Stem(NamedTuple):
    """What a new branch hangs on, at which position, and the newest record of its past that it may know."""

    number: int
    parent: int | None
    position: int
    records_seen: int


def _next_branch(connection: Connection, pointer: Pointer, position: int) -> _Stem:
    """Return a new branch's number and what it hangs on: the ancestor that really holds the position.

    A branch that begins at the position and was compacted there is hung on too, though it holds no message: its
    records are of the line, but for one that still runs, which may end elsewhere. What the line may not know of an
    ancestor's later records, the new branch may not either.
    """
    row = NEXT_BRANCH.row(connection, tree_id=pointer.tree_id)
    assert row is not None
    branch, seen = pointer.branch, newest_record(connection, pointer.tree_id)
    while True:
        stem = STEM.row(connection, tree_id=pointer.tree_id, branch=branch, position=position, newest=seen)
        assert stem is not None
        parent, parent_position, records_seen, recorded = stem
        if position > parent_position or (position == parent_position and recorded):
            return _Stem(row[0], branch, position, seen)
        if parent is None:
            return _Stem(row[0], None, position, seen)
        branch, seen = parent, records_seen


def _log_move(connection: Connection, kind: str, source: Pointer, target: Pointer, moment: int) -> int:
    """Record a move of the target session's head; return its number."""
    row = NEXT_MOVE.row(connection, tree_id=target.tree_id, session_id=target.session_id)
    assert row is not None
    INSERT_MOVE.run(
        connection,
        tree_id=target.tree_id,
        session_id=target.session_id,
        move=row[0],
        kind=kind,
        from_branch=source.branch,
        from_position=source.head,
        to_branch=target.branch,
        to_position=target.head,
        earlier_rewind=source.last_rewind if kind == "rewind" else None,
        moved_at=moment,
    )
    return int(row[0])


def _point(connection: Connection, target: Pointer, rewind: int | None, moment: int) -> Session:
    POINT_TO.run(
        connection,
        tree=target.tree_id,
        session_id=target.session_id,
        branch=target.branch,
        to=target.head,
        rewind=rewind,
        now=moment,
    )
    return session(connection, target.session_id)
