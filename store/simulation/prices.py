"""What providers bill: what their cache still holds is cheap, what has to be written to it dear."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..history import load_prices

MINUTE = 60_000
USUAL = "claude-sonnet-4-5"
"""The model whose prices count where nothing else is said."""


def _asked(model: str) -> tuple[float, float, float]:
    """Return what cached, written and output tokens of a model cost, by the list of prices."""
    price = load_prices().models[model]
    asked = (price.cached, price.written, price.output)
    cached, written, output = (each / price.input for each in asked)
    return cached, written, output


_CACHED, _WRITTEN, _OUTPUT = _asked(USUAL)


class Prices(NamedTuple):
    """What a provider bills for a token, in units of a plain input token.

    ``lifetime`` is the ms for which its cache holds what it was sent, ``least`` the tokens that a
    beginning must have to be held at all.
    """

    cached: float = _CACHED
    written: float = _WRITTEN
    output: float = _OUTPUT
    lifetime: int = 5 * MINUTE
    least: int = 0


LEAST_HELD = 1_024
"""The tokens that a beginning must have to be cached, with both providers."""
ANTHROPIC = Prices(least=LEAST_HELD)
WRITTEN_FOR_AN_HOUR = 2.0
OF_OPENAI = {"openai 0.1": "gpt-5", "openai 0.25": "gpt-4.1", "openai 0.5": "gpt-4o"}
"""Models of OpenAI's, by what a cached token of theirs costs."""
PROVIDERS = {
    "anthropic": ANTHROPIC,
    "anthropic 1h": ANTHROPIC._replace(written=WRITTEN_FOR_AN_HOUR, lifetime=60 * MINUTE),
    **{
        name: Prices(*_asked(model), lifetime=10 * MINUTE, least=LEAST_HELD)
        for name, model in OF_OPENAI.items()
    },
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
