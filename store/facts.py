"""What follows from messages, written at append: turns, tokens, the call each result answers, what views judge by.

Derived, so it can be rebuilt: everything here is a function of the raw rows of a line and the session's project root.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, literal_column, select

from . import lines
from .lines import Pointer
from .messages import Prepared, StoredCall, decode
from .schema import message_facts, messages, tool_calls, tool_results
from .statements import Row, Statement
from .tools import answered_call_id, call_paths, kind_name, result_facts

_FIRST_LOOK = 8
"""How many positions back a result's call is looked for at first; each further look goes sixteen times as far."""

MEASURE = Statement(
    select(message_facts.c.turn, message_facts.c.tokens_through).where(
        message_facts.c.tree_id == bindparam("tree_id"),
        message_facts.c.branch == bindparam("branch"),
        message_facts.c.seq == bindparam("seq"),
    )
)
LAST_USER = Statement(
    select(message_facts.c.seq)
    .where(
        message_facts.c.tree_id == bindparam("tree_id"),
        message_facts.c.branch == bindparam("branch"),
        message_facts.c.seq.between(bindparam("first"), bindparam("last")),
        message_facts.c.role == literal_column("'user'"),
    )
    .order_by(message_facts.c.seq.desc())
    .limit(literal_column("1"))
)
MOMENT = Statement(
    select(func.coalesce(messages.c.created_at, messages.c.stored_at)).where(
        messages.c.tree_id == bindparam("tree_id"),
        messages.c.branch == bindparam("branch"),
        messages.c.seq == bindparam("seq"),
    )
)
OPEN_CALLS = Statement(
    select(
        tool_calls.c.seq,
        tool_calls.c.position,
        tool_calls.c.name,
        tool_calls.c.arguments_form,
        tool_calls.c.arguments,
    )
    .join(
        message_facts,
        (message_facts.c.tree_id == bindparam("tree_id"))
        & (message_facts.c.branch == tool_calls.c.branch)
        & (message_facts.c.seq == tool_calls.c.seq),
    )
    .where(
        tool_calls.c.tree_id == bindparam("tree_id"),
        tool_calls.c.branch == bindparam("branch"),
        tool_calls.c.seq.between(bindparam("first"), bindparam("last")),
        func.coalesce(tool_calls.c.call_id, "") == bindparam("call_id"),
        func.substr(func.coalesce(tool_calls.c.extra, "{"), 1, 1).in_((literal_column("'{'"), literal_column("'='"))),
        message_facts.c.role == literal_column("'assistant'"),
    )
    .order_by(tool_calls.c.seq.desc(), tool_calls.c.position)
)
ANSWERS = Statement(
    select(tool_results.c.call_seq, tool_results.c.call_position).where(
        tool_results.c.tree_id == bindparam("tree_id"),
        tool_results.c.branch == bindparam("branch"),
        tool_results.c.seq.between(bindparam("first"), bindparam("last")),
    )
)


class Call(NamedTuple):
    """A tool call on the line, as far as its result needs it; ``arguments`` as they went in."""

    seq: int
    position: int
    name: str | None
    arguments: object


class Measure(NamedTuple):
    """How far a line has come: its turns, and its tokens by the estimate."""

    turn: int
    tokens: int


class ResultRows(NamedTuple):
    """Rows for ``tool_results`` and ``tool_result_paths``."""

    results: list[Row]
    paths: list[Row]


def measure(connection: Connection, pointer: Pointer, position: int) -> Measure:
    """Return how far a line has come at a position."""
    if position == pointer.head and pointer.head_turn is not None and pointer.head_tokens is not None:
        return Measure(pointer.head_turn, pointer.head_tokens)
    if position < 1:
        return Measure(0, 0)
    branch = lines.segments(connection, pointer, position, position)[0].branch
    row = MEASURE.row(connection, tree_id=pointer.tree_id, branch=branch, seq=position)
    assert row is not None
    return Measure._make(row)


def turn_start(connection: Connection, pointer: Pointer, last: int) -> int:
    """Return where the turn that a position is in begins (1 where no user has spoken)."""
    for branch, first, end in reversed(lines.segments(connection, pointer, 1, last)):
        row = LAST_USER.row(connection, tree_id=pointer.tree_id, branch=branch, first=first, last=end)
        if row:
            return int(row[0])
    return 1


def turn_moment(connection: Connection, pointer: Pointer, start: int) -> int | None:
    """Return when the turn that begins at a position began, in ms: by the message's own time, else by when it came."""
    branch = lines.segments(connection, pointer, start, start)[0].branch
    row = MOMENT.row(connection, tree_id=pointer.tree_id, branch=branch, seq=start)
    return None if row is None else int(row[0])


def message_rows(pointer: Pointer, start: int, weights: Iterable[tuple[str, int]], before: Measure) -> list[Row]:
    """Return the rows of ``message_facts`` for messages, given as role and tokens, from position ``start`` on."""
    turn, through = before
    rows: list[Row] = []
    for seq, (role, tokens) in enumerate(weights, start):
        turn, through = turn + (role == "user"), through + tokens
        rows.append((pointer.tree_id, pointer.branch, seq, role, turn, tokens, through))
    return rows


def derive(connection: Connection, pointer: Pointer, start: int, batch: Iterable[Prepared]) -> ResultRows:
    """Return what follows from the tool results among messages that stand from position ``start`` on."""
    links = _Links(connection, pointer, start - 1)
    rows = ResultRows([], [])
    for seq, prepared in enumerate(batch, start):
        if prepared.role == "assistant":
            links.offer(seq, prepared.calls)
        if prepared.role == "tool":
            call = links.answer(answered_call_id(prepared.message) or "")
            _add(rows, pointer, seq, prepared, call)
    return rows


def _add(rows: ResultRows, pointer: Pointer, seq: int, prepared: Prepared, call: Call | None) -> None:
    arguments = call.arguments if call else None
    name = kind_name(call.name if call and call.name else prepared.name, arguments)
    paths, complete = call_paths(arguments, pointer.project_root, fold_case=bool(pointer.fold_case))
    place = (pointer.tree_id, pointer.branch, seq)
    *facts, _ = result_facts(prepared.message, prepared.text_size)
    rows.results.append((*place, *(call[:2] if call else (None, None)), name, *facts, int(complete)))
    rows.paths.extend((*place, *path) for path in paths)


class _Links:
    """The open calls of a line: those of the batch in memory, older ones looked up nearest first.

    Ids repeat in real conversations and are missing in some, so a result answers the nearest earlier call with its
    id (or with none, like itself) that no other result has answered.
    """

    def __init__(self, connection: Connection, pointer: Pointer, last: int) -> None:
        self._connection, self._pointer, self._last = connection, pointer, last
        self._offered: dict[str, list[Call]] = {}
        self._taken: set[tuple[int, int]] = set()

    def offer(self, seq: int, calls: tuple[StoredCall, ...]) -> None:
        """Add the calls of a message of the batch; of two with one id in it, the first is answered first."""
        for position in range(len(calls) - 1, -1, -1):
            call = calls[position]
            if call.extra is not None and call.extra[0] not in "{=":
                continue  # an entry that is no object: nothing can be sent for it
            offered = Call(seq, position, call.name, _given(call.arguments_form, call.arguments))
            self._offered.setdefault(call.call_id or "", []).append(offered)

    def answer(self, call_id: str) -> Call | None:
        """Return the call that a result with this id answers, and close it."""
        offered = self._offered.get(call_id)
        if offered:
            return offered.pop()
        found = self._look_back(call_id)
        if found:
            self._taken.add((found.seq, found.position))
        return found

    def _look_back(self, call_id: str) -> Call | None:
        last, reach = self._last, _FIRST_LOOK
        while last > 0:
            first = max(1, self._last - reach + 1)
            found = self._look(call_id, first, last)
            if found:
                return found
            last, reach = first - 1, reach * 16
        return None

    def _look(self, call_id: str, first: int, last: int) -> Call | None:
        """Look for an open call among the positions first to last."""
        tree_id = self._pointer.tree_id
        for segment in reversed(lines.segments(self._connection, self._pointer, first, last)):
            branch, low, high = segment
            rows = OPEN_CALLS.rows(
                self._connection, tree_id=tree_id, branch=branch, first=low, last=high, call_id=call_id
            )
            answered = self._answered(rows[-1][0]) if rows else set()
            for seq, position, name, form, arguments in rows:
                if (seq, position) not in answered:
                    return Call(seq, position, name, _given(form, arguments))
        return None

    def _answered(self, since: int) -> set[tuple[int, int]]:
        """Return the calls that results after a position have answered."""
        answered = set(self._taken)
        for branch, first, last in lines.segments(self._connection, self._pointer, since, self._last):
            rows = ANSWERS.rows(self._connection, tree_id=self._pointer.tree_id, branch=branch, first=first, last=last)
            answered.update((seq, position) for seq, position in rows if seq is not None)
        return answered


def _given(form: str | None, arguments: str | None) -> object:
    """Return a call's arguments as they went in: a text, or the value that was given in its place."""
    return decode(arguments) if form == "json" and arguments is not None else arguments
