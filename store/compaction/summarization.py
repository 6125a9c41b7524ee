"""From a job to its summary, outside of any transaction.

Whatever a summarizer does, nothing escapes as a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, overload

from ..errors import StoreError, SummaryGenerationError, SummaryTimedOut
from ..messages import Message
from ..policy import Policy
from ..ready import PHRASES, phrase
from ..records import StoredMessage
from ..summaries import (
    EXTRACTIVE_MODEL,
    TIMED_OUT_NOTICE,
    Summary,
    SummaryRequest,
    call_summarizer,
    describe_unfinished_turn,
    extractive,
    load,
)
from ..view import ActiveSummary
from . import log_messages
from .job import Asked, Job
from .plan import Plan, Previous
from .transcript import portions

GOES_ON = PHRASES["turn_goes_on"]
"""The end of a summary that cuts a running turn, by the language of the policy."""

Read = Callable[[int, int], list[StoredMessage]]
"""What reads a line's raw messages from one position to another."""


class Result(NamedTuple):
    """What came of a summarizer: a summary, or what stands in its place, and what went wrong."""

    summary: Summary | None
    error: str | None = None
    error_kind: str | None = None


class HiddenMessages(Sequence[Message]):
    """The raw messages that a plan hides, read as they are asked for.

    So any number of them fits in memory.
    """

    def __init__(self, planned: Plan, read: Read) -> None:
        self._plan, self._read = planned, read

    def __len__(self) -> int:
        return self._plan.messages

    def __iter__(self) -> Iterator[Message]:
        for first, last in portions(self._plan.first, self._plan.last):
            yield from self._between(first, last)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = self._position(index)
        return self._between(place, place)[0]

    def _position(self, index: int) -> int:
        """Return where the message of an index stands. Raises IndexError for none."""
        place = self._plan.first + range(len(self))[index]
        for first, last in self._plan.untold():
            if first <= place:
                place += last - first + 1
        return place

    def _between(self, first: int, last: int) -> list[Message]:
        found = self._read(first, last)
        return [each.message for each in found if self._plan.tells_of(each.seq)]


def summarised(job: Job, asked: Asked, read: Read) -> Result:
    """Return a summary of a job, or what a policy puts in its place when there is none.

    Whatever the summarizer does, nothing is raised; StoreError where the messages cannot be read.
    """
    policy = asked.policy
    about = log_messages.About(asked.session_id, policy.name)
    log_messages.begun(about, job.hiding.plan)
    try:
        wanted = request_of(job, policy, read)
        summary = call_summarizer(asked.summarizer or extractive, wanted, policy.summary_timeout)
    except SummaryGenerationError as error:
        if job.messages is None and isinstance(error.__cause__, StoreError):
            raise error.__cause__ from None  # what cannot be read is no failure of the summarizer
        log_messages.failed(about, error, policy)
        return _failed(job, policy, error)
    log_messages.made(about, summary, load(policy.prompt))
    return Result(_with_version(summary, policy)._replace(notice=None))


def request_of(job: Job, policy: Policy, read: Read) -> SummaryRequest:
    """Return what a summarizer is asked.

    The raw messages of the range, never placeholders, and the earlier summary.
    """
    previous = _previous_summary(job.hiding.previous)
    started_at, ended_at = job.times or (None, None)
    wanted = load(policy.prompt)
    prompt = wanted.fill(
        transcript=job.transcript,
        previous_summary=previous,
        max_chars=policy.summary_max_chars,
        times=(started_at, ended_at),
    )
    if job.hiding.plan.inside:
        prompt = f"{prompt}\n\n{describe_unfinished_turn(wanted.language)}"
    return SummaryRequest(
        messages=_messages(job, read),
        previous_summary=previous,
        transcript=job.transcript,
        prompt=prompt,
        max_chars=policy.summary_max_chars,
        first=job.hiding.plan.first,
        last=job.hiding.plan.last,
        parts_to_keep=policy.parts_to_keep,
        started_at=started_at,
        ended_at=ended_at,
        policy=policy,
        tool_kinds=job.tool_kinds,
        turn_goes_on=job.hiding.plan.inside,
        project_root=job.cost.context.pointer.project_root,
    )


def _messages(job: Job, read: Read) -> Sequence[Message]:
    """Return the messages of a job: those that the transcript was made of, or to be read."""
    if job.messages is None:
        return HiddenMessages(job.hiding.plan, read)
    return job.messages


def _previous_summary(previous: Previous) -> str | None:
    """Return the texts of the summaries that the new one replaces, if they have any."""
    bodies = [without_end(each.body) for each in previous if each.body]
    return "\n\n".join(bodies) or None


def _with_version(summary: Summary, policy: Policy) -> Summary:
    """Return a summary that says which prompt a model was given, where it says nothing itself."""
    version = summary.prompt_version
    if summary.model not in (None, EXTRACTIVE_MODEL) and not version:
        version = load(policy.prompt).version
    return summary._replace(prompt_version=version or None)


def without_end(body: str) -> str:
    """Return a body without the line that its turn goes on."""
    for line in GOES_ON.values():
        if body.endswith(line):
            return body.removesuffix(line).rstrip()
    return body


def _without_notice(standing: ActiveSummary) -> str:
    return without_end(standing.body).removesuffix(standing.notice or "").rstrip()


def _failed(job: Job, policy: Policy, error: SummaryGenerationError) -> Result:
    """Return what comes of a summarizer that gave no summary."""
    kind = type(error).__name__
    failed = Result(None, f"{kind}: {error}", kind)
    timed_out = TIMED_OUT_NOTICE if isinstance(error, SummaryTimedOut) else None
    return in_its_place(job, policy, failed, timed_out)


def in_its_place(job: Job, policy: Policy, failed: Result, notice: str | None = None) -> Result:
    """Return what a policy puts in the place of a summary: a notice, if anything.

    An earlier one that it would replace goes on in it.
    """
    if policy.on_failure not in ("skip", "truncate"):
        return failed
    notice = notice or phrase("no_summary", policy.language)
    earlier = [_without_notice(each) for each in job.hiding.previous]
    body = "\n\n".join(filter(None, (*earlier, notice)))
    return failed._replace(summary=Summary(body, notice=notice))
