"""Messages found by what an app knows of them: an id, a position, the turn that they are in.

- The turn of a request is the open turn of a line, or a new one after it.
- The title of a session is the given one, else the first words of the user.
- Siblings are messages that follow the same message: answers made anew, questions asked otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    select,
    union_all,
)

from ..database import Statement, ancestors, branches, json_sql, message_facts, messages, sessions
from ..errors import InvalidValue, MessageNotFound, PositionOutOfRange
from ..formats import asks_for_tool
from ..messages import Columns, Message, assemble_message, extract_content_text, make_neutral_id
from ..records import Found, Sibling, StoredMessage, Turn
from ..text import is_text, truncate_to_line
from . import lines
from .ancestry import LEVELS
from .append import MessageLocation, find_messages
from .facts import find_turn_start, load_totals
from .lines import NO_LIMIT, Line, Segment, match_run
from .listing import bind_prefix
from .raw_messages import (
    check_run_complete,
    decode_stored_rows,
    join_parts,
    load_chat_messages,
    load_message_at,
    load_stored_rows,
    parse_part,
    report_damage,
)
from .session_branches import BRANCH_QUERIES, find_line_pointer
from .sessions import load_session, validate_text


class RequestTurn(NamedTuple):
    """The turn of a request: ``begins`` is its first position (None: its input is not stored yet).

    ``answered``: the last stored turn has its answer. ``over``: that turn is finished, because a
    new one begins.
    """

    begins: int | None
    answered: bool
    over: bool


def find_request_turn(line: Line, last: int, user_input: str | None) -> RequestTurn:
    """Return the turn of a request about a line up to a position, with an input or without (None).

    An input that the open turn begins with is stored already, so that turn goes on.
    """
    begins = None if load_totals(line, last).turn == 0 else find_turn_start(line, last)
    answered = False
    if begins is not None:
        # An answer of the assistant neither calls a tool nor announces a call in words.
        newest = load_chat_message(line, last)
        is_answer = newest["role"] == "assistant" and not newest.get("tool_calls")
        answered = is_answer and not asks_for_tool(extract_content_text(newest.get("content")))
    if user_input is None:
        return RequestTurn(begins, answered, over=False)
    if (
        begins is None
        or answered
        or extract_content_text(load_chat_message(line, begins).get("content")) != user_input
    ):
        begins = None
    return RequestTurn(begins, answered, over=begins is None)


def load_chat_message(line: Line, position: int) -> Message:
    """Return the message at a position of a line."""
    (stored,) = load_chat_messages(line, position, position)
    return stored.message


def _match_tree_of(table: FromClause, in_tree: bool) -> tuple[ColumnElement[bool], ...]:
    """Build the conditions for the rows of one tree, or none for those of all trees."""
    return (table.c.tree_id == bindparam("tree_id"),) if in_tree else ()


_is_named = messages.c.message_id.in_((bindparam("message_id"), bindparam("neutral_id")))
_compared_id = json_sql.CodePointText(messages.c.message_id)
_begins_alike = and_(_compared_id >= bindparam("prefix"), _compared_id < bindparam("end"))


def _build_branches_through(is_named: ColumnElement[bool], in_tree: bool) -> CTE:
    """Build the branches that messages are on: their own, and all that hang on these later."""
    at = messages.c
    held = select(at.tree_id, at.branch, at.seq, at.branch.label("holder"), at.message_id)
    top = held.where(is_named, *_match_tree_of(messages, in_tree)).cte("through", recursive=True)
    is_continued = and_(
        branches.c.tree_id == top.c.tree_id,
        branches.c.parent_branch == top.c.branch,
        branches.c.parent_position >= top.c.seq,
    )
    begun = select(branches.c.tree_id, branches.c.branch, top.c.seq, top.c.holder, top.c.message_id)
    return top.union_all(begun.join(top, is_continued).where(*_match_tree_of(branches, in_tree)))


_own_branches = branches.alias("own")
_own_session_join = and_(
    sessions.c.tree_id == _own_branches.c.tree_id,
    sessions.c.id == _own_branches.c.session_id,
)


def _build_message_search(
    is_named: ColumnElement[bool],
    *conditions: ColumnElement[bool],
    in_tree: bool = False,
) -> Statement[Found]:
    """Build the search for the sessions that have messages of an id, or of ids that begin alike.

    A session has one on the branch of its head if possible, else on its newest.
    """
    conditions = (*_match_tree_of(sessions, in_tree), *conditions)
    through = _build_branches_through(is_named, in_tree)
    begun = _join_sessions(through, through.c.tree_id, through.c.branch)
    of_tree = _match_tree_of(messages, in_tree)
    reached = _build_branches_reached(is_named, *of_tree, *conditions).subquery("through")
    select_found = partial(_select_found, is_prefix=is_named is _begins_alike)
    walked = select_found(begun, through.c, _own_branches.c.branch, sessions.c)
    on_server = select_found(reached, reached.c, reached.c.own_branch, reached.c)
    return Statement(walked.where(*conditions), row=Found, on_server=on_server)


def _join_sessions(source: FromClause, tree: Any, branch: Any) -> FromClause:
    """Join branches with the sessions whose own they are."""
    is_own = and_(_own_branches.c.tree_id == tree, _own_branches.c.branch == branch)
    return source.join(_own_branches, is_own).join(sessions, _own_session_join)


def _build_branches_reached(*conditions: ColumnElement[bool]) -> CompoundSelect[Any]:
    """Build the sessions' branches that messages are on, by the rows of their ancestors.

    The server begins with the rarer ones, messages or sessions.
    """
    columns = (
        *(sessions.c[name] for name in ("id", "updated_at", "head_branch")),
        _own_branches.c.branch.label("own_branch"),
        *(messages.c.seq, messages.c.branch.label("holder"), messages.c.message_id),
    )
    ways = (select(*columns).select_from(way).where(*conditions) for way in _list_ways())
    return union_all(*ways)


def _list_ways() -> Iterator[FromClause]:
    """Yield the joins from messages to the branches that they are on, nearer branches first."""
    at, branch = messages.c, messages.c.branch
    way: FromClause = messages
    for level in range(LEVELS):
        yield _join_sessions(way, at.tree_id, branch)
        rows = ancestors.alias(f"level_{level}")
        is_below = and_(
            rows.c.tree_id == at.tree_id,
            rows.c.level == literal_column(str(level)),
            rows.c.ancestor == branch,
            *((rows.c.last >= at.seq,) if level == 0 else ()),
        )
        way, branch = way.join(rows, is_below), rows.c.branch
    yield _join_sessions(way, at.tree_id, branch)


def _select_found(
    source: FromClause, message: Any, own: ColumnElement[int], session: Any, *, is_prefix: bool
) -> Select[Any]:
    """Build the query for the best branch of each session: that of its head, else its newest."""
    best = func.coalesce(func.max(case((own == session.head_branch, own))), func.max(own))
    named, seq = message.message_id, message.seq
    return (
        select(session.id.label("session_id"), best.label("branch"), seq)
        .select_from(source)
        .group_by(session.id, session.updated_at, message.holder, seq, named)
        .order_by(
            *((json_sql.CodePointText(named),) if is_prefix else ()),
            session.updated_at.desc(),
            session.id.desc(),
            seq.desc(),
        )
    )


_is_owned = sessions.c.owner == bindparam("owner")
FIND_MESSAGES = _build_message_search(_is_named)
FIND_OWNED_MESSAGES = _build_message_search(_is_named, _is_owned)
FIND_TREE_MESSAGES = _build_message_search(_is_named, in_tree=True)
FIND_PREFIX = _build_message_search(_begins_alike)
FIND_OWNED_PREFIX = _build_message_search(_begins_alike, _is_owned)
FIND_TREE_PREFIX = _build_message_search(_begins_alike, in_tree=True)

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
    .where(
        lines.match_run(_facts),
        _facts.c.role == literal_column("'user'"),
        _facts.c.turn.between(bindparam("start"), bindparam("stop")),
    )
    .order_by(_facts.c.seq)
)
"""The messages of a run with which turns begin."""


def find_messages_by_id(
    connection: Connection,
    message_id: str | None = None,
    session: str | None = None,
    *,
    prefix: str | None = None,
    owner: str | None = None,
) -> list[Found]:
    """Return where messages of an id are: in the whole store, or on the lines of one session.

    Or in all sessions of an ``owner``, where no session is given. ``prefix``, in place of an id,
    finds the messages whose ids begin with it, in the order of the ids (by code points); a redacted
    message is found by the id that it has since.

    A session has a message that its line runs through, or one that it has left: ``branch`` is one
    of its own, the one of its head if possible, by which the message can be read, and switched to.
    The sessions that were last active come first. Raises SessionNotFound for a session that is not
    there, InvalidValue.
    """
    if session is None:
        validate_text("owner", owner)
    pointer = None if session is None else lines.load_pointer(connection, session)
    if (message_id is None) == (prefix is None):
        raise InvalidValue("give the id of a message, or prefix=, the beginning of ids")
    if prefix is not None:
        searches = (FIND_PREFIX, FIND_OWNED_PREFIX, FIND_TREE_PREFIX)
        ids = bind_prefix(prefix)
    elif not is_text(message_id):
        return []
    else:
        searches = (FIND_MESSAGES, FIND_OWNED_MESSAGES, FIND_TREE_MESSAGES)
        ids = {"message_id": message_id, "neutral_id": make_neutral_id(message_id)}
    in_store, of_owner, in_tree = searches
    if pointer is not None:
        found = in_tree.rows(connection, tree_id=pointer.tree_id, **ids)
        return [each for each in found if each.session_id == pointer.session_id]
    if owner is None:
        return in_store.rows(connection, **ids)
    return of_owner.rows(connection, **ids, owner=owner)


def load_message(
    connection: Connection,
    session_id: str,
    seq_or_message_id: int | str | list[Any] | tuple[Any, ...],
) -> Any:
    """Return a message of a session's line, by its position or its id (the newest of that id).

    Of a list of positions and ids, a list of their messages in its order. Raises SessionNotFound,
    PositionOutOfRange for a position, MessageNotFound for an id that are not on the line.
    """
    line = Line(connection, lines.load_pointer(connection, session_id))
    is_list = isinstance(seq_or_message_id, list | tuple)
    asked: Any = seq_or_message_id if is_list else [seq_or_message_id]
    ids = [each for each in asked if is_text(each)]
    known = find_messages(line, ids) if ids else {}
    found = [_load_named_message(line, each, known) for each in asked]
    return found if is_list else found[0]


def _load_named_message(
    line: Line, seq_or_message_id: Any, known: Mapping[str, MessageLocation]
) -> StoredMessage:
    pointer = line.pointer
    if not isinstance(seq_or_message_id, str):
        pointer.check_message(seq_or_message_id)
        return load_message_at(line, seq_or_message_id).message
    if seq_or_message_id not in known:
        raise MessageNotFound(pointer.session_id, seq_or_message_id)
    return load_message_at(line, known[seq_or_message_id].seq).message


def list_turns(
    connection: Connection, session_id: str, start: int = 1, stop: int | None = None
) -> list[Turn]:
    """Return the turns of a session's line, oldest first; what comes before the first is in none.

    ``start`` and ``stop`` are the numbers of the first and the last of them, both included: a
    negative ``start`` counts from the newest. Raises SessionNotFound, InvalidValue.
    """
    line = Line(connection, lines.load_pointer(connection, session_id))
    head = line.pointer.head
    least, most = lines.resolve_range(start, stop, load_totals(line, head).turn)
    least = min(least, most + 1)
    asked = {"start": least, "stop": most + 1}  # the next one tells where the last one ends
    runs = (TURN_BEGINNINGS.rows(connection, **run, **asked) for run in line.ranges(1, head))
    begun = [*chain.from_iterable(runs)]
    ends = [*(first - 1 for _, first, *_ in begun[1:]), head]
    begun = begun[: most + 1 - least]
    turns = []
    for (turn, first, started_at, *columns), last in zip(begun, ends, strict=False):
        text = extract_content_text(assemble_message(columns, None).get("content"))
        turns.append(Turn(turn, first, last, text, last + 1 - first, started_at))
    return turns


MAX_TITLE_LENGTH = 80
"""Code points of a title that is made of a message."""

FIRST_TURN_POSITION = Statement(
    select(message_facts.c.seq)
    .where(match_run(message_facts), message_facts.c.turn > literal_column("0"))
    .order_by(message_facts.c.seq)
    .limit(literal_column("1"))
)


def load_title(connection: Connection, session_id: str) -> str | None:
    """Return a session's title: the given one, else one made of its first user message.

    The latter is one line of at most 80 code points, made at each read and never stored, so
    `Session.title` tells whether one was given; None if nothing was said in words. Raises
    SessionNotFound.
    """
    given = load_session(connection, session_id).title
    if given is not None:
        return given
    line = Line(connection, lines.load_pointer(connection, session_id))
    runs = line.ranges(1, line.pointer.head) if load_totals(line, line.pointer.head).turn else []
    starts = (FIRST_TURN_POSITION.value(connection, **run) for run in runs)
    first = next((start for start in starts if start is not None), None)
    if first is None:
        return None
    said = extract_content_text(load_chat_message(line, first).get("content"))
    return truncate_to_line(said, MAX_TITLE_LENGTH) or None


class BranchLine(NamedTuple):
    """A line that a session can go back to, by its branch.

    ``holder`` is the branch that holds a position of the line, ``shared`` the one that holds the
    position before; None if there is none.
    """

    branch: int
    holder: int | None
    shared: int | None


BRANCH_LINES = BRANCH_QUERIES.statement("followers", BranchLine)


def list_siblings(connection: Connection, session_id: str, seq: int) -> list[Sibling]:
    """Return the message at a position and all others that follow the same message.

    They are on the branches that `branches` lists, and are sorted by the age of the branches that
    hold them. `switch` to the branch of one brings it back with the newest messages after it.
    ``seq`` may be the position after the head: then none is current. Raises SessionNotFound,
    PositionOutOfRange.
    """
    pointer = lines.load_pointer(connection, session_id)
    if type(seq) is not int or not 0 < seq <= pointer.head + 1:
        raise PositionOutOfRange(pointer.session_id, seq, pointer.head)
    present, *left = BRANCH_LINES.rows(connection, **pointer.session, seq=seq, never=NO_LIMIT)
    through: dict[int, BranchLine] = {}
    for each in (present, *left):
        if each.shared == present.shared and each.holder is not None:
            through.setdefault(each.holder, each)
    line = Line(connection, pointer)
    return [_load_sibling(line, seq, holder, each) for holder, each in sorted(through.items())]


def _load_sibling(line: Line, seq: int, holder: int, through: BranchLine) -> Sibling:
    """Return the message at a position of a branch, and the line by which it is reached."""
    connection, pointer = line
    run = Segment(holder, seq, seq).within(pointer.tree_id)
    found = decode_stored_rows(load_stored_rows(connection, run))
    check_run_complete(len(found[0]), run["tree_id"], run["first"], run["last"])
    (row,), (wire_format,) = found
    is_current = through.branch == pointer.branch
    if parse_part(row, wire_format).of == 1:
        with report_damage(connection, lambda: [run]):
            (stored,) = join_parts([row], [wire_format])
    else:
        there = find_line_pointer(
            connection, pointer.session_id, None if is_current else through.branch
        )
        stored = load_message_at(Line(connection, there), seq).message
    return Sibling(through.branch, seq, stored.message, is_current)
