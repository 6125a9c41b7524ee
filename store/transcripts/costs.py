"""What a request cost: tokens in the terms of `record_usage`."""

from __future__ import annotations

from operator import add, sub
from typing import NamedTuple

from ..text import Fields


class Tokens(NamedTuple):
    """Tokens of a request: all that was sent, the answer, and what of the first a cache held."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    def less(self, paid: Tokens) -> Tokens:
        """Return the remaining tokens if some are paid already."""
        left = map(sub, self, paid)
        return Tokens(*(max(0, each) for each in left))

    def plus(self, others: Tokens) -> Tokens:
        """Return them with others."""
        return Tokens(*map(add, self, others))


class Spent(NamedTuple):
    """What a request cost: its tokens, who answered, and what the file says (``told``).

    ``name`` tells the answer from all others of its session, where its message does not.
    """

    tokens: Tokens
    model: str | None
    provider: str | None
    told: Fields
    name: str | None = None
