"""What stays of a running turn where it is cut.

Its user message stays, and so do calls that wait for their result, with the results that they
have. They stand before the summary, which tells of them all the same: so nothing is lost when a
later compaction, made after the turn or after the result, lets them go.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, literal_column, select

from ..database import BIG, Statement, message_facts, tool_calls, tool_results
from ..history import find_turn_start, lines, load_totals, segments_cte
from ..view import ViewContext, find_continuations

_walk = segments_cte()
_f, _c, _r = message_facts, tool_calls, tool_results
_first, _until = bindparam("start", type_=BIG), bindparam("until", type_=BIG)
_NO_GROUPS: tuple[ColumnElement[str], ...] = (
    literal_column("'tool'"),
    literal_column("'system'"),
    literal_column("'developer'"),
)
GROUPS = Statement(
    select(_f.c.seq)
    .select_from(_walk)
    .join(_f, lines.in_segments(_f, _walk))
    .where(_f.c.role.not_in(_NO_GROUPS))
    .order_by(_f.c.seq.desc())
    .limit(bindparam("count", type_=BIG))
)
"""Where the newest groups begin, the newest first."""
ROLE = Statement(select(_f.c.role).where(lines.at_place(_f)))


class _Call(NamedTuple):
    """A call, by its message and its place in it."""

    seq: int
    position: int


class _Answer(NamedTuple):
    """A result, and the call that it answers."""

    call: int
    position: int
    seq: int

    @property
    def to(self) -> _Call:
        """The call that it answers."""
        return _Call(self.call, self.position)


CALLS = Statement(
    select(_c.c.seq, _c.c.position)
    .select_from(_walk)
    .join(_c, lines.in_segments(_c, _walk))
    .where(_c.c.seq <= _until),
    row=_Call,
)
ANSWERED = Statement(
    select(_r.c.call_seq, _r.c.call_position, _r.c.seq)
    .select_from(_walk)
    .join(_r, lines.in_segments(_r, _walk))
    .where(_r.c.call_seq.between(_first, _until)),
    row=_Answer,
)


Places = tuple[int, ...]
"""Positions of a line, in order."""


class Staying(NamedTuple):
    """What stays before a cut: ``places`` of what it would hide stay for the running turn.

    ``released`` are those that stayed until now and go with it.
    """

    places: Places = ()
    released: Places = ()


def turn_begins(context: ViewContext) -> int:
    """Return where the running turn begins; 0 where no user has spoken."""
    if not turns_of(context):
        return 0
    return find_turn_start(context.raw, context.last)


def turns_of(context: ViewContext) -> int:
    """Return how many turns a line has."""
    return load_totals(context.raw, context.last).turn


def shown(context: ViewContext, last: int) -> dict[str, int]:
    """Return the values by which statements name what is kept of a line, up to a position."""
    return {**context.line, "start": context.visible.first_kept, "last": last}


def newest_groups(context: ViewContext, count: int | None = None) -> int:
    """Return where the newest groups begin: so many of them, or those that a policy keeps."""
    count = count or context.policy.keep_groups
    places = _group_starts(context, count)
    if len(places) < count:
        return context.visible.first_kept
    return places[-1]


def _group_starts(context: ViewContext, count: int) -> list[int]:
    """Return where the newest groups begin, at most so many of them, the newest first."""
    items = find_continuations(context, context.visible.first_kept, context.last)
    line, most = shown(context, context.last), count + len(items)
    places = GROUPS.values(context.connection, **line, count=most)
    return [place for place in places if place not in items][:count]


def staying(context: ViewContext, cut: int) -> Staying:
    """Return what stays for the running turn before a cut, and what need not any more."""
    begins = turn_begins(context)
    before = _stayed_until_now(context)
    if not begins or cut <= begins:
        return Staying((), before)
    wanted = _wanted(context, before, begins, cut)
    start = context.visible.first_kept
    places = sorted(place for place in wanted if start <= place < cut)
    released = [place for place in before if place not in wanted]
    return Staying(tuple(places), tuple(released))


def _stayed_until_now(context: ViewContext) -> Places:
    """Return what earlier cuts left standing for the running turn of then."""
    return tuple(place for place in context.visible.pinned if not _is_of_system(context, place))


def _wanted(
    context: ViewContext,
    before: Places,
    begins: int,
    cut: int,
) -> set[int]:
    """Return what a running turn cannot do without, wherever it stands."""
    first = max(begins, context.visible.first_kept)
    wanted = {begins} | waiting(context, first, cut - 1, cut)
    for place in before:
        wanted |= waiting(context, place, place, cut)
    return wanted


def waiting(
    context: ViewContext,
    first: int,
    until: int,
    cut: int,
) -> set[int]:
    """Return the messages of a range with a call that nothing before a cut answers.

    With them go the results that they have.
    """
    stretch = {"start": first, "until": until, "last": cut - 1}
    answers = ANSWERED.rows(context.connection, **context.line, **stretch)
    calls = CALLS.rows(context.connection, **context.line, **stretch)
    unanswered = _unanswered(calls, answers)
    return unanswered | {each.seq for each in answers if each.call in unanswered}


def _unanswered(calls: list[_Call], answers: list[_Answer]) -> set[int]:
    """Return the messages with a call that is not among the answered ones."""
    answered = {answer.to for answer in answers}
    return {call.seq for call in calls if call not in answered}


def _is_of_system(context: ViewContext, place: int) -> bool:
    at = context.raw.place(place)
    return ROLE.value(context.connection, **at) in ("system", "developer")
