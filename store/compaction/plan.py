"""The plan of a compaction: the range that it would hide.

All messages that any part of the policy protects are kept, and always the current turn. From there
the legal cut nearest to the policy's window is taken.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from typing import NamedTuple

from ..history import sum_tokens
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
from .cuts import (
    TURN_START,
    Cuts,
    count_turns,
    find_group_start,
    find_running_turn,
    find_spared_messages,
    load_cuts,
)
from .triggers import ViewCost, counts_messages, fills_window, find_trigger, reaches_share

FOLDING_SHARE = 0.25
"""The share of the window from which on adjacent summaries are folded into the next one."""

NO_CUT = "there is no place to cut before what the policy keeps"


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
