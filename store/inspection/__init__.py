"""What a store is asked from outside its conversations, and what keeps it alive.

SQL that reads only, statistics, whether all is as it was stored, what threatens it where it lies.
Copies are written, checked and put back; apart from the list of them no row changes, and what is
found is told, not mended. The faces and the command call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from . import dump, integrity
    from .advice import Condition, doctor
    from .checks import OLDER
    from .copies import backup, listed, remove_copies, restore
    from .integrity import check
    from .read_check import ReadCheck, compare_line
    from .replacing import replaced
    from .sql import query, views, writing_role
    from .usage_statistics import FileUse, Statistics, ToolUse, statistics

__all__ = [
    "OLDER",
    "Condition",
    "FileUse",
    "ReadCheck",
    "Statistics",
    "ToolUse",
    "backup",
    "check",
    "compare_line",
    "doctor",
    "dump",
    "integrity",
    "listed",
    "query",
    "remove_copies",
    "replaced",
    "restore",
    "statistics",
    "views",
    "writing_role",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = attach_modules(
        __package__,
        "dump integrity",
        advice="Condition doctor",
        checks="OLDER",
        copies="backup listed remove_copies restore",
        integrity="check",
        read_check="ReadCheck compare_line",
        replacing="replaced",
        sql="query views writing_role",
        usage_statistics="FileUse Statistics ToolUse statistics",
    )
