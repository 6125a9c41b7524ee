"""What a stored session would have cost by a policy, and with a provider's prompt cache.

The session is told again in a private temporary store, message by message, each at its own moment;
whatever the policy does to a living session, summaries and clearings included, it does here. The
source is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .clock import LONGEST_TIME, SECONDS_BELOW
from .history import stored_kinds
from .messages import Message, moment_of
from .policy import Policy, checked
from .records import View
from .store import Store
from .tokens import estimate, message_tokens
from .tools import TOOL_KINDS


class Prices(NamedTuple):
    """What a provider bills for a token, in units of a plain input token.

    ``lifetime`` is the ms for which its cache holds what it was sent.
    """

    cached: float = 0.1
    written: float = 1.25
    output: float = 5.0
    lifetime: int = 300_000


class Simulated(NamedTuple):
    """What a session costs by a policy: requests, tokens, compactions, and the bill for all."""

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
    """Return what a session would have cost by a policy.

    A request is made before each assistant message; summaries are made by the extractive
    summarizer. ``max_tokens`` is the model's window; ``progress`` gets the last position told.
    Raises SessionNotFound, InvalidPolicy.
    """
    source = store.session(session_id)
    policy = _with_kinds_of(store, checked(policy))
    with Store(":memory:", durability="normal") as told:
        session = told.create_session(session_id, project_root=source.project_root)
        replay = _Replay(told, session.id, policy, prices or Prices(), max_tokens)
        for page in store.pages(session_id):
            for stored in page:
                replay.tell(stored.message)
            if progress:
                progress(page[-1].seq)
        return replay.outcome()


def _with_kinds_of(store: Store, policy: Policy) -> Policy:
    """Return a policy under which a new store knows tools as this one does."""
    kinds = {**_changed_kinds(store), **policy.tool_kinds}
    return policy.model_copy(update={"tool_kinds": kinds})


def _changed_kinds(store: Store) -> dict[str, str]:
    """Return the kinds of tools that a store has otherwise than a new one."""
    known = {**dict.fromkeys(TOOL_KINDS, "other"), **_kinds(store)}
    return dict(known.items() - TOOL_KINDS.items())


def _kinds(store: Store) -> Mapping[str, str]:
    with store.database.reading() as connection:
        return stored_kinds(connection)


class _Replay:
    """A session that is told again, and what its requests came to."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        policy: Policy,
        prices: Prices,
        max_tokens: int | None,
    ) -> None:
        self._store = store
        self._id = session_id
        self._policy = policy
        self._prices = prices
        self._window = max_tokens
        self._cache: _Cache | None = None
        self._now = SECONDS_BELOW  # until a message tells a moment
        self._requests = self._sent = self._cached = self._output = self._largest = 0

    def tell(self, message: Message) -> None:
        """Append a message at its own moment, after the request that it answers."""
        moment = moment_of(message)
        if moment is not None and moment < LONGEST_TIME:
            self._now = max(self._now, moment)
        if message.get("role") == "assistant":
            self._request()
            self._output += message_tokens(message, estimate)
        self._store.append(self._id, message, now=self._now)

    def outcome(self) -> Simulated:
        """Return the totals."""
        done = [each for each in self._store.compactions(self._id) if each.outcome == "applied"]
        return Simulated(
            policy=self._policy.name,
            requests=self._requests,
            tokens_sent=self._sent,
            tokens_cached=self._cached,
            tokens_output=self._output,
            bill=self._bill(),
            compactions=sum(each.kind == "summary" for each in done),
            clearings=sum(each.kind == "clear" for each in done),
            largest_request=self._largest,
        )

    def _bill(self) -> float:
        prices = self._prices
        bill = self._cached * prices.cached
        bill += (self._sent - self._cached) * prices.written
        return bill + self._output * prices.output

    def _request(self) -> None:
        """Send what the policy would send now."""
        self._compact()
        view = self._view()
        self._count(view)
        self._cache = _Cache(view.messages, self._now)

    def _compact(self) -> None:
        self._store.compact_if_needed(
            self._id,
            self._policy,
            max_tokens=self._window,
            now=self._now,
        )

    def _view(self) -> View:
        return self._store.view(self._id, self._policy, now=self._now)

    def _count(self, view: View) -> None:
        """Count a request, and record what it came to."""
        tokens = view.stats.tokens
        cached = self._held(view)
        self._requests += 1
        self._sent += tokens
        self._cached += cached
        self._largest = max(self._largest, tokens)
        self._store.record_usage(
            self._id,
            input=tokens,
            output=0,
            cached=cached,
            now=self._now,
        )

    def _held(self, view: View) -> int:
        """Return the tokens at a request's beginning that the provider's cache still holds."""
        if self._cache is None or self._now - self._cache.at > self._prices.lifetime:
            return 0
        return _same_beginning(view, self._cache.messages)


def _same_beginning(view: View, before: list[Message]) -> int:
    """Return the tokens of a view's messages up to the first that differs from those before."""
    same = 0
    for entry, message, earlier in zip(view.entries, view.messages, before, strict=False):
        if message != earlier:
            break
        same += entry.tokens
    return same
