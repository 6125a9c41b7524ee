"""Where a session points: fork, rewind, switch and undo.

All take the same time however long the line is: no message is touched.

A head stands at the end of a branch of its session's own, always: else the next message would be
written over another. So whoever goes to where such a branch ends stands on it, and whoever goes
anywhere else on a new one, which continues the line from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
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

from ..clock import Now, require_moment
from ..database import (
    BIG,
    Statement,
    branches,
    compaction_records,
    head_moves,
    sessions,
)
from ..errors import InvalidValue, NothingToUndo
from ..records import Session
from . import lines, moves, session_branches
from .lines import Pointer
from .sessions import (
    Stem,
    claim_id,
    encode_metadata,
    insert_branch,
    insert_session,
    new_session_id,
    of_row,
    validate_folder,
    validate_text,
)

ONE_ROOT = (
    "a fork has the project root of its source, unless it is handed over to another owner; "
    "`set_project_root` changes that of all sessions of a tree"
)
_tree: BindParameter[int] = bindparam("tree_id", type_=BIG)
Fields = dict[str, Any]
"""The values of a row by the names of its columns."""


class Next(NamedTuple):
    """The numbers that come next in a tree: that of a branch, and of a move of a session's head.

    ``record`` is the newest compaction record's (0: none), up to which a new branch knows all.
    """

    branch: int
    move: int
    record: int


class Undone(NamedTuple):
    """Where the move that is undone next took a head from, and which one is undone behind it."""

    branch: int
    position: int
    earlier: int | None


class Standing(NamedTuple):
    """What a move of a session's head goes by: what comes next, what is undone, the session's row.

    ``undone`` is None where there is nothing to undo.
    """

    following: Next
    undone: Undone | None
    row: Fields


_none: ColumnClause[int] = literal_column("0")
_one: ColumnClause[int] = literal_column("1")
_newest_branch = select(func.max(branches.c.branch)).where(branches.c.tree_id == _tree)
_newest_move = select(func.max(head_moves.c.move)).where(
    head_moves.c.tree_id == _tree, head_moves.c.session_id == bindparam("session_id")
)
_newest_record = select(func.max(compaction_records.c.compaction)).where(
    compaction_records.c.tree_id == _tree
)
_next = (
    (_newest_branch.scalar_subquery() + _one).label("branch"),
    (func.coalesce(_newest_move.scalar_subquery(), _none) + _one).label("move"),
    func.coalesce(_newest_record.scalar_subquery(), _none).label("record"),
)
_undone = head_moves.alias("undone")
_of_undone = and_(
    _undone.c.tree_id == sessions.c.tree_id,
    _undone.c.session_id == sessions.c.id,
    _undone.c.move == sessions.c.last_rewind,
)
STANDING = Statement(
    select(
        *_next,
        _undone.c.from_branch,
        _undone.c.from_position,
        _undone.c.earlier_rewind,
        *sessions.c,
    )
    .select_from(sessions.outerjoin(_undone, _of_undone))
    .where(sessions.c.tree_id == _tree, sessions.c.id == bindparam("session_id"))
)
_SESSION_COLUMNS = tuple(sessions.c.keys())
POINT_TO = Statement(
    lines.update_session(
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
    ).where(
        branches.c.tree_id == bindparam("tree_id"),
        branches.c.branch == bindparam("branch"),
    )
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
    metadata: dict[str, Any] | None = None,
    project_root: str | os.PathLike[str] | None = None,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Create a session that continues another one from position ``at`` (its head).

    Copies no message. ``branch`` is one that the source can go back to (None: the present one).
    ``title`` and ``metadata`` are the fork's own (None: those of its source). Another ``owner``
    than the source's (None: the same) gets the line alone: sees no other branch, and has the title,
    metadata and ``project_root`` that are given here, else none. ``expected`` is the revision that
    the source is to have (None: any). Raises SessionNotFound, SessionExists, Conflict,
    PositionOutOfRange, InvalidValue for a branch, and for a project root of a fork that stays with
    its owner: it has its source's.
    """
    moment = require_moment(now)
    own = _given(title=title, owner=owner, metadata=metadata, project_root=project_root)
    pointer = lines.lock_tree(connection, source, expected)
    line = (
        pointer if branch is None else session_branches.find_branch_end(connection, pointer, branch)
    )
    position = lines.resolve_position(line, at)
    following, _, values = _standing(connection, pointer)
    their_owner = values["owner"]
    stem = _next_branch(connection, line, position, following)
    values["id"] = claim_id(connection, new_session_id(session_id, moment), pointer.tree_id)
    values |= _where_a_fork_stands(source, stem.branch, position, moment)
    if is_handed_over := own.get("owner", their_owner) != their_owner:
        values |= {"title": None, "metadata": None, "project_root": None}
    elif own.get("project_root", values["project_root"]) != values["project_root"]:
        raise InvalidValue(ONE_ROOT)
    created = insert_session(connection, values | own, stem)
    target = pointer._replace(session_id=created.id, branch=stem.branch, head=position)
    seen = None if is_handed_over else (following.move - 1, following.record)
    moves.log_fork(connection, line, target, seen, moment)
    return created


def _standing(connection: Connection, pointer: Pointer) -> Standing:
    """Return what a move of a session's head goes by."""
    found = STANDING.one(connection, **pointer.session)
    numbers, undone, row = found[:3], found[3:6], found[6:]
    return Standing(
        Next(*numbers),
        None if undone[0] is None else Undone(*undone),
        dict(zip(_SESSION_COLUMNS, row, strict=True)),
    )


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


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "title": partial(validate_text, "title"),
    "owner": partial(validate_text, "owner"),
    "metadata": encode_metadata,
    "project_root": validate_folder,
}


def _given(**values: Any) -> Fields:
    """Return what is given for a fork, in place of what its source has. Raises InvalidValue."""
    return {name: _CHECKS[name](value) for name, value in values.items() if value is not None}


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
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    position = lines.resolve_position(pointer, -1 if to is None else to)
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
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    line = session_branches.find_target(connection, pointer, branch, of)
    position = lines.resolve_position(line, to)
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
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    following, undone, row = _standing(connection, pointer)
    if undone is None:
        raise NothingToUndo(f"session {session_id!r} has no rewind or switch to undo")
    line = session_branches.find_branch_end(connection, pointer, undone.branch)
    target = _arrived(connection, line, undone.position, following, moment)
    moves.log_move(connection, "undo", pointer, target, following.move, moment)
    return _point(connection, target, row, undone.earlier, moment)


def _go(
    connection: Connection,
    kind: str,
    pointer: Pointer,
    line: Pointer,
    position: int,
    moment: int,
) -> Session:
    """Move a session's head to a position of a line, by a move that can be undone."""
    following, _, row = _standing(connection, pointer)
    target = _arrived(connection, line, position, following, moment)
    if target.line == pointer.line:
        return of_row(row)
    moves.log_move(connection, kind, pointer, target, following.move, moment)
    return _point(connection, target, row, following.move, moment)


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


def _point(
    connection: Connection,
    target: Pointer,
    row: Fields,
    rewind: int | None,
    moment: int,
) -> Session:
    """Let a session point to where it has gone, by the move that is to be undone next."""
    changed = target.changed()
    pointed = {"branch": target.branch, "to": target.head, "rewind": rewind, "now": moment}
    POINT_TO.run(connection, **changed, **pointed)
    there = {"head_branch": target.branch, "head": target.head, "updated_at": moment}
    return of_row({**row, **there, "revision": changed["revision"]})
