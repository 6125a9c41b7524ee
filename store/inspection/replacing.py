"""The tool results of a session that rules replace now, with their tools, files and reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection, and_, bindparam, select

from ..clock import Now
from ..database import Row, Statement, select_positions, tool_result_paths, tool_results
from ..history import Line, lines
from ..policy import Policy
from ..records import Entry, Replaced
from ..view import build, rules

_r, _p = tool_results, tool_result_paths
_is_of_result = and_(
    _p.c.tree_id == bindparam("tree_id"),
    _p.c.branch == _r.c.branch,
    _p.c.seq == _r.c.seq,
)
REPLACED_RESULTS = Statement(
    select(_r.c.seq, _r.c.tool_name, _p.c.path)
    .select_from(_r)
    .outerjoin(_p, _is_of_result)
    .where(lines.match_run(_r), _r.c.seq.in_(select_positions("places")))
    .order_by(_r.c.seq, _p.c.path)
)
"""The tools and files of some results in a run."""


def replaced(
    connection: Connection,
    session_id: str,
    policy: Policy | None = None,
    *,
    at: int | None = None,
    now: Now = None,
) -> list[Replaced]:
    """Return the tool results that a view replaces or shortens, in the order of their positions.

    The view is that of the line up to position ``at`` at a moment, as for `view`. It leaves out
    messages that a compaction hides; `hidden` lists them. Raises SessionNotFound,
    PositionOutOfRange.
    """
    built = build.view(connection, session_id, policy, at=at, now=now)
    entries = {entry.seq: entry for entry in built.entries if entry.rule in rules.RULES}
    about = _load_replaced_rows(connection, session_id, [seq for seq in entries if seq], built.at)
    return [_build_replaced(entries[seq], rows) for seq, rows in about]


def _load_replaced_rows(
    connection: Connection, session_id: str, places: list[int], last: int
) -> Iterator[tuple[int, list[Row]]]:
    """Yield the rows of tools and files by the positions of their results."""
    pointer = lines.load_pointer(connection, session_id)
    first = min(places, default=last + 1)
    for run in Line(connection, pointer).runs(first, last):
        place = run.within(pointer.tree_id)
        rows = REPLACED_RESULTS.rows(connection, **place, places=json.dumps(places))
        for seq, group in groupby(rows, key=itemgetter(0)):
            yield seq, list(group)


def _build_replaced(entry: Entry, rows: list[Row]) -> Replaced:
    """Return the replacement of a result from its entry, with its tool and its files."""
    _, tool_name, _ = rows[0]
    paths = tuple(path for _, _, path in rows if path is not None)
    reason, tokens = entry.reason, entry.tokens
    saved = entry.tokens_saved
    return Replaced(entry.seq or 0, tool_name, paths, str(entry.rule), reason, tokens, saved)
