"""What a view costs before it is built; reads narrow rows only."""

from __future__ import annotations

from ..history import measure, tokens_at
from ..policy import Policy
from ..tokens import estimate, message_tokens
from .judging import savings
from .look import Look
from .rejudging import ruled
from .rules import RULES
from .standing import Standing


def view_tokens(look: Look) -> int:
    """Return the estimated tokens of a line's view, without building it; repairs aside."""
    summaries = summary_tokens(look.policy, look.visible.standing)
    kept = shown_tokens(look, look.visible.first_kept, look.last)
    return kept + _pinned_tokens(look) + summaries - _saved(look)


def _saved(look: Look) -> int:
    """Return about how many tokens the rules save of what a look sees."""
    policy = look.policy
    waits = policy.clearing != "always" and not look.visible.cleared
    if waits or not any(getattr(policy, rule) for rule in RULES):
        return 0
    return sum(savings(look, ruled(look)).values())


def shown_tokens(look: Look, first: int, last: int) -> int:
    """Return the estimated tokens, as stored, of what no range hides of some positions."""
    return sum(_span_tokens(look, *span) for span in look.visible.spans(first, last))


def _span_tokens(look: Look, first: int, last: int) -> int:
    return measure(look.raw, last).tokens - measure(look.raw, first - 1).tokens


def _pinned_tokens(look: Look) -> int:
    return tokens_at(look.raw, look.visible.pinned)


def summary_tokens(policy: Policy, standing: tuple[Standing, ...]) -> int:
    """Return the estimated tokens of summaries as they are sent."""
    messages = (each.message(policy) for each in standing)
    return sum(message_tokens(message, estimate) for message in messages)
