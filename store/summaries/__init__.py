"""Summaries as values, and the pure functions around them: what a summarizer is shown, what it may give back.

Limits are code points, and a limit includes its own ellipsis (A2.6). Everything here is deterministic; nothing here
knows databases, clocks, the network or policies.
"""

from __future__ import annotations

from .extracts import extractive
from .facts_ledger import HiddenFact, ledger
from .returned import EMPTY, normalised
from .shown import FLOOR, LIMITS, Fitted, TranscriptLimits, fit, group_ends, transcript
from .texts import RESULT_ROLES, SYSTEM_ROLES, command_of, cut, message_content, scrubbed
from .values import (
    TIMED_OUT_NOTICE,
    FileChange,
    KeyAction,
    Summarizer,
    Summary,
    SummaryRequest,
    rendered,
    title,
)

__all__ = [
    "EMPTY",
    "FLOOR",
    "LIMITS",
    "RESULT_ROLES",
    "SYSTEM_ROLES",
    "TIMED_OUT_NOTICE",
    "FileChange",
    "Fitted",
    "HiddenFact",
    "KeyAction",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "TranscriptLimits",
    "command_of",
    "cut",
    "extractive",
    "fit",
    "group_ends",
    "ledger",
    "message_content",
    "normalised",
    "rendered",
    "scrubbed",
    "title",
    "transcript",
]
