"""From a job to its summary, outside of any transaction; whatever a summarizer does, nothing escapes as a crash."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from .errors import CompactionError, StoreError, SummaryGenerationError, SummaryTimedOut
from .fitting import READ_AT_ONCE
from .messages import Message
from .planning import Plan
from .policy import Policy
from .prompts import load
from .recording import Job, Result
from .records import Compaction, StoredMessage
from .summaries import TIMED_OUT_NOTICE, Summarizer, Summary, SummaryRequest, extractive
from .summarizers import call

log = logging.getLogger(__name__)

FAILED = "No summary could be made, keeping recent history only."
"""What stands for hidden messages when the summary failed otherwise than by its time (A4.19)."""


Read = Callable[[int, int], list[StoredMessage]]
"""What reads a line's raw messages from one position to another."""


class HiddenMessages(Sequence[Message]):
    """The raw messages that a plan hides, read as they are asked for, so that any number of them fits in memory."""

    def __init__(self, todo: Plan, read: Read) -> None:
        self._todo, self._read = todo, read

    def __len__(self) -> int:
        return self._todo.messages

    def __iter__(self) -> Iterator[Message]:
        first, last, *_ = self._todo
        for start in range(first, last + 1, READ_AT_ONCE):
            yield from self._between(start, min(start + READ_AT_ONCE - 1, last))

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = self._todo.first + range(len(self))[index]
        for position in self._todo.pinned:
            place += position <= place
        return self._between(place, place)[0]

    def _between(self, first: int, last: int) -> list[Message]:
        return [each.message for each in self._read(first, last) if each.seq not in self._todo.pinned]


def request(job: Job, policy: Policy, read: Read) -> SummaryRequest:
    """Return what a summarizer is asked: the raw messages of the range, never placeholders, and the earlier summary."""
    previous = "\n\n".join(filter(None, (each.body for each in job.previous))) or None
    started_at, ended_at = job.times or (None, None)
    filled = load(policy.prompt).fill(
        transcript=job.transcript, previous_summary=previous, max_chars=policy.summary_max_chars
    )
    return SummaryRequest(
        messages=HiddenMessages(job.plan, read) if job.messages is None else job.messages,
        previous_summary=previous,
        transcript=job.transcript,
        prompt=filled,
        max_chars=policy.summary_max_chars,
        first=job.plan.first,
        last=job.plan.last,
        parts_to_keep=policy.parts_to_keep,
        started_at=started_at,
        ended_at=ended_at,
    )


def reads_messages(summarizer: Summarizer | None) -> bool:
    """Tell whether a summarizer works on the messages themselves, so that no transcript limits what is hidden."""
    return summarizer is None or summarizer is extractive


def announce(session_id: str, ended: Compaction) -> None:
    """Log what a compaction came to (S2.15)."""
    if ended.outcome == "applied":
        log.info(
            "history 压缩完成: %d 条 → %d 条",
            ended.messages_before,
            ended.messages_after,
            extra={
                "session_id": session_id,
                "policy": ended.policy,
                "compaction": ended.id,
                "before": ended.messages_before,
                "after": ended.messages_after,
            },
        )


def warn(policy: Policy, problem: CompactionError) -> None:
    """Log that nothing is tried though a trigger fires (S3.40)."""
    log.warning(
        "not compacted: %s",
        problem,
        extra={"session_id": problem.session_id, "policy": policy.name, "error": type(problem).__name__},
    )


def summarised(job: Job, policy: Policy, summarizer: Summarizer | None, read: Read) -> Result:
    """Return a summary of a job, or what a policy puts in its place when there is none.

    Whatever the summarizer does, nothing is raised; StoreError where the messages cannot be read.
    """
    before, window = job.plan.messages_before, job.plan.messages
    about = {"session_id": job.cost.pointer.session_id, "policy": policy.name}
    log.info(
        "history 达到 %d 条，触发压缩（窗口: %d 条）",
        before,
        window,
        extra={**about, "messages": before, "window": window},
    )
    try:
        asked = request(job, policy, read)
        summary = call(summarizer or extractive, asked, policy.summary_timeout)
    except SummaryGenerationError as error:
        if job.messages is None and isinstance(error.__cause__, StoreError):
            raise error.__cause__ from None  # what cannot be read is no failure of the summarizer
        log.warning("摘要生成失败，回退到硬截断: %s", error, extra={**about, "error": str(error)})
        return _in_its_place(job, policy, error)
    log.debug("摘要生成成功（%d字符）", len(summary.body), extra={**about, "chars": len(summary.body)})
    version = summary.prompt_version or (load(policy.prompt).version if summary.model else None)
    return Result(summary._replace(prompt_version=version))


def _in_its_place(job: Job, policy: Policy, error: SummaryGenerationError) -> Result:
    """Return what a policy puts in the place of a summary; an earlier one that it would replace goes on in it."""
    problem = f"{type(error).__name__}: {error}"
    if policy.on_failure not in ("skip", "truncate"):
        return Result(None, problem)
    notice = TIMED_OUT_NOTICE if isinstance(error, SummaryTimedOut) else FAILED
    earlier = (each.body.removesuffix(FAILED).removesuffix(TIMED_OUT_NOTICE).rstrip() for each in job.previous)
    return Result(Summary("\n\n".join(filter(None, (*earlier, notice)))), problem)
