"""The log messages of compactions, as a table; the page of the log is generated from it.

Those that S2.13 to S2.16 demand in Chinese are Chinese unless another language is asked for.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ..database import get_logger
from ..errors import CompactionError, SummaryGenerationError
from ..policy import Policy
from ..records import Compaction
from ..summaries import EXTRACTIVE_MODEL, Prompt, Summary
from ..view import LogMessage, get_named_language
from .plan import Plan

compaction_logger = get_logger(__name__)


SUMMARY_FAILED = {
    "trim": LogMessage(
        logging.WARNING,
        "there is no summary, and the policy trims",
        {
            "zh": "摘要生成失败，回退到硬截断: %s",
            "en": "no summary, falling back to the hard limit: %s",
        },
        "zh",
    ),
    "abort": LogMessage(
        logging.WARNING,
        "there is no summary, and the policy leaves all as it is",
        {
            "zh": "摘要生成失败，不作压缩: %s",
            "en": "no summary, nothing is hidden: %s",
        },
    ),
    "skip": LogMessage(
        logging.WARNING,
        "there is no summary, and the policy hides without one",
        {
            "zh": "摘要生成失败，以一行说明代替: %s",
            "en": "no summary, one line stands in its place: %s",
        },
    ),
}
"""The messages of a failed summarizer, by the ``on_failure`` of the policy."""

COMPACTION_STARTED = LogMessage(
    logging.INFO,
    "a compaction begins",
    {
        "zh": "history 达到 %d 条，触发压缩（窗口: %d 条）",
        "en": "compacting a history of %d messages (of them %d)",
    },
    "zh",
)
SUMMARY_MADE = LogMessage(
    logging.DEBUG,
    "a summary was made",
    {
        "zh": "摘要生成成功（%d字符）",
        "en": "a summary was made (%d characters)",
    },
    "zh",
)
HEADINGS_MISSING = LogMessage(
    logging.INFO,
    "a model's summary has not all headings that its prompt asks for; it counts all the same",
    {
        "zh": "摘要缺少标题: %s",
        "en": "a summary lacks headings: %s",
    },
)
FAILURE_CAUSES = LogMessage(
    logging.DEBUG,
    "a summarizer raised something: all causes of it",
    {
        "zh": "摘要失败的原因: %s",
        "en": "why there is no summary: %s",
    },
)
COMPACTION_APPLIED = LogMessage(
    logging.INFO,
    "a compaction is applied",
    {
        "zh": "history 压缩完成: %d 条 → %d 条",
        "en": "history compacted: %d → %d messages",
    },
    "zh",
)
COMPACTION_REJECTED = LogMessage(
    logging.INFO,
    "a compaction was rejected",
    {
        "zh": "压缩未生效: %s",
        "en": "a compaction was rejected: %s",
    },
)
NOTHING_TO_HIDE = LogMessage(
    logging.INFO,
    "a trigger fires, and nothing can be hidden",
    {
        "zh": "触发压缩，但无可压缩内容: %s",
        "en": "a trigger fires, but nothing can be hidden: %s",
    },
)
ATTEMPT_HELD = LogMessage(
    logging.WARNING,
    "a trigger fires, and failures hold attempts back",
    {
        "zh": "暂不压缩: %s",
        "en": "not compacted: %s",
    },
)
LOG_MESSAGES = (
    COMPACTION_STARTED,
    SUMMARY_MADE,
    HEADINGS_MISSING,
    *SUMMARY_FAILED.values(),
    FAILURE_CAUSES,
    COMPACTION_APPLIED,
    COMPACTION_REJECTED,
    NOTHING_TO_HIDE,
    ATTEMPT_HELD,
)
"""All messages, in the order in which they may occur."""


class CompactionLog(NamedTuple):
    """The log of the compactions of a session by a policy."""

    session_id: str | None
    policy: Policy

    def write(self, line: LogMessage, *values: object, **fields: object) -> None:
        """Log a line, with fields by which programs may read its values."""
        named = {"session_id": self.session_id, "policy": self.policy.name}
        line.log(compaction_logger, get_named_language(self.policy), *values, **named, **fields)

    def start(self, plan: Plan) -> None:
        """Log that a compaction begins."""
        before, window = plan.messages_before, plan.messages
        self.write(COMPACTION_STARTED, before, window, messages=before, window=window)

    def summary(self, summary: Summary, prompt: Prompt) -> None:
        """Log that there is a summary; and the headings that one by the policy's prompt lacks."""
        chars = len(summary.body)
        self.write(SUMMARY_MADE, chars, chars=chars)
        if summary.model in (None, EXTRACTIVE_MODEL) or summary.prompt_version:
            return
        lacking = prompt.lacking(summary.body)
        if lacking:
            self.write(HEADINGS_MISSING, ", ".join(lacking), prompt=prompt.version)

    def failure(self, error: SummaryGenerationError) -> None:
        """Log that there is no summary; the text of a foreign exception only at level DEBUG."""
        line = SUMMARY_FAILED.get(self.policy.on_failure, SUMMARY_FAILED["skip"])
        shown = error.origin or str(error)
        self.write(line, shown, error=shown)
        if error.origin:
            self.write(FAILURE_CAUSES, error)

    def end(self, record: Compaction) -> None:
        """Log the outcome of a compaction; that it failed was logged before."""
        before, after = record.messages_before, record.messages_after
        if record.outcome == "applied":
            self.write(
                COMPACTION_APPLIED, before, after, compaction=record.id, before=before, after=after
            )
        elif record.outcome == "rejected":
            self.write(COMPACTION_REJECTED, record.error, compaction=record.id)

    def nothing(self, record: Compaction) -> None:
        """Log that nothing can be hidden though a trigger fires."""
        self.write(NOTHING_TO_HIDE, record.error)

    def hold(self, problem: CompactionError) -> None:
        """Log that nothing is tried though a trigger fires."""
        self.write(ATTEMPT_HELD, problem, error=type(problem).__name__)
