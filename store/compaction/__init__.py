"""Compaction: old turns are hidden by a summary; its triggers, plans, summarizers and records.

A trigger asks what a view costs, a plan says what goes, a summarizer is given a transcript, and the
record is ended in one transaction. Only the faces call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from .compaction_check import check
    from .hidden_range import hide
    from .plan import Plan
    from .workflow import (
        Clearing,
        compact,
        compact_if_needed,
        compactions,
        plan_clearing,
        plan_compaction,
        undo_compaction,
    )

__all__ = [
    "Clearing",
    "Plan",
    "check",
    "compact",
    "compact_if_needed",
    "compactions",
    "hide",
    "plan_clearing",
    "plan_compaction",
    "undo_compaction",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = attach_modules(
        __package__,
        compaction_check="check",
        hidden_range="hide",
        plan="Plan",
        workflow=(
            "Clearing compact compact_if_needed compactions plan_clearing plan_compaction "
            "undo_compaction"
        ),
    )
