"""Messages found by what an app knows of them: an id, a position, the turn that they are in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    select,
)

from ..database import Row, Statement, branches, message_facts, messages, sessions
from ..errors import MessageNotFound
from ..messages import Columns, assemble_message, extract_content_text, make_neutral_id
from ..records import Found, StoredMessage, Turn
from ..text import is_text
from . import lines
from .append import find_message
from .lines import Line
from .raw_messages import load_message_at
from .sessions import validate_text

SqlConditions = tuple[ColumnElement[bool], ...]


def _match_anywhere(_: FromClause) -> SqlConditions:
    return ()


def _match_given_tree(table: FromClause) -> SqlConditions:
    return (table.c.tree_id == bindparam("tree_id"),)


def _build_branches_through(within: Callable[[FromClause], SqlConditions]) -> CTE:
    """Build the branches that a message of an id is on: its own, and all that hang on it later."""
    at = messages.c
    is_named = at.message_id.in_((bindparam("message_id"), bindparam("neutral_id")))
    held = select(at.tree_id, at.branch, at.seq, at.branch.label("holder"))
    top = held.where(is_named, *within(messages)).cte("through", recursive=True)
    begun = select(branches.c.tree_id, branches.c.branch, top.c.seq, top.c.holder)
    return top.union_all(begun.join(top, _match_continuation(top)).where(*within(branches)))


def _match_continuation(through: CTE) -> ColumnElement[bool]:
    return and_(
        branches.c.tree_id == through.c.tree_id,
        branches.c.parent_branch == through.c.branch,
        branches.c.parent_position >= through.c.seq,
    )


_own_branches = branches.alias("own")
_own_session_join = and_(
    sessions.c.tree_id == _own_branches.c.tree_id,
    sessions.c.id == _own_branches.c.session_id,
)
_head_branch_number = case(
    (_own_branches.c.branch == sessions.c.head_branch, _own_branches.c.branch)
)
_best_branch = func.coalesce(func.max(_head_branch_number), func.max(_own_branches.c.branch))


def _build_message_search(
    within: Callable[[FromClause], SqlConditions], *conditions: ColumnElement[bool]
) -> Statement[Found]:
    """Build the search for the sessions that have messages of an id.

    A session has it on the branch of its head if possible, else on its newest.
    """
    through = _build_branches_through(within)
    is_own = and_(
        _own_branches.c.tree_id == through.c.tree_id, _own_branches.c.branch == through.c.branch
    )
    place = (sessions.c.id, sessions.c.updated_at, through.c.holder, through.c.seq)
    newest = (
        sessions.c.updated_at.desc(),
        sessions.c.id.desc(),
        through.c.seq.desc(),
    )
    return Statement(
        select(sessions.c.id.label("session_id"), _best_branch.label("branch"), through.c.seq)
        .select_from(through)
        .join(_own_branches, is_own)
        .join(sessions, _own_session_join)
        .where(*within(sessions), *conditions)
        .group_by(*place)
        .order_by(*newest),
        row=Found,
    )


FIND_MESSAGES = _build_message_search(_match_anywhere)
FIND_OWNED_MESSAGES = _build_message_search(_match_anywhere, sessions.c.owner == bindparam("owner"))
FIND_TREE_MESSAGES = _build_message_search(_match_given_tree)

_facts, _said = message_facts, messages
_turn_message_join = and_(
    lines.match_branch(_said),
    _said.c.seq == _facts.c.seq,
)
TURN_BEGINNINGS = Statement(
    select(
        _facts.c.turn,
        _facts.c.seq,
        func.coalesce(_said.c.created_at, _said.c.stored_at),
        *(_said.c[name] for name in Columns._fields),
    )
    .select_from(_facts)
    .join(_said, _turn_message_join)
    .where(lines.match_run(_facts), _facts.c.role == literal_column("'user'"))
    .order_by(_facts.c.seq)
)
"""The messages of a run with which turns begin."""


def find_messages_by_id(
    connection: Connection,
    message_id: str,
    session: str | None = None,
    *,
    owner: str | None = None,
) -> list[Found]:
    """Return where messages of an id are: in the whole store, or on the lines of one session.

    Or in all sessions of an ``owner``, where no session is given.

    A session has a message that its line runs through, or one that it has left: ``branch`` is one
    of its own, the one of its head if possible, by which the message can be read, and switched to.
    The sessions that were last active come first. Raises SessionNotFound for a session that is not
    there.
    """
    if session is None:
        return _find_everywhere(connection, message_id, validate_text("owner", owner))
    pointer = lines.load_pointer(connection, session)
    if not is_text(message_id):
        return []
    ids = {"message_id": message_id, "neutral_id": make_neutral_id(message_id)}
    found = FIND_TREE_MESSAGES.rows(connection, tree_id=pointer.tree_id, **ids)
    return [each for each in found if each.session_id == session]


def _find_everywhere(connection: Connection, message_id: str, owner: str | None) -> list[Found]:
    if not is_text(message_id):
        return []
    ids = {"message_id": message_id, "neutral_id": make_neutral_id(message_id)}
    if owner is None:
        return FIND_MESSAGES.rows(connection, **ids)
    return FIND_OWNED_MESSAGES.rows(connection, **ids, owner=owner)


def load_message(
    connection: Connection, session_id: str, seq_or_message_id: int | str
) -> StoredMessage:
    """Return a message of a session's line, by its position or its id (the newest of that id).

    Raises SessionNotFound, PositionOutOfRange for a position, MessageNotFound for an id that are
    not on the line.
    """
    line = Line(connection, lines.load_pointer(connection, session_id))
    pointer = line.pointer
    if not isinstance(seq_or_message_id, str):
        pointer.check_message(seq_or_message_id)
        seq = seq_or_message_id
    else:
        known = find_message(line, seq_or_message_id) if is_text(seq_or_message_id) else None
        if known is None:
            raise MessageNotFound(pointer.session_id, seq_or_message_id)
        seq = known.seq
    return load_message_at(line, seq).message


def list_turns(connection: Connection, session_id: str) -> list[Turn]:
    """Return the turns of a session's line, oldest first; what comes before the first is in none.

    Raises SessionNotFound.
    """
    line = Line(connection, lines.load_pointer(connection, session_id))
    head = line.pointer.head
    runs = (TURN_BEGINNINGS.rows(connection, **run) for run in line.ranges(1, head))
    begun = [*chain.from_iterable(runs)]
    ends = [*(first - 1 for _, first, *_ in begun[1:]), head]
    return [*map(_decode_turn, begun, ends)]


def _decode_turn(row: Row, last: int) -> Turn:
    turn, first, started_at, *columns = row
    said: Any = assemble_message(columns, None).get("content")
    return Turn(turn, first, last, extract_content_text(said), last + 1 - first, started_at)
