"""The messages that a compaction hides, and a transcript that shows all of them.

What is too long is cut elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..history import read_chat_messages
from ..messages import Message, find_message_time
from ..policy import Policy
from ..records import StoredMessage
from ..summaries import (
    DatedMessage,
    FittedTranscript,
    fit_brief_transcript,
    fit_whole_transcript,
    get_labels,
    load,
)
from ..view import ViewContext
from .budget import Budget
from .plan import Plan, Wish, plan

READ_AT_ONCE = 500
"""Messages that are read in one go: a transcript may have no room for more, and memory need not."""


def portions(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last positions of what is read in one go."""
    for start in range(first, last + 1, READ_AT_ONCE):
        yield start, min(start + READ_AT_ONCE - 1, last)


class Transcript(NamedTuple):
    """A plan, the messages that it hides, and a text that shows all of them.

    ``messages`` are None and the text is empty for a summarizer that reads the messages itself.
    """

    plan: Plan
    messages: list[Message] | None
    text: str


class _Shown(NamedTuple):
    """A plan, and a transcript of as many of its messages as have room."""

    plan: Plan
    fitted: FittedTranscript

    @property
    def is_whole(self) -> bool:
        """Whether the transcript shows all that the plan hides."""
        return self.fitted.messages_shown == self.plan.messages


Kinds = Mapping[str, str]
"""Of what kind a tool is, by its name."""


def transcript_of_all(cost: Budget, planned: Plan, wish: Wish, kinds: Kinds) -> Transcript | None:
    """Return a transcript of all that a plan hides; the cut moves back to where one has room.

    None where not even the first messages have room.
    """
    reading = _Reading(cost.context, kinds)
    shown = _Shown(planned, reading.fitted(planned))
    for boundary in (wish.boundary, "group"):
        if not shown.is_whole:
            reach = reading.reach(shown)
            smaller = plan(cost, wish._replace(boundary=boundary, reach=reach))
            shown = _of_smaller(shown, smaller, reading)
    if not shown.is_whole:
        return None
    return Transcript(shown.plan, reading.messages(shown.plan), shown.fitted.transcript)


def _of_smaller(shown: _Shown, smaller: Plan, reading: _Reading) -> _Shown:
    """Return what is shown of a smaller plan; what is shown already may be all of it."""
    if smaller.nothing:
        return shown
    already = _Shown(smaller, shown.fitted)
    if already.is_whole:
        return already
    return _Shown(smaller, reading.fitted(smaller))


def _told(messages: Iterable[DatedMessage], policy: Policy, kinds: Kinds) -> FittedTranscript:
    labels = get_labels(load(policy.prompt).language)
    known = {**kinds, **policy.tool_kinds}
    return fit_whole_transcript(messages, policy.transcript_max_chars, labels, known)


def _in_brief(messages: Iterable[DatedMessage], policy: Policy, _: Kinds) -> FittedTranscript:
    labels = get_labels(load(policy.prompt).language)
    bare = (each.message for each in messages)
    return fit_brief_transcript(bare, max_chars=policy.transcript_max_chars, labels=labels)


STYLES: Mapping[str, Callable[[Iterable[DatedMessage], Policy, Kinds], FittedTranscript]] = {
    "whole": _told,
    "brief": _in_brief,
}
"""What writes a transcript, by the style that a policy names."""


def _dated(stored: StoredMessage) -> DatedMessage:
    """Return a message with its own time, or else with that when it was stored."""
    at = find_message_time(stored.message)
    return DatedMessage(stored.message, stored.stored_at if at is None else at)


class _Reading:
    """The messages of a line from where they are visible, read once, as they are asked for."""

    def __init__(self, context: ViewContext, kinds: Kinds) -> None:
        self._look = context
        self._kinds = kinds
        self._read: list[StoredMessage] = []

    def fitted(self, planned: Plan) -> FittedTranscript:
        """Return a transcript of as many messages that a plan hides as it has room for."""
        policy = self._look.policy
        hidden = map(_dated, self._hidden(planned))
        return STYLES[policy.transcript](hidden, policy, self._kinds)

    def reach(self, shown: _Shown) -> int:
        """Return how many positions hold what a transcript has shown of a plan."""
        count = shown.fitted.messages_shown
        if not count:
            return 0
        return self._read[count].seq - shown.plan.first

    def messages(self, planned: Plan) -> list[Message]:
        """Return what was read of the messages that a plan hides."""
        return [each.message for each in self._read_of(planned)]

    def _hidden(self, planned: Plan) -> Iterator[StoredMessage]:
        """Yield the messages that a plan hides; what was read already is not read again."""
        yield from self._read_of(planned)
        for first, last in portions(self._unread_from(planned), planned.last):
            fresh = self._visible(planned, first, last)
            self._read += fresh
            yield from fresh

    def _read_of(self, planned: Plan) -> list[StoredMessage]:
        return [each for each in self._read if each.seq <= planned.last]

    def _unread_from(self, planned: Plan) -> int:
        """Return the first position that was not read yet."""
        if not self._read:
            return planned.first
        return self._read[-1].seq + 1

    def _visible(self, planned: Plan, first: int, last: int) -> list[StoredMessage]:
        """Read what is told of a range."""
        context = self._look
        found = read_chat_messages(context.connection, context.pointer.session_id, first, last)
        return [each for each in found if planned.tells_of(each.seq)]
