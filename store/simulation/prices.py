"""Prices of providers: tokens in their cache are cheap, those written to it are expensive."""

from __future__ import annotations

from typing import NamedTuple

from .. import load_prices

MINUTE_MS = 60_000
DEFAULT_MODEL = "claude-sonnet-4-5"
"""The model whose prices are used by default."""


def _find_ratios(model: str) -> tuple[float, float, float]:
    """Return the prices of cached, written and output tokens, in units of an input token."""
    _, _, _, plain, *others = load_prices().models[model]
    cached, written, output = ((price or 0.0) / (plain or 1.0) for price in others)
    return cached, written, output


_CACHED, _WRITTEN, _OUTPUT = _find_ratios(DEFAULT_MODEL)


class Prices(NamedTuple):
    """The prices of a provider for a token, in units of a plain input token.

    ``lifetime`` is the time (ms) for which its cache holds a request, ``least`` the tokens that the
    beginning of a request must have to be cached at all.
    """

    cached: float = _CACHED
    written: float = _WRITTEN
    output: float = _OUTPUT
    lifetime: int = 5 * MINUTE_MS
    least: int = 0


LEAST_CACHED_TOKENS = 1_024
"""The tokens that a beginning must have to be cached, with both providers."""
ANTHROPIC_PRICES = Prices(least=LEAST_CACHED_TOKENS)
WRITTEN_FOR_AN_HOUR = 2.0
OPENAI_MODELS = {"openai 0.1": "gpt-5", "openai 0.25": "gpt-4.1", "openai 0.5": "gpt-4o"}
"""Models of OpenAI, by the price of a cached token."""
PROVIDERS = {
    "anthropic": ANTHROPIC_PRICES,
    "anthropic 1h": ANTHROPIC_PRICES._replace(written=WRITTEN_FOR_AN_HOUR, lifetime=60 * MINUTE_MS),
    **{
        name: Prices(*_find_ratios(model), lifetime=10 * MINUTE_MS, least=LEAST_CACHED_TOKENS)
        for name, model in OPENAI_MODELS.items()
    },
}
"""The compared providers: by the lifetime of their cache, or the price of cached tokens."""


RECALLED_TOKENS, RECALL_CALL_TOKENS = 2_000, 60
"""The tokens of an answer of recall, and of a call of it."""


class SentRequest(NamedTuple):
    """A request: its tokens, those that it begins with as the one before did, and of its answer.

    ``after`` are the ms since the one before; None for the first. ``missed``: its answer needs what
    a call of recall would have to bring first; ``carried`` are tokens of answers of recall.
    """

    tokens: int
    same: int
    output: int
    after: int | None
    missed: bool = False
    carried: int = 0

    def cached(self, prices: Prices) -> int:
        """Return the tokens that the cache still holds."""
        if self.after is None or self.after >= prices.lifetime:
            return 0
        return self.same if self.same >= prices.least else 0

    def bill(self, prices: Prices) -> float:
        """Return the price of it; a request too short for the cache is not written to it."""
        cached = self.cached(prices)
        written = prices.written if self.tokens >= prices.least else min(1.0, prices.written)
        inputs = cached * prices.cached + (self.tokens - cached) * written
        return inputs + self.output * prices.output

    def recall_bill(self, prices: Prices) -> float:
        """Return the price of recalls: a request that asks, its answer, and those carried on."""
        bill = self.carried * prices.cached
        if self.missed:
            bill += (self.tokens + self.carried) * prices.cached
            bill += RECALLED_TOKENS * prices.written + RECALL_CALL_TOKENS * prices.output
        return bill
