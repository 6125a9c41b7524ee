"""What compactions say in the log, as a table; the page of the log is made of it."""

from __future__ import annotations

import logging
from typing import NamedTuple

from ..database import logger
from ..errors import CompactionError, SummaryGenerationError
from ..policy import Policy
from ..records import Compaction
from ..summaries import EXTRACTIVE_MODEL, Prompt, Summary
from ..view import LogMessage
from .plan import Plan

log = logger(__name__)


FAILED = {
    "trim": LogMessage(
        logging.WARNING,
        "there is no summary, and the policy trims",
        {
            "zh": "摘要生成失败，回退到硬截断: %s",
            "en": "no summary, falling back to the hard limit: %s",
        },
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
"""What is said of a summarizer that failed, by what the policy does then."""

BEGUN = LogMessage(
    logging.INFO,
    "a compaction begins",
    {
        "zh": "history 达到 %d 条，触发压缩（窗口: %d 条）",
        "en": "compacting a history of %d messages (of them %d)",
    },
)
MADE = LogMessage(
    logging.DEBUG,
    "a summary was made",
    {
        "zh": "摘要生成成功（%d字符）",
        "en": "a summary was made (%d characters)",
    },
)
LACKING = LogMessage(
    logging.INFO,
    "a model's summary has not all headings that its prompt asks for; it counts all the same",
    {
        "zh": "摘要缺少标题: %s",
        "en": "a summary lacks headings: %s",
    },
)
CAUSES = LogMessage(
    logging.DEBUG,
    "a summarizer raised something: all causes of it",
    {
        "zh": "摘要失败的原因: %s",
        "en": "why there is no summary: %s",
    },
)
DONE = LogMessage(
    logging.INFO,
    "a compaction is applied",
    {
        "zh": "history 压缩完成: %d 条 → %d 条",
        "en": "history compacted: %d → %d messages",
    },
)
REFUSED = LogMessage(
    logging.INFO,
    "a compaction was rejected",
    {
        "zh": "压缩未生效: %s",
        "en": "a compaction was rejected: %s",
    },
)
NOTHING = LogMessage(
    logging.INFO,
    "a trigger fires, and nothing can be hidden",
    {
        "zh": "触发压缩，但无可压缩内容: %s",
        "en": "a trigger fires, but nothing can be hidden: %s",
    },
)
HELD = LogMessage(
    logging.WARNING,
    "a trigger fires, and failures hold attempts back",
    {
        "zh": "暂不压缩: %s",
        "en": "not compacted: %s",
    },
)
LINES = (BEGUN, MADE, LACKING, *FAILED.values(), CAUSES, DONE, REFUSED, NOTHING, HELD)
"""All of them, in the order in which they may be met."""


class About(NamedTuple):
    """Whose compaction a line is about, by which policy."""

    session_id: str | None
    policy: str | None

    def say(self, line: LogMessage, *values: object, **fields: object) -> None:
        """Log a line, with fields by which programs may tell what it says."""
        line.log(log, *values, **self._asdict(), **fields)


def begun(about: About, planned: Plan) -> None:
    """Say that a compaction begins."""
    before, window = planned.messages_before, planned.messages
    about.say(BEGUN, before, window, messages=before, window=window)


def made(about: About, summary: Summary, prompt: Prompt) -> None:
    """Say that a summary was made, and by a model without what headings of its prompt."""
    chars = len(summary.body)
    about.say(MADE, chars, chars=chars)
    lacking = prompt.lacking(summary.body) if _by_prompt(summary) else []
    if lacking:
        about.say(LACKING, ", ".join(lacking), prompt=prompt.version)


def _by_prompt(summary: Summary) -> bool:
    """Tell a summary by a model that was given the policy's prompt."""
    return summary.model not in (None, EXTRACTIVE_MODEL) and not summary.prompt_version


def failed(about: About, error: SummaryGenerationError, policy: Policy) -> None:
    """Say that there is no summary; what a foreign exception says only to whoever asks for all."""
    line = FAILED.get(policy.on_failure, FAILED["skip"])
    shown = error.origin or str(error)
    about.say(line, shown, error=shown)
    if error.origin:
        about.say(CAUSES, error)


def ended(done: Compaction) -> None:
    """Say what a compaction came to; that it failed was said before."""
    about = About(done.session_id, done.policy)
    before, after = done.messages_before, done.messages_after
    if done.outcome == "applied":
        about.say(DONE, before, after, compaction=done.id, before=before, after=after)
    elif done.outcome == "rejected":
        about.say(REFUSED, done.error, compaction=done.id)


def nothing(left: Compaction) -> None:
    """Say that nothing can be hidden though a trigger fires."""
    About(left.session_id, left.policy).say(NOTHING, left.error)


def held(policy: Policy, problem: CompactionError) -> None:
    """Say that nothing is tried though a trigger fires."""
    about = About(problem.session_id, policy.name)
    about.say(HELD, problem, error=type(problem).__name__)
