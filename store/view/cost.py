"""The cost of a view before it is built, from narrow rows only."""

from __future__ import annotations

from ..history import sum_tokens
from ..policy import Policy
from ..tokens import count_message_tokens, estimate
from .rules import RULES
from .verdicts import estimate_savings, load_verdicts
from .visible_set import ActiveSummary, ViewContext


def estimate_view_tokens(context: ViewContext) -> int:
    """Return the estimated tokens of a line's view without building it; repairs are not counted."""
    policy, visible = context.policy, context.visible
    tokens = estimate_shown_tokens(context, visible.first_kept, context.last)
    tokens += sum_tokens(context.raw, visible.pinned)
    tokens += estimate_summary_tokens(policy, visible.active_summaries)
    waits = policy.clearing != "always" and not visible.cleared
    if not waits and any(getattr(policy, rule) for rule in RULES):
        tokens -= sum(load_savings(context).values())
    return tokens


def load_savings(context: ViewContext) -> dict[int, int]:
    """Return about how many tokens replacements save in a view, by position; once a request."""
    parts, memo = (context.policy, context.visible), context.cache.memo
    key = ("savings", *map(id, parts), context.last, context.now, context.turn_over)
    if key not in memo:  # with the parts, whose ids are no others' as long as they live
        memo[key] = (parts, estimate_savings(context, load_verdicts(context)))
    saved: dict[int, int] = memo[key][1]
    return saved


def estimate_shown_tokens(context: ViewContext, first: int, last: int) -> int:
    """Return the estimated tokens, as stored, of the positions that no range hides."""
    return sum(
        context.load_tokens(end) - context.load_tokens(begin - 1)
        for begin, end in context.visible.shown_ranges(first, last)
    )


def estimate_summary_tokens(policy: Policy, summaries: tuple[ActiveSummary, ...]) -> int:
    """Return the estimated tokens of summaries as they are sent."""
    messages = (each.message(policy) for each in summaries)
    return sum(count_message_tokens(message, estimate) for message in messages)
