"""Hiding old turns behind a summary: when, how much, by whom it is told, and the record of it.

A trigger asks what a view costs, a plan says what goes, a summarizer is given a transcript, and the
record is ended in one transaction. Only the faces call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..doors import door

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = door(
        __package__,
        checks="check",
        clearing="Clearing plan_clearing",
        named_range="hide",
        planning="Plan savings",
        run="compact compact_if_needed compactions known_reason plan_compaction",
        undoing="undo_compaction",
    )
