"""What a request cost: tokens in the terms of `record_usage`."""

from __future__ import annotations

from operator import add, sub
from typing import NamedTuple

from ..text import JsonFields


class UsageTokens(NamedTuple):
    """Tokens of a request: all that was sent, the answer, and what of the first a cache held."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    def less(self, paid: UsageTokens) -> UsageTokens:
        """Return the remaining tokens if some are paid already."""
        left = map(sub, self, paid)
        return UsageTokens(*(max(0, each) for each in left))

    def plus(self, others: UsageTokens) -> UsageTokens:
        """Return them with others."""
        return UsageTokens(*map(add, self, others))


class RequestUsage(NamedTuple):
    """What a request cost: its tokens, who answered, and what the file says (``told``).

    ``name`` tells the answer from all others of its session, where its message does not.
    """

    tokens: UsageTokens
    model: str | None
    provider: str | None
    told: JsonFields
    name: str | None = None
