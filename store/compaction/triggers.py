"""When a view should be compacted: the triggers of a policy.

Everything here is arithmetic on what a view has. ``tokens`` are what the next request will have: as
the last one really had or as its view has by the estimate, whichever is more, since a usage knows
nothing of what came after it.
"""

from __future__ import annotations

from fractions import Fraction

from ..policy import Policy
from ..records import Compaction


def with_window(policy: Policy, window: int | None) -> Policy:
    """Return a policy for a model's window of so many tokens (None: the policy's own)."""
    if window is None:
        return policy
    return policy.model_copy(update={"context_window": window})


def any_saving(policy: Policy) -> Policy:
    """Return a policy that makes a compaction however little it frees."""
    return policy.model_copy(update={"least_freed": 0.0})


def triggered(policy: Policy, *, messages: int, tokens: int) -> str | None:
    """Return which trigger of a policy fires, in words; None where none does."""
    if messages < policy.min_messages:
        return None
    most, limit = policy.trigger_messages, policy.trigger_tokens
    if most is not None and messages >= most:
        return f"{messages} messages"
    if limit is not None and tokens >= limit:
        return f"{tokens} tokens, the limit is {limit}"
    window = policy.context_window or 0
    if reaches(tokens, policy.trigger_ratio, window):
        return f"{tokens} of {window} tokens"
    if reaches(tokens, policy.trigger_usage, window):
        return f"{tokens} of {window} tokens"
    return None


def reaches(tokens: int, ratio: float | None, window: int) -> bool:
    """Tell whether tokens reach a share of a window, in whole numbers.

    An unknown window is never reached.
    """
    return ratio is not None and window > 0 and tokens >= Fraction(str(ratio)) * window


def overflows(policy: Policy, tokens: int) -> bool:
    """Tell whether tokens are too many to be sent, by the policy's window."""
    return reaches(tokens, policy.overflow_ratio or 1.0, policy.context_window or 0)


def stayed_above(record: Compaction, policy: Policy, added: int = 0) -> bool:
    """Tell whether the view that a compaction left would still trigger, with what is added."""
    messages, tokens = record.messages_after or 0, record.tokens_after or 0
    return triggered(policy, messages=messages, tokens=tokens + added) is not None


def with_still_over(made: Compaction, policy: Policy, added: int = 0) -> Compaction:
    """Return a compaction that says whether the view it left is still at the trigger."""
    messages, tokens = made.messages_before, made.tokens_before
    if made.outcome == "applied":
        messages, tokens = made.messages_after, made.tokens_after
    if messages is None or tokens is None:
        return made
    above = triggered(policy, messages=messages, tokens=tokens + added)
    return made._replace(still_over=above is not None)
