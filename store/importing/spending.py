"""The usages of a session that is imported: each answer's once, however often a file tells it.

A file that has grown tells an answer again, and with --replace a line is written anew. So what was
recorded of an answer before is taken off what it tells now; where nothing is left, nothing is
recorded.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import partial

from ..clock import SECONDS_BELOW
from ..face import Steps
from ..history import UsageInput
from ..messages import Message
from ..records import StoredMessage, Usage
from ..transcripts import Numbers, Said, Spent, Tokens, spent_on
from .names import AnySteps

ANSWER = "answer"
"""The key of a usage's details that names the answer, as its file does."""
PAGE = 2_000
"""Recorded usages read at once."""


class Spending:
    """What a session's answers cost, as far as it is recorded."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._known: _Paid | None = None

    def record(self, steps: AnySteps, stored: Iterable[tuple[StoredMessage, Said]]) -> None:
        """Record what the answers cost that were stored just now, with what their file tells."""
        requests: list[UsageInput] = []
        for answer, said in stored:
            if spent := [*said.spent, *spent_on(answer.message)]:
                requests += self._unrecorded(steps, answer, spent)
        if requests and isinstance(steps, Steps):
            steps.record_usages(self._id, requests)
            return
        for each in requests:  # an owner's steps have no way to record several at once
            steps.record_usage(self._id, **each._asdict())

    def _unrecorded(
        self, steps: AnySteps, answer: StoredMessage, spent: list[Spent]
    ) -> Iterator[UsageInput]:
        """Yield what is not recorded yet of an answer's requests."""
        name = _name_of(answer.message, spent[0])
        paid = self._paid(steps)
        for left in _left(spent, paid.of(name)):
            paid.add(name, left.tokens)
            yield _request(answer, name, left)

    def _paid(self, steps: AnySteps) -> _Paid:
        """Return what is recorded of the session's answers, in whichever place they stood."""
        if self._known is None:
            self._known = _Paid()
            for usage in self._recorded(steps):
                self._known.add_recorded(usage)
        return self._known

    def _recorded(self, steps: AnySteps) -> Iterator[Usage]:
        """Yield what earlier imports recorded."""
        page = partial(steps.usages, self._id, limit=PAGE)
        usages = page()
        while usages:
            yield from usages
            usages = page(after=usages[-1])


class _Paid:
    """The tokens that were paid for each answer, by its name: packed, for there may be many."""

    def __init__(self) -> None:
        self._places = Numbers()
        self._counts = array("q")

    def of(self, name: str) -> Tokens:
        """Return what was paid for an answer so far."""
        place = self._places.get(name)
        if place is None:
            return Tokens()
        return Tokens(*self._counts[place : place + len(Tokens._fields)])

    def add(self, name: str, tokens: Tokens) -> None:
        """Add what was paid for an answer."""
        counts = array("q", self.of(name).plus(tokens))
        place = self._places.setdefault(name, len(self._counts))
        self._counts[place : place + len(counts)] = counts

    def add_recorded(self, usage: Usage) -> None:
        """Add what an earlier import recorded; what a host did is of no answer."""
        name = usage.details.get(ANSWER)
        if name is not None:
            self.add(name, Tokens(*(getattr(usage, each) for each in Tokens._fields)))


def _request(answer: StoredMessage, name: str, spent: Spent) -> UsageInput:
    """Return a request as it is recorded: the one that ended before its answer."""
    return UsageInput(
        **spent.tokens._asdict(),
        model=spent.model,
        provider=spent.provider,
        details={ANSWER: name, "told": spent.told},
        seq=answer.seq - 1,
        now=_moment_of(answer),
    )


def _left(spent: Iterable[Spent], paid: Tokens) -> Iterable[Spent]:
    """Yield what is left of an answer's requests where so much is paid already."""
    for each in spent:
        left = each.tokens.less(paid)
        paid = paid.less(each.tokens)
        if any(left):
            yield each._replace(tokens=left)


def _name_of(answer: Message, spent: Spent) -> str:
    """Return what tells an answer from all others of its session: its id, else when it was."""
    named = spent.name or answer.get("id")
    return str(named) if named else f"{answer.get('timestamp')}, {spent.tokens.input}"


def _moment_of(answer: StoredMessage) -> int:
    """Return when an answer was said; when it was stored, where it does not tell."""
    told = answer.message.get("timestamp")
    return told if type(told) is int and told >= SECONDS_BELOW else answer.stored_at
