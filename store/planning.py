"""What a compaction would hide: the legal cut nearest to what a policy keeps, looked for from there on.

An assistant message, its calls and all their results are one group; a cut may only fall where a group begins. What
stays is the union of what the policy's parts protect, and always the current turn.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, bindparam, cast, func, literal_column, select

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
SPANNING = Statement(
    select(func.min(_r.c.call_seq), func.max(_r.c.seq))
    .select_from(_walk)
    .join(
        _r,
        and_(
            _r.c.tree_id == bindparam("tree_id"),
            _r.c.branch == _walk.c.branch,
            _r.c.seq.between(_walk.c.first, _walk.c.last),
        ),
    )
    .where(_r.c.call_seq >= _number("begin"), _r.c.call_seq < _number("start"))
)
"""Of the calls before ``start`` that are answered from there to ``last``: the first of them, and the last answer."""
NEXT_USER = Statement(
    select(_facts.c.seq)
    .where(_facts.c.role == literal_column("'user'"))
    .order_by(_facts.c.seq)
    .limit(literal_column("1"))
)
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
    ideal = kept if window is None else min(kept, start + window)
    half = 1 if window is None or reach is not None else max(1, window // 2)
    cuts = _cuts(connection, pointer, start, kept, turns_only=policy.boundary == "turn")
    cut = cuts.last(ideal, half) or cuts.first(half) or cuts.last(ideal) or cuts.first()
    return _up_to(cuts, shown, tokens, cut)


def trim(
    connection: Connection, pointer: Pointer, policy: Policy, shown: Visible, *, tokens: int, spare: int = 0
) -> Plan:
    """Return what must be hidden to keep to a policy's hard limit of messages: the oldest turns, never the current.

    ``spare`` is how many messages will be added in the place of what goes.
    """
    messages = _messages(pointer, shown)
    if policy.hard_limit is None or messages <= policy.hard_limit:
        return _nothing(pointer, shown, tokens, "the view is within the hard limit")
    current = turn_start(connection, pointer, pointer.head)
    cuts = _cuts(connection, pointer, shown.first_kept, current)
    return _up_to(cuts, shown, tokens, cuts.first(messages - policy.hard_limit + spare) or cuts.last(current))


class _Cuts(NamedTuple):
    """The places from ``start`` to ``kept`` where a line may be cut; ``pinned`` are not hidden by a cut behind them."""

    connection: Connection
    pointer: Pointer
    start: int
    kept: int
    turns_only: bool
    pinned: tuple[int, ...]

    def last(self, ideal: int, least: int = 1) -> int | None:
        """Return the last legal cut up to an ideal one: back to a call answered behind it, until there is none."""
        place, until, first = ideal, self.pointer.head, self._hiding(least)
        while place >= first:
            place = turn_start(self.connection, self.pointer, place) if self.turns_only else place
            call, _ = self._spanning(place, until)
            if call is None:
                return place if place >= first else None
            place, until = call, place - 1  # what is answered further behind is called from there on
        return None

    def first(self, least: int = 1) -> int | None:
        """Return the first legal cut that hides at least so many messages: on past an answer, until there is none."""
        place: int | None = self._hiding(least)
        while place is not None and place <= self.kept:
            place = self._next_user(place) if self.turns_only else place
            answer = self._spanning(place, self.pointer.head)[1] if place else None
            if answer is None:
                return place
            place = answer + 1
        return None

    def _hiding(self, least: int) -> int:
        """Return the first place before which so many messages can be hidden."""
        place = self.start + least
        for position in self.pinned:
            place += position < place
        return place

    def _spanning(self, place: int, until: int) -> tuple[int | None, int | None]:
        line = {"tree_id": self.pointer.tree_id, "branch": self.pointer.branch}
        row = SPANNING.row(self.connection, **line, begin=self.start, start=place, last=until)
        assert row is not None
        return row[0], row[1]

    def _next_user(self, place: int) -> int | None:
        line = {"tree_id": self.pointer.tree_id, "branch": self.pointer.branch}
        row = NEXT_USER.row(self.connection, **line, start=place, last=self.kept)
        return int(row[0]) if row else None


def _cuts(connection: Connection, pointer: Pointer, start: int, kept: int, *, turns_only: bool = True) -> _Cuts:
    line = {"tree_id": pointer.tree_id, "branch": pointer.branch, "start": start, "last": kept - 1}
    pinned = tuple(row[0] for row in PINNED.rows(connection, **line))
    return _Cuts(connection, pointer, start, kept, turns_only, pinned)


def _up_to(cuts: _Cuts, shown: Visible, tokens: int, cut: int | None) -> Plan:
    """Return the plan to hide everything visible before a cut but the system messages."""
    connection, pointer, start, *_ = cuts
    if cut is None:
        return _nothing(pointer, shown, tokens, "there is no place to cut before what the policy keeps")
    pinned = tuple(position for position in cuts.pinned if position < cut)
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
