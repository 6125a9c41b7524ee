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


def when_cold(policy: Policy) -> Policy:
    """Return a policy that compacts from as many tokens on as it wants while the cache is cold."""
    limits = [policy.compact_cold_from, policy.trigger_tokens]
    least = min(limit for limit in limits if limit is not None)
    return policy.model_copy(update={"trigger_tokens": least})


def any_saving(policy: Policy) -> Policy:
    """Return a policy that makes a compaction however little it frees."""
    return policy.model_copy(update={"least_freed": 0.0})


def counts_messages(policy: Policy, tokens: int) -> bool:
    """Tell whether it matters for a trigger how many messages a view of so many tokens has."""
    if policy.trigger_messages is not None:
        return True
    return policy.min_messages > 0 and _fires_by_tokens(policy, tokens)


def goes_by_messages(policy: Policy, tokens: int) -> bool:
    """Tell whether a policy has a trigger by messages, and none fires by the tokens there are."""
    return policy.trigger_messages is not None and not _fires_by_tokens(policy, tokens)


def _fires_by_tokens(policy: Policy, tokens: int) -> bool:
    return bool(_by_tokens(policy, tokens) or _by_share_of_window(policy, tokens))


def triggered(policy: Policy, *, messages: int, tokens: int) -> str | None:
    """Return which trigger of a policy fires, in words; None where none does."""
    if messages < policy.min_messages:
        return None
    return (
        _by_messages(policy, messages)
        or _by_tokens(policy, tokens)
        or _by_share_of_window(policy, tokens)
    )


def _by_messages(policy: Policy, messages: int) -> str | None:
    most = policy.trigger_messages
    if most is None or messages < most:
        return None
    return f"{messages} messages"


def _by_tokens(policy: Policy, tokens: int) -> str | None:
    limit = policy.trigger_tokens
    if limit is None or tokens < limit:
        return None
    return f"{tokens} tokens, the limit is {limit}"


def _by_share_of_window(policy: Policy, tokens: int) -> str | None:
    if fills(policy, tokens):
        return f"{tokens} of {policy.context_window} tokens"
    return None


def fills(policy: Policy, tokens: int) -> bool:
    """Tell whether tokens are the share of the window, known or not, from which a policy acts."""
    shares = (policy.trigger_ratio, policy.trigger_usage)
    return any(reaches(tokens, share, policy.context_window or 0) for share in shares)


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
    left = _left_by(record)
    if left is None:
        return False
    messages, tokens = left
    return triggered(policy, messages=messages, tokens=tokens + added) is not None


def with_still_over(made: Compaction, policy: Policy, added: int = 0) -> Compaction:
    """Return a compaction that says whether the view it left is at the trigger, or too much."""
    _, tokens = _left_by(made) or (0, 0)
    over = overflows(policy, tokens + added)
    return made._replace(still_over=over or stayed_above(made, policy, added))


def _left_by(record: Compaction) -> tuple[int, int] | None:
    """Return the messages and tokens of the view that a compaction left, where it says so."""
    messages, tokens = record.messages_before, record.tokens_before
    if record.outcome == "applied":
        messages, tokens = record.messages_after, record.tokens_after
    if messages is None or tokens is None:
        return None
    return messages, tokens
