"""The positions where a line may be cut, and the messages of a running turn that a cut spares.

An assistant message, its calls and all their results are one group; a cut may only fall where a
group begins, or, by a policy's boundary, where a turn does, and never within a range that was
hidden by name. The legal cut nearest to an ideal one is searched from there on, so that a long line
is not read.

Where a cut falls within the running turn, its user message stays, and so do calls that wait for
their result, with the results that they have. They come before the summary, which covers them all
the same: so nothing is lost when a later compaction, made after the turn or after the result, no
longer spares them.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, func, literal_column, select

from ..database import BIG_INTEGER, Statement, message_facts, tool_calls, tool_results
from ..history import build_segments, find_turn_start, lines, load_totals
from ..view import ViewContext, find_continuations

PINNED_ROLES: tuple[ColumnElement[str], ...] = (
    literal_column("'system'"),
    literal_column("'developer'"),
)
"""The roles of messages that no compaction hides."""

_cut_segments = build_segments()
_start_bound = bindparam("start", type_=BIG_INTEGER)
_until_bound = bindparam("until", type_=BIG_INTEGER)
_facts_from_start = (
    select(
        message_facts.c.branch,
        message_facts.c.seq,
        message_facts.c.role,
        message_facts.c.turn,
    )
    .select_from(_cut_segments)
    .join(message_facts, lines.match_segments(message_facts, _cut_segments))
    .where(message_facts.c.seq >= _start_bound)
    .cte("facts")
)
_fact_positions = select(_facts_from_start.c.seq).order_by(_facts_from_start.c.seq)


class SpanningCall(NamedTuple):
    """The first call before a position that is answered from there on, and the last answer."""

    call: int | None
    answer: int | None


class CallPosition(NamedTuple):
    """A call, by its message and its place in it."""

    seq: int
    position: int


class AnswerPosition(NamedTuple):
    """The call that a result answers, and the position of the result."""

    call: int
    position: int
    seq: int


SPANNING_CALL = Statement(
    select(func.min(tool_results.c.call_seq), func.max(tool_results.c.seq))
    .select_from(_cut_segments)
    .join(tool_results, lines.match_segments(tool_results, _cut_segments))
    .where(tool_results.c.call_seq >= bindparam("begin", type_=BIG_INTEGER))
    .where(tool_results.c.call_seq < _start_bound),
    row=SpanningCall,
)
"""Of the calls from ``begin`` to before ``start``, those answered from there to ``last``."""
NEXT_USER = Statement(
    _fact_positions.where(_facts_from_start.c.role == literal_column("'user'")).limit(
        literal_column("1")
    )
)
PINNED_POSITIONS = Statement(_fact_positions.where(_facts_from_start.c.role.in_(PINNED_ROLES)))
TURN_START = Statement(
    select(func.min(_facts_from_start.c.seq)).where(
        _facts_from_start.c.turn >= bindparam("turn", type_=BIG_INTEGER)
    )
)
GROUP_STARTS = Statement(
    select(message_facts.c.seq)
    .select_from(_cut_segments)
    .join(message_facts, lines.match_segments(message_facts, _cut_segments))
    .where(message_facts.c.role.not_in((literal_column("'tool'"), *PINNED_ROLES)))
    .order_by(message_facts.c.seq.desc())
    .limit(bindparam("count", type_=BIG_INTEGER))
)
"""The positions where the newest groups begin, the newest first."""
MESSAGE_ROLE = Statement(select(message_facts.c.role).where(lines.match_place(message_facts)))
CALL_PLACES = Statement(
    select(tool_calls.c.seq, tool_calls.c.position)
    .select_from(_cut_segments)
    .join(tool_calls, lines.match_segments(tool_calls, _cut_segments))
    .where(tool_calls.c.seq <= _until_bound),
    row=CallPosition,
)
ANSWER_PLACES = Statement(
    select(tool_results.c.call_seq, tool_results.c.call_position, tool_results.c.seq)
    .select_from(_cut_segments)
    .join(tool_results, lines.match_segments(tool_results, _cut_segments))
    .where(tool_results.c.call_seq.between(_start_bound, _until_bound)),
    row=AnswerPosition,
)


class Cuts(NamedTuple):
    """The legal cuts of the visible part of a line, up to ``kept``.

    ``pinned`` are not hidden by a cut after them. ``continued`` are the items that continue an
    answer: no message begins there, and no cut falls there.
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
        """Whether there is nothing before the first kept position."""
        return self.kept <= self.start

    def nearest(self, ideal: int, least: int) -> int | None:
        """Return the last legal cut up to an ideal one, else the first one after it."""
        return self.last(ideal, least) or self.first_from(self._least_cut(least))

    def last(self, ideal: int, least: int = 1) -> int | None:
        """Return the last legal cut up to an ideal one that hides at least so many messages.

        From a position, the search goes back to a call that is answered after it, until there is
        none. Calls that are answered later still have been passed by then.
        """
        cut, until, first = ideal, self.context.pointer.head, self._least_cut(least)
        while cut >= first:
            cut = self._boundary_up_to(cut)
            call = find_spanning_call(self.context, self.start, cut, until).call
            if call is None:
                return cut if cut >= first else None
            cut, until = call, cut - 1
        return None

    def first_from(self, start: int) -> int | None:
        """Return the first legal cut from a position on: after an answer, until there is none."""
        head = self.context.pointer.head
        cut = self._boundary_from(start)
        while cut is not None:
            answer = find_spanning_call(self.context, self.start, cut, head).answer
            if answer is None:
                return cut
            cut = self._boundary_from(answer + 1)
        return None

    def after_messages(self, count: int) -> int:
        """Return the position after so many messages from the first visible one."""
        position = self.start + count
        for item in self.continued:
            if item <= position:
                position += 1
        return position

    def _boundary_up_to(self, position: int) -> int:
        """Return the last position up to this one where the policy's boundary allows a cut."""
        if self.turns_only:
            position = find_turn_start(self.context.raw, position)
        while position in self.continued:
            position -= 1
        hole = self.context.visible.find_hole(position)
        return self._boundary_up_to(hole.first) if hole else position

    def _boundary_from(self, position: int) -> int | None:
        """Return the first position from this one on where the boundary allows a cut."""
        context = self.context
        cut: int | None = position
        if self.turns_only:
            stretch = {**context.line, "start": position, "last": self.kept}
            cut = NEXT_USER.value(context.connection, **stretch)
        while cut in self.continued:
            cut += 1
        if cut is None or cut > self.kept:
            return None
        hole = context.visible.find_hole(cut)
        return self._boundary_from(hole.last + 1) if hole else cut

    def _least_cut(self, least: int) -> int:
        """Return the first position before which so many messages can be hidden.

        Those that no cut hides, or that are hidden already, do not count.
        """
        pinned = ((position, position) for position in self.pinned)
        holes = ((each.first, each.last) for each in self.context.visible.holes)
        position = self.after_messages(least)
        for first, last in sorted(chain(pinned, holes)):
            if first < position:
                position += last - first + 1
        return position


def load_cuts(context: ViewContext, kept: int, *, turns_only: bool = True) -> Cuts:
    """Return the legal cuts before the first position to keep."""
    start = context.visible.first_kept
    items = find_continuations(context, start, context.last)
    pinned = list_pinned_positions(context, start, kept - 1)
    return Cuts(context, kept, turns_only, pinned, tuple(items))


def list_pinned_positions(context: ViewContext, first: int, last: int) -> tuple[int, ...]:
    """Return the positions of the system messages of a range, which nothing hides."""
    stretch = {**context.line, "start": first, "last": last}
    return tuple(PINNED_POSITIONS.values(context.connection, **stretch))


def find_spanning_call(context: ViewContext, begin: int, start: int, last: int) -> SpanningCall:
    """Return the first call from ``begin`` on that is answered from ``start`` to ``last``."""
    stretch = {**context.line, "begin": begin, "start": start, "last": last}
    return SPANNING_CALL.one(context.connection, **stretch)


def find_running_turn(context: ViewContext) -> int:
    """Return the position where the running turn begins; 0 if there is no user message."""
    return find_turn_start(context.raw, context.last) if count_turns(context) else 0


def count_turns(context: ViewContext) -> int:
    """Return the number of turns of a line."""
    return load_totals(context.raw, context.last).turn


def find_group_start(context: ViewContext, count: int | None = None) -> int:
    """Return where the newest groups begin: so many of them, or as many as a policy keeps."""
    start = context.visible.first_kept
    count = count or context.policy.keep_groups
    items = find_continuations(context, start, context.last)
    stretch = {**context.line, "start": start, "last": context.last}
    found = GROUP_STARTS.values(context.connection, **stretch, count=count + len(items))
    starts = [position for position in found if position not in items][:count]
    return starts[-1] if len(starts) == count else start


class SparedMessages(NamedTuple):
    """The messages that a cut spares for the running turn.

    ``positions`` are those that stay visible before it, ``released`` those that an earlier cut
    spared and that it hides.
    """

    positions: tuple[int, ...] = ()
    released: tuple[int, ...] = ()


def find_spared_messages(context: ViewContext, cut: int) -> SparedMessages:
    """Return the messages that a cut spares for the running turn, and those it no longer spares."""
    turn = find_running_turn(context)
    spared_before = tuple(
        position
        for position in context.visible.pinned
        if MESSAGE_ROLE.value(context.connection, **context.raw.place(position))
        not in ("system", "developer")
    )
    if not turn or cut <= turn:
        return SparedMessages((), spared_before)
    start = context.visible.first_kept
    needed = {turn} | find_unanswered_messages(context, max(turn, start), cut - 1, cut)
    for position in spared_before:
        needed |= find_unanswered_messages(context, position, position, cut)
    positions = sorted(position for position in needed if start <= position < cut)
    released = [position for position in spared_before if position not in needed]
    return SparedMessages(tuple(positions), tuple(released))


def find_unanswered_messages(context: ViewContext, first: int, until: int, cut: int) -> set[int]:
    """Return the messages of a range with a call that nothing before a cut answers.

    The results that they have are included.
    """
    stretch = {**context.line, "start": first, "until": until, "last": cut - 1}
    answers = ANSWER_PLACES.rows(context.connection, **stretch)
    calls = CALL_PLACES.rows(context.connection, **stretch)
    answered = {CallPosition(answer.call, answer.position) for answer in answers}
    unanswered = {call.seq for call in calls if call not in answered}
    return unanswered | {each.seq for each in answers if each.call in unanswered}
