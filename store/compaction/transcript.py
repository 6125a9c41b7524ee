"""The messages that a compaction hides, and a transcript that shows all of them.

What is too long is cut elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..history import read
from ..messages import Message, moment_of
from ..policy import Policy
from ..records import StoredMessage
from ..summaries import Dated, Fitted, fit, labels_in, load, told
from ..view import Look
from .budget import Budget
from .planning import Plan, Wish, plan

READ_AT_ONCE = 500
"""Messages that are read in one go: a transcript may have no room for more, and memory need not."""


class Transcript(NamedTuple):
    """A plan, the messages that it hides, and a text that shows all of them.

    ``messages`` are None and the text is empty for a summarizer that reads the messages itself.
    """

    plan: Plan
    messages: list[Message] | None
    text: str


Kinds = Mapping[str, str]
"""Of what kind a tool is, by its name."""


def transcript_of_all(cost: Budget, planned: Plan, wish: Wish, kinds: Kinds) -> Transcript | None:
    """Return a transcript of all that a plan hides; the cut moves back to where one has room.

    None where not even the first messages have room.
    """
    reading = _Reading(cost.look, kinds)
    fitted = reading.fitted(planned)
    for boundary in (wish.boundary, "group"):
        if fitted.messages_shown == planned.messages:
            break
        reach = reading.reach(planned, fitted.messages_shown)
        smaller = plan(cost, wish._replace(boundary=boundary, reach=reach))
        if smaller.nothing:
            continue
        planned = smaller
        if planned.messages != fitted.messages_shown:
            fitted = reading.fitted(planned)
    if fitted.messages_shown != planned.messages:
        return None
    return Transcript(planned, reading.messages(planned), fitted.transcript)


def _told(messages: Iterable[Dated], policy: Policy, kinds: Kinds) -> Fitted:
    labels = labels_in(load(policy.prompt).language)
    return told(messages, policy.transcript_max_chars, labels, {**kinds, **policy.tool_kinds})


def _in_brief(messages: Iterable[Dated], policy: Policy, _: Kinds) -> Fitted:
    labels = labels_in(load(policy.prompt).language)
    bare = (each.message for each in messages)
    return fit(bare, max_chars=policy.transcript_max_chars, labels=labels)


STYLES: Mapping[str, Callable[[Iterable[Dated], Policy, Kinds], Fitted]] = {
    "whole": _told,
    "brief": _in_brief,
}
"""What writes a transcript, by the style that a policy names."""


def _dated(stored: StoredMessage) -> Dated:
    """Return a message with its own time, or else with that when it was stored."""
    at = moment_of(stored.message)
    return Dated(stored.message, stored.stored_at if at is None else at)


class _Reading:
    """The messages of a line from where they are visible, read once, as they are asked for."""

    def __init__(self, look: Look, kinds: Kinds) -> None:
        self._look = look
        self._kinds = kinds
        self._read: list[StoredMessage] = []

    def fitted(self, planned: Plan) -> Fitted:
        """Return a transcript of as many messages that a plan hides as it has room for."""
        policy = self._look.policy
        hidden = (_dated(each) for each in self._hidden(planned))
        return STYLES[policy.transcript](hidden, policy, self._kinds)

    def reach(self, planned: Plan, messages_shown: int) -> int:
        """Return how many positions hold what a transcript has shown of a plan."""
        if not messages_shown:
            return 0
        return self._read[messages_shown].seq - planned.first

    def messages(self, planned: Plan) -> list[Message]:
        """Return what was read of the messages that a plan hides."""
        return [each.message for each in self._read if each.seq <= planned.last]

    def _hidden(self, planned: Plan) -> Iterator[StoredMessage]:
        """Yield the messages that a plan hides; what was read already is not read again."""
        yield from [each for each in self._read if each.seq <= planned.last]
        start = self._read[-1].seq + 1 if self._read else planned.first
        for first in range(start, planned.last + 1, READ_AT_ONCE):
            last = min(first + READ_AT_ONCE - 1, planned.last)
            found = read(self._look.connection, self._look.pointer.session_id, first, last)
            fresh = [each for each in found if each.seq not in planned.pinned]
            self._read += fresh
            yield from fresh
