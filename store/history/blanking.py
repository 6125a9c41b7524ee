"""Write over what a message says, and derive anew what followed from it.

The database lets this be done where a redaction is open (`redaction`), and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    delete,
    select,
    update,
)

from ..database import (
    BIG,
    Row,
    Statement,
    branches,
    message_facts,
    messages,
    search_rows,
    token_counts,
    tool_calls,
    tool_result_paths,
    tool_results,
)
from ..formats import left_of
from ..messages import (
    Columns,
    PreparedMessage,
    StoredCall,
    digest_row,
    prepare,
    redact_message,
)
from ..tokens import estimated_tokens
from ..tools import DECIDED_BY, answered_call_id
from . import lines
from .facts import derive_results, load_tool_kinds, write_results
from .lines import Line, Pointer
from .raw_messages import load_chat_messages

Place = dict[str, int]
"""Where a message stands, by the names of `PLACE`."""


class Stored(NamedTuple):
    """What a row says of a message beside the message."""

    stored_at: int
    wire_format: str | None


class Hanging(NamedTuple):
    """A branch, and where it hangs on another one."""

    branch: int
    parent_branch: int | None
    parent_position: int


_tree: BindParameter[int] = bindparam("tree", type_=BIG)
_of: BindParameter[int] = bindparam("of", type_=BIG)
_position: BindParameter[int] = bindparam("position", type_=BIG)
_seq: BindParameter[int] = bindparam("seq", type_=BIG)


def placed(table: Table) -> ColumnElement[bool]:
    """Build the condition for the row to change: ``tree``, ``of`` (its branch), ``position``."""
    return and_(table.c.tree_id == _tree, table.c.branch == _of, table.c.seq == _position)


def names_of(place: Place) -> dict[str, int]:
    """Return a place by the names that statements give it which change rows."""
    return {"tree": place["tree_id"], "of": place["branch"], "position": place["seq"]}


def _new(names: tuple[str, ...]) -> dict[str, BindParameter[Any]]:
    return {name: bindparam(f"new_{name}") for name in names}


STORED = Statement(
    select(messages.c.stored_at, messages.c.wire_format).where(lines.at_place(messages)),
    row=Stored,
)
CALLS_OF = Statement(
    select(*(tool_calls.c[name] for name in StoredCall._fields))
    .where(lines.at_place(tool_calls))
    .order_by(tool_calls.c.position),
    row=StoredCall,
)
BLANK_MESSAGE = Statement(
    update(messages).where(placed(messages)).values(_new((*Columns._fields, "digest")))
)
BLANK_CALL = Statement(
    update(tool_calls)
    .where(placed(tool_calls), tool_calls.c.position == bindparam("number"))
    .values(_new(StoredCall._fields))
)
WEIGHT = Statement(select(message_facts.c.tokens).where(lines.at_place(message_facts)))
WEIGH = Statement(
    update(message_facts)
    .where(placed(message_facts))
    .values(tokens=bindparam("weight"), role=bindparam("new_role"))
)
_through = message_facts.c.tokens_through
SHIFT = Statement(
    update(message_facts)
    .where(
        message_facts.c.tree_id == _tree,
        message_facts.c.branch == _of,
        message_facts.c.seq >= _position,
    )
    .values(tokens_through=_through + bindparam("difference", type_=BIG))
)
"""Changes the sums of a branch from a position on."""


def _forgetting(table: Table) -> Statement[Row]:
    return Statement(delete(table).where(placed(table)))


FORGET_COUNTS = _forgetting(token_counts)
FORGET_SEARCHED = _forgetting(search_rows)
FORGET_PATHS = _forgetting(tool_result_paths)
FORGET_RESULT = _forgetting(tool_results)
ASKED_FOR = Statement(
    select(tool_results.c.seq)
    .where(
        tool_results.c.tree_id == bindparam("tree_id"),
        tool_results.c.branch == bindparam("branch"),
        tool_results.c.seq > _seq,
        tool_results.c.call_seq == _seq,
    )
    .order_by(tool_results.c.seq)
)
"""The results on a branch that the calls of a message asked for."""
HANGING = Statement(
    select(*(branches.c[name] for name in Hanging._fields))
    .where(branches.c.tree_id == bindparam("tree_id"))
    .order_by(branches.c.branch),
    row=Hanging,
)


def blank(line: Line, place: Place) -> None:
    """Write over the message that a line has at a place, and derive anew what followed from it."""
    connection = line.connection
    calls = CALLS_OF.rows(connection, **place)
    stored = STORED.one(connection, **place)
    blanked = _blanked(line, place["seq"], calls, stored.wire_format)
    beneath = list(_beneath(connection, place))
    _write_over(connection, place, stored, blanked)
    _weigh_anew(connection, place, beneath, blanked)
    FORGET_COUNTS.run(connection, **names_of(place))
    FORGET_SEARCHED.run(connection, **names_of(place))
    if blanked.columns.role == "tool":
        _judge_anew(line, place, [place["seq"]])
    if calls:
        for branch in beneath:
            there = {**place, "branch": branch}
            asked = ASKED_FOR.rows(connection, **there)
            _judge_anew(line, there, [seq for (seq,) in asked])


def at_end(pointer: Pointer, branch: int, last: int) -> Pointer:
    """Return a pointer to a position of any branch of a tree."""
    return pointer._replace(
        branch=branch, head=last, parent_position=last, head_turn=None, head_tokens=None
    )


def _blanked(
    line: Line, seq: int, calls: list[StoredCall], wire_format: str | None
) -> PreparedMessage:
    """Return what stays of a message."""
    (stored,) = load_chat_messages(line, seq, seq)
    answers = answered_call_id(stored.message)
    tools = DECIDED_BY.keys() | load_tool_kinds(line.connection).keys()
    words_out = redact_message(stored.message, calls, answers, tools)
    return prepare(words_out | left_of(wire_format, stored.message, words_out))


def _write_over(
    connection: Connection, place: Place, stored: Stored, blanked: PreparedMessage
) -> None:
    digest = digest_row(blanked.digest, *stored)
    values = {**blanked.columns._asdict(), "digest": digest}
    BLANK_MESSAGE.run(connection, **names_of(place), **_renewed(values))
    for number, call in enumerate(blanked.calls):
        names = {**names_of(place), "number": number}
        BLANK_CALL.run(connection, **names, **_renewed(call._asdict()))


def _renewed(values: dict[str, Any]) -> dict[str, Any]:
    return {f"new_{name}": value for name, value in values.items()}


def _weigh_anew(
    connection: Connection, place: Place, beneath: list[int], blanked: PreparedMessage
) -> None:
    """Count the tokens of what is left, and change the sums of all that follows by as many."""
    names = names_of(place)
    weight = estimated_tokens(blanked.message)
    difference = weight - WEIGHT.value(connection, **place)
    WEIGH.run(connection, **names, weight=weight, new_role=blanked.columns.role)
    for branch in beneath:
        SHIFT.run(connection, **{**names, "of": branch}, difference=difference)


def _beneath(connection: Connection, place: Place) -> Iterator[int]:
    """Yield the branches whose lines run through a place: its own, and what hangs on it behind."""
    found = {place["branch"]}
    yield place["branch"]
    for branch, parent, position in HANGING.rows(connection, tree_id=place["tree_id"]):
        is_behind = parent != place["branch"] or position >= place["seq"]
        if parent in found and is_behind:
            found.add(branch)
            yield branch


def _judge_anew(line: Line, place: Place, positions: list[int]) -> None:
    """Derive anew the facts of results on the branch of a place: of the calls that they answer.

    All are forgotten first, since a call that a result has answered is open to no other.
    """
    connection, pointer = line.connection, line.pointer
    for seq in positions:
        FORGET_PATHS.run(connection, **names_of({**place, "seq": seq}))
        FORGET_RESULT.run(connection, **names_of({**place, "seq": seq}))
    for seq in positions:
        before = Line(connection, at_end(pointer, place["branch"], seq - 1))
        through = Line(connection, at_end(pointer, place["branch"], seq))
        (stored,) = load_chat_messages(through, seq, seq)
        write_results(connection, derive_results(before, seq, [prepare(stored.message)]))
