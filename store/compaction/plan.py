"""The plan of a compaction: the range that it would hide, and where a line may be cut.

All messages that any part of the policy protects are kept, and always the current turn. From there
the legal cut nearest to the policy's window is taken.

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

from bisect import bisect_left
from itertools import chain
from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, func, literal_column, select

from ..database import BIG_INTEGER, Statement, message_facts, tool_calls, tool_results
from ..history import build_segments, find_turn_start, lines, load_totals, sum_tokens
from ..policy import Policy
from ..tokens import count_message_tokens, estimate
from ..view import (
    ActiveSummary,
    HiddenRange,
    PositionRange,
    ViewContext,
    VisibleSet,
    build_summary_message,
    estimate_shown_tokens,
    estimate_summary_tokens,
    find_continuations,
)
from .triggers import ViewCost, counts_messages, fills_window, find_trigger, reaches_share

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

FOLDING_SHARE = 0.25
"""The share of the window from which on adjacent summaries are folded into the next one."""

NO_CUT = "there is no place to cut before what the policy keeps"


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


class Plan(NamedTuple):
    """The effect of a compaction: it would hide ``first`` to ``last`` except ``pinned``.

    ``nothing`` is the reason why it would not. If it cuts the running turn, ``staying`` are the
    messages of the turn that stay visible though the summary includes them, and ``inside`` is true:
    the turn continues. ``covered`` are the ranges in it that were hidden by name: of them only
    their summaries are included.
    """

    first: int
    last: int
    pinned: tuple[int, ...]
    messages_before: int
    tokens_before: int
    tokens_hidden: int
    nothing: str | None = None
    staying: tuple[int, ...] = ()
    released: tuple[int, ...] = ()
    inside: bool = False
    covered: tuple[HiddenRange, ...] = ()

    def _repr_html_(self) -> str:
        """Return the plan for a notebook."""
        from ..html import render_record

        if self.nothing is not None:
            return render_record("Nothing to compact", [("because", self.nothing)])
        facts = [
            ("messages", f"{self.messages:,} of {self.messages_before:,}"),
            ("tokens", f"{self.tokens_hidden:,} of {self.tokens_before:,}"),
            ("pinned", ", ".join(map(str, self.pinned[:20])) or "none"),
            ("within the running turn", "yes" if self.inside else "no"),
        ]
        return render_record(f"Compaction of positions {self.first} to {self.last}", facts)

    @property
    def messages(self) -> int:
        """The number of messages that a summary would include."""
        excluded = sum(last - first + 1 for first, last in self.excluded_ranges())
        return self.last - self.first + 1 - excluded

    def excluded_ranges(self) -> list[PositionRange]:
        """Return the parts of the range that a summary would not include."""
        pinned = ((position, position) for position in self.pinned)
        covered = ((each.first, each.last) for each in self.covered)
        return sorted(chain(pinned, covered))

    def includes(self, position: int) -> bool:
        """Tell whether a summary would include a message of the range."""
        is_covered = any(each.holds(position) for each in self.covered)
        return position not in self.pinned and not is_covered

    def estimate_saved_tokens(self, policy: Policy) -> int:
        """Return about how many tokens it would save by a policy.

        These are the hidden tokens, less a summary of at most a quarter of them, and of at most the
        length that the policy allows a summary with its facts and names.
        """
        chars = policy.summary_max_chars + policy.facts_chars + policy.index_chars
        longest = estimate("x" * min(chars, 100_000))
        return max(0, self.tokens_hidden - min(self.tokens_hidden // 4, longest))

    @property
    def hidden_first(self) -> int:
        """The first position that would be hidden, or that was pinned until now."""
        return min((self.first, *self.released))

    def visible_after(self, visible: VisibleSet) -> VisibleSet:
        """Return what stays visible, the summary aside."""
        return visible.hide_before(self.last + 1, (*self.pinned, *self.staying), self.released)

    def pinned_after(self, visible: VisibleSet) -> list[int]:
        """Return the positions of the hidden range that stay visible."""
        pinned = self.visible_after(visible).pinned
        return [position for position in pinned if position >= self.hidden_first]


class PlanOptions(NamedTuple):
    """Options of a plan that differ from its policy.

    It may keep fewer turns, hide no more positions than a transcript can show (``reach``), or cut
    at another boundary. With no turn kept the running one may be cut between its groups.
    """

    keep_turns: int
    boundary: str
    reach: int | None = None

    def ideal_cut(self, cuts: Cuts) -> int:
        """Return the best cut, legal or not."""
        if self.reach is not None:
            return min(cuts.kept, cuts.start + self.reach)
        window = cuts.context.policy.window_messages
        return cuts.kept if window is None else min(cuts.kept, cuts.after_messages(window))

    def least_messages(self, cuts: Cuts) -> int:
        """Return how many messages a cut should hide: half of the policy's window."""
        window = cuts.context.policy.window_messages
        if window is None or self.reach is not None:
            return 1
        return max(1, window // 2)


CUT_RUNNING_TURN = PlanOptions(0, "group")


def choose_plan(cost: ViewCost) -> tuple[Plan, PlanOptions]:
    """Return the plan for a view, and the options that it follows.

    If the view would still trigger, the kept turns are halved, down to the least that the policy
    keeps; in the end the running turn is cut, if the policy allows it. A line without a user
    message is all one running turn.
    """
    policy = cost.context.policy
    options = CUT_RUNNING_TURN
    if find_running_turn(cost.context):
        options = PlanOptions(policy.keep_turns, policy.boundary)
    least = policy.least_turns or policy.keep_turns
    while True:
        plan = build_plan(cost, options)
        fewer = max(options.keep_turns // 2, least)
        if fewer >= options.keep_turns or not _would_trigger(cost, plan):
            break
        options = options._replace(keep_turns=fewer)
    if not policy.within_turn or options == CUT_RUNNING_TURN:
        return plan, options
    if plan.nothing or _would_trigger(cost, plan):
        inside = _plan_inside_turn(cost)
        if inside.last > plan.last:
            return inside, CUT_RUNNING_TURN
    return plan, options


def build_plan(cost: ViewCost, options: PlanOptions) -> Plan:
    """Return the plan by some options: of the cuts that hide enough, else of any, the nearest."""
    # To keep no turn is to keep the newest groups of the running one. Before the first turn nothing
    # is kept apart.
    context = cost.context
    start = context.visible.first_kept
    by_messages = context.pointer.head - context.policy.keep_messages + 1
    for item in reversed(find_continuations(context, start, context.last)):
        if item >= by_messages:
            by_messages -= 1
    if not options.keep_turns:
        kept = min(by_messages, find_group_start(context))
    else:
        by_turns: int | None = None
        turn = count_turns(context) - options.keep_turns + 1
        if turn >= 1:
            stretch = {**context.line, "start": start, "last": context.last}
            by_turns = TURN_START.value(context.connection, **stretch, turn=turn)
        kept = min(by_messages, by_turns or start)
    cuts = load_cuts(cost.context, kept, turns_only=options.boundary == "turn")
    if cuts.empty:
        return _plan_nothing(cost, "there is nothing before what the policy keeps")
    ideal = options.ideal_cut(cuts)
    cut = cuts.nearest(ideal, options.least_messages(cuts)) or cuts.nearest(ideal, 1)
    return _plan_up_to(cost, cuts, cut)


def _plan_inside_turn(cost: ViewCost) -> Plan:
    """Return the plan to cut the running turn.

    If the view would still fill the window, the kept groups and messages are halved, as far as the
    policy allows.
    """
    plan = build_plan(cost, CUT_RUNNING_TURN)
    policy = cost.context.policy
    if policy.least_groups is None:
        return plan
    groups = min(policy.keep_groups, max(policy.keep_groups // 2, policy.least_groups))
    halved = {"keep_groups": groups, "keep_messages": policy.keep_messages // 2}
    fewer = policy.model_copy(update=halved)
    if fewer == policy or not fills_window(policy, _estimate_tokens_after(cost, plan)):
        return plan
    smaller = _plan_inside_turn(cost._replace(context=cost.context._replace(policy=fewer)))
    return smaller if smaller.last > plan.last else plan


def plan_trim(cost: ViewCost, spare: int = 0) -> Plan:
    """Return the plan to keep a view to its policy's hard limit of messages.

    The oldest turns are hidden; of the current one only as much as the policy allows. ``spare`` is
    the number of messages that will be added in place of the hidden ones.
    """
    context, policy = cost.context, cost.context.policy
    excess = 0
    if policy.on_failure == "trim" and policy.hard_limit is not None:
        excess = cost.messages - policy.hard_limit
    if excess <= 0:
        return _plan_nothing(cost, "the view is within the hard limit")
    count = excess + spare
    turn = find_running_turn(context)
    plan = _plan_nothing(cost, NO_CUT)
    if turn:
        plan = _plan_oldest(cost, load_cuts(context, turn), count)
    may_cut_turn = policy.within_turn or not turn
    if count_freed_messages(cost, plan) >= count or not may_cut_turn:
        return plan
    cuts = load_cuts(context, find_group_start(context), turns_only=False)
    larger = _plan_oldest(cost, cuts, count)
    return larger if larger.last > plan.last else plan


def _plan_oldest(cost: ViewCost, cuts: Cuts, count: int) -> Plan:
    """Return the plan to hide so many of the oldest messages, or as many as can be.

    For each that stays one more has to go. The messages that a view adds go with those that they
    are added for, so the number of positions says little: the view before each cut is counted.
    """
    visible = cost.context.visible

    def messages_before(cut: int) -> int:
        pinned = (position for position in cuts.pinned if position < cut)
        return cost.messages - cost.messages_with(visible.hide_before(cut, pinned))

    positions = range(cuts.start + 1, cuts.kept + 1)
    wanted = count
    while True:
        ideal = positions.start + bisect_left(positions, wanted, key=messages_before)
        cut = cuts.first_from(ideal)
        plan = _plan_up_to(cost, cuts, cut or cuts.last(cuts.kept))
        freed = count_freed_messages(cost, plan)
        if cut is None or freed >= count:
            return plan
        wanted += count - freed


def _plan_up_to(cost: ViewCost, cuts: Cuts, cut: int | None) -> Plan:
    """Return the plan to hide everything visible before a cut but the system messages.

    Its hidden tokens are those of the messages as stored, by the estimate.
    """
    if cut is None:
        return _plan_nothing(cost, NO_CUT)
    context = cost.context
    spared = find_spared_messages(context, cut)
    pinned = tuple(position for position in cuts.pinned if position < cut)
    tokens = estimate_shown_tokens(context, cuts.start, cut - 1)
    tokens -= sum_tokens(context.raw, (*pinned, *spared.positions))
    return Plan(
        first=cuts.start,
        last=cut - 1,
        pinned=pinned,
        messages_before=cost.messages,
        tokens_before=cost.tokens,
        tokens_hidden=tokens + sum_tokens(context.raw, spared.released),
        staying=spared.positions,
        released=spared.released,
        inside=cut > find_running_turn(context),
        covered=tuple(each for each in context.visible.holes if each.last < cut),
    )


def _plan_nothing(cost: ViewCost, reason: str) -> Plan:
    start = cost.context.visible.first_kept
    return Plan(start, start - 1, (), cost.messages, cost.tokens, 0, reason)


def count_freed_messages(cost: ViewCost, plan: Plan) -> int:
    """Return how many messages fewer a view would have, the summary aside."""
    if plan.nothing:
        return 0
    return cost.messages - cost.messages_with(plan.visible_after(cost.context.visible))


def add_view_tokens(cost: ViewCost, plan: Plan) -> Plan:
    """Return a plan whose hidden tokens are those of the view.

    Tokens that the rules save already are not saved again.
    """
    if plan.nothing:
        return plan
    remaining = cost.tokens_with(plan.visible_after(cost.context.visible))
    return plan._replace(tokens_hidden=cost.tokens - remaining)


def _estimate_tokens_after(cost: ViewCost, plan: Plan) -> int:
    return cost.tokens - add_view_tokens(cost, plan).tokens_hidden


def _would_trigger(cost: ViewCost, plan: Plan) -> bool:
    """Tell whether the view would still trigger after a plan, without its summary."""
    policy = cost.context.policy
    tokens = _estimate_tokens_after(cost, plan)
    counts = counts_messages(policy, tokens)
    messages = cost.messages - count_freed_messages(cost, plan) if counts else 0
    return find_trigger(policy, messages=messages, tokens=tokens) is not None


def find_shortfall(cost: ViewCost, plan: Plan) -> str | None:
    """Return the reason why even an empty summary would free too little; None if it may do.

    The hidden tokens of ``plan`` are those of the view.
    """
    empty = count_summary_tokens("", None, cost.context.policy)
    hidden = plan.tokens_hidden
    if hidden <= empty:
        return f"{hidden} tokens do not pay for a summary"
    if hidden - empty < cost.least_freed:
        return f"{hidden} tokens are less than the policy wants to be freed of {cost.tokens}"
    return None


def count_summary_tokens(text: str, facts: str | None, policy: Policy) -> int:
    """Return the tokens of the message that a view sends for a summary."""
    return count_message_tokens(build_summary_message(text, facts, policy), estimate)


def select_replaced_summaries(context: ViewContext) -> tuple[ActiveSummary, ...]:
    """Return the active summaries that the next one replaces.

    It replaces all of them if they fill much of the window.
    """
    policy, summaries = context.policy, context.visible.summaries
    if policy.previous_summary == "fold":
        return summaries[-1:]
    tokens = estimate_summary_tokens(policy, summaries)
    fills_much = reaches_share(tokens, FOLDING_SHARE, policy.context_window or 0)
    return summaries if fills_much else ()
