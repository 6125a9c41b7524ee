"""What follows from messages, written at append.

Turns, tokens, the call each result answers, what views judge by. Derived, so it can be rebuilt:
everything here is a function of the raw rows of a line and the session's project root.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, cast, func, literal_column, select

from ..database import (
    BIG,
    Insertion,
    Row,
    Statement,
    message_facts,
    messages,
    tool_kinds,
    tool_result_paths,
    tool_results,
)
from ..messages import Prepared
from ..tools import Facts, ToolPath, answered_call_id, call_paths, kind_name, result_facts
from . import lines
from .lines import PLACE, Pointer
from .links import Call, Links

INSERT_FACTS = Insertion(message_facts, *PLACE, "role", "turn", "tokens", "tokens_through")
INSERT_RESULTS = Insertion(
    tool_results,
    *PLACE,
    *("call_seq", "call_position", "tool_name"),
    *Facts._fields,
    "paths_complete",
)
INSERT_PATHS = Insertion(tool_result_paths, *PLACE, *ToolPath._fields)


class Measure(NamedTuple):
    """How far a line has come: its turns, and its tokens by the estimate."""

    turn: int
    tokens: int


class Weight(NamedTuple):
    """What a message counts for in the measure of its line."""

    role: str
    tokens: int


class ResultRows(NamedTuple):
    """Rows for ``tool_results`` and ``tool_result_paths``."""

    results: list[Row]
    paths: list[Row]


_facts = message_facts
MEASURE = Statement(
    select(*(_facts.c[name] for name in ("turn", "tokens_through"))).where(lines.at(_facts)),
    row=Measure,
)
LAST_USER = Statement(
    select(_facts.c.seq)
    .where(lines.run_of(_facts), _facts.c.role == literal_column("'user'"))
    .order_by(_facts.c.seq.desc())
    .limit(literal_column("1"))
)
MOMENT = Statement(
    select(func.coalesce(messages.c.created_at, messages.c.stored_at)).where(lines.at(messages))
)
KINDS = Statement(select(tool_kinds.c.name, tool_kinds.c.kind))
TOKENS_OF = Statement(
    select(cast(func.coalesce(func.sum(_facts.c.tokens), literal_column("0")), BIG)).where(
        lines.at(_facts)
    )
)


def stored_kinds(connection: Connection) -> dict[str, str]:
    """Return of what kind a store says that tools are, by their names."""
    return dict(KINDS.rows(connection))


def measure(connection: Connection, pointer: Pointer, position: int) -> Measure:
    """Return how far a line has come at a position."""
    known = _known(pointer) if position == pointer.head else None
    if known is not None:
        return known
    if position < 1:
        return Measure(0, 0)
    return MEASURE.one(connection, **lines.place(connection, pointer, position))


def _known(pointer: Pointer) -> Measure | None:
    """Return how far a line has come at its head, where the pointer says it."""
    turn, tokens = pointer.head_turn, pointer.head_tokens
    if turn is None or tokens is None:
        return None
    return Measure(turn, tokens)


def turn_start(connection: Connection, pointer: Pointer, last: int) -> int:
    """Return where the turn that a position is in begins (1 where no user has spoken)."""
    for run in reversed(lines.segments(connection, pointer, 1, last)):
        start: int | None = LAST_USER.value(connection, **run.within(pointer.tree_id))
        if start is not None:
            return start
    return 1


def turn_moment(connection: Connection, pointer: Pointer, start: int) -> int | None:
    """Return when the turn that begins at a position began, in ms.

    That is the message's own time, else when it came.
    """
    moment: int | None = MOMENT.value(connection, **lines.place(connection, pointer, start))
    return moment


def tokens_at(connection: Connection, pointer: Pointer, positions: tuple[int, ...]) -> int:
    """Return the estimated tokens of single positions of a line."""
    places = (lines.place(connection, pointer, position) for position in positions)
    return sum(TOKENS_OF.value(connection, **place) for place in places)


def write(
    connection: Connection,
    pointer: Pointer,
    start: int,
    batch: Sequence[Prepared],
    tokens: Iterable[int],
) -> None:
    """Write what follows from messages that stand from position ``start`` on, the line's new end.

    ``tokens`` are their estimates.
    """
    before = measure(connection, pointer, start - 1)
    weights = _weights(batch, tokens)
    INSERT_FACTS.insert_many(connection, message_rows(pointer, start, weights, before))
    derived = derive(connection, pointer, start, batch)
    INSERT_RESULTS.insert_many(connection, derived.results)
    INSERT_PATHS.insert_many(connection, derived.paths)


def _weights(batch: Sequence[Prepared], tokens: Iterable[int]) -> list[Weight]:
    weighed = zip(batch, tokens, strict=True)
    return [Weight(each.columns.role, cost) for each, cost in weighed]


def message_rows(
    pointer: Pointer, start: int, weights: Iterable[Weight], before: Measure
) -> list[Row]:
    """Return the rows of ``message_facts`` for messages from position ``start`` on."""
    turn, through = before
    rows: list[Row] = []
    for seq, (role, tokens) in enumerate(weights, start):
        turn += role == "user"
        through += tokens
        rows.append((pointer.tree_id, pointer.branch, seq, role, turn, tokens, through))
    return rows


def derive(
    connection: Connection, pointer: Pointer, start: int, batch: Iterable[Prepared]
) -> ResultRows:
    """Return what follows from the tool results among messages from position ``start`` on."""
    links = Links(connection, pointer, start - 1)
    rows = ResultRows([], [])
    for seq, prepared in enumerate(batch, start):
        role = prepared.columns.role
        if role == "assistant":
            links.offer(seq, prepared.calls)
        elif role == "tool":
            call = links.answer(answered_call_id(prepared.message) or "")
            _add(rows, pointer, seq, prepared, call)
    return rows


def _add(
    rows: ResultRows, pointer: Pointer, seq: int, prepared: Prepared, call: Call | None
) -> None:
    """Add the rows of one result."""
    call_seq, call_position, called, arguments = call or (None, None, None, None)
    name = kind_name(called or prepared.columns.name, arguments)
    at = prepared.columns.created_at
    facts = result_facts(prepared.message, prepared.text_size, at=at)
    paths, complete = call_paths(arguments, pointer.project_root, fold_case=bool(pointer.fold_case))
    place = (pointer.tree_id, pointer.branch, seq)
    rows.results.append((*place, call_seq, call_position, name, *facts, int(complete)))
    rows.paths.extend((*place, *path) for path in paths)
