"""The places where a line may be cut.

An assistant message, its calls and all their results are one group; a cut may only fall where a
group begins, or, by a policy's boundary, where a turn does. The legal cut nearest to a wished one
is looked for from there on, so that a long line is not read.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, func, literal_column, select

from ..database import BIG, Statement, message_facts, tool_results
from ..history import lines, measure, segments_cte, turn_start
from ..view import Look
from .open_turn import newest_groups


def _number(name: str) -> ColumnElement[int]:
    return bindparam(name, type_=BIG)


_PINNED_ROLES: tuple[ColumnElement[str], ...] = (
    literal_column("'system'"),
    literal_column("'developer'"),
)
_walk = segments_cte()
_f, _r = message_facts, tool_results
_facts = (
    select(_f.c.branch, _f.c.seq, _f.c.role, _f.c.turn)
    .select_from(_walk)
    .join(_f, lines.inside(_f, _walk))
    .where(_f.c.seq >= _number("start"))
    .cte("facts")
)


class _Span(NamedTuple):
    """The first call before a place that is answered behind it, and the last such answer."""

    call: int | None
    answer: int | None


SPANNING = Statement(
    select(func.min(_r.c.call_seq), func.max(_r.c.seq))
    .select_from(_walk)
    .join(_r, lines.inside(_r, _walk))
    .where(_r.c.call_seq >= _number("begin"))
    .where(_r.c.call_seq < _number("start")),
    row=_Span,
)
"""Of the calls from ``begin`` to before ``start``, those answered from there to ``last``."""
NEXT_USER = Statement(
    select(_facts.c.seq)
    .where(_facts.c.role == literal_column("'user'"))
    .order_by(_facts.c.seq)
    .limit(literal_column("1"))
)
PINNED = Statement(
    select(_facts.c.seq).where(_facts.c.role.in_(_PINNED_ROLES)).order_by(_facts.c.seq)
)
_from_turn = _facts.c.turn >= _number("turn")
TURN_START = Statement(select(func.min(_facts.c.seq)).where(_from_turn))


class Cuts(NamedTuple):
    """The legal cuts of what is visible of a line, up to ``kept``.

    ``pinned`` are not hidden by a cut behind them.
    """

    look: Look
    kept: int
    turns_only: bool
    pinned: tuple[int, ...]

    @property
    def start(self) -> int:
        """The first position that a cut can hide."""
        return self.look.visible.first_kept

    def last(self, ideal: int, least: int = 1) -> int | None:
        """Return the last legal cut up to an ideal one that hides at least so many messages.

        Back to a call answered behind it, until there is none. What is answered further behind is
        called from there on.
        """
        place, until, first = ideal, self.look.pointer.head, self._hiding(least)
        while place >= first:
            if self.turns_only:
                place = turn_start(self.look.connection, self.look.pointer, place)
            call = self._spanning(place, until).call
            if call is None:
                return place if place >= first else None
            place, until = call, place - 1
        return None

    def first(self, least: int = 1) -> int | None:
        """Return the first legal cut that hides at least so many messages.

        On past an answer, until there is none.
        """
        place: int | None = self._hiding(least)
        while place is not None and place <= self.kept:
            if self.turns_only:
                place = self._next_user(place)
            if place is None:
                return None
            answer = self._spanning(place, self.look.pointer.head).answer
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

    def _spanning(self, place: int, until: int) -> _Span:
        span = {"begin": self.start, "start": place, "last": until}
        return SPANNING.one(self.look.connection, **self.look.pointer.line, **span)

    def _next_user(self, place: int) -> int | None:
        line = self.look.pointer.line
        found: int | None = NEXT_USER.value(
            self.look.connection, **line, start=place, last=self.kept
        )
        return found


def cuts_before(look: Look, kept: int, *, turns_only: bool = True) -> Cuts:
    """Return the legal cuts before the first position that is to be kept."""
    start = look.visible.first_kept
    line = look.pointer.line
    pinned = PINNED.values(look.connection, **line, start=start, last=kept - 1)
    return Cuts(look, kept, turns_only, tuple(pinned))


def first_kept(look: Look, keep_turns: int) -> int:
    """Return the first position that a policy's parts together keep.

    To keep no turn is to keep the newest groups of the running one.
    """
    pointer = look.pointer
    if keep_turns:
        turn = measure(look.connection, pointer, pointer.head).turn
        kept = _turn_start(look, turn - keep_turns + 1)
    else:
        kept = newest_groups(look)
    return min(pointer.head - look.policy.keep_messages + 1, kept)


def _turn_start(look: Look, turn: int) -> int:
    """Return where a turn begins; before the first turn there is nothing to keep apart."""
    pointer, start = look.pointer, look.visible.first_kept
    if turn < 1:
        return start
    found: int | None = TURN_START.value(
        look.connection, **pointer.line, start=start, last=pointer.head, turn=turn
    )
    return start if found is None else found
