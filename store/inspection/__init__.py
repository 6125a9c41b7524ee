"""Inspection and upkeep of a whole store: SQL, statistics, checks, advice, copies and dumps.

SQL only reads. Checks compare the stored rows with their digests, and advice names the threats to
a store in its place. Copies are written, checked and put back. No row changes except the list of
copies: findings are reported, not repaired. The faces and the command call this room.
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

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
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
