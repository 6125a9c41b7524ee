"""Where a session points: fork, rewind, switch, undo, and the log of every move.

All take the same time however long the line is: no message is touched.

A head stands at the end of a branch of its session's own, always: else the next message would be
written over another. So whoever goes to where such a branch ends stands on it, and whoever goes
anywhere else on a new one, which continues the line from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnClause,
    Connection,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    select,
)

from ..clock import Now, given
from ..database import BIG, Insertion, Statement, branches, compaction_records, head_moves, sessions
from ..errors import NothingToUndo
from ..records import HeadMove, Session
from . import left, lines
from .places import Pointer
from .sessions import (
    Stem,
    change,
    checked_text,
    claim,
    decoded,
    id_for,
    insert_branch,
    insert_session,
    session,
)

_tree: BindParameter[int] = bindparam("tree_id", type_=BIG)
_of_session = and_(
    head_moves.c.tree_id == _tree,
    head_moves.c.session_id == bindparam("session_id"),
)


class Next(NamedTuple):
    """The numbers that come next in a tree: that of a branch, and of a move of a session's head.

    ``record`` is the newest compaction record's (0: none), up to which a new branch knows all.
    """

    branch: int
    move: int
    record: int


_none: ColumnClause[int] = literal_column("0")
_one: ColumnClause[int] = literal_column("1")
_newest_branch = select(func.max(branches.c.branch)).where(branches.c.tree_id == _tree)
_newest_move = select(func.max(head_moves.c.move)).where(_of_session)
_newest_record = select(func.max(compaction_records.c.compaction)).where(
    compaction_records.c.tree_id == _tree
)
_next = (
    (_newest_branch.scalar_subquery() + _one).label("branch"),
    (func.coalesce(_newest_move.scalar_subquery(), _none) + _one).label("move"),
    func.coalesce(_newest_record.scalar_subquery(), _none).label("record"),
)
NEXT = Statement(select(*_next), row=Next)
_SESSION_COLUMNS = tuple(sessions.c.keys())
FORKED = Statement(
    select(*_next, *sessions.c).where(
        sessions.c.tree_id == _tree,
        sessions.c.id == bindparam("session_id"),
    )
)
POINT_TO = change(
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
INSERT_MOVE = Insertion(head_moves)
_undone = head_moves.alias("undone")
UNDONE = Statement(
    select(
        *_next,
        _undone.c.from_branch,
        _undone.c.from_position,
        _undone.c.earlier_rewind,
    ).where(
        _undone.c.tree_id == _tree,
        _undone.c.session_id == bindparam("session_id"),
        _undone.c.move == bindparam("move"),
    )
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
    branch: int | None = None,
    title: str | None = None,
    owner: str | None = None,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Create a session that continues another one from position ``at`` (its head).

    Copies no message. ``branch`` is one that the source can go back to (None: the present one).
    Another ``owner`` than the source's (None: the same) gets the line alone, and sees no other
    branch. ``expected`` is the revision that the source is to have (None: any). Raises
    SessionNotFound, SessionExists, Conflict, InvalidValue for a branch, PositionOutOfRange.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, source, expected)
    line = pointer if branch is None else left.end_of(connection, pointer, branch)
    position = lines.position(line, at)
    following, values = _forked(connection, pointer)
    their_owner = values["owner"]
    stem = _next_branch(connection, line, position, following)
    values["id"] = claim(connection, id_for(session_id, moment), pointer.tree_id)
    values |= _where_a_fork_stands(source, stem.branch, position, moment)
    values |= _given(title=title, owner=owner)
    created = insert_session(connection, values, stem)
    target = pointer._replace(session_id=created.id, branch=stem.branch, head=position)
    seen = following if created.owner == their_owner else None
    _log_fork(connection, line, target, seen, moment)
    return created


def _forked(connection: Connection, pointer: Pointer) -> tuple[Next, dict[str, Any]]:
    """Return what comes next in a session's tree, and its row by the names of its columns."""
    branch, move, record, *row = FORKED.one(connection, **pointer.session)
    return Next(branch, move, record), dict(zip(_SESSION_COLUMNS, row, strict=True))


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
        "archived": 0,
    }


def _given(**texts: str | None) -> dict[str, str | None]:
    """Return the texts that are given for a fork, in place of its source's."""
    return {name: checked_text(name, text) for name, text in texts.items() if text is not None}


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
    return _go(connection, "rewind", pointer, pointer, position, moment)


def switch(
    connection: Connection,
    session_id: str,
    branch: int | None,
    to: int | None = None,
    *,
    of: str | None = None,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Move a session's head to another branch: to its end, or back from there to position ``to``.

    `branches` lists those that there are. ``of`` names another session of the tree, whose branch it
    is (None: the present one); both go on from there, each for itself. It is undone like a rewind.
    ``expected`` is the revision that the session is to have (None: any). Raises SessionNotFound,
    Conflict, InvalidValue for a branch, PositionOutOfRange.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    line = left.line_of(connection, pointer, branch, of)
    position = lines.position(line, to)
    return _go(connection, "switch", pointer, line, position, moment)


def undo_rewind(
    connection: Connection,
    session_id: str,
    *,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Move a session's head back to where its last rewind or switch took it from.

    Undoing again goes one further. What was appended since stays stored, on the branch that
    the head leaves. ``expected`` is the revision that the session is to have (None: any). Raises
    SessionNotFound, Conflict, NothingToUndo.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    if pointer.last_rewind is None:
        raise NothingToUndo(f"session {session_id!r} has no rewind or switch to undo")
    undone = UNDONE.one(connection, **pointer.session, move=pointer.last_rewind)
    *numbers, branch, position, earlier = undone
    following = Next(*numbers)
    line = left.end_of(connection, pointer, branch)
    target = _arrived(connection, line, position, following, moment)
    _log_move(connection, "undo", pointer, target, following, moment)
    return _point(connection, target, earlier, moment)


def moves(connection: Connection, session_id: str) -> list[HeadMove]:
    """Return a session's head-move log, oldest first.

    The fork that made it, rewinds, switches and undoings. Raises SessionNotFound.
    """
    pointer = lines.find(connection, session_id)
    return MOVES.rows(connection, **pointer.session)


def _go(
    connection: Connection,
    kind: str,
    pointer: Pointer,
    line: Pointer,
    position: int,
    moment: int,
) -> Session:
    """Move a session's head to a position of a line, by a move that can be undone."""
    following = NEXT.one(connection, **pointer.session)
    target = _arrived(connection, line, position, following, moment)
    if target.line == pointer.line:
        return session(connection, pointer.session_id)
    _log_move(connection, kind, pointer, target, following, moment)
    return _point(connection, target, following.move, moment)


def _arrived(
    connection: Connection,
    line: Pointer,
    position: int,
    following: Next,
    moment: int,
) -> Pointer:
    """Return where a session stands that has gone to a position of a line."""
    if line.is_own and position == line.head:
        return line
    stem = _next_branch(connection, line, position, following)
    insert_branch(connection, line.tree_id, stem, line.session_id, moment)
    return line._replace(branch=stem.branch, head=position)


def _next_branch(
    connection: Connection,
    pointer: Pointer,
    position: int,
    following: Next,
) -> Stem:
    """Return a new branch, which hangs on the ancestor that really holds the position.

    A branch that begins at the position and was compacted there is hung on too, though it holds no
    message: its records are of the line, but for one that still runs, which may end elsewhere. What
    the line may not know of an ancestor's later records, the new branch may not either.
    """
    number = following.branch
    branch, seen = pointer.branch, min(following.record, pointer.newest)
    if position > pointer.parent_position:
        return Stem(number, branch, position, seen)
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
    connection: Connection,
    kind: str,
    source: Pointer,
    target: Pointer,
    following: Next,
    moment: int,
) -> None:
    """Record a move of a session's head."""
    earlier = None if kind == "undo" else source.last_rewind
    move = {
        "move": following.move,
        "kind": kind,
        "earlier_rewind": earlier,
        "moved_at": moment,
        "source_move": None,
        "source_record": None,
    }
    INSERT_MOVE.run(connection, **_ways(source, target), **move)


def _log_fork(
    connection: Connection,
    source: Pointer,
    target: Pointer,
    seen: Next | None,
    moment: int,
) -> None:
    """Record a fork, with how far it sees what its source did: the moves and records before these.

    Without them it sees nothing but its line.
    """
    move = {
        "move": 1,
        "kind": "fork",
        "earlier_rewind": None,
        "moved_at": moment,
        "source_move": seen and seen.move - 1,
        "source_record": seen and seen.record,
    }
    INSERT_MOVE.run(connection, **_ways(source, target), **move)


def _ways(source: Pointer, target: Pointer) -> dict[str, Any]:
    """Return where a head is moved from and to, as columns."""
    return {
        **target.session,
        "from_branch": source.branch,
        "from_position": source.head,
        "to_branch": target.branch,
        "to_position": target.head,
    }


def _point(
    connection: Connection,
    target: Pointer,
    rewind: int | None,
    moment: int,
) -> Session:
    """Let a session point to where it has gone, by the move that is to be undone next."""
    pointed = POINT_TO.one(
        connection,
        **target.changed(),
        branch=target.branch,
        to=target.head,
        rewind=rewind,
        now=moment,
    )
    return decoded(pointed)
