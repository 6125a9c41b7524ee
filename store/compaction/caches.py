"""Whether the provider's prompt cache still holds what the last request sent."""

from __future__ import annotations

from ..history import find_last_answer, find_last_usage, load_message_time
from ..policy import Policy
from ..view import ViewContext

AN_HOUR = 3_600_000
"""Ms of a lifetime from which on to write a cache costs so much that a warm one is left alone."""


def is_cold(context: ViewContext) -> bool:
    """Tell whether the last request is so long ago that no cache holds it; not where none was."""
    last = _last_request(context)
    return last is not None and context.now - last >= context.policy.cache_lifetime


def lives_long(policy: Policy) -> bool:
    """Tell whether the cache lives so long that it is dear to write."""
    return policy.cache_lifetime >= AN_HOUR


def _last_request(context: ViewContext) -> int | None:
    """Return when the last request was made: by its recorded usage, else by the newest answer."""
    usage = find_last_usage(context.raw, context.last)
    if usage:
        return usage.at
    answer = find_last_answer(context.raw, context.last)
    return None if answer is None else load_message_time(context.raw, answer)
