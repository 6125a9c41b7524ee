"""The usages of a session that is imported: each answer's once, however often a file tells it.

A file that has grown tells an answer again, and with --replace a line is written anew. So what was
recorded of an answer before is taken off what it tells now; where nothing is left, nothing is
recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ..clock import SECONDS_BELOW
from ..face import Steps
from ..history import Request
from ..messages import Message
from ..records import StoredMessage, Usage
from ..transcripts import Said, Spent, Tokens, spent_on

ANSWER = "answer"
"""The key of a usage's details that names the answer, as its file does."""


class Spending:
    """What a session's answers cost, as far as it is recorded."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._known: dict[str, Tokens] | None = None

    def record(self, steps: Steps, stored: Iterable[tuple[StoredMessage, Said]]) -> None:
        """Record what the answers cost that were stored just now, with what their file tells."""
        requests: list[Request] = []
        for answer, said in stored:
            if spent := [*said.spent, *spent_on(answer.message)]:
                requests += self._unrecorded(steps, answer, spent)
        if requests:
            steps.record_usages(self._id, requests)

    def _unrecorded(
        self, steps: Steps, answer: StoredMessage, spent: list[Spent]
    ) -> Iterator[Request]:
        """Yield what is not recorded yet of an answer's requests."""
        name = _name_of(answer.message, spent[0])
        paid = self._paid(steps)
        for left in _left(spent, paid[name]):
            paid[name] = paid[name].plus(left.tokens)
            yield _request(answer, name, left)

    def _paid(self, steps: Steps) -> dict[str, Tokens]:
        """Return what is recorded of the session's answers, in whichever place they stood."""
        if self._known is None:
            self._known = _recorded(steps.usages(self._id))
        return self._known


def _request(answer: StoredMessage, name: str, spent: Spent) -> Request:
    """Return a request as it is recorded: the one that ended before its answer."""
    return Request(
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


def _recorded(usages: Iterable[Usage]) -> dict[str, Tokens]:
    """Return what earlier imports recorded, by the answers that it was for."""
    known: dict[str, Tokens] = defaultdict(Tokens)
    for each in usages:
        name = each.details.get(ANSWER)
        if name is not None:
            known[name] = known[name].plus(_tokens_of(each))
    return known


def _tokens_of(usage: Usage) -> Tokens:
    return Tokens(usage.input, usage.output, usage.cached, usage.written)


def _name_of(answer: Message, spent: Spent) -> str:
    """Return what tells an answer from all others of its session: its id, else when it was."""
    named = spent.name or answer.get("id")
    return str(named) if named else f"{answer.get('timestamp')}, {spent.tokens.input}"


def _moment_of(answer: StoredMessage) -> int:
    """Return when an answer was said; when it was stored, where it does not tell."""
    told = answer.message.get("timestamp")
    return told if type(told) is int and told >= SECONDS_BELOW else answer.stored_at
