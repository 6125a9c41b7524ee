"""Data derived from messages, written at append.

Turns, tokens, the call that each result answers, and the facts by which views judge results. All of
it can be rebuilt: everything here is a function of the raw rows of a line and the session's project
root.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import intern
from typing import NamedTuple

from sqlalchemy import Connection, cast, func, literal_column, select

from ..database import (
    BIG_INTEGER,
    Insertion,
    Row,
    Statement,
    json_sql,
    message_facts,
    messages,
    tool_kinds,
    tool_result_paths,
    tool_results,
)
from ..messages import PreparedMessage, decode_as
from ..tools import (
    Facts,
    ToolPath,
    compute_result_facts,
    find_answered_call_id,
    find_call_paths,
    find_kind_name,
)
from . import lines
from .lines import PLACE, Line, Pointer
from .links import NO_CALL, CallLinker, LineCall

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
    known = _get_head_totals(line.pointer) if position == line.pointer.head else None
    if known is not None:
        return known
    if position < 1:
        return LineTotals(0, 0)
    return LINE_TOTALS.one(line.connection, **line.place(position))


def _get_head_totals(pointer: Pointer) -> LineTotals | None:
    """Return the totals of a line up to its head, or None if the pointer lacks them."""
    turn, tokens = pointer.head_turn, pointer.head_tokens
    if turn is None or tokens is None:
        return None
    return LineTotals(turn, tokens)


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


def write_facts(
    line: Line,
    start: int,
    batch: Sequence[PreparedMessage],
    tokens: Iterable[int],
) -> None:
    """Write the data derived from messages at the new end of a line, from position ``start`` on.

    ``tokens`` are their estimates.
    """
    roles = [each.columns.role for each in batch]
    weights = zip(roles, tokens, strict=True)
    rows = build_fact_rows(line.pointer, start, weights, load_totals(line, start - 1))
    INSERT_FACTS.insert_many(line.connection, rows)
    if "tool" in roles:
        write_results(line.connection, derive_results(line, start, batch))


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
    links = CallLinker(line, start - 1)
    rows = ResultRows([], [])
    for seq, prepared in enumerate(batch, start):
        role = prepared.columns.role
        if role == "assistant":
            links.offer(seq, prepared.calls)
        elif role == "tool":
            call = links.answer(find_answered_call_id(prepared.message) or "", seq)
            _add_result_rows(rows, line.pointer, seq, prepared, call or NO_CALL)
    return rows


def _add_result_rows(
    rows: ResultRows,
    pointer: Pointer,
    seq: int,
    result: PreparedMessage,
    call: LineCall,
) -> None:
    """Add the rows of one result."""
    root, fold_case = pointer.project_root, bool(pointer.fold_case)
    paths, complete = find_call_paths(call.arguments, root, fold_case=fold_case)
    place = (pointer.tree_id, pointer.branch, seq)
    called = (*call.place, find_kind_name(call.name or result.columns.name, call.arguments))
    at = result.columns.created_at
    facts = compute_result_facts(result.message, result.text_size, at=at)
    rows.results.append((*place, *called, *facts, int(complete)))
    rows.paths.extend((*place, *path) for path in paths)
