"""Whether the provider's prompt cache still holds what the last request sent."""

from __future__ import annotations

from ..history import last_answer, last_usage, moment_at
from ..policy import Policy
from ..view import Look

AN_HOUR = 3_600_000
"""Ms of a lifetime from which on to write a cache costs so much that a warm one is left alone."""


def is_cold(look: Look) -> bool:
    """Tell whether the last request is so long ago that no cache holds it; not where none was."""
    last = _last_request(look)
    return last is not None and look.now - last >= look.policy.cache_lifetime


def lives_long(policy: Policy) -> bool:
    """Tell whether the cache lives so long that it is dear to write."""
    return policy.cache_lifetime >= AN_HOUR


def _last_request(look: Look) -> int | None:
    """Return when the last request was made: by its recorded usage, else by the newest answer."""
    usage = last_usage(look.raw, look.last)
    if usage:
        return usage.at
    answer = last_answer(look.raw, look.last)
    return None if answer is None else moment_at(look.raw, answer)
