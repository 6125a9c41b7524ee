"""A stored session told again in a private temporary store, message by message at its own moments.

Whatever the policy does to a living session, summaries and clearings included, it does here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ..clock import LONGEST_TIME, SECONDS_BELOW
from ..face import Store
from ..history import load_tool_kinds
from ..messages import Message, find_message_time
from ..policy import Policy, checked
from ..records import View
from ..tokens import estimate, message_tokens
from ..tools import TOOL_KINDS
from .prices import Prices, Sent, bill_of
from .reuse import Needs

Progress = Callable[[int], None]


class Simulated(NamedTuple):
    """What a session costs by a policy: requests, tokens, compactions, and the bill for all.

    ``sent`` are the tokens of each request. ``reuse`` is the share of the names that the model says
    again that was in sight when it needed them, None where it needed none.
    """

    policy: str
    requests: int
    tokens_sent: int
    tokens_cached: int
    tokens_output: int
    bill: float
    compactions: int
    clearings: int
    largest_request: int
    sent: tuple[int, ...] = ()
    reuse: float | None = None


class _Cache(NamedTuple):
    """The messages of the last request, and when it was made."""

    messages: list[Message]
    at: int


def simulate(
    store: Store,
    session_id: str,
    policy: Policy,
    *,
    prices: Prices | None = None,
    max_tokens: int | None = None,
    progress: Progress | None = None,
) -> Simulated:
    """Return what a session would have cost by a policy, such as ``Policy.named("agent")``.

    A request is made before each assistant message; summaries are made by the extractive
    summarizer. ``max_tokens`` is the model's window; ``progress`` gets the last position told. A
    policy that names no ``cache_lifetime`` of its own is told the provider's. Raises
    SessionNotFound, InvalidPolicy.
    """
    one = {"": prices or Prices()}
    told = compare(store, session_id, policy, one, max_tokens=max_tokens, progress=progress)
    return told[""]


def compare(
    store: Store,
    session_id: str,
    policy: Policy,
    providers: Mapping[str, Prices],
    *,
    max_tokens: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Simulated]:
    """Return what a session would have cost by a policy with each of some providers, by name.

    It is told again once for each lifetime of their caches, if the policy goes by that; else once
    for all. All else as `simulate` has it.
    """
    session = store.session(session_id)
    policy = _with_kinds_of(store, checked(policy))
    told: dict[int, _Replay] = {}
    found: dict[str, Simulated] = {}
    for name, prices in providers.items():
        known = _told_of(policy, prices)
        if known.cache_lifetime not in told:
            replay = _Replay(session.id, known, max_tokens, session.project_root)
            told[known.cache_lifetime] = replay.of(store, progress)
        found[name] = told[known.cache_lifetime].outcome(prices)
    return found


def _told_of(policy: Policy, prices: Prices) -> Policy:
    """Return a policy that knows how long a provider's cache lives, if it goes by that."""
    if policy.clearing == "always" and policy.compact_cold_from is None:
        return policy
    if "cache_lifetime" in policy.model_fields_set:
        return policy
    return policy.model_copy(update={"cache_lifetime": prices.lifetime})


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
        return load_tool_kinds(connection)


class _Replay:
    """A session that is told again, and what its requests came to."""

    def __init__(
        self, session_id: str, policy: Policy, max_tokens: int | None, project_root: str | None
    ) -> None:
        self._id = session_id
        self._policy = policy
        self._window = max_tokens
        self._root = project_root
        self._cache: _Cache | None = None
        self._now = SECONDS_BELOW  # until a message tells a moment
        self._requests: list[Sent] = []
        self._done: dict[str, int] = {}
        self._reuse: float | None = None

    def of(self, source: Store, progress: Progress | None) -> _Replay:
        """Tell the session as a store has it, from its first message to its last."""
        needs = Needs(_messages(source, self._id))
        with Store(":memory:", durability="normal") as told:
            told.create_session(self._id, project_root=self._root)
            for position, message in enumerate(_messages(source, self._id), 1):
                self._tell(told, message, needs)
                if progress:
                    progress(position)
            self._done = _applied(told, self._id)
        self._reuse = needs.share
        return self

    def outcome(self, prices: Prices) -> Simulated:
        """Return the totals at a provider's prices."""
        sent = tuple(request.tokens for request in self._requests)
        return Simulated(
            policy=self._policy.name,
            requests=len(sent),
            tokens_sent=sum(sent),
            tokens_cached=sum(request.cached(prices) for request in self._requests),
            tokens_output=sum(request.output for request in self._requests),
            bill=bill_of(self._requests, prices),
            compactions=self._done.get("summary", 0),
            clearings=self._done.get("clear", 0),
            largest_request=max(sent, default=0),
            sent=sent,
            reuse=self._reuse,
        )

    def _tell(self, told: Store, message: Message, needs: Needs) -> None:
        """Append a message at its own moment, after the request that it answers."""
        moment = find_message_time(message)
        if moment is not None and moment < LONGEST_TIME:
            self._now = max(self._now, moment)
        if message.get("role") == "assistant":
            needs.look(self._request(told, message_tokens(message, estimate)))
        told.append(self._id, message, now=self._now)

    def _request(self, told: Store, output: int) -> View:
        """Send what the policy would send now."""
        told.compact_if_needed(self._id, self._policy, max_tokens=self._window, now=self._now)
        view = told.view(self._id, self._policy, now=self._now)
        sent = self._sent(view, output)
        told.record_usage(self._id, input=sent.tokens, output=0, cached=sent.same, now=self._now)
        self._requests.append(sent)
        self._cache = _Cache(view.messages, self._now)
        return view

    def _sent(self, view: View, output: int) -> Sent:
        """Return a request, with what of it is as in the one before."""
        before = self._cache
        if before is None:
            return Sent(view.stats.tokens, 0, output, None)
        same = _same_beginning(view, before.messages)
        return Sent(view.stats.tokens, same, output, self._now - before.at)


def _messages(source: Store, session_id: str) -> Iterator[Message]:
    """Yield the messages of a session, in order."""
    for page in source.pages(session_id):
        for stored in page:
            yield stored.message


def _applied(told: Store, session_id: str) -> dict[str, int]:
    """Return how many compactions of each kind were applied to a session."""
    kinds = [each.kind for each in told.compactions(session_id) if each.outcome == "applied"]
    return {kind: kinds.count(kind) for kind in kinds}


def _same_beginning(view: View, before: list[Message]) -> int:
    """Return the tokens of a view's messages up to the first that differs from those before."""
    same = 0
    for entry, message, earlier in zip(view.entries, view.messages, before, strict=False):
        if message != earlier:
            break
        same += entry.tokens
    return same
