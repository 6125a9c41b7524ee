"""Data derived from messages, written at append.

Turns, tokens, the call that each result answers, and the facts by which views judge results. All of
it can be rebuilt: everything here is a function of the raw rows of a line and the session's project
root.

**The call that a tool result answers.** Providers join the two by the call's id, but in real
conversations ids repeat (some programs count from zero in every turn), and some are missing. So an
id alone says little: a result answers the nearest earlier call of its line that has the same id (or
none, like itself) and that no other result has answered yet. Where one of the two is redacted, its
id may be one that stands for the other's (`make_neutral_id`), so ids are compared by what stands
for them. What the batch being appended says itself is looked at in memory; only the results that it
leaves open are looked up, and near the end first, because there the call nearly always is.

A provider may have been sent a call under another id than its own (`store.formats.call_names`), and
a program may store the result under that one. So a result whose id no call has answers the nearest
open call that is sent under it, among those of the last positions before it.

**The project root of a session.** Paths are stored relative to the project, so they follow from its
root. With another root, the files of its results are derived again (`set_project_root`). A tree has
one root: otherwise the paths of shared messages would have to be stored twice. No message changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from sys import intern
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnClause,
    Connection,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)

from ..database import (
    BIG_INTEGER,
    Insertion,
    Row,
    Statement,
    branches,
    json_sql,
    message_facts,
    messages,
    sessions,
    tool_calls,
    tool_kinds,
    tool_result_paths,
    tool_results,
)
from ..formats import is_sent_call_id, make_call_id
from ..messages import (
    WHOLE_FORMS,
    PreparedMessage,
    StoredCall,
    decode,
    decode_as,
    is_neutral_id,
    make_neutral_id,
)
from ..records import Session
from ..tools import (
    Facts,
    ToolPath,
    compute_result_facts,
    find_answered_call_id,
    find_call_paths,
    find_kind_name,
)
from . import lines
from .attachments import restore_call
from .lines import NO_LIMIT, PLACE, Line, Pointer, generate_revision
from .sessions import load_session, validate_folder

FIRST_REACH = 8
"""How many positions back a result's call is looked for at first."""
REACH_FACTOR = 16
"""How many times as far each further look goes."""
RENAMED_REACH = 128
"""How many positions before a result an open call is looked for that was sent under its id."""
OBJECT_PREFIXES = ("{", '{"', "{}", "=e")
"""How the JSON of an object begins, as it is or as base64; so no list does, and no text."""
_PREFIX_BOUNDS: tuple[ColumnClause[int], ...] = (literal_column("1"), literal_column("2"))


CallPlace = tuple[int | None, int | None]
"""The position of a call's message, and the place of the call in it."""


class LineCall(NamedTuple):
    """A tool call on the line, as far as its result needs it; ``arguments`` as they went in."""

    seq: int | None
    position: int | None
    name: str | None
    arguments: object
    call_id: str | None

    @property
    def place(self) -> CallPlace:
        """The position of its message, and its own place in it."""
        return self.seq, self.position


NO_CALL = LineCall(None, None, None, None, None)
"""What a result answers that no call of its line asked for."""


class StoredCallPlace(NamedTuple):
    """A call as it is stored, which nothing may have answered."""

    seq: int
    position: int
    name: str | None
    arguments_form: str | None
    arguments: str | None
    call_id: str | None

    @property
    def place(self) -> CallPlace:
        """The position of its message, and its own place in it."""
        return self.seq, self.position

    def given(self, line: Line) -> LineCall:
        """Return the call of a line as it went in."""
        arguments = restore_arguments(*self.whole_arguments(line))
        return LineCall(self.seq, self.position, self.name, arguments, self.call_id)

    def whole_arguments(self, line: Line) -> tuple[str | None, str | None]:
        """Return the form and the text of its arguments, with all that they hold."""
        stored = (self.arguments_form, self.arguments)
        if self.arguments_form not in WHOLE_FORMS:
            return stored
        return restore_call(line.connection, line.place(self.seq), self.position, *stored)


class AnsweredPlace(NamedTuple):
    """The call that a result has answered."""

    call_seq: int
    call_position: int


_object_start: ColumnClause[str] = literal_column("'{'")
_call_extra = func.coalesce(tool_calls.c.extra, _object_start)
_extra_prefix = func.substr(_call_extra, *_PREFIX_BOUNDS)
_object_prefixes = (f"'{signs}'" for signs in OBJECT_PREFIXES)
_empty_id: ColumnClause[str] = literal_column("''")
IS_CALL = or_(
    tool_calls.c.call_id.is_not(None),
    tool_calls.c.name.is_not(None),
    _extra_prefix.in_([*map(literal_column, _object_prefixes)]),
)
"""A row is a call and not some other JSON in its place, for which nothing can be sent.

The columns after long arguments are read last.
"""
_run_calls = (
    select(*(tool_calls.c[name] for name in StoredCallPlace._fields))
    .join(
        message_facts,
        (message_facts.c.tree_id == bindparam("tree_id"))
        & (message_facts.c.branch == tool_calls.c.branch)
        & (message_facts.c.seq == tool_calls.c.seq),
    )
    .where(
        lines.match_run(tool_calls),
        IS_CALL,
        message_facts.c.role == literal_column("'assistant'"),
    )
    .order_by(tool_calls.c.seq.desc(), tool_calls.c.position)
)
_has_call_id = func.coalesce(tool_calls.c.call_id, _empty_id).in_(
    (bindparam("call_id"), bindparam("neutral_id"))
)
OPEN_CALLS = Statement(_run_calls.where(_has_call_id), row=StoredCallPlace)
RUN_CALLS = Statement(_run_calls, row=StoredCallPlace)
ANSWERED_PLACES = Statement(
    select(tool_results.c.call_seq, tool_results.c.call_position).where(
        lines.match_run(tool_results), tool_results.c.call_seq.is_not(None)
    ),
    row=AnsweredPlace,
)


class CallLinker:
    """The open calls of a line: those of a batch in memory, older ones looked up nearest first."""

    def __init__(self, line: Line, last: int) -> None:
        self._line, self._last = line, last
        self._offered: dict[str, list[LineCall]] = {}
        self._has_neutral_ids = False
        self._taken: set[CallPlace] = set()

    def offer(self, seq: int, calls: tuple[StoredCall, ...]) -> None:
        """Add the calls of a message of the batch.

        Of two with one id in it, the first is answered first.
        """
        for position in range(len(calls) - 1, -1, -1):
            call = calls[position]
            # Nothing can be sent for an entry that is no object.
            if call.extra is None or call.extra[:2] in OBJECT_PREFIXES:
                key = self._get_key(call.call_id)
                arguments = restore_arguments(call.arguments_form, call.arguments)
                offered = self._offered.setdefault(key, [])
                offered.append(LineCall(seq, position, call.name, arguments, call.call_id))

    def answer(self, call_id: str, seq: int) -> LineCall | None:
        """Return the call that a result with this id at a position answers, and close it."""
        key = self._get_key(call_id)
        offered = self._offered.get(key)
        if offered:
            return offered.pop()
        found = self._look_back(call_id)
        if found is None and call_id:
            found = self._sent_as(call_id, max(1, seq - RENAMED_REACH))
        if found:
            self._taken.add(found.place)
        return found

    def _get_key(self, call_id: str | None) -> str:
        """Return the key of an id among the offered calls: itself, until an id stands for others.

        Few batches have an id of a redacted message, and the replacement of an id takes a hash.
        """
        if call_id and not self._has_neutral_ids and is_neutral_id(call_id):
            self._has_neutral_ids = True
            self._offered = {_get_pairing_id(key): calls for key, calls in self._offered.items()}
        return _get_pairing_id(call_id) if self._has_neutral_ids else call_id or ""

    def _sent_as(self, sent: str, since: int) -> LineCall | None:
        """Return the newest open call after a position that was sent under an id."""
        fitting = [
            (call.seq or 0, -(call.position or 0), key, place)
            for key, calls in self._offered.items()
            for place, call in enumerate(calls)
            if (call.seq or 0) >= since and _is_sent_as(sent, call)
        ]
        if fitting:
            *_, key, place = max(fitting)
            return self._offered[key].pop(place)
        return self._look_for_sent(sent, since)

    def _look_for_sent(self, sent: str, since: int) -> LineCall | None:
        for run in reversed(self._line.ranges(since, self._last)):
            found = RUN_CALLS.rows(self._line.connection, **run)
            fitting = [each for each in found if _is_sent_as(sent, each)]
            call = self._unanswered(fitting) if fitting else None
            if call:
                return call.given(self._line)
        return None

    def _look_back(self, call_id: str) -> LineCall | None:
        last, reach = self._last, FIRST_REACH
        while last > 0:
            first = max(1, self._last - reach + 1)
            found = self._look(call_id, first, last)
            if found:
                return found
            last, reach = first - 1, reach * REACH_FACTOR
        return None

    def _look(self, call_id: str, first: int, last: int) -> LineCall | None:
        """Look for an open call among the positions first to last."""
        for run in reversed(self._line.ranges(first, last)):
            found = self._with_id(call_id, run)
            call = self._unanswered(found) if found else None
            if call:
                return call.given(self._line)
        return None

    def _with_id(self, call_id: str, run: dict[str, int]) -> list[StoredCallPlace]:
        """Return the calls of a run that have an id or a substitute for one."""
        connection, neutral = self._line.connection, _get_pairing_id(call_id)
        if not is_neutral_id(call_id):
            return OPEN_CALLS.rows(connection, **run, call_id=call_id, neutral_id=neutral)
        calls = RUN_CALLS.rows(connection, **run)
        return [each for each in calls if _get_pairing_id(each.call_id) == neutral]

    def _unanswered(self, found: list[StoredCallPlace]) -> StoredCallPlace | None:
        """Return the first call that nothing has answered; the last one found is the earliest."""
        answered = self._answered(found[-1].seq)
        for call in found:
            if call.place not in answered:
                return call
        return None

    def _answered(self, since: int) -> set[CallPlace]:
        """Return the calls that results after a position have answered."""
        answered = set(self._taken)
        for run in self._line.ranges(since, self._last):
            answered.update(ANSWERED_PLACES.scan(self._line.connection, **run))
        return answered


def _get_pairing_id(call_id: str | None) -> str:
    """Return what an id is compared by: that of a redacted message stands for the one it had."""
    return make_neutral_id(call_id) if call_id else ""


def _is_sent_as(sent: str, call: LineCall | StoredCallPlace) -> bool:
    """Tell whether a call is sent under an id: for its own, or where it has none or another's."""
    if sent == make_call_id(call.seq or 0, call.position or 0):
        return True
    return bool(call.call_id) and is_sent_call_id(sent, call.call_id or "")


def restore_arguments(form: str | None, arguments: str | None) -> object:
    """Return a call's arguments as they went in: a text, or the value given in its place."""
    if form == "json" and arguments is not None:
        return decode(arguments)
    return arguments


INSERT_FACTS = Insertion(message_facts, *PLACE, "role", "turn", "tokens", "tokens_through")
INSERT_RESULTS = Insertion(
    tool_results,
    *PLACE,
    *("call_seq", "call_position", "tool_name"),
    *Facts._fields,
    "paths_complete",
)
INSERT_PATHS = Insertion(tool_result_paths, *PLACE, *ToolPath._fields)


class LineTotals(NamedTuple):
    """The totals of a line up to a position: its turns, and its estimated tokens."""

    turn: int
    tokens: int


class MessageTokens(NamedTuple):
    """The share of a message in the measure of its line."""

    role: str
    tokens: int


class ResultRows(NamedTuple):
    """Rows for ``tool_results`` and ``tool_result_paths``."""

    results: list[Row]
    paths: list[Row]


_message_facts = message_facts
LINE_TOTALS = Statement(
    select(
        _message_facts.c.turn,
        _message_facts.c.tokens_through,
    ).where(lines.match_place(_message_facts)),
    row=LineTotals,
)
_last_run_position = (
    select(_message_facts.c.seq)
    .where(lines.match_run(_message_facts))
    .order_by(_message_facts.c.seq.desc())
    .limit(literal_column("1"))
)
LAST_USER_POSITION = Statement(
    _last_run_position.where(_message_facts.c.role == literal_column("'user'"))
)
LAST_ANSWER_POSITION = Statement(
    _last_run_position.where(_message_facts.c.role == literal_column("'assistant'"))
)
_message_moment = func.coalesce(messages.c.created_at, messages.c.stored_at)
MESSAGE_MOMENT = Statement(select(_message_moment).where(lines.match_place(messages)))
TOOL_KINDS_JSON = Statement(select(json_sql.JsonObjectText(tool_kinds.c.name, tool_kinds.c.kind)))
_position_token_sum = func.coalesce(func.sum(_message_facts.c.tokens), literal_column("0"))
POSITION_TOKENS = Statement(
    select(cast(_position_token_sum, BIG_INTEGER)).where(lines.match_place(_message_facts))
)


def load_kinds_json(connection: Connection) -> str:
    """Return the kinds of tools in a store, as a JSON object with the names of the tools as keys.

    There are hundreds, and they hardly ever change: interning makes equal texts the same object, so
    a comparison takes no time.
    """
    return intern(TOOL_KINDS_JSON.value(connection))


def load_tool_kinds(connection: Connection) -> dict[str, str]:
    """Return the kinds of tools in a store, by the names of the tools."""
    kinds: dict[str, str] = decode_as(dict, load_kinds_json(connection))
    return kinds


def load_totals(line: Line, position: int) -> LineTotals:
    """Return the totals of a line up to a position."""
    pointer = line.pointer
    if position == pointer.head:
        turn, tokens = pointer.head_turn, pointer.head_tokens
        if turn is not None and tokens is not None:
            return LineTotals(turn, tokens)
    if position < 1:
        return LineTotals(0, 0)
    return LINE_TOTALS.one(line.connection, **line.place(position))


def send_totals(line: Line, position: int) -> None:
    """Send a server what `load_totals` asks for a position of the line's last run."""
    if line.pointer.parent_position < position:
        LINE_TOTALS.send(line.connection, **line.place(position))


def find_turn_start(line: Line, last: int) -> int:
    """Return the position at which the turn of a position begins (1 if no user has spoken)."""
    return _find_newest_position(LAST_USER_POSITION, line, last) or 1


def find_last_answer(line: Line, last: int) -> int | None:
    """Return the last position up to ``last`` at which the assistant spoke, or None."""
    return _find_newest_position(LAST_ANSWER_POSITION, line, last)


def _find_newest_position(wanted: Statement[Row], line: Line, last: int) -> int | None:
    """Return the position that a statement finds in the newest run with one, or None."""
    for run in reversed(line.ranges(1, last)):
        position: int | None = wanted.value(line.connection, **run)
        if position is not None:
            return position
    return None


def load_message_time(line: Line, position: int) -> int | None:
    """Return the time of the message at a position, in ms.

    That is the message's own time, else the time at which it was stored.
    """
    moment: int | None = MESSAGE_MOMENT.value(line.connection, **line.place(position))
    return moment


def sum_tokens(line: Line, positions: Iterable[int]) -> int:
    """Return the sum of the estimated tokens at single positions of a line."""
    places = map(line.place, positions)
    return sum(POSITION_TOKENS.value(line.connection, **place) for place in places)


def write_results(connection: Connection, rows: ResultRows) -> None:
    """Write the rows derived from tool results."""
    INSERT_RESULTS.insert_many(connection, rows.results)
    INSERT_PATHS.insert_many(connection, rows.paths)


def build_fact_rows(
    pointer: Pointer, start: int, weights: Iterable[tuple[str, int]], before: LineTotals
) -> list[Row]:
    """Return the rows of ``message_facts`` for messages from position ``start`` on."""
    turn, through = before
    rows: list[Row] = []
    for seq, (role, tokens) in enumerate(weights, start):
        turn += role == "user"
        through += tokens
        rows.append((pointer.tree_id, pointer.branch, seq, role, turn, tokens, through))
    return rows


def derive_results(line: Line, start: int, batch: Iterable[PreparedMessage]) -> ResultRows:
    """Return the rows derived from the tool results among messages from position ``start`` on."""
    pointer, links = line.pointer, CallLinker(line, start - 1)
    root, fold_case = pointer.project_root, bool(pointer.fold_case)
    results: list[Row] = []
    path_rows: list[Row] = []
    for seq, prepared in enumerate(batch, start):
        role = prepared.columns.role
        if role == "assistant":
            links.offer(seq, prepared.calls)
        elif role == "tool":
            call = links.answer(find_answered_call_id(prepared.message) or "", seq)
            call = call or NO_CALL
            paths, complete = find_call_paths(call.arguments, root, fold_case=fold_case)
            place = (pointer.tree_id, pointer.branch, seq)
            name, at = call.name or prepared.columns.name, prepared.columns.created_at
            called = (*call.place, find_kind_name(name, call.arguments))
            facts = compute_result_facts(prepared.message, prepared.text_size, at=at)
            results.append((*place, *called, *facts, int(complete)))
            path_rows.extend((*place, *path) for path in paths)
    return ResultRows(results, path_rows)


_root_tree_id: BindParameter[int] = bindparam("tree_id")
SET_ROOT = Statement(
    update(sessions)
    .where(sessions.c.tree_id == bindparam("tree"))
    .values(project_root=bindparam("root"), revision=bindparam("revision"))
)
BRANCH_STARTS = Statement(
    select(branches.c.branch, branches.c.parent_position)
    .where(branches.c.tree_id == _root_tree_id)
    .order_by(branches.c.branch)
)


class AnsweringResult(NamedTuple):
    """A result, the place of the call that it answers, and whether all its paths are understood."""

    seq: int
    call_seq: int
    call_position: int
    paths_complete: int


_result_table = tool_results
ANSWERING_RESULTS = Statement(
    select(*(_result_table.c[name] for name in AnsweringResult._fields))
    .where(
        _result_table.c.tree_id == _root_tree_id,
        _result_table.c.branch == bindparam("branch"),
        _result_table.c.call_seq.is_not(None),
    )
    .order_by(_result_table.c.seq),
    row=AnsweringResult,
)
CALL_ARGUMENTS = Statement(
    select(tool_calls.c.arguments_form, tool_calls.c.arguments).where(
        lines.match_place(tool_calls), tool_calls.c.position == bindparam("position")
    )
)
DELETE_TREE_PATHS = Statement(
    delete(tool_result_paths).where(tool_result_paths.c.tree_id == _root_tree_id)
)
SET_PATHS_COMPLETE = Statement(
    update(_result_table)
    .where(
        _result_table.c.tree_id == bindparam("tree"),
        _result_table.c.branch == bindparam("of"),
        _result_table.c.seq == bindparam("place"),
    )
    .values(paths_complete=bindparam("complete"))
)


def set_project_root(
    connection: Connection,
    session_id: str,
    project_root: str | os.PathLike[str] | None,
    *,
    expected: str | None = None,
) -> Session:
    """Give a session, and all that share its tree, another project root (None: none).

    The files that were read and changed are derived again for all their messages, which takes a
    while for long lines. The session keeps its place in lists. ``expected`` is the revision that
    the session must have (None: any). Raises SessionNotFound, Conflict, InvalidValue.
    """
    root = validate_folder(project_root)
    pointer = lines.lock_tree(connection, session_id, expected)
    tree = {"tree_id": pointer.tree_id}
    SET_ROOT.run(connection, tree=pointer.tree_id, root=root, revision=generate_revision())
    found = BRANCH_STARTS.rows(connection, **tree)
    DELETE_TREE_PATHS.run(connection, **tree)
    for branch, parent_position in found:
        at_end = pointer._replace(
            branch=branch, head=NO_LIMIT, parent_position=parent_position, project_root=root
        )
        line, rows = Line(connection, at_end), []
        for answer in ANSWERING_RESULTS.rows(connection, **tree, branch=branch):
            paths, is_complete = find_result_paths(line, answer)
            place = (pointer.tree_id, branch, answer.seq)
            if answer.paths_complete != is_complete:
                changed = {"tree": pointer.tree_id, "of": branch, "place": answer.seq}
                SET_PATHS_COMPLETE.run(connection, **changed, complete=int(is_complete))
            rows += [(*place, *path) for path in paths]
        INSERT_PATHS.insert_many(connection, rows)
    return load_session(connection, session_id)


def find_result_paths(line: Line, answer: AnsweringResult) -> tuple[tuple[ToolPath, ...], bool]:
    """Return the findings of `find_call_paths` in the call of a result, by the root of the line."""
    place = line.place(answer.call_seq)
    stored: Any = CALL_ARGUMENTS.row(line.connection, **place, position=answer.call_position)
    whole = stored and restore_call(line.connection, place, answer.call_position, *stored)
    arguments = restore_arguments(*whole) if whole else None
    pointer = line.pointer
    return find_call_paths(arguments, pointer.project_root, fold_case=bool(pointer.fold_case))
