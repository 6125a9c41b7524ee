"""The places where a line may be cut.

An assistant message, its calls and all their results are one group; a cut may only fall where a
group begins, or, by a policy's boundary, where a turn does, and never within a range that was
hidden by name. The legal cut nearest to a wished one is looked for from there on, so that a long
line is not read.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, func, literal_column, select

from ..database import BIG, Statement, message_facts, tool_results
from ..history import find_turn_start, lines, segments_cte
from ..view import PositionRange, ViewContext, find_continuations
from .open_turn import newest_groups, shown, turns_of
from .sources import PINNED_ROLES


def _number(name: str) -> ColumnElement[int]:
    return bindparam(name, type_=BIG)


_walk = segments_cte()
_f, _r = message_facts, tool_results
_facts = (
    select(
        _f.c.branch,
        _f.c.seq,
        _f.c.role,
        _f.c.turn,
    )
    .select_from(_walk)
    .join(_f, lines.in_segments(_f, _walk))
    .where(_f.c.seq >= _number("start"))
    .cte("facts")
)


class Spanning(NamedTuple):
    """The first call before a place that is answered behind it, and the last such answer."""

    call: int | None
    answer: int | None


SPANNING = Statement(
    select(func.min(_r.c.call_seq), func.max(_r.c.seq))
    .select_from(_walk)
    .join(_r, lines.in_segments(_r, _walk))
    .where(_r.c.call_seq >= _number("begin"))
    .where(_r.c.call_seq < _number("start")),
    row=Spanning,
)
"""Of the calls from ``begin`` to before ``start``, those answered from there to ``last``."""
_places = select(_facts.c.seq).order_by(_facts.c.seq)
_is_of_user = _facts.c.role == literal_column("'user'")
NEXT_USER = Statement(_places.where(_is_of_user).limit(literal_column("1")))
_is_pinned = _facts.c.role.in_(PINNED_ROLES)
PINNED = Statement(_places.where(_is_pinned))
_from_turn = _facts.c.turn >= _number("turn")
TURN_START = Statement(select(func.min(_facts.c.seq)).where(_from_turn))


class Cuts(NamedTuple):
    """The legal cuts of what is visible of a line, up to ``kept``.

    ``pinned`` are not hidden by a cut behind them. ``continued`` are the items that go on with an
    answer: no message begins there, and no cut falls.
    """

    context: ViewContext
    kept: int
    turns_only: bool
    pinned: tuple[int, ...]
    continued: tuple[int, ...]

    @property
    def start(self) -> int:
        """The first position that a cut can hide."""
        return self.context.visible.first_kept

    @property
    def empty(self) -> bool:
        """Whether there is nothing before what is kept."""
        return self.kept <= self.start

    def nearest(self, ideal: int, least: int) -> int | None:
        """Return the last legal cut up to an ideal one, else the first one behind it."""
        return self.last(ideal, least) or self.first(least)

    def last(self, ideal: int, least: int = 1) -> int | None:
        """Return the last legal cut up to an ideal one that hides at least so many messages.

        Back to a call answered behind it, until there is none. What is answered further behind is
        called from there on.
        """
        place, until, first = ideal, self.context.pointer.head, self._hiding(least)
        while place >= first:
            place = self._boundary_up_to(place)
            call = self._spanning(place, until).call
            if call is None:
                return place if place >= first else None
            place, until = call, place - 1
        return None

    def first(self, least: int) -> int | None:
        """Return the first legal cut that hides at least so many messages."""
        return self.first_from(self._hiding(least))

    def first_from(self, start: int) -> int | None:
        """Return the first legal cut from a place on: past an answer, until there is none."""
        place = self._boundary_from(start)
        while place is not None:
            answer = self._spanning(place, self.context.pointer.head).answer
            if answer is None:
                return place
            place = self._boundary_from(answer + 1)
        return None

    def _boundary_up_to(self, place: int) -> int:
        """Return the last place up to this one where the policy's boundary lets a cut fall."""
        if self.turns_only:
            place = find_turn_start(self.context.raw, place)
        while place in self.continued:
            place -= 1
        hole = self.context.visible.find_hole(place)
        if hole:
            return self._boundary_up_to(hole.first)
        return place

    def _boundary_from(self, place: int) -> int | None:
        """Return the first place from this one on where the boundary lets a cut fall."""
        found = self._next_user(place) if self.turns_only else place
        while found in self.continued:
            found += 1
        if found is None or found > self.kept:
            return None
        hole = self.context.visible.find_hole(found)
        if hole:
            return self._boundary_from(hole.last + 1)
        return found

    def after_messages(self, count: int) -> int:
        """Return the place after so many messages of what is kept."""
        place = self.start + count
        for item in self.continued:
            if item <= place:
                place += 1
        return place

    def _hiding(self, least: int) -> int:
        """Return the first place before which so many messages can be hidden."""
        place = self.after_messages(least)
        for first, last in self._never_hidden():
            if first < place:
                place += last - first + 1
        return place

    def _never_hidden(self) -> list[PositionRange]:
        """Return what no cut hides, or is hidden already."""
        pinned = ((position, position) for position in self.pinned)
        holes = ((each.first, each.last) for each in self.context.visible.holes)
        return sorted(chain(pinned, holes))

    def _spanning(self, place: int, until: int) -> Spanning:
        return spanning(self.context, self.start, place, until)

    def _next_user(self, place: int) -> int | None:
        context = self.context
        found: int | None = NEXT_USER.value(
            context.connection, **context.line, start=place, last=self.kept
        )
        return found


def cuts_before(context: ViewContext, kept: int, *, turns_only: bool = True) -> Cuts:
    """Return the legal cuts before the first position that is to be kept."""
    items = find_continuations(context, context.visible.first_kept, context.last)
    return Cuts(context, kept, turns_only, _pinned_before(context, kept), tuple(items))


def _pinned_before(context: ViewContext, kept: int) -> tuple[int, ...]:
    """Return the positions that no cut hides, of what is visible before one."""
    return system_messages(context, context.visible.first_kept, kept - 1)


def system_messages(context: ViewContext, first: int, last: int) -> tuple[int, ...]:
    """Return the positions of a range that nothing hides."""
    stretch = {"start": first, "last": last}
    return tuple(PINNED.values(context.connection, **context.line, **stretch))


def spanning(context: ViewContext, begin: int, start: int, last: int) -> Spanning:
    """Return what spans a place: calls from ``begin`` on, answered from there to ``last``."""
    stretch = {"begin": begin, "start": start, "last": last}
    return SPANNING.one(context.connection, **context.line, **stretch)


def first_kept(context: ViewContext, keep_turns: int) -> int:
    """Return the first position that a policy's parts together keep."""
    return min(_newest_messages(context), _newest_turns(context, keep_turns))


def _newest_messages(context: ViewContext) -> int:
    """Return where the newest messages begin that a policy keeps."""
    place = context.pointer.head - context.policy.keep_messages + 1
    for item in reversed(find_continuations(context, context.visible.first_kept, context.last)):
        if item >= place:
            place -= 1
    return place


def _newest_turns(context: ViewContext, count: int) -> int:
    """Return where the newest turns begin.

    To keep no turn is to keep the newest groups of the running one.
    """
    if not count:
        return newest_groups(context)
    return _turn_start(context, turns_of(context) - count + 1)


def _turn_start(context: ViewContext, turn: int) -> int:
    """Return where a turn begins; before the first turn there is nothing to keep apart."""
    start = context.visible.first_kept
    if turn < 1:
        return start
    return _seen_from(context, turn) or start


def _seen_from(context: ViewContext, turn: int) -> int | None:
    """Return the first visible position of a turn or a later one."""
    line = shown(context, context.last)
    found: int | None = TURN_START.value(context.connection, **line, turn=turn)
    return found
