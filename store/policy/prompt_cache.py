"""The moments of clearing, chosen so that a provider's prompt cache keeps its prefix."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from .field_types import CountNumber, PolicyFieldGroup, RatioNumber

CacheName = Literal["anthropic", "anthropic-1h", "openai", "gemini"]
"""The prompt caches that a policy can name."""


class CachePrices(NamedTuple):
    """The lifetime (ms) of a prompt cache, and its prices in units of a plain input token."""

    lifetime: int
    cached: float = 0.1
    written: float = 1.25

    def price(self, tokens: int, cached: int) -> float:
        """Return the price of a request's input; less than 1,024 tokens are not cached."""
        if tokens < LEAST_CACHED:
            return float(tokens)
        cached = cached if cached >= LEAST_CACHED else 0
        return cached * self.cached + (tokens - cached) * self.written


LEAST_CACHED = 1_024
"""Tokens from which on a beginning is cached."""
PROMPT_CACHES: dict[CacheName, CachePrices] = {
    "anthropic": CachePrices(300_000),
    "anthropic-1h": CachePrices(3_600_000, written=2.0),
    "openai": CachePrices(600_000, written=1.0),
    "gemini": CachePrices(300_000, cached=0.25, written=1.0),
}
"""The prompt caches of providers, as they bill them."""


class PromptCacheFields(PolicyFieldGroup):
    """The moments of clearing, chosen so that a provider's prompt cache keeps its prefix."""

    clearing: Literal["always", "batched", "cold", "bounded"] = "always"
    """Apply the rules above at every view, or only at recorded moments, so that a prompt cache
    keeps its prefix: when the cache is cold anyway, and when much can be freed.

    The amount is set by ``clear_min_freed`` if clearing is batched, and by ``clear_warm_freed`` and
    ``clear_warm_share`` if it is cold. If it is bounded, what pays back soonest is cleared in a
    warm cache, as long as the session's bill stays below ``clear_bound``.
    """
    cache_lifetime: CountNumber | CacheName = 300_000
    """The provider's prompt cache by name, or the ms for which it lives, at Anthropic's prices: it
    is cold once the last request is that old.

    5 minutes with Anthropic, unless 1 hour is paid for; 5 to 10 minutes with OpenAI. If 5 minutes
    were assumed and it was 1 hour, single sessions cost up to 1.5 times as much as sending
    everything. Bounded clearing learns it from usages that tell cached tokens.
    """
    clear_bound: Annotated[float, Field(ge=1, le=100)] = 1.02
    """The session's bill after a bounded clearing, at most, to that of sending everything."""
    clear_min_freed: CountNumber = 20_000
    """When clearing is batched, clear once at least this many tokens would be freed."""
    clear_warm_freed: CountNumber = 60_000
    """When clearing is cold, clear in a warm cache too once this many tokens would be freed, if
    they are ``clear_warm_share`` of the view.

    Never from a lifetime of 1 hour on, because writing the cache anew costs too much. Both numbers
    together reduced the bill from 0.64 to 0.61, with no session over 1.00; at 20,000 tokens alone
    single sessions reached 1.06 to 1.19.
    """
    clear_warm_share: RatioNumber = 0.5
    """The share of the view's tokens that a clearing in a warm cache must free."""
    clear_warm_keep: CountNumber = 20
    """How many newest tool results ``any_tool`` leaves in a warm cache: 20 gave the 0.61."""

    @property
    def prompt_cache(self) -> CachePrices:
        """The lifetime and the prices of the provider's prompt cache."""
        known = self.cache_lifetime
        return CachePrices(known) if isinstance(known, int) else PROMPT_CACHES[known]
