"""What a view costs before it is built; reads narrow rows only."""

from __future__ import annotations

from ..history import measure, tokens_at
from ..policy import Policy
from ..tokens import estimate, message_tokens
from .hiding import Standing
from .judging import saved
from .look import Look


def view_tokens(look: Look) -> int:
    """Return the estimated tokens of a line's view, without building it; repairs aside."""
    summaries = summary_tokens(look.policy, look.visible.summaries)
    return _kept_tokens(look) + _pinned_tokens(look) + summaries - saved(look)


def _kept_tokens(look: Look) -> int:
    return _tokens_through(look, look.last) - _tokens_through(look, look.visible.first_kept - 1)


def _tokens_through(look: Look, position: int) -> int:
    return measure(look.raw, position).tokens


def _pinned_tokens(look: Look) -> int:
    return tokens_at(look.raw, look.visible.pinned)


def summary_tokens(policy: Policy, standing: tuple[Standing, ...]) -> int:
    """Return the estimated tokens of summaries as they are sent."""
    messages = (each.message(policy) for each in standing)
    return sum(message_tokens(message, estimate) for message in messages)
