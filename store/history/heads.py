"""The heads of sessions: fork, rewind, switch, undo, replace and pop, and the log of moves.

Each takes the same time however long the line is: no message is touched.

A head is always at the end of a branch of its own session, else the next message would be written
over another one. So a head that moves to the end of such a branch stays on that branch, and one
that moves anywhere else gets a new branch, which continues the line from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnClause,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    select,
)

from ..clock import Now, require_moment
from ..database import (
    BIG_INTEGER,
    Insertion,
    Statement,
    branches,
    compaction_records,
    head_moves,
    sessions,
)
from ..errors import InvalidValue, NothingToUndo
from ..records import HeadMove, Session, StoredMessage
from . import lines, session_branches
from .append import MessageInput, append_batch, lock_for_batch, prepare_batch
from .lines import Line, Pointer
from .raw_messages import load_message_at
from .sessions import (
    NEW_SESSION_VALUES,
    BranchStem,
    claim_session_id,
    decode_session_fields,
    encode_metadata,
    insert_session,
    load_session,
    validate_folder,
    validate_text,
    write_branch,
)

ONE_ROOT_MESSAGE = (
    "a fork has the project root of its source, unless it is handed over to another owner; "
    "`set_project_root` changes that of all sessions of a tree"
)
_head_tree_id: BindParameter[int] = bindparam("tree_id", type_=BIG_INTEGER)
SessionFields = dict[str, Any]
"""The values of a row by the names of its columns."""


class MoveState(NamedTuple):
    """The state that a move of a session's head starts from.

    ``branch`` and ``move`` are the next numbers of a branch in the tree, and of a move of the head.
    ``record`` is the newest compaction record (0: none), up to which records count on a new branch.
    The move that is undone next began at ``undo_position`` of ``undo_branch`` (None: there is none)
    and ``earlier_undo`` is the number of the move undone after it. ``row`` is the session's row.
    """

    branch: int
    move: int
    record: int
    undo_branch: int | None
    undo_position: int | None
    earlier_undo: int | None
    row: SessionFields


_zero_literal: ColumnClause[int] = literal_column("0")
_one_literal: ColumnClause[int] = literal_column("1")


def _select_newest(number: ColumnElement[int], *conditions: ColumnElement[bool]) -> Select[Any]:
    """Build the query for a greatest number.

    It ends with the first row of an index; a server may read all rows for `max`.
    """
    return select(number).where(*conditions).order_by(number.desc()).limit(_one_literal)


_newest_branch = _select_newest(branches.c.branch, branches.c.tree_id == _head_tree_id)
_newest_move = _select_newest(
    head_moves.c.move,
    head_moves.c.tree_id == _head_tree_id,
    head_moves.c.session_id == bindparam("session_id"),
)
_newest_record = _select_newest(
    compaction_records.c.compaction, compaction_records.c.tree_id == _head_tree_id
)
_next_numbers = (
    (_newest_branch.scalar_subquery() + _one_literal).label("branch"),
    (func.coalesce(_newest_move.scalar_subquery(), _zero_literal) + _one_literal).label("move"),
    func.coalesce(_newest_record.scalar_subquery(), _zero_literal).label("record"),
)
_undone_moves, _head_sessions = head_moves.alias("undone"), sessions.alias("head_session")
# As a value of its own: joined with the session's row, a server may read all of its moves.
_last_rewind = select(_head_sessions.c.last_rewind).where(
    _head_sessions.c.tree_id == _head_tree_id, _head_sessions.c.id == bindparam("session_id")
)
_undone_move_join = and_(
    _undone_moves.c.tree_id == _head_tree_id,
    _undone_moves.c.session_id == bindparam("session_id"),
    _undone_moves.c.move == _last_rewind.scalar_subquery(),
)
MOVE_STATE = Statement(
    select(
        *_next_numbers,
        _undone_moves.c.from_branch,
        _undone_moves.c.from_position,
        _undone_moves.c.earlier_rewind,
        *sessions.c,
    )
    .select_from(sessions.outerjoin(_undone_moves, _undone_move_join))
    .where(sessions.c.tree_id == _head_tree_id, sessions.c.id == bindparam("session_id"))
)
_SESSION_COLUMNS = tuple(sessions.c.keys())
SET_HEAD = Statement(
    lines.update_session(
        head_branch=bindparam("branch"),
        head=bindparam("to"),
        last_rewind=bindparam("rewind"),
        **lines.ACTIVITY,
    )
)
BRANCH_ORIGIN = Statement(
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
INSERT_MOVE = Insertion(
    head_moves,
    *("tree_id", "session_id", "move", "kind"),
    *("from_branch", "from_position", "to_branch", "to_position"),
    *("moved_at", "earlier_rewind", "source_move", "source_record"),
)
HEAD_MOVES = Statement(
    select(*(head_moves.c[name] for name in HeadMove._fields))
    .where(
        head_moves.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        head_moves.c.session_id == bindparam("session_id"),
    )
    .order_by(head_moves.c.move),
    row=HeadMove,
)


_OPTION_ENCODERS: dict[str, Callable[[Any], str | None]] = {
    "title": partial(validate_text, "title"),
    "owner": partial(validate_text, "owner"),
    "metadata": encode_metadata,
    "project_root": validate_folder,
}
"""The columns that a fork may have of its own, each with the function that encodes its value."""


def fork_session(
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
    ``title`` and ``metadata`` are the fork's own (None: those of its source). A fork with another
    ``owner`` than its source (None: the same) gets the line alone: it sees no other branch, and has
    only the title, metadata and ``project_root`` given here. ``expected`` is the revision that the
    source must have (None: any). Raises SessionNotFound, SessionExists, Conflict,
    PositionOutOfRange, InvalidValue for a branch, and for a project root of a fork that stays with
    its owner: it has its source's.
    """
    moment = require_moment(now)
    given = {"title": title, "owner": owner, "metadata": metadata, "project_root": project_root}
    own = {
        name: _OPTION_ENCODERS[name](value) for name, value in given.items() if value is not None
    }
    pointer = lines.lock_tree(connection, source, expected)
    line = pointer
    if branch is not None:
        line = session_branches.find_branch_end(connection, pointer, branch)
    position = lines.resolve_position(line, at)
    state = load_move_state(connection, pointer)
    stem = plan_branch(connection, line, position, state)
    values = state.row | NEW_SESSION_VALUES
    values |= {
        "id": claim_session_id(connection, session_id, pointer.tree_id, moment),
        "head": position,
        "created_at": moment,
        "updated_at": moment,
        "forked_from": source,
        "forked_at": position,
    }
    created = insert_session(connection, merge_options(values, own), stem)
    target = pointer._replace(session_id=created.id, branch=stem.branch, head=position)
    is_handed_over = created.owner != values["owner"]
    seen = (None, None) if is_handed_over else (state.move - 1, state.record)
    insert_move(connection, "fork", line, target, 1, moment, seen=seen)
    return created


def merge_options(inherited: SessionFields, own: SessionFields) -> SessionFields:
    """Return the values of a fork: its own, else those of its source.

    A fork that is handed over to another owner does not have the title, metadata and project root
    of its source; any other has its source's project root. Raises InvalidValue for another root.
    """
    owner = inherited["owner"]
    if own.get("owner", owner) != owner:
        return inherited | {"title": None, "metadata": None, "project_root": None} | own
    root = inherited["project_root"]
    if own.get("project_root", root) != root:
        raise InvalidValue(ONE_ROOT_MESSAGE)
    return inherited | own


def load_move_state(connection: Connection, pointer: Pointer) -> MoveState:
    """Return the state that a move of a session's head starts from."""
    found = MOVE_STATE.one(connection, **pointer.session)
    row = dict(zip(_SESSION_COLUMNS, found[6:], strict=True))
    return MoveState._make((*found[:6], row))


def rewind_session(
    connection: Connection,
    session_id: str,
    to: int,
    *,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Move a session's head back to position ``to`` (0: before the first message).

    Deletes nothing, and can be undone. ``expected`` is the revision that the session must have
    (None: any). Raises SessionNotFound, Conflict, PositionOutOfRange.
    """
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    position = lines.resolve_position(pointer, -1 if to is None else to)
    return move_head(connection, "rewind", pointer, pointer, position, moment)


def switch_branch(
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

    `branches` lists the existing branches. ``of`` names another session of the tree, whose branch
    it is (None: the present one); both sessions continue from there independently. It is undone
    like a rewind. ``expected`` is the revision that the session must have (None: any). Raises
    SessionNotFound, Conflict, InvalidValue for a branch, PositionOutOfRange.
    """
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    line = session_branches.find_switch_target(connection, pointer, branch, of)
    position = lines.resolve_position(line, to)
    return move_head(connection, "switch", pointer, line, position, moment)


def undo_rewind(
    connection: Connection,
    session_id: str,
    *,
    expected: str | None = None,
    now: Now = None,
) -> Session:
    """Move a session's head back to its place before its last rewind or switch.

    A second undo goes one move further back. Messages appended since stay stored, on the branch
    that the head leaves. ``expected`` is the revision that the session must have (None: any).
    Raises SessionNotFound, Conflict, NothingToUndo.
    """
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    state = load_move_state(connection, pointer)
    if state.undo_branch is None or state.undo_position is None:
        raise NothingToUndo(f"session {session_id!r} has no rewind or switch to undo")
    line = session_branches.find_branch_end(connection, pointer, state.undo_branch)
    target = resolve_target(connection, line, state.undo_position, state, moment)
    insert_move(connection, "undo", pointer, target, state.move, moment)
    return update_head(connection, target, state.row, state.earlier_undo, moment)


def replace_messages(
    connection: Connection,
    session_id: str,
    after: int,
    messages: MessageInput,
    *,
    expected: str | None = None,
    now: Now = None,
    format: str | None = None,  # noqa: A002 - the public name
) -> Session:
    """Replace the messages after position ``after`` by others, or none: rewind and append, as one.

    Positions 1 to ``after`` stay. The replaced messages are kept on the branch that the head
    leaves; `undo_rewind` brings them back. ``expected`` is the revision that the session must have
    (None: any), ``format`` names that of the messages as in `append`. Raises SessionNotFound,
    Conflict, PositionOutOfRange, InvalidMessage.
    """
    batch = prepare_batch(messages, require_moment(now), format)
    rewind_session(connection, session_id, after, expected=expected, now=batch.moment)
    append_batch(Line(connection, lock_for_batch(connection, session_id, batch)), batch)
    return load_session(connection, session_id)


def pop_message(
    connection: Connection,
    session_id: str,
    *,
    expected: str | None = None,
    now: Now = None,
) -> StoredMessage | None:
    """Remove the last message from a line and return it; None if the line is empty.

    It is a rewind to the position before it: the message stays stored, and `undo_rewind` brings it
    back. No other caller gets the same message. ``expected`` is the revision that the session must
    have (None: any). Raises SessionNotFound, Conflict.
    """
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    if not pointer.head:
        return None
    last = load_message_at(Line(connection, pointer), pointer.head)
    move_head(connection, "rewind", pointer, pointer, last.before, moment)
    return last.message


def list_head_moves(connection: Connection, session_id: str) -> list[HeadMove]:
    """Return a session's head-move log, oldest first.

    It holds the fork that created the session, rewinds, switches and undos. Raises SessionNotFound.
    """
    pointer = lines.load_pointer(connection, session_id)
    return HEAD_MOVES.rows(connection, **pointer.session)


def move_head(
    connection: Connection,
    kind: str,
    pointer: Pointer,
    line: Pointer,
    position: int,
    moment: int,
) -> Session:
    """Move a session's head to a position of a line, by a move that can be undone."""
    state = load_move_state(connection, pointer)
    target = resolve_target(connection, line, position, state, moment)
    if target.line == pointer.line:
        return decode_session_fields(state.row)
    insert_move(connection, kind, pointer, target, state.move, moment)
    return update_head(connection, target, state.row, state.move, moment)


def resolve_target(
    connection: Connection,
    line: Pointer,
    position: int,
    state: MoveState,
    moment: int,
) -> Pointer:
    """Return the pointer of a session whose head moves to a position of a line.

    Writes a new branch, unless the position is the end of one of the session's own.
    """
    if line.is_own and position == line.head:
        return line
    stem = plan_branch(connection, line, position, state)
    write_branch(connection, line.tree_id, stem, line.session_id, moment)
    return line._replace(branch=stem.branch, head=position)


def plan_branch(
    connection: Connection,
    pointer: Pointer,
    position: int,
    state: MoveState,
) -> BranchStem:
    """Return a new branch, which hangs on the ancestor that really holds the position.

    It also hangs on a branch that begins at the position and was compacted there, though that holds
    no message: its records belong to the line, except one that still runs, which may end elsewhere.
    Later records of an ancestor that do not count on the line do not count on the new branch.
    """
    number = state.branch
    branch, seen = pointer.branch, min(state.record, pointer.newest)
    if position > pointer.parent_position:
        return BranchStem(number, branch, position, seen)
    while True:
        origin = BRANCH_ORIGIN.one(
            connection, tree_id=pointer.tree_id, branch=branch, position=position, newest=seen
        )
        parent, parent_position, records_seen, is_compacted = origin
        if position > parent_position or (position == parent_position and is_compacted):
            return BranchStem(number, branch, position, seen)
        if parent is None:
            return BranchStem(number, None, position, seen)
        branch, seen = parent, records_seen


def insert_move(
    connection: Connection,
    kind: str,
    source: Pointer,
    target: Pointer,
    number: int,
    moment: int,
    *,
    seen: tuple[int | None, int | None] = (None, None),
) -> None:
    """Record a move of a session's head, or the fork that made the session.

    ``seen`` are the last move and record of its source that a fork sees; without them it sees only
    its line.
    """
    earlier_rewind = source.last_rewind if kind in ("rewind", "switch") else None
    move = (target.tree_id, target.session_id, number, kind)
    places = (source.branch, source.head, target.branch, target.head)
    INSERT_MOVE.insert(connection, (*move, *places, moment, earlier_rewind, *seen))


def update_head(
    connection: Connection,
    target: Pointer,
    row: SessionFields,
    rewind: int | None,
    moment: int,
) -> Session:
    """Write a session's new head, and the move that is undone next; return the session."""
    changed = target.changed()
    head = {"branch": target.branch, "to": target.head, "rewind": rewind, "now": moment}
    SET_HEAD.run(connection, **changed, **head)
    fields = {"head_branch": target.branch, "head": target.head, "updated_at": moment}
    return decode_session_fields({**row, **fields, "revision": changed["revision"]})
