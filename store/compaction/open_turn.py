"""What stays of a running turn where it is cut.

Its user message stays, and so do calls that wait for their result, with the results that they
have. They stand before the summary, which tells of them all the same: so nothing is lost when a
later compaction, made after the turn or after the result, lets them go.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, literal_column, select

from ..database import BIG, Statement, message_facts, tool_calls, tool_results
from ..history import lines, measure, segments_cte, turn_start
from ..view import Look

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
    .join(_f, lines.inside(_f, _walk))
    .where(_f.c.role.not_in(_NO_GROUPS))
    .order_by(_f.c.seq.desc())
    .limit(bindparam("count", type_=BIG))
)
"""Where the newest groups begin, the newest first."""
ROLE = Statement(select(_f.c.role).where(lines.at(_f)))


class _Call(NamedTuple):
    """A call, by its message and its place in it."""

    seq: int
    position: int


class _Answer(NamedTuple):
    """A result, and the call that it answers."""

    call: int
    position: int
    seq: int


CALLS = Statement(
    select(_c.c.seq, _c.c.position)
    .select_from(_walk)
    .join(_c, lines.inside(_c, _walk))
    .where(_c.c.seq <= _until),
    row=_Call,
)
ANSWERED = Statement(
    select(_r.c.call_seq, _r.c.call_position, _r.c.seq)
    .select_from(_walk)
    .join(_r, lines.inside(_r, _walk))
    .where(_r.c.call_seq.between(_first, _until)),
    row=_Answer,
)


class Staying(NamedTuple):
    """What stays before a cut: ``places`` of what it would hide stay for the running turn.

    ``released`` are those that stayed until now and go with it.
    """

    places: tuple[int, ...] = ()
    released: tuple[int, ...] = ()


def turn_begins(look: Look) -> int:
    """Return where the running turn begins; 0 where no user has spoken."""
    if measure(look.connection, look.pointer, look.pointer.head).turn == 0:
        return 0
    return turn_start(look.connection, look.pointer, look.pointer.head)


def newest_groups(look: Look) -> int:
    """Return where the newest groups begin that a policy keeps in any case."""
    start, count = look.visible.first_kept, look.policy.keep_groups
    line = look.pointer.line
    places = GROUPS.values(
        look.connection, **line, start=start, last=look.pointer.head, count=count
    )
    return places[-1] if len(places) == count else start


def staying(look: Look, cut: int) -> Staying:
    """Return what stays for the running turn before a cut, and what need not any more."""
    begins, start = turn_begins(look), look.visible.first_kept
    before = [place for place in look.visible.pinned if not _is_of_system(look, place)]
    if not begins or cut <= begins:
        return Staying((), tuple(before))
    wanted = {begins} | _waiting(look, max(begins, start), cut - 1, cut)
    for place in before:
        wanted |= _waiting(look, place, place, cut)
    places = tuple(sorted(place for place in wanted if start <= place < cut))
    return Staying(places, tuple(place for place in before if place not in wanted))


def _waiting(look: Look, first: int, until: int, cut: int) -> set[int]:
    """Return the messages of a range with a call that nothing before a cut answers.

    With them go the results that they have.
    """
    line = {**look.pointer.line, "start": first, "until": until, "last": cut - 1}
    answers = ANSWERED.rows(look.connection, **line)
    answered = {(each.call, each.position) for each in answers}
    calls = CALLS.rows(look.connection, **line)
    waiting = {call.seq for call in calls if call not in answered}
    return waiting | {each.seq for each in answers if each.call in waiting}


def _is_of_system(look: Look, place: int) -> bool:
    role = ROLE.value(look.connection, **lines.place(look.connection, look.pointer, place))
    return role in ("system", "developer")
