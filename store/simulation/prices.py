"""What providers bill: what their cache still holds is cheap, what has to be written to it dear."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MINUTE = 60_000


class Prices(NamedTuple):
    """What a provider bills for a token, in units of a plain input token.

    ``lifetime`` is the ms for which its cache holds what it was sent, ``least`` the tokens that a
    beginning must have to be held at all.
    """

    cached: float = 0.1
    written: float = 1.25
    output: float = 5.0
    lifetime: int = 5 * MINUTE
    least: int = 0


LEAST_HELD = 1_024
"""The tokens that a beginning must have to be cached, with both providers."""
ANTHROPIC = Prices(least=LEAST_HELD)
OPENAI = Prices(written=1.0, output=4.0, lifetime=10 * MINUTE, least=LEAST_HELD)
PROVIDERS = {
    "anthropic": ANTHROPIC,
    "anthropic 1h": ANTHROPIC._replace(written=2.0, lifetime=60 * MINUTE),
    "openai 0.1": OPENAI,
    "openai 0.25": OPENAI._replace(cached=0.25),
    "openai 0.5": OPENAI._replace(cached=0.5),
}
"""What is compared: providers with the lifetimes of their caches, or what cached tokens cost."""


class Sent(NamedTuple):
    """A request: its tokens, those of the beginning that the one before had, and of its answer.

    ``after`` are the ms since the one before; None for the first.
    """

    tokens: int
    same: int
    output: int
    after: int | None

    def cached(self, prices: Prices) -> int:
        """Return the tokens that the cache still holds."""
        if self.after is None or self.after >= prices.lifetime:
            return 0
        return self.same if self.same >= prices.least else 0

    def bill(self, prices: Prices) -> float:
        """Return what it costs; what is too short for the cache is not written to it."""
        cached = self.cached(prices)
        written = prices.written if self.tokens >= prices.least else min(1.0, prices.written)
        inputs = cached * prices.cached + (self.tokens - cached) * written
        return inputs + self.output * prices.output


def bill_of(requests: Iterable[Sent], prices: Prices) -> float:
    """Return what requests cost together."""
    return sum(request.bill(prices) for request in requests)
