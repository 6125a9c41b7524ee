"""The files of replaced reads: entries name them, and so does the log at DEBUG."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter

from sqlalchemy import select

from ..database import Row, Statement, get_logger, json_sql, tool_result_paths
from ..history import lines
from .context import ViewContext
from .judging import Verdicts
from .log_messages import LogMessage

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


def load_replaced_files(context: ViewContext, judged: Verdicts) -> ReadFiles:
    """Return the files of the replaced reads."""
    places = [verdict.seq for verdict in judged.values() if verdict.rule == "file_read"]
    return load_read_paths(context, places)


def load_read_paths(context: ViewContext, places: Iterable[int]) -> ReadFiles:
    """Return the files of the reads among the results at some positions."""
    wanted = sorted(places)
    if not wanted:
        return {}
    rows = groupby(_load_path_rows(context, wanted), key=itemgetter(0))
    return {seq: [path for _, path in group] for seq, group in rows}


def _load_path_rows(context: ViewContext, places: list[int]) -> Iterator[Row]:
    for run in context.runs(places[0], places[-1]):
        if here := run.of(places):
            place = run.within(context.pointer.tree_id)
            yield from READ_PATHS.rows(context.connection, **place, places=json.dumps(here))


def log_reads(session_id: str, judged: Verdicts, files: ReadFiles) -> None:
    """Log at DEBUG the files of replaced reads, and the reads whose files are unknown."""
    if not read_logger.isEnabledFor(logging.DEBUG):
        return
    extra = {"session_id": session_id, "rule": "file_read"}
    if files:
        REPLACED_READS.log(
            read_logger, _render_path_counts(chain.from_iterable(files.values())), **extra
        )
    unknown = [verdict.seq for verdict in judged.values() if verdict.why == "no_path"]
    if unknown:
        UNKNOWN_READS.log(read_logger, len(unknown), ", ".join(map(str, unknown)), **extra)


def _render_path_counts(paths: Iterable[str]) -> str:
    """Return each path with the number of its reads."""
    times = Counter(paths).items()
    return ", ".join(f"{path} ×{count}" for path, count in times)
