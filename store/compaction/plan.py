"""What a compaction would hide.

What stays is the union of what the policy's parts protect, and always the current turn. From there
the legal cut nearest to the policy's window is taken.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from typing import NamedTuple

from ..history import sum_tokens
from ..policy import Policy
from ..tokens import estimate, message_tokens
from ..view import (
    ActiveSummary,
    HiddenRange,
    PositionRange,
    ViewContext,
    VisibleSet,
    build_summary_message,
    estimate_shown_tokens,
    estimate_summary_tokens,
)
from .budget import Budget
from .cuts import Cuts, cuts_before, first_kept
from .open_turn import newest_groups, staying, turn_begins
from .triggers import counts_messages, fills, reaches, triggered

FOLDED_FROM = 0.25
"""The share of the window from which on summaries that stand beside each other are folded into the
next one.
"""


NO_PLACE = "there is no place to cut before what the policy keeps"


Previous = tuple[ActiveSummary, ...]
"""The summaries that a new one replaces."""


class Plan(NamedTuple):
    """What a compaction would do: hide ``first`` to ``last`` except ``pinned``.

    ``nothing`` says why it would not. Where it cuts the running turn, ``staying`` says what of that
    stays visible though the summary tells of it, ``inside`` that there is more to come. ``covered``
    are the ranges in it that were hidden by name: of them nothing is told but their summaries.
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
        """How many messages a summary would tell of."""
        untold = sum(last - first + 1 for first, last in self.untold())
        return self.last - self.first + 1 - untold

    def untold(self) -> list[PositionRange]:
        """Return the stretches of the range of which a summary would tell nothing."""
        pinned = ((position, position) for position in self.pinned)
        covered = ((each.first, each.last) for each in self.covered)
        return sorted(chain(pinned, covered))

    def tells_of(self, position: int) -> bool:
        """Tell whether a summary would tell of a message of the range."""
        is_covered = any(each.holds(position) for each in self.covered)
        return position not in self.pinned and not is_covered

    @property
    def hidden_first(self) -> int:
        """The first position that would be hidden, or that was pinned until now."""
        return min((self.first, *self.released))

    def left_of(self, visible: VisibleSet) -> VisibleSet:
        """Return what stays visible, the summary aside."""
        beside = (*self.pinned, *self.staying)
        return visible.hide_before(self.last + 1, beside, self.released)

    def pins(self, visible: VisibleSet) -> list[int]:
        """Return the positions of the hidden range that stay visible."""
        return [place for place in self.left_of(visible).pinned if place >= self.hidden_first]


class Wish(NamedTuple):
    """What a plan is to be like, where it is not by the policy alone.

    It may keep fewer turns, hide no more positions than a transcript can show (``reach``), or cut
    at another boundary. With no turn kept the running one may be cut between its groups.
    """

    keep_turns: int
    boundary: str
    reach: int | None = None

    def ideal(self, cuts: Cuts) -> int:
        """Return the best cut, legal or not."""
        if self.reach is not None:
            return min(cuts.kept, cuts.start + self.reach)
        window = cuts.context.policy.window_messages
        if window is None:
            return cuts.kept
        return min(cuts.kept, cuts.after_messages(window))

    def least(self, cuts: Cuts) -> int:
        """Return how many messages a cut had better hide: half of the policy's window."""
        window = cuts.context.policy.window_messages
        if window is None or self.reach is not None:
            return 1
        return max(1, window // 2)


INSIDE = Wish(0, "group")
"""The wish to cut the running turn."""


def wish_of(context: ViewContext) -> Wish:
    """Return what a policy wishes of a plan; a line without a user is all one running turn."""
    if not turn_begins(context):
        return INSIDE
    return Wish(context.policy.keep_turns, context.policy.boundary)


def plan(cost: Budget, wish: Wish) -> Plan:
    """Return what a compaction of a line would hide."""
    cuts = _cuts_for(cost.context, wish)
    if cuts.empty:
        return _nothing(cost, "there is nothing before what the policy keeps")
    return _up_to(cost, cuts, _best_cut(cuts, wish))


def _cuts_for(context: ViewContext, wish: Wish) -> Cuts:
    """Return the legal cuts before what is to be kept."""
    kept = first_kept(context, wish.keep_turns)
    return cuts_before(context, kept, turns_only=wish.boundary == "turn")


def _best_cut(cuts: Cuts, wish: Wish) -> int | None:
    """Return the legal cut nearest to the wished one: one that hides enough, else any."""
    ideal = wish.ideal(cuts)
    least = wish.least(cuts)
    return cuts.nearest(ideal, least) or cuts.nearest(ideal, 1)


def trim(cost: Budget, spare: int = 0) -> Plan:
    """Return what must be hidden to keep to a policy's hard limit of messages.

    The oldest turns; of the current one only what the policy lets go. ``spare`` is how many
    messages will be added in the place of what goes.
    """
    excess = _excess(cost)
    if excess <= 0:
        return _nothing(cost, "the view is within the hard limit")
    planned = _oldest_turns(cost, excess + spare)
    if freed_messages(cost, planned) >= excess + spare or not _may_cut_turn(cost.context):
        return planned
    return _larger(planned, _oldest_groups(cost, excess + spare))


def _excess(cost: Budget) -> int:
    """Return how many messages a view has beyond the hard limit of a policy that trims."""
    policy = cost.context.policy
    if policy.on_failure != "trim" or policy.hard_limit is None:
        return 0
    return cost.messages - policy.hard_limit


def _may_cut_turn(context: ViewContext) -> bool:
    """Tell whether the running turn may be cut, as a line without a user may in any case."""
    return context.policy.within_turn or not turn_begins(context)


def _oldest_turns(cost: Budget, count: int) -> Plan:
    """Return the plan to hide so many messages before the running turn, or as many as can be."""
    begins = turn_begins(cost.context)
    if not begins:
        return _nothing(cost, NO_PLACE)
    return _oldest(cost, cuts_before(cost.context, begins), count)


def _oldest_groups(cost: Budget, count: int) -> Plan:
    """Return the plan to hide so many messages before the newest groups, or as many as can be."""
    kept = newest_groups(cost.context)
    cuts = cuts_before(cost.context, kept, turns_only=False)
    return _oldest(cost, cuts, count)


def _oldest(cost: Budget, cuts: Cuts, count: int) -> Plan:
    """Return the plan to hide so many of the oldest messages, or as many as can be.

    For each that stays one more has to go.
    """
    wanted = count
    while True:
        cut = cuts.first_from(_place_to_free(cost, cuts, wanted))
        planned = _up_to(cost, cuts, cut or cuts.last(cuts.kept))
        freed = freed_messages(cost, planned)
        if cut is None or freed >= count:
            return planned
        wanted += count - freed


def _place_to_free(cost: Budget, cuts: Cuts, count: int) -> int:
    """Return the first place before which a view has so many messages, pinned ones aside.

    What the view makes up goes with the messages that it is made up for, so their number says
    little.
    """
    visible = cost.context.visible

    def freed(place: int) -> int:
        pinned = (position for position in cuts.pinned if position < place)
        return cost.messages - cost.messages_with(visible.hide_before(place, pinned))

    places = range(cuts.start + 1, cuts.kept + 1)
    return places.start + bisect_left(places, count, key=freed)


def _larger(planned: Plan, other: Plan) -> Plan:
    """Return the plan that hides more."""
    return other if other.last > planned.last else planned


def freed_messages(cost: Budget, planned: Plan) -> int:
    """Return how many messages fewer a view would have, the summary aside."""
    if planned.nothing:
        return 0
    return cost.messages - cost.messages_with(planned.left_of(cost.context.visible))


def with_view_tokens(cost: Budget, planned: Plan) -> Plan:
    """Return a plan whose hidden tokens are those of the view.

    What the rules save already is not saved again.
    """
    if planned.nothing:
        return planned
    left = tokens_left(cost, planned)
    return planned._replace(tokens_hidden=cost.tokens - left)


def tokens_left(cost: Budget, planned: Plan) -> int:
    """Return the tokens of what a plan leaves visible, its summary aside."""
    left = planned.left_of(cost.context.visible)
    return cost.tokens_with(left)


def tokens_of_summary(text: str, facts: str | None, policy: Policy) -> int:
    """Return the tokens of the message that a view sends for a summary."""
    message = build_summary_message(text, facts, policy)
    return message_tokens(message, estimate)


def frees_too_little(cost: Budget, planned: Plan) -> str | None:
    """Say that not even an empty summary would free what the policy asks for; None where it may.

    ``planned`` hides the tokens of the view.
    """
    empty = tokens_of_summary("", None, cost.context.policy)
    hidden = planned.tokens_hidden
    if hidden <= empty:
        return f"{hidden} tokens do not pay for a summary"
    if hidden - empty < cost.to_free:
        return f"{hidden} tokens are less than the policy wants to be freed of {cost.tokens}"
    return None


def plan_with_fewer_turns(cost: Budget) -> tuple[Plan, Wish]:
    """Return the plan, and the wish that it follows.

    If the view would still trigger, the kept turns are halved, down to the least that the policy
    keeps; in the end the running turn is cut, by a policy that lets it be.
    """
    planned, wish = _with_whole_turns(cost)
    if not cost.context.policy.within_turn or wish == INSIDE:
        return planned, wish
    if planned.nothing or _would_trigger(cost, planned):
        inside = _inside(cost)
        if inside.last > planned.last:
            return inside, INSIDE
    return planned, wish


def _inside(cost: Budget) -> Plan:
    """Return the plan to cut the running turn.

    If the view would still fill the window, what is kept is halved, as far as the policy lets it.
    """
    planned = plan(cost, INSIDE)
    fewer = _keeping_less(cost.context.policy)
    if fewer == cost.context.policy or not _would_fill(cost, planned):
        return planned
    smaller = _inside(cost._replace(context=cost.context._replace(policy=fewer)))
    return _larger(planned, smaller)


def _keeping_less(policy: Policy) -> Policy:
    """Return a policy that keeps half as many groups and messages, if it may keep fewer."""
    if policy.least_groups is None:
        return policy
    groups = max(policy.keep_groups // 2, policy.least_groups)
    kept = {"keep_groups": min(groups, policy.keep_groups)}
    return policy.model_copy(update={**kept, "keep_messages": policy.keep_messages // 2})


def _with_whole_turns(cost: Budget) -> tuple[Plan, Wish]:
    """Return the plan that keeps the running turn whole, and the wish that it follows."""
    policy = cost.context.policy
    wish = wish_of(cost.context)
    least = policy.least_turns or policy.keep_turns
    while True:
        planned = plan(cost, wish)
        fewer = max(wish.keep_turns // 2, least)
        if fewer >= wish.keep_turns or not _would_trigger(cost, planned):
            return planned, wish
        wish = wish._replace(keep_turns=fewer)


def _would_trigger(cost: Budget, planned: Plan) -> bool:
    """Tell whether the view would still trigger behind a plan, without its summary."""
    policy = cost.context.policy
    tokens = _tokens_behind(cost, planned)
    counts = counts_messages(policy, tokens)
    messages = cost.messages - freed_messages(cost, planned) if counts else 0
    return triggered(policy, messages=messages, tokens=tokens) is not None


def _would_fill(cost: Budget, planned: Plan) -> bool:
    """Tell whether the view would still fill the window behind a plan, without its summary."""
    return fills(cost.context.policy, _tokens_behind(cost, planned))


def _tokens_behind(cost: Budget, planned: Plan) -> int:
    return cost.tokens - with_view_tokens(cost, planned).tokens_hidden


def summaries_to_fold(context: ViewContext) -> Previous:
    """Return the standing summaries that the next one replaces."""
    standing = context.visible.summaries
    if context.policy.previous_summary == "fold":
        return standing[-1:]
    if _fill_much(standing, context.policy):
        return standing
    return ()


def _fill_much(standing: Previous, policy: Policy) -> bool:
    """Tell whether summaries take so much of the window that the next one replaces them all."""
    tokens = estimate_summary_tokens(policy, standing)
    return reaches(tokens, FOLDED_FROM, policy.context_window or 0)


def estimate_savings(policy: Policy, planned: Plan) -> int:
    """Return about how many tokens a compaction would save.

    That is what it hides, less a summary of at most a quarter of that.
    """
    summary = min(planned.tokens_hidden // 4, _longest_summary(policy))
    return max(0, planned.tokens_hidden - summary)


def _longest_summary(policy: Policy) -> int:
    """Return about how many tokens a policy lets a summary have, with its facts and names."""
    chars = policy.summary_max_chars + policy.facts_chars + policy.index_chars
    chars = min(chars, 100_000)
    return estimate("x" * chars)


def _up_to(cost: Budget, cuts: Cuts, cut: int | None) -> Plan:
    """Return the plan to hide everything visible before a cut but the system messages."""
    if cut is None:
        return _nothing(cost, NO_PLACE)
    planned = _cutting(cost, cuts, cut)
    return planned._replace(tokens_hidden=_raw_tokens(cost.context, planned))


def _cutting(cost: Budget, cuts: Cuts, cut: int) -> Plan:
    """Return the plan of a cut, with the tokens that it hides still to be counted."""
    stays = staying(cost.context, cut)
    return Plan(
        first=cuts.start,
        last=cut - 1,
        pinned=tuple(position for position in cuts.pinned if position < cut),
        messages_before=cost.messages,
        tokens_before=cost.tokens,
        tokens_hidden=0,
        staying=stays.places,
        released=stays.released,
        inside=cut > turn_begins(cost.context),
        covered=tuple(each for each in cost.context.visible.holes if each.last < cut),
    )


def _raw_tokens(context: ViewContext, planned: Plan) -> int:
    """Return the estimated tokens, as stored, of the messages that a plan takes out of sight."""
    hidden = estimate_shown_tokens(context, planned.first, planned.last)
    hidden -= sum_tokens(context.raw, (*planned.pinned, *planned.staying))
    return hidden + sum_tokens(context.raw, planned.released)


def _nothing(cost: Budget, why: str) -> Plan:
    start = cost.context.visible.first_kept
    return Plan(start, start - 1, (), cost.messages, cost.tokens, 0, why)
