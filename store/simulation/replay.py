"""The replay of a stored session in a private temporary store, message by message at their times.

The policy has the same effects as on a live session, summaries and clearings included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from .. import Store
from ..clock import LONGEST_TIME, SECONDS_LIMIT
from ..inspection import load_tool_kinds
from ..policy import PROMPT_CACHES, Policy, check_policy
from ..records import Entry, Message, View, find_message_time
from ..tokens import count_message_tokens, estimate
from ..tools import TOOL_KINDS, TextName
from .context_recall import ContextRecall
from .prices import RECALLED_TOKENS, Prices, SentRequest

ReplayProgress = Callable[[int], None]


class Simulated(NamedTuple):
    """The cost of a session by a policy: requests, tokens, compactions, and the bill for all.

    ``sent`` are the tokens of each request, ``bills`` the share of each in the bill. ``reuse`` is
    the share of the names repeated by the model that were in the request when it needed them, None
    if it needed none. ``misses`` are the requests whose answers call tools with a name that was out
    of sight, and that a model would have to recall first; ``recalled_bill`` is the bill with that.
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
    bills: tuple[float, ...] = ()
    misses: int = 0
    recalled_bill: float = 0.0


class CachedRequest(NamedTuple):
    """The entries of the last request, its messages, and when it was made."""

    entries: tuple[Entry, ...]
    messages: list[Message]
    at: int


def simulate(
    store: Store,
    session_id: str,
    policy: Policy,
    *,
    prices: Prices | None = None,
    max_tokens: int | None = None,
    progress: ReplayProgress | None = None,
) -> Simulated:
    """Return the cost of a session by a policy, such as ``Policy.named("agent")``.

    A request is made before each assistant message; summaries are made by the extractive
    summarizer. ``max_tokens`` is the model's window; ``progress`` gets the last position replayed.
    A policy that names no ``cache_lifetime`` of its own gets that of the provider. Raises
    SessionNotFound, InvalidPolicy.
    """
    provider = {"": prices or Prices()}
    costs = compare(store, session_id, policy, provider, max_tokens=max_tokens, progress=progress)
    return costs[""]


def compare(
    store: Store,
    session_id: str,
    policy: Policy,
    providers: Mapping[str, Prices],
    *,
    max_tokens: int | None = None,
    progress: ReplayProgress | None = None,
) -> dict[str, Simulated]:
    """Return the cost of a session by a policy with each of some providers, by name.

    The session is replayed once for each lifetime of their caches, if the policy depends on that;
    else once for all. Otherwise as `simulate`.
    """
    session = store.session(session_id)
    policy = check_policy(policy)
    with store.database.reading() as connection:
        stored = load_tool_kinds(connection)
    # The private store knows tools as the source does: by the kinds that differ from a new store.
    kinds = {**dict.fromkeys(TOOL_KINDS, "other"), **stored}
    changed = dict(kinds.items() - TOOL_KINDS.items())
    policy = policy.model_copy(update={"tool_kinds": {**changed, **policy.tool_kinds}})
    depends_on_cache = policy.clearing != "always" or policy.compact_cold_from is not None
    replays: dict[int, SessionReplay] = {}
    costs: dict[str, Simulated] = {}
    for name, prices in providers.items():
        by_provider = policy
        if depends_on_cache and "cache_lifetime" not in policy.model_fields_set:
            by_provider = policy.model_copy(update={"cache_lifetime": _name_cache(prices)})
        lifetime = by_provider.prompt_cache.lifetime
        if lifetime not in replays:
            replay = SessionReplay(session.id, by_provider, max_tokens, session.project_root)
            replay.run(store, progress)
            replays[lifetime] = replay
        costs[name] = replays[lifetime].price(prices)
    return costs


def _name_cache(prices: Prices) -> str | int:
    """Return the cache of a provider by its name, else by its lifetime."""
    named = (name for name, each in PROMPT_CACHES.items() if each.lifetime == prices.lifetime)
    return next(named, prices.lifetime)


class SessionReplay:
    """The replay of a session, with its requests."""

    def __init__(
        self, session_id: str, policy: Policy, max_tokens: int | None, project_root: str | None
    ) -> None:
        self._id = session_id
        self._policy = policy
        self._window = max_tokens
        self._root = project_root
        self._cache: CachedRequest | None = None
        self._now = SECONDS_LIMIT  # until a message has a time
        self._requests: list[SentRequest] = []
        self._compactions: list[str] = []
        self._recall: float | None = None
        self._called_back: list[frozenset[TextName]] = []

    def run(self, source: Store, progress: ReplayProgress | None) -> None:
        """Replay the session of a store, from its first message to its last."""
        recall = ContextRecall(self._read(source))
        with Store(":memory:", durability="normal") as target:
            target.create_session(self._id, project_root=self._root)
            for position, message in enumerate(self._read(source), 1):
                self._append(target, message, recall)
                if progress:
                    progress(position)
            applied = (each for each in target.compactions(self._id) if each.outcome == "applied")
            self._compactions = [each.kind for each in applied]
        self._recall = recall.share

    def price(self, prices: Prices) -> Simulated:
        """Return the totals at a provider's prices."""
        sent = tuple(request.tokens for request in self._requests)
        bills = tuple(request.bill(prices) for request in self._requests)
        return Simulated(
            policy=self._policy.name,
            requests=len(sent),
            tokens_sent=sum(sent),
            tokens_cached=sum(request.cached(prices) for request in self._requests),
            tokens_output=sum(request.output for request in self._requests),
            bill=sum(bills),
            compactions=self._compactions.count("summary"),
            clearings=self._compactions.count("clear"),
            largest_request=max(sent, default=0),
            sent=sent,
            reuse=self._recall,
            bills=bills,
            misses=sum(request.missed for request in self._requests),
            recalled_bill=sum(bills) + sum(each.recall_bill(prices) for each in self._requests),
        )

    def _read(self, source: Store) -> Iterator[Message]:
        """Yield the messages of the session, in order."""
        for page in source.pages(self._id):
            for stored in page:
                yield stored.message

    def _append(self, target: Store, message: Message, recall: ContextRecall) -> None:
        """Append a message at its own time, after the request that it answers."""
        moment = find_message_time(message)
        if moment is not None and moment < LONGEST_TIME:
            self._now = max(self._now, moment)
        if message.get("role") == "assistant":
            missing = recall.count(self._send(target, count_message_tokens(message, estimate)))
            self._call_back(missing)
        target.append(self._id, message, now=self._now)

    def _call_back(self, missing: frozenset[TextName]) -> None:
        """Note what the last request's answer has to recall; a cold cache drops its contents."""
        last = self._requests[-1]
        if last.after is None or last.after >= self._policy.prompt_cache.lifetime:
            self._called_back.clear()
        carried = RECALLED_TOKENS * len(self._called_back)
        known = frozenset[TextName]().union(*self._called_back)
        new = missing - known
        self._requests[-1] = last._replace(missed=bool(new), carried=carried)
        if new:
            self._called_back.append(new)

    def _send(self, target: Store, output: int) -> View:
        """Make the request that the policy would make now; return its view.

        Its cached tokens are those of the messages up to the first that differs from the last one.
        """
        target.compact_if_needed(self._id, self._policy, max_tokens=self._window, now=self._now)
        view = target.view(self._id, self._policy, now=self._now)
        entries, same, after = view.explained.shared_entries, 0, None
        tokens = sum(entry.tokens for entry in entries)
        if self._cache is not None:
            after = self._now - self._cache.at
            sent = zip(entries, view.messages, strict=True)
            before = zip(self._cache.entries, self._cache.messages, strict=True)
            for (entry, message), (earlier, sent_before) in zip(sent, before, strict=False):
                # Most are the same object, sent in the same words.
                if entry.message is not earlier.message and message != sent_before:
                    break
                same += entry.tokens
        is_warm = after is not None and after < self._policy.prompt_cache.lifetime
        held = same if is_warm else 0
        target.record_usage(self._id, input=tokens, output=0, cached=held, now=self._now)
        self._requests.append(SentRequest(tokens, same, output, after))
        self._cache = CachedRequest(entries, view.messages, self._now)
        return view
