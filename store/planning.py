"""What a compaction would hide: the legal cut nearest to what a policy keeps, found by window functions.

An assistant message, its calls and all their results are one group; a cut may only fall where a group begins. What
stays is the union of what the policy's parts protect, and always the current turn.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, cast, func, literal_column, or_, select

from . import lines
from .compactions import Visible
from .facts import measure, turn_start
from .lines import Pointer, segments_cte
from .policy import Policy
from .schema import BIG, message_facts, tool_results
from .statements import Statement


class Plan(NamedTuple):
    """What a compaction would do: hide ``first`` to ``last`` except ``pinned``; ``nothing`` says why it would not."""

    first: int
    last: int
    pinned: tuple[int, ...]
    messages_before: int
    tokens_before: int
    tokens_hidden: int
    nothing: str | None = None

    @property
    def messages(self) -> int:
        """How many messages would be hidden."""
        return self.last - self.first + 1 - len(self.pinned)


def _number(name: str) -> ColumnElement[int]:
    return bindparam(name, type_=BIG)


_PINNED_ROLES: tuple[ColumnElement[str], ...] = (literal_column("'system'"), literal_column("'developer'"))
_walk = segments_cte()
_f, _r = message_facts, tool_results
_facts = (
    select(_f.c.branch, _f.c.seq, _f.c.role, _f.c.turn)
    .select_from(_walk)
    .join(
        _f,
        and_(
            _f.c.tree_id == bindparam("tree_id"),
            _f.c.branch == _walk.c.branch,
            _f.c.seq.between(_walk.c.first, _walk.c.last),
        ),
    )
    .where(_f.c.seq >= _number("start"))
    .cte("facts")
)
_answers = (
    select(_r.c.call_seq, func.max(_r.c.seq).label("answered"))
    .select_from(_walk)
    .join(
        _r,
        and_(
            _r.c.tree_id == bindparam("tree_id"),
            _r.c.branch == _walk.c.branch,
            _r.c.seq.between(_walk.c.first, _walk.c.last),
        ),
    )
    .where(_r.c.call_seq >= _number("start"))
    .group_by(_r.c.call_seq)
    .cte("answers")
)
_reach = (
    select(
        _facts.c.seq,
        _facts.c.role,
        func.max(func.coalesce(_answers.c.answered, _facts.c.seq))
        .over(order_by=_facts.c.seq, rows=(None, -1))
        .label("reach"),
        func.sum(case((_facts.c.role.in_(_PINNED_ROLES), literal_column("0")), else_=literal_column("1")))
        .over(order_by=_facts.c.seq, rows=(None, -1))
        .label("hidable"),
    )
    .select_from(_facts)
    .outerjoin(_answers, _answers.c.call_seq == _facts.c.seq)
    .cte("groups")
)
CUTS = Statement(
    select(
        func.max(case((_reach.c.seq <= _number("ideal"), _reach.c.seq))),
        func.min(_reach.c.seq),
    ).where(
        _reach.c.seq <= _number("kept"),
        _reach.c.hidable >= _number("least"),
        _reach.c.reach < _reach.c.seq,
        or_(_reach.c.role == literal_column("'user'"), _number("turns_only") == literal_column("0")),
    )
)
"""The last legal cut up to an ideal one, and the first of all, before what is kept and hiding at least so many."""
PINNED = Statement(select(_facts.c.seq).where(_facts.c.role.in_(_PINNED_ROLES)).order_by(_facts.c.seq))
TURN_START = Statement(select(func.min(_facts.c.seq)).where(_facts.c.turn >= _number("turn")))
TOKENS_OF = Statement(
    select(cast(func.coalesce(func.sum(_f.c.tokens), literal_column("0")), BIG)).where(
        _f.c.tree_id == bindparam("tree_id"), _f.c.branch == bindparam("branch"), _f.c.seq == bindparam("seq")
    )
)


def plan(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    shown: Visible,
    *,
    tokens: int,
    reach: int | None = None,
) -> Plan:
    """Return what a compaction of a line would hide; ``tokens`` are those of its view now.

    ``reach`` is how many positions it may hide at most where a legal cut allows it, whatever the policy's window.
    """
    start = shown.first_kept
    kept = _first_kept(connection, pointer, policy, start)
    if kept <= start:
        return _nothing(pointer, shown, tokens, "there is nothing before what the policy keeps")
    window = policy.window_messages if reach is None else reach
    ideal = kept if window is None else start + window
    half = 1 if window is None or reach is not None else max(1, window // 2)
    turns_only = policy.boundary == "turn"
    last, first = _cuts(connection, pointer, start, kept, ideal=ideal, least=half, turns_only=turns_only)
    if first is None and half > 1:
        last, first = _cuts(connection, pointer, start, kept, ideal=ideal, turns_only=turns_only)
    return _up_to(connection, pointer, shown, tokens, last or first)


def trim(connection: Connection, pointer: Pointer, policy: Policy, shown: Visible, *, tokens: int) -> Plan:
    """Return what must be hidden to keep to a policy's hard limit of messages: the oldest turns, never the current."""
    start = shown.first_kept
    messages = _messages(pointer, shown)
    if policy.hard_limit is None or messages <= policy.hard_limit:
        return _nothing(pointer, shown, tokens, "the view is within the hard limit")
    current = turn_start(connection, pointer, pointer.head)
    _, enough = _cuts(connection, pointer, start, current, least=messages - policy.hard_limit)
    most, _ = _cuts(connection, pointer, start, current, ideal=current)
    return _up_to(connection, pointer, shown, tokens, enough or most)


def _cuts(
    connection: Connection,
    pointer: Pointer,
    start: int,
    kept: int,
    *,
    ideal: int = 0,
    least: int = 1,
    turns_only: bool = True,
) -> tuple[int | None, int | None]:
    """Return the last legal cut up to an ideal one, and the first of all; None where there is none."""
    row = CUTS.row(
        connection,
        tree_id=pointer.tree_id,
        branch=pointer.branch,
        start=start,
        last=pointer.head,
        kept=kept,
        ideal=ideal,
        least=least,
        turns_only=int(turns_only),
    )
    assert row is not None
    return row[0], row[1]


def _up_to(connection: Connection, pointer: Pointer, shown: Visible, tokens: int, cut: int | None) -> Plan:
    """Return the plan to hide everything visible before a cut but the system messages."""
    start = shown.first_kept
    if cut is None:
        return _nothing(pointer, shown, tokens, "there is no place to cut before what the policy keeps")
    line = {"tree_id": pointer.tree_id, "branch": pointer.branch, "start": start}
    pinned = tuple(row[0] for row in PINNED.rows(connection, **line, last=cut - 1))
    hidden = measure(connection, pointer, cut - 1).tokens - measure(connection, pointer, start - 1).tokens
    hidden -= tokens_at(connection, pointer, pinned)
    return Plan(start, cut - 1, pinned, _messages(pointer, shown), tokens, hidden)


def _nothing(pointer: Pointer, shown: Visible, tokens: int, why: str) -> Plan:
    return Plan(shown.first_kept, shown.first_kept - 1, (), _messages(pointer, shown), tokens, 0, why)


def _messages(pointer: Pointer, shown: Visible) -> int:
    return pointer.head - shown.first_kept + 1 + len(shown.pinned) + len(shown.summaries)


def tokens_at(connection: Connection, pointer: Pointer, positions: tuple[int, ...]) -> int:
    """Return the estimated tokens of single positions of a line."""
    total = 0
    for position in positions:
        branch = lines.segments(connection, pointer, position, position)[0].branch
        row = TOKENS_OF.row(connection, tree_id=pointer.tree_id, branch=branch, seq=position)
        total += int(row[0]) if row else 0
    return total


def _first_kept(connection: Connection, pointer: Pointer, policy: Policy, start: int) -> int:
    """Return the first position that the policy's parts together keep."""
    turn = measure(connection, pointer, pointer.head).turn
    kept_turns = _turn_start(connection, pointer, start, turn - policy.keep_turns + 1)
    return min(pointer.head - policy.keep_messages + 1, kept_turns)


def _turn_start(connection: Connection, pointer: Pointer, start: int, turn: int) -> int:
    """Return where a turn begins; before the first turn there is nothing to keep apart."""
    if turn < 1:
        return start
    row = TURN_START.row(
        connection, tree_id=pointer.tree_id, branch=pointer.branch, start=start, last=pointer.head, turn=turn
    )
    return int(row[0]) if row and row[0] is not None else start
