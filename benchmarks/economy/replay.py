"""A recorded session told again under a policy, request by request, as a program lives it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import partial
from typing import NamedTuple

from store import Compaction, Policy, Store, View

from ..recorded import Message
from .pricing import Cache, Prices, Request
from .programs import Program, ProgramSession, Sent
from .recalls import CALLED_BACK, called_back, has_only_words, missed
from .recording import Recording
from .reuse import Sight, Tally, look
from .strings import String, texts

EVERY, COLD, COMPACTED = "every", "cold", "compacted"
"""When reuse is measured: at every request, where the cache was cold, right after a compaction."""


class Asked(NamedTuple):
    """How to tell a session again: the tokens of the window, None for no end; ms a cache lives.

    Reuse is measured at every so manieth request, and at all that are cold or right after a
    compaction; 0: at none. ``misses``: look at every request for what its model would call back.
    ``tells_cached``: usages tell how many tokens were cached. Policies are told ``factor`` times
    the true lifetime.
    """

    window: int | None
    lifetime: int
    every: int = 1
    misses: bool = False
    tells_cached: bool = True
    factor: float = 1.0


class Replayed(NamedTuple):
    """What a session came to: requests, reuse by moments, compactions and clearings applied.

    ``over`` are requests larger than the window; ``avoidable`` those of them whose system messages,
    latest question and newest calls with their results would have fitted. ``word_misses`` are those
    where plain words alone were out of sight.
    """

    requests: list[Request]
    reuse: dict[str, Tally]
    done: dict[str, int]
    over: int
    avoidable: int
    word_misses: int


def replayed(recording: Recording, policy: Policy | Program, asked: Asked) -> Replayed:
    """Tell a session again in a store of its own, or under the rules of another program."""
    if isinstance(policy, Program):
        return _Replay(ProgramSession(policy, recording), recording, asked).tell()
    with Store(":memory:", durability="normal") as store:
        session = _StoreSession(store, recording, policy, asked)
        return _Replay(session, recording, asked).tell()


def sight(view: View | Sent, messages: list[Message]) -> Sight:
    """Return what a view shows: which messages as they were said, and the texts of all others."""
    whole: set[int] = set()
    others: list[str] = []
    for entry in view.entries:
        index = (entry.seq or 0) - 1
        if entry.seq and entry.message == messages[index]:
            whole.add(index)
        else:
            others += texts(entry.message)
    return Sight(whole, others)


def essentials(recording: Recording, index: int) -> int:
    """Return the tokens that no request can do without: system, latest question, newest group."""
    roles = recording.roles(index)
    question = max((place for place in range(index) if roles[place] == "user"), default=0)
    answer = max((place for place in range(index) if roles[place] == "assistant"), default=0)
    return recording.size(recording.pinned(index) | {question, *range(answer, index)})


class _StoreSession:
    """A session in a store, under a policy."""

    def __init__(self, store: Store, recording: Recording, policy: Policy, asked: Asked) -> None:
        self._store, self._policy, self._window = store, policy, asked.window
        self._id = store.create_session(project_root=recording.transcript.root).id
        self._role = ""

    @property
    def carried_results(self) -> int:
        return self._policy.clear_warm_keep

    @property
    def done(self) -> Counter[str]:
        made = self._store.compactions(self._id)
        return Counter(each.kind for each in made if each.outcome == "applied")

    def append(self, group: list[Message], now: int) -> None:
        self._store.append(self._id, group, now=now)
        self._role = group[-1]["role"]

    def send(self, now: int) -> Sent:
        done = self._compact(now)
        view = self._store.view(self._id, self._policy, now=now)
        applied = done.kind if done and done.outcome == "applied" else None
        return Sent(view.messages, view.entries, applied)

    def _compact(self, now: int) -> Compaction | None:
        return self._store.compact_if_needed(
            self._id,
            self._policy,
            reason="tool_execution" if self._role == "tool" else "llm_call",
            max_tokens=self._window,
            now=now,
        )

    def record_usage(self, request: Request, cached: int | None) -> None:
        told = {} if cached is None else {"cached": cached}
        self._store.record_usage(
            self._id, input=request.sent, output=request.output, now=request.at, **told
        )

    def recall(self, names: list[str], now: int) -> list[str]:
        found = self._store.recall(self._id, names, policy=self._policy, now=now)
        return [passage.text for passage in found]


class _Replay:
    def __init__(
        self, session: _StoreSession | ProgramSession, recording: Recording, asked: Asked
    ) -> None:
        self._session, self._recording, self._asked = session, recording, asked
        self._cache = Cache(Prices(0, 0, asked.lifetime))
        self._numbers: dict[str, int] = {}
        self._requests: list[Request] = []
        self._reuse: dict[str, Tally] = defaultdict(Tally)
        self._over = self._avoidable = self._word_misses = 0
        self._called: list[tuple[int, list[String]]] = []

    def tell(self) -> Replayed:
        """Append what was said at once, an answer after the request that it answers."""
        for index, group in self._recording.steps():
            now = self._recording.moments[index + len(group) - 1]
            if group[0]["role"] == "assistant":
                self._request(index, now)
            self._session.append(group, now)
        return Replayed(
            requests=self._requests,
            reuse=dict(self._reuse),
            done=dict(self._session.done),
            over=self._over,
            avoidable=self._avoidable,
            word_misses=self._word_misses,
        )

    def _request(self, index: int, now: int) -> None:
        sent = self._session.send(now)
        request = self._make_request(sent, now, self._recording.tokens[index])
        cached = self._cache.take(request)
        self._session.record_usage(request, cached if self._asked.tells_cached else None)
        self._look_at_size(index, request.sent)
        moments = self._moments(now, sent.done)
        self._forget_called_back(is_cold=self._is_cold(now), done=sent.done)
        missing: list[String] = []
        if self._asked.misses or moments:
            shown = sight(sent, self._recording.messages)
            known = {string for _, strings in self._called for string in strings}
            missing = missed(self._recording, index, shown, known)
            if has_only_words(missing):
                self._word_misses += 1
                missing = []
            self._look_for_reuse(index, shown, request.sent, now, moments)
        carried = CALLED_BACK * len(self._called)
        self._requests.append(request._replace(missed=bool(missing), carried=carried))
        if missing:
            self._called.append((len(self._requests), missing))

    def _forget_called_back(self, *, is_cold: bool, done: str | None) -> None:
        """Drop what was called back: all in a cold cache, what is old by now in a clearing."""
        if is_cold or done == "summary":
            self._called.clear()
        elif done:
            since = len(self._requests) - self._session.carried_results
            self._called = [each for each in self._called if each[0] > since]

    def _make_request(self, sent: Sent, now: int, output: int) -> Request:
        messages = tuple(map(self._number, sent.messages))
        tokens = tuple(entry.tokens for entry in sent.entries)
        return Request(now, messages, tokens, output)

    def _number(self, message: Message) -> int:
        """Return a number for a message, the same for the same one."""
        text = json.dumps(message, sort_keys=True)
        return self._numbers.setdefault(text, len(self._numbers))

    def _look_at_size(self, index: int, tokens: int) -> None:
        window = self._asked.window
        if window and tokens > window:
            self._over += 1
            self._avoidable += essentials(self._recording, index) <= window

    def _look_for_reuse(
        self, index: int, shown: Sight, tokens: int, now: int, moments: list[str]
    ) -> None:
        if not moments:
            return
        recording = self._recording
        recall = partial(self._call_back, index, now) if self._session.recall else None
        found = look(recording.needed(index), recording, index, shown, tokens, recall)
        for moment in moments:
            self._reuse[moment].add(found)

    def _call_back(self, index: int, now: int, missing: list[String]) -> set[String]:
        """Return what calls of the tool would bring back."""
        recall = self._session.recall
        if recall is None:
            return set()
        return called_back(missing, self._recording, index, partial(recall, now=now))

    def _moments(self, now: int, done: str | None) -> list[str]:
        """Return as what a request is measured."""
        every = self._asked.every
        if not every:
            return []
        is_one = {
            EVERY: len(self._requests) % every == 0,
            COLD: self._is_cold(now),
            COMPACTED: done == "summary",
        }
        return [moment for moment, is_it in is_one.items() if is_it]

    def _is_cold(self, now: int) -> bool:
        """Tell whether the cache has forgotten the last request."""
        if not self._requests:
            return False
        return now - self._requests[-1].at >= self._asked.lifetime
