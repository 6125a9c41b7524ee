"""The files of replaced reads: entries name them, and so does the log at DEBUG."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable
from itertools import chain

from sqlalchemy import select

from ..database import Statement, get_logger, json_sql, tool_result_paths
from ..history import lines
from ..phrases import Language
from .log_messages import LogMessage
from .visible_set import ViewContext

read_logger = get_logger(__name__)

_p = tool_result_paths
READ_PATHS = Statement(
    select(_p.c.seq, _p.c.path)
    .where(lines.match_run(_p), _p.c.seq.in_(json_sql.select_positions("places")))
    .order_by(_p.c.seq, _p.c.path)
)

REPLACED_READS = LogMessage(
    logging.DEBUG,
    "a view replaces old reads: of which files, and how many of each",
    {
        "zh": "精简的文件读取: %s",
        "en": "reads that were replaced: %s",
    },
)
UNKNOWN_READS = LogMessage(
    logging.DEBUG,
    "a view has reads whose files the store cannot tell: the positions of their results",
    {
        "zh": "%d 个文件读取的路径无法识别，位置: %s",
        "en": "%d reads of files that are not known, at positions %s",
    },
)
READ_LOG_MESSAGES = (REPLACED_READS, UNKNOWN_READS)

ReadFiles = dict[int, list[str]]
"""The files of results, by position."""


def load_read_paths(context: ViewContext, places: Iterable[int]) -> ReadFiles:
    """Return the files of the reads among the results at some positions."""
    wanted = sorted(places)
    files: ReadFiles = {}
    for run in context.runs(wanted[0], wanted[-1]) if wanted else ():
        if here := run.of(wanted):
            values = run.within(context.pointer.tree_id)
            for seq, path in READ_PATHS.rows(context.connection, **values, places=json.dumps(here)):
                files.setdefault(seq, []).append(path)
    return files


def log_reads(
    session_id: str, files: ReadFiles, unknown: Iterable[int], language: Language | None
) -> None:
    """Log at DEBUG the files of replaced reads, and the reads whose files are unknown."""
    extra = {"session_id": session_id, "rule": "file_read"}
    if files:
        times = Counter(chain.from_iterable(files.values())).items()
        paths = ", ".join(f"{path} ×{count}" for path, count in times)
        REPLACED_READS.log(read_logger, language, paths, **extra)
    if places := [*map(str, unknown)]:
        UNKNOWN_READS.log(read_logger, language, len(places), ", ".join(places), **extra)
