"""What a stored session would have cost by a policy: replayed request by request, with a provider's prompt cache.

The session is told again in a private temporary store, message by message, each at its own moment; whatever the
policy does to a living session, summaries and clearings included, it does here. The source is only read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import select

from .messages import Message
from .policy import Policy, checked
from .records import View
from .schema import tool_kinds
from .statements import Statement
from .store import Store
from .tokens import estimate, message_tokens
from .tool_kinds import TOOL_KINDS

LATEST = 2**62
"""A moment (ms) that no message was said at: one that claims it tells nothing of when it was."""

KINDS = Statement(select(tool_kinds.c.name, tool_kinds.c.kind))


class Prices(NamedTuple):
    """What a provider bills per token, in units of a plain input token, and for how many ms its cache lives."""

    cached: float = 0.1
    written: float = 1.25
    output: float = 5.0
    lifetime: int = 300_000


class Simulated(NamedTuple):
    """What a session costs by a policy: requests, tokens sent, of them read from the cache, and the bill."""

    policy: str
    requests: int
    tokens_sent: int
    tokens_cached: int
    tokens_output: int
    bill: float
    compactions: int
    clearings: int
    largest_request: int


class _Cache(NamedTuple):
    """What a provider still holds: the messages of the last request, and when it was made."""

    messages: list[Message]
    at: int


def simulate(
    store: Store,
    session_id: str,
    policy: Policy,
    *,
    prices: Prices | None = None,
    max_tokens: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulated:
    """Return what a session would have cost by a policy. A request is made before each assistant message.

    Summaries are made by the extractive summarizer; ``max_tokens`` is the model's window. Raises SessionNotFound,
    InvalidPolicy.
    """
    source, policy = store.session(session_id), checked(policy)
    policy = policy.model_copy(update={"tool_kinds": {**_changed_kinds(store), **policy.tool_kinds}})
    with Store(":memory:", durability="normal") as told:
        session = told.create_session(session_id, project_root=source.project_root)
        replay = _Replay(told, session.id, policy, prices or Prices(), max_tokens)
        for page in store.pages(session_id):
            for stored in page:
                replay.tell(stored.message)
            if progress:
                progress(page[-1].seq)
        return replay.outcome()


def _changed_kinds(store: Store) -> dict[str, str]:
    """Return the kinds of tools that a store has otherwise than a new one."""
    with store.database.reading() as connection:
        kinds: dict[str, str] = dict(KINDS.rows(connection))
    removed = dict.fromkeys(TOOL_KINDS.keys() - kinds.keys(), "other")
    return removed | {name: kind for name, kind in kinds.items() if TOOL_KINDS.get(name) != kind}


class _Replay:
    def __init__(self, store: Store, session_id: str, policy: Policy, prices: Prices, max_tokens: int | None) -> None:
        self._store, self._id, self._policy, self._prices, self._window = store, session_id, policy, prices, max_tokens
        self._cache: _Cache | None = None
        self._now = 0
        self._requests = self._sent = self._cached = self._output = self._largest = 0

    def tell(self, message: Message) -> None:
        """Append a message at its own moment, after the request that it answers."""
        timestamp = message.get("timestamp")
        if isinstance(timestamp, int | float) and not isinstance(timestamp, bool) and timestamp < LATEST:
            self._now = max(self._now, int(timestamp))
        if message.get("role") == "assistant":
            self._request()
            self._output += message_tokens(message, estimate)
        self._store.append(self._id, message, now=self._now)

    def outcome(self) -> Simulated:
        """Return the totals."""
        done = [each for each in self._store.compactions(self._id) if each.outcome == "applied"]
        prices, fresh = self._prices, self._sent - self._cached
        return Simulated(
            policy=self._policy.name,
            requests=self._requests,
            tokens_sent=self._sent,
            tokens_cached=self._cached,
            tokens_output=self._output,
            bill=self._cached * prices.cached + fresh * prices.written + self._output * prices.output,
            compactions=sum(each.kind == "summary" for each in done),
            clearings=sum(each.kind == "clear" for each in done),
            largest_request=self._largest,
        )

    def _request(self) -> None:
        self._store.compact_if_needed(self._id, self._policy, max_tokens=self._window, now=self._now)
        view = self._store.view(self._id, self._policy, now=self._now)
        cached = self._held(view)
        self._requests += 1
        self._sent += view.stats.tokens
        self._cached += cached
        self._largest = max(self._largest, view.stats.tokens)
        self._cache = _Cache(view.messages, self._now)
        self._store.record_usage(self._id, input=view.stats.tokens, output=0, cached=cached, now=self._now)

    def _held(self, view: View) -> int:
        """Return the tokens at a request's beginning that the provider's cache still holds."""
        if self._cache is None or self._now - self._cache.at > self._prices.lifetime:
            return 0
        held = 0
        for entry, sent, before in zip(view.entries, view.messages, self._cache.messages, strict=False):
            if sent != before:
                break
            held += entry.tokens
        return held
