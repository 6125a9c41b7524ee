"""What a provider bills: what its prompt cache still holds is cheap, what it has to write is dear.

A cache is a tree of prefixes. Each request walks down from the root, a message a step, and leaves
its time at every node; the next one pays the low price as far down as it finds a time that is not
too old. So a branch that was left, such as the request of another fork, is found again while it
lives, as with the providers.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

MINUTE = 60_000
LEAST_CACHED = 1_024
"""Tokens from which on a prefix is cached at all, with both providers."""
STATIC = 15_000
"""Tokens of a system prompt and tools, which recordings leave out: what coding agents send."""


class Prices(NamedTuple):
    """What a token costs, in units of a plain input token, and for how many ms the cache lives.

    ``output`` 0 leaves answers out of the bill. ``static`` tokens stand in front of every request.
    """

    cached: float
    written: float
    lifetime: int
    output: float = 0.0
    static: int = 0


ANTHROPIC = Prices(cached=0.1, written=1.25, lifetime=5 * MINUTE)
OPENAI = Prices(cached=0.1, written=1.0, lifetime=10 * MINUTE)
PROVIDERS = {
    "anthropic": ANTHROPIC,
    "with output": ANTHROPIC._replace(output=5.0),
    "15k static": ANTHROPIC._replace(static=STATIC),
    "anthropic 1 h": ANTHROPIC._replace(written=2.0, lifetime=60 * MINUTE),
    "openai 0.1": OPENAI,
    "openai 0.25": OPENAI._replace(cached=0.25),
    "openai 0.5": OPENAI._replace(cached=0.5),
}
"""The bills that are drawn up, the first of them in detail."""


class Request(NamedTuple):
    """A request at a moment (ms): its messages as numbers, equal for equal ones; all tokens.

    ``missed``: its model has to call something back first; ``carried`` are tokens called back.
    """

    at: int
    messages: tuple[int, ...]
    tokens: tuple[int, ...]
    output: int = 0
    missed: bool = False
    carried: int = 0

    @property
    def sent(self) -> int:
        """All tokens of its messages."""
        return sum(self.tokens)


def bill(requests: Iterable[Request], prices: Prices) -> float:
    """Return what the requests of a session cost, in plain input tokens."""
    cache = Cache(prices)
    return sum(_cost(request, cache.take(request), prices) for request in requests)


def _cost(request: Request, cached: int, prices: Prices) -> float:
    """Return what a request costs; one that is too short for the cache is not written either."""
    whole = request.sent + prices.static
    written = prices.written if whole >= LEAST_CACHED else 1.0
    inputs = cached * prices.cached + (whole - cached) * written
    return inputs + request.output * prices.output


class Cache:
    """What a provider holds of earlier requests."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._numbers: dict[tuple[int, int], int] = {}
        self._used: dict[int, int] = {}

    def take(self, request: Request) -> int:
        """Return the tokens held of a request's beginning, and hold all of it from then."""
        nodes = self._nodes(request)
        fresh = [*takewhile(lambda node: self._is_fresh(node, request.at), nodes)]
        self._used.update(dict.fromkeys(nodes, request.at))
        held = sum(self._tokens(request)[: len(fresh)])
        return held if held >= LEAST_CACHED else 0

    def _is_fresh(self, node: int, at: int) -> bool:
        return node in self._used and at - self._used[node] < self._prices.lifetime

    def _nodes(self, request: Request) -> list[int]:
        """Return the nodes on a request's way down; node 0 is what is static."""
        nodes = [0]
        for message in request.messages:
            step = nodes[-1], message
            nodes.append(self._numbers.setdefault(step, len(self._numbers) + 1))
        return nodes

    def _tokens(self, request: Request) -> tuple[int, ...]:
        return self._prices.static, *request.tokens
