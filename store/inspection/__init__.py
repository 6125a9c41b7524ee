"""History as something to ask: SQL that reads only, statistics, and whether the store is whole.

It never writes. What it finds is told, not mended. The faces and the command call it.
"""

from __future__ import annotations

from . import integrity
from .sql import query
from .usage_statistics import FileUse, Statistics, ToolUse, statistics

__all__ = ["FileUse", "Statistics", "ToolUse", "integrity", "query", "statistics"]
