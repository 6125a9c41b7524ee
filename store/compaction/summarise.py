"""From a job to its summary, outside of any transaction.

Whatever a summarizer does, nothing escapes as a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, overload

from ..errors import CompactionError, StoreError, SummaryGenerationError, SummaryTimedOut
from ..messages import Message
from ..policy import Language, Policy
from ..records import Compaction, StoredMessage
from ..summaries import (
    TIMED_OUT_NOTICE,
    Summary,
    SummaryRequest,
    call,
    extractive,
    load,
)
from ..view import Standing
from .jobs import Asked, Job
from .planning import Plan
from .transcript import READ_AT_ONCE

log = logging.getLogger(__name__)

FAILED = "No summary could be made, keeping recent history only."
"""What stands for hidden messages when the summary failed otherwise than by its time."""

GOES_ON: dict[Language, str] = {
    "zh": "(以上是当前轮次到目前为止的内容。该轮次尚未结束，后续消息是它的延续。)",
    "en": "(So far the current turn. It is not finished: the messages that follow go on with it.)",
}
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
        first, last = self._plan.first, self._plan.last
        for start in range(first, last + 1, READ_AT_ONCE):
            yield from self._between(start, min(start + READ_AT_ONCE - 1, last))

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = self._plan.first + range(len(self))[index]
        for position in self._plan.pinned:
            place += position <= place
        return self._between(place, place)[0]

    def _between(self, first: int, last: int) -> list[Message]:
        found = self._read(first, last)
        return [each.message for each in found if each.seq not in self._plan.pinned]


def summarised(job: Job, asked: Asked, read: Read) -> Result:
    """Return a summary of a job, or what a policy puts in its place when there is none.

    Whatever the summarizer does, nothing is raised; StoreError where the messages cannot be read.
    """
    policy = asked.policy
    about = {"session_id": asked.session_id, "policy": policy.name}
    _log_begun(job.hiding.plan, about)
    try:
        wanted = request_of(job, policy, read)
        summary = call(asked.summarizer or extractive, wanted, policy.summary_timeout)
    except SummaryGenerationError as error:
        if job.messages is None and isinstance(error.__cause__, StoreError):
            raise error.__cause__ from None  # what cannot be read is no failure of the summarizer
        log.warning("摘要生成失败，回退到硬截断: %s", error, extra={**about, "error": str(error)})
        return _failed(job, policy, error)
    summary = _with_version(summary, policy)._replace(notice=None)
    chars = len(summary.body)
    log.debug("摘要生成成功（%d字符）", chars, extra={**about, "chars": chars})
    return Result(summary)


def request_of(job: Job, policy: Policy, read: Read) -> SummaryRequest:
    """Return what a summarizer is asked.

    The raw messages of the range, never placeholders, and the earlier summary.
    """
    planned = job.hiding.plan
    bodies = [_without_end(each.body) for each in job.hiding.previous if each.body]
    previous = "\n\n".join(bodies) or None
    started_at, ended_at = job.times or (None, None)
    prompt = load(policy.prompt).fill(
        transcript=job.transcript,
        previous_summary=previous,
        max_chars=policy.summary_max_chars,
        times=(started_at, ended_at),
    )
    messages: Sequence[Message] | None = job.messages
    if messages is None:
        messages = HiddenMessages(planned, read)
    return SummaryRequest(
        messages=messages,
        previous_summary=previous,
        transcript=job.transcript,
        prompt=prompt,
        max_chars=policy.summary_max_chars,
        first=planned.first,
        last=planned.last,
        parts_to_keep=policy.parts_to_keep,
        started_at=started_at,
        ended_at=ended_at,
        policy=policy,
        tool_kinds=job.tool_kinds,
    )


def announce(ended: Compaction) -> None:
    """Log what a compaction came to."""
    if ended.outcome != "applied":
        return
    about = {
        "session_id": ended.session_id,
        "policy": ended.policy,
        "compaction": ended.id,
        "before": ended.messages_before,
        "after": ended.messages_after,
    }
    before, after = ended.messages_before, ended.messages_after
    log.info("history 压缩完成: %d 条 → %d 条", before, after, extra=about)


def warn(policy: Policy, problem: CompactionError) -> None:
    """Log that nothing is tried though a trigger fires."""
    about = {
        "session_id": problem.session_id,
        "policy": policy.name,
        "error": type(problem).__name__,
    }
    log.warning("not compacted: %s", problem, extra=about)


def _log_begun(planned: Plan, about: dict[str, str]) -> None:
    before, window = planned.messages_before, planned.messages
    extra = {**about, "messages": before, "window": window}
    log.info("history 达到 %d 条，触发压缩（窗口: %d 条）", before, window, extra=extra)


def _with_version(summary: Summary, policy: Policy) -> Summary:
    """Return a summary that says which prompt a model was given, where it says nothing itself."""
    if summary.prompt_version or not summary.model:
        return summary._replace(prompt_version=summary.prompt_version or None)
    return summary._replace(prompt_version=load(policy.prompt).version)


def _without_end(body: str) -> str:
    """Return a body without the line that its turn goes on."""
    for line in GOES_ON.values():
        if body.endswith(line):
            return body.removesuffix(line).rstrip()
    return body


def _without_notice(standing: Standing) -> str:
    return _without_end(standing.body).removesuffix(standing.notice or "").rstrip()


def _failed(job: Job, policy: Policy, error: SummaryGenerationError) -> Result:
    """Return what comes of a summarizer that gave no summary."""
    kind = type(error).__name__
    notice = TIMED_OUT_NOTICE if isinstance(error, SummaryTimedOut) else FAILED
    return in_its_place(job, policy, Result(None, f"{kind}: {error}", kind), notice)


def in_its_place(job: Job, policy: Policy, failed: Result, notice: str = FAILED) -> Result:
    """Return what a policy puts in the place of a summary: a notice, if anything.

    An earlier one that it would replace goes on in it.
    """
    if policy.on_failure not in ("skip", "truncate"):
        return failed
    earlier = [_without_notice(each) for each in job.hiding.previous]
    body = "\n\n".join(filter(None, (*earlier, notice)))
    return failed._replace(summary=Summary(body, notice=notice))
