"""Hiding old turns behind a summary: when, how much, by whom it is told, and the record of it.

A trigger asks what a view costs, a plan says what goes, a summarizer is given a transcript, and the
record is ended in one transaction. Only the faces call it.
"""

from __future__ import annotations

from .checks import check
from .clearing import Clearing, plan_clearing
from .named_range import hide
from .planning import Plan, savings
from .run import compact, compact_if_needed, compactions, known_reason, plan_compaction
from .undoing import undo_compaction

__all__ = [
    "Clearing",
    "Plan",
    "check",
    "compact",
    "compact_if_needed",
    "compactions",
    "hide",
    "known_reason",
    "plan_clearing",
    "plan_compaction",
    "savings",
    "undo_compaction",
]
