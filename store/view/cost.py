"""The cost of a view before it is built, from narrow rows only."""

from __future__ import annotations

from ..history import load_totals, sum_tokens
from ..policy import Policy
from ..tokens import count_message_tokens, estimate
from .rules import RULES
from .verdicts import estimate_savings, load_verdicts
from .visible_set import ActiveSummary, ViewContext


def estimate_view_tokens(context: ViewContext) -> int:
    """Return the estimated tokens of a line's view without building it; repairs are not counted."""
    summaries = estimate_summary_tokens(context.policy, context.visible.active_summaries)
    kept = estimate_shown_tokens(context, context.visible.first_kept, context.last)
    return (
        kept
        + sum_tokens(context.raw, context.visible.pinned)
        + summaries
        - _estimate_rule_savings(context)
    )


def _estimate_rule_savings(context: ViewContext) -> int:
    """Return about how many tokens the rules save in a look."""
    policy = context.policy
    waits = policy.clearing != "always" and not context.visible.cleared
    if waits or not any(getattr(policy, rule) for rule in RULES):
        return 0
    return sum(estimate_savings(context, load_verdicts(context)).values())


def estimate_shown_tokens(context: ViewContext, first: int, last: int) -> int:
    """Return the estimated tokens, as stored, of the positions that no range hides."""
    return sum(
        _load_span_tokens(context, *span) for span in context.visible.shown_ranges(first, last)
    )


def _load_span_tokens(context: ViewContext, first: int, last: int) -> int:
    return load_totals(context.raw, last).tokens - load_totals(context.raw, first - 1).tokens


def estimate_summary_tokens(policy: Policy, summaries: tuple[ActiveSummary, ...]) -> int:
    """Return the estimated tokens of summaries as they are sent."""
    messages = (each.message(policy) for each in summaries)
    return sum(count_message_tokens(message, estimate) for message in messages)
