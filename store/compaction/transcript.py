"""The messages that a compaction hides, and a transcript that shows all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..history import load_session_chat_messages
from ..messages import Message, find_message_time
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
from .plan import Plan, PlanOptions, build_plan
from .triggers import ViewCost

MESSAGES_AT_ONCE = 500
"""Messages that are read in one go: a transcript may have no room for more, and memory need not."""

KindsByTool = Mapping[str, str]
"""The kind of a tool, by its name."""


def split_range(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last positions of each part of a range that is read in one go."""
    for start in range(first, last + 1, MESSAGES_AT_ONCE):
        yield start, min(start + MESSAGES_AT_ONCE - 1, last)


class Transcript(NamedTuple):
    """A plan, the messages that it hides, and a text that shows all of them.

    ``messages`` are None and the text is empty for a summarizer that reads the messages itself.
    """

    plan: Plan
    messages: list[Message] | None
    text: str


class FittedPlan(NamedTuple):
    """A plan, and a transcript of as many of its messages as fit."""

    plan: Plan
    fitted: FittedTranscript

    @property
    def is_complete(self) -> bool:
        """Whether the transcript shows all that the plan hides."""
        return self.fitted.messages_shown == self.plan.messages


def build_transcript(
    cost: ViewCost, plan: Plan, options: PlanOptions, kinds: KindsByTool
) -> Transcript | None:
    """Return a transcript of all that a plan hides; the cut moves back until all of it fits.

    None if not even the first messages fit.
    """
    reader = TranscriptReader(cost.context, kinds)
    current = FittedPlan(plan, reader.fit(plan))
    for boundary in (options.boundary, "group"):
        if current.is_complete:
            break
        reach = reader.reach(current)
        smaller = build_plan(cost, options._replace(boundary=boundary, reach=reach))
        if smaller.nothing:
            continue
        current = current._replace(plan=smaller)  # the text may be all of the smaller plan
        if not current.is_complete:
            current = FittedPlan(smaller, reader.fit(smaller))
    if not current.is_complete:
        return None
    messages = [each.message for each in reader.cached(current.plan)]
    return Transcript(current.plan, messages, current.fitted.transcript)


class TranscriptReader:
    """The messages of a line from the first visible one on, read once, when they are needed."""

    def __init__(self, context: ViewContext, kinds: KindsByTool) -> None:
        self._context = context
        self._kinds = kinds
        self._cache: list[StoredMessage] = []

    def fit(self, plan: Plan) -> FittedTranscript:
        """Return a transcript of as many messages that a plan hides as fit in it."""
        policy = self._context.policy
        labels = get_labels(load(policy.prompt).language)
        most = policy.transcript_max_chars
        hidden = self._read(plan)
        if policy.transcript == "brief":
            return fit_brief_transcript(
                (each.message for each in hidden), max_chars=most, labels=labels
            )
        # A message has its own time, or else that when it was stored.
        moments = ((each, find_message_time(each.message)) for each in hidden)
        dated = (
            DatedMessage(each.message, each.stored_at if moment is None else moment)
            for each, moment in moments
        )
        return fit_whole_transcript(dated, most, labels, {**self._kinds, **policy.tool_kinds})

    def reach(self, current: FittedPlan) -> int:
        """Return how many positions hold the messages that a transcript shows of a plan."""
        count = current.fitted.messages_shown
        return self._cache[count].seq - current.plan.first if count else 0

    def cached(self, plan: Plan) -> list[StoredMessage]:
        """Return the messages that a plan hides, as far as they were read."""
        return [each for each in self._cache if each.seq <= plan.last]

    def _read(self, plan: Plan) -> Iterator[StoredMessage]:
        """Yield the messages that a plan hides; none is read twice."""
        context = self._context
        yield from self.cached(plan)
        start = self._cache[-1].seq + 1 if self._cache else plan.first
        for first, last in split_range(start, plan.last):
            stored = load_session_chat_messages(
                context.connection, context.pointer.session_id, first, last
            )
            included = [each for each in stored if plan.includes(each.seq)]
            self._cache += included
            yield from included
