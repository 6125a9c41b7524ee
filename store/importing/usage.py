"""Record the usage of each imported answer once, however often a file repeats the answer.

A file that has grown repeats its answers, and ``--replace`` writes a line anew. So the usage that
was recorded for an answer before is subtracted from its present usage; if nothing is left, nothing
is recorded.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import partial

from .. import Steps, UsageInput
from ..clock import SECONDS_LIMIT
from ..records import Message, StoredMessage, Usage
from ..transcripts import KeyNumbers, RequestUsage, SessionMessage, UsageTokens, parse_message_usage
from .session_ids import AnySteps

ANSWER_NAME_KEY = "answer"
"""The key in the details of a usage that holds the name of the answer in its file."""
USAGE_PAGE_SIZE = 2_000
"""Recorded usages read at once."""


class RecordedUsage:
    """The recorded usage of the answers of a session."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._known: _RecordedTokens | None = None

    def record(
        self, steps: AnySteps, stored: Iterable[tuple[StoredMessage, SessionMessage]]
    ) -> None:
        """Record the usage of newly stored answers, including the usage that their file gives."""
        requests: list[UsageInput] = []
        for answer, said in stored:
            if spent := [*said.spent, *parse_message_usage(answer.message)]:
                requests += self._unrecorded(steps, answer, spent)
        if requests and isinstance(steps, Steps):
            steps.record_usages(self._id, requests)
            return
        for each in requests:  # an owner's steps have no way to record several at once
            steps.record_usage(self._id, **each._asdict())

    def _unrecorded(
        self, steps: AnySteps, answer: StoredMessage, spent: list[RequestUsage]
    ) -> Iterator[UsageInput]:
        """Yield the requests of an answer, as far as they are not recorded yet."""
        name = _name_answer(answer.message, spent[0])
        paid = self._paid(steps)
        for left in _list_unrecorded_requests(spent, paid.of(name)):
            paid.add(name, left.tokens)
            yield UsageInput(
                **left.tokens._asdict(),
                model=left.model,
                provider=left.provider,
                details={ANSWER_NAME_KEY: name, "told": left.told},
                seq=answer.seq - 1,
                now=_find_answer_time(answer),
            )

    def _paid(self, steps: AnySteps) -> _RecordedTokens:
        """Return the recorded usage of the session's answers, at any position."""
        if self._known is None:
            self._known = _RecordedTokens()
            for usage in self._recorded(steps):
                self._known.add_recorded(usage)
        return self._known

    def _recorded(self, steps: AnySteps) -> Iterator[Usage]:
        """Yield the recorded usages of the session."""
        page = partial(steps.usages, self._id, limit=USAGE_PAGE_SIZE)
        usages = page()
        while usages:
            yield from usages
            usages = page(after=usages[-1])


class _RecordedTokens:
    """The tokens recorded for each answer, by its name; packed, because there may be many."""

    def __init__(self) -> None:
        self._places = KeyNumbers()
        self._counts = array("q")

    def of(self, name: str) -> UsageTokens:
        """Return the tokens recorded for an answer so far."""
        place = self._places.get(name)
        if place is None:
            return UsageTokens()
        return UsageTokens(*self._counts[place : place + len(UsageTokens._fields)])

    def add(self, name: str, tokens: UsageTokens) -> None:
        """Add tokens to those recorded for an answer."""
        counts = array("q", self.of(name).plus(tokens))
        place = self._places.setdefault(name, len(self._counts))
        self._counts[place : place + len(counts)] = counts

    def add_recorded(self, usage: Usage) -> None:
        """Add a usage from an earlier import; a usage that a host recorded names no answer."""
        name = usage.details.get(ANSWER_NAME_KEY)
        if name is not None:
            self.add(name, UsageTokens(*(getattr(usage, each) for each in UsageTokens._fields)))


def _list_unrecorded_requests(
    spent: Iterable[RequestUsage], paid: UsageTokens
) -> Iterable[RequestUsage]:
    """Yield the requests of an answer with the tokens that are not recorded yet."""
    for each in spent:
        left = each.tokens.less(paid)
        paid = paid.less(each.tokens)
        if any(left):
            yield each._replace(tokens=left)


def _name_answer(answer: Message, spent: RequestUsage) -> str:
    """Return a name that is unique among the answers of a session: the id, else the time."""
    named = spent.name or answer.get("id")
    return str(named) if named else f"{answer.get('timestamp')}, {spent.tokens.input}"


def _find_answer_time(answer: StoredMessage) -> int:
    """Return the time of an answer (ms); the time of its storage if it has none."""
    told = answer.message.get("timestamp")
    return told if type(told) is int and told >= SECONDS_LIMIT else answer.stored_at
