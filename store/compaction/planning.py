"""What a compaction would hide.

What stays is the union of what the policy's parts protect, and always the current turn. From there
the legal cut nearest to the policy's window is taken.
"""

from __future__ import annotations

from typing import NamedTuple

from ..history import measure, tokens_at
from ..policy import Policy
from ..tokens import estimate, message_tokens
from ..view import Look, Standing, Visible, as_message, summary_tokens
from .budget import Budget
from .cuts import Cuts, cuts_before, first_kept
from .open_turn import newest_groups, staying, turn_begins
from .triggers import reaches, triggered

FOLDED_FROM = 0.25
"""The share of the window from which on summaries that stand beside each other are folded into the
next one.
"""


NO_PLACE = "there is no place to cut before what the policy keeps"


class Plan(NamedTuple):
    """What a compaction would do: hide ``first`` to ``last`` except ``pinned``.

    ``nothing`` says why it would not. Where it cuts the running turn, ``staying`` says what of that
    stays visible though the summary tells of it, ``inside`` that there is more to come.
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

    @property
    def messages(self) -> int:
        """How many messages a summary would tell of."""
        return self.last - self.first + 1 - len(self.pinned)

    @property
    def freed(self) -> int:
        """How many messages fewer would be visible, summaries aside."""
        return self.messages - len(self.staying) + len(self.released)

    @property
    def hidden_first(self) -> int:
        """The first position that would be hidden, or that was pinned until now."""
        return min((self.first, *self.released))

    def left_of(self, visible: Visible) -> Visible:
        """Return what stays visible, the summary aside."""
        return visible.without(self.last + 1, (*self.pinned, *self.staying), self.released)

    def pins(self, visible: Visible) -> list[int]:
        """Return the positions of the hidden range that stay visible."""
        return [place for place in self.left_of(visible).pinned if place >= self.hidden_first]


class Wish(NamedTuple):
    """What a plan is to be like, where it is not by the policy alone.

    It may keep fewer turns, hide no more messages than a transcript can show (``reach``), or cut
    at another boundary. With no turn kept the running one may be cut between its groups.
    """

    keep_turns: int
    boundary: str
    reach: int | None = None

    def ideal(self, start: int, kept: int, window: int | None) -> int:
        """Return the best cut from ``start`` to ``kept``, legal or not."""
        wanted = window if self.reach is None else self.reach
        if wanted is None:
            return kept
        return min(kept, start + wanted)

    def least(self, window: int | None) -> int:
        """Return how many messages a cut had better hide: half of the policy's window."""
        if window is None or self.reach is not None:
            return 1
        return max(1, window // 2)


INSIDE = Wish(0, "group")
"""The wish to cut the running turn."""


def wish_of(look: Look) -> Wish:
    """Return what a policy wishes of a plan; a line without a user is all one running turn."""
    if not turn_begins(look):
        return INSIDE
    return Wish(look.policy.keep_turns, look.policy.boundary)


def plan(cost: Budget, wish: Wish) -> Plan:
    """Return what a compaction of a line would hide."""
    look, window = cost.look, cost.look.policy.window_messages
    start, kept = look.visible.first_kept, first_kept(look, wish.keep_turns)
    if kept <= start:
        return _nothing(cost, "there is nothing before what the policy keeps")
    ideal, least = wish.ideal(start, kept, window), wish.least(window)
    cuts = cuts_before(look, kept, turns_only=wish.boundary == "turn")
    enough = cuts.last(ideal, least) or cuts.first(least)
    return _up_to(cost, cuts, enough or cuts.last(ideal) or cuts.first())


def trim(cost: Budget, spare: int = 0) -> Plan:
    """Return what must be hidden to keep to a policy's hard limit of messages.

    The oldest turns; of the current one only what the policy lets go. ``spare`` is how many
    messages will be added in the place of what goes.
    """
    look, limit = cost.look, cost.look.policy.hard_limit
    if look.policy.on_failure != "trim" or limit is None or cost.messages <= limit:
        return _nothing(cost, "the view is within the hard limit")
    excess, begins = cost.messages - limit + spare, turn_begins(look)
    planned = _nothing(cost, NO_PLACE)
    if begins:
        planned = _oldest(cost, cuts_before(look, begins), excess)
    if planned.freed < excess and (look.policy.within_turn or not begins):
        groups = cuts_before(look, newest_groups(look), turns_only=False)
        planned = _larger(planned, _oldest(cost, groups, excess))
    return planned


def _oldest(cost: Budget, cuts: Cuts, count: int) -> Plan:
    """Return the plan to hide so many of the oldest messages, or as many as can be.

    For each that stays one more has to go.
    """
    wanted = count
    while True:
        cut = cuts.first(wanted)
        planned = _up_to(cost, cuts, cut or cuts.last(cuts.kept))
        if cut is None or planned.freed >= count:
            return planned
        wanted += count - planned.freed


def _larger(planned: Plan, other: Plan) -> Plan:
    """Return the plan that hides more."""
    return other if other.last > planned.last else planned


def with_view_tokens(cost: Budget, planned: Plan) -> Plan:
    """Return a plan whose hidden tokens are those of the view.

    What the rules save already is not saved again.
    """
    if planned.nothing:
        return planned
    left = cost.tokens_with(planned.left_of(cost.look.visible))
    return planned._replace(tokens_hidden=cost.tokens - left)


def frees_too_little(cost: Budget, planned: Plan) -> str | None:
    """Say that not even an empty summary would free what the policy asks for; None where it may.

    ``planned`` hides the tokens of the view.
    """
    empty = message_tokens(as_message("", None, cost.look.policy), estimate)
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
    if not cost.look.policy.within_turn or wish == INSIDE:
        return planned, wish
    if planned.nothing or _would_trigger(cost, planned):
        inside = plan(cost, INSIDE)
        if inside.last > planned.last:
            return inside, INSIDE
    return planned, wish


def _with_whole_turns(cost: Budget) -> tuple[Plan, Wish]:
    """Return the plan that keeps the running turn whole, and the wish that it follows."""
    policy = cost.look.policy
    wish = wish_of(cost.look)
    least = policy.least_turns or policy.keep_turns
    while True:
        planned = plan(cost, wish)
        fewer = max(wish.keep_turns // 2, least)
        if fewer >= wish.keep_turns or not _would_trigger(cost, planned):
            return planned, wish
        wish = wish._replace(keep_turns=fewer)


def _would_trigger(cost: Budget, planned: Plan) -> bool:
    """Tell whether the view would still trigger behind a plan, without its summary."""
    messages, tokens = cost.messages, cost.tokens
    if not planned.nothing:
        messages -= planned.freed
        tokens -= with_view_tokens(cost, planned).tokens_hidden
    return triggered(cost.look.policy, messages=messages, tokens=tokens) is not None


def summaries_to_fold(look: Look) -> tuple[Standing, ...]:
    """Return the standing summaries that the next one replaces."""
    policy, standing = look.policy, look.visible.summaries
    if policy.previous_summary == "fold":
        return standing[-1:]
    if reaches(summary_tokens(policy, standing), FOLDED_FROM, policy.context_window or 0):
        return standing
    return ()


def savings(policy: Policy, planned: Plan) -> int:
    """Return about how many tokens a compaction would save.

    That is what it hides, less a summary of at most a quarter of that.
    """
    longest = min(policy.summary_max_chars + policy.facts_chars, 100_000)
    summary = min(planned.tokens_hidden // 4, estimate("x" * longest))
    return max(0, planned.tokens_hidden - summary)


def _up_to(cost: Budget, cuts: Cuts, cut: int | None) -> Plan:
    """Return the plan to hide everything visible before a cut but the system messages."""
    if cut is None:
        return _nothing(cost, NO_PLACE)
    look = cost.look
    pinned = tuple(position for position in cuts.pinned if position < cut)
    stays, released = staying(look, cut)
    hidden = _raw_tokens(look, cuts.start, cut - 1, (*pinned, *stays))
    hidden += tokens_at(look.raw, released)
    return Plan(
        first=cuts.start,
        last=cut - 1,
        pinned=pinned,
        messages_before=cost.messages,
        tokens_before=cost.tokens,
        tokens_hidden=hidden,
        staying=stays,
        released=released,
        inside=cut > turn_begins(look),
    )


def _raw_tokens(look: Look, first: int, last: int, pinned: tuple[int, ...]) -> int:
    """Return the estimated tokens of a range as it was stored, without its pinned messages."""
    line = look.raw
    before = measure(line, first - 1).tokens
    through = measure(line, last).tokens
    return through - before - tokens_at(line, pinned)


def _nothing(cost: Budget, why: str) -> Plan:
    start = cost.look.visible.first_kept
    return Plan(start, start - 1, (), cost.messages, cost.tokens, 0, why)
