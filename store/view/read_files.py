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

log = get_logger(__name__)

_p = tool_result_paths
PATHS = Statement(
    select(_p.c.seq, _p.c.path)
    .where(lines.in_run(_p), _p.c.seq.in_(json_sql.select_positions("places")))
    .order_by(_p.c.seq, _p.c.path)
)

REPLACED = LogMessage(
    logging.DEBUG,
    "a view replaces old reads: of which files, and how many of each",
    {
        "zh": "精简的文件读取: %s",
        "en": "reads that were replaced: %s",
    },
)
UNKNOWN = LogMessage(
    logging.DEBUG,
    "a view has reads whose files the store cannot tell: the positions of their results",
    {
        "zh": "%d 个文件读取的路径无法识别，位置: %s",
        "en": "%d reads of files that are not known, at positions %s",
    },
)
LINES = (REPLACED, UNKNOWN)

Files = dict[int, list[str]]
"""The files of results, by position."""


def files_of(context: ViewContext, judged: Verdicts) -> Files:
    """Return the files of the replaced reads."""
    places = [verdict.seq for verdict in judged.values() if verdict.rule == "file_read"]
    return paths_of(context, places)


def paths_of(context: ViewContext, places: Iterable[int]) -> Files:
    """Return the files of the reads among the results at some positions."""
    wanted = sorted(places)
    if not wanted:
        return {}
    rows = groupby(_rows(context, wanted), key=itemgetter(0))
    return {seq: [path for _, path in group] for seq, group in rows}


def _rows(context: ViewContext, places: list[int]) -> Iterator[Row]:
    for run in context.runs(places[0], places[-1]):
        if here := run.of(places):
            place = run.within(context.pointer.tree_id)
            yield from PATHS.rows(context.connection, **place, places=json.dumps(here))


def log_reads(session_id: str, judged: Verdicts, files: Files) -> None:
    """Log at DEBUG the files of replaced reads, and the reads whose files are unknown."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    extra = {"session_id": session_id, "rule": "file_read"}
    if files:
        REPLACED.log(log, _counted(chain.from_iterable(files.values())), **extra)
    unknown = [verdict.seq for verdict in judged.values() if verdict.why == "no_path"]
    if unknown:
        UNKNOWN.log(log, len(unknown), ", ".join(map(str, unknown)), **extra)


def _counted(paths: Iterable[str]) -> str:
    """Return each path with the number of its reads."""
    times = Counter(paths).items()
    return ", ".join(f"{path} ×{count}" for path, count in times)
