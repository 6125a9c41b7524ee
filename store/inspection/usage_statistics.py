"""Statistics of tokens, per tool and per file, on one line or in the whole store.

Only the narrow tables are read: tokens are the stored counts of an encoding, else estimates from
lengths. Replacements in views are not considered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
)

from ..clock import Now
from ..database import (
    BIG_INTEGER,
    Row,
    Statement,
    messages,
    select_positions,
    sessions,
    token_counts,
    tool_calls,
    tool_kinds,
    tool_result_paths,
    tool_results,
)
from ..history import Line, build_segments, lines
from ..policy import STANDARD_POLICY, Policy
from ..records import Entry, Replaced, extract_content_text
from ..tokens import ESTIMATE_NAME, FRAMING_TOKENS
from ..tools import build_sign_switches, find_answered_call_id
from ..view import build, is_failure, is_terminal_output, kind_overrides, rules

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


class ToolUse(NamedTuple):
    """The results of one tool.

    ``failed`` results are errors to a view by the same policy.
    """

    name: str | None
    kind: str
    results: int
    failed: int
    tokens: int


class FileCounts(NamedTuple):
    """The results that name one file; the tokens of a result with several files count for each."""

    path: str
    reads: int
    edits: int
    results: int
    tokens: int


class Statistics(NamedTuple):
    """Counts of one session's line, or of the whole store.

    In a whole store, messages that sessions share count once.
    """

    sessions: int
    messages: int
    tool_calls: int
    tools: list[ToolUse]
    files: list[FileCounts]


_r, _p = tool_results, tool_result_paths
_ZERO: ColumnElement[int] = literal_column("0")
_ONE: ColumnElement[int] = literal_column("1")
_statistics_segments = build_segments()
_tree_id = bindparam("tree_id", type_=BIG_INTEGER)


def _is_on_line(table: FromClause) -> ColumnElement[bool]:
    return and_(
        table.c.tree_id == _tree_id,
        table.c.branch == _statistics_segments.c.branch,
        table.c.seq.between(_statistics_segments.c.first, _statistics_segments.c.last),
    )


def _is_same_tool(table: FromClause) -> ColumnElement[bool]:
    return table.c.name == _r.c.tool_name


_has_count = and_(
    token_counts.c.tree_id == _r.c.tree_id,
    token_counts.c.branch == _r.c.branch,
    token_counts.c.seq == _r.c.seq,
    token_counts.c.encoding == bindparam("encoding"),
)


def _join_kinds(results: FromClause) -> FromClause:
    """Join each tool result with the kind of its tool and its stored count."""
    kinds = results.outerjoin(tool_kinds, _is_same_tool(tool_kinds))
    own_kinds = kinds.outerjoin(kind_overrides, _is_same_tool(kind_overrides))
    return own_kinds.outerjoin(token_counts, _has_count)


_line_results = _join_kinds(_statistics_segments.join(_r, _is_on_line(_r)))
_store_results = _join_kinds(_r)


def _count_if(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(case((condition, _ONE), else_=_ZERO)), _ZERO)


# What `tokens.estimate_size` computes, rounded up; a text never has fewer bytes than code points.
_estimated_tokens: ColumnElement[int] = (
    literal_column("11") * _r.c.size - _r.c.length + literal_column("39")
) // literal_column("40")
_framing_tokens: ColumnElement[int] = literal_column(str(FRAMING_TOKENS))
_result_tokens = func.coalesce(token_counts.c.tokens, _estimated_tokens + _framing_tokens)
_token_sum = cast(func.sum(_result_tokens), BIG_INTEGER)  # PostgreSQL sums to numeric
_counted_kind: ColumnElement[str] = func.coalesce(
    kind_overrides.c.kind, tool_kinds.c.kind, literal_column("'other'")
)
_is_failed = (
    is_failure(is_terminal_output(_counted_kind == literal_column("'terminal'")) == _ONE) == _ONE
)


def _build_tool_statement(results: FromClause) -> Statement[Row]:
    return Statement(
        select(_r.c.tool_name, _counted_kind, func.count(), _count_if(_is_failed), _token_sum)
        .select_from(results)
        .group_by(_r.c.tool_name, _counted_kind)
        .order_by(_token_sum.desc(), _r.c.tool_name)
    )


def _count_kind(kind: str) -> ColumnElement[Any]:
    return _count_if(_counted_kind == literal_column(f"'{kind}'"))


_read_count, _edit_count = _count_kind("file_read"), _count_kind("file_edit")
_names_path = and_(
    _p.c.tree_id == _r.c.tree_id,
    _p.c.branch == _r.c.branch,
    _p.c.seq == _r.c.seq,
)


def _build_file_statement(results: FromClause) -> Statement[Row]:
    return Statement(
        select(_p.c.path, _read_count, _edit_count, func.count(), _token_sum)
        .select_from(results.join(_p, _names_path))
        .group_by(_p.c.path)
        .order_by(_token_sum.desc(), _p.c.path)
        .limit(bindparam("limit", type_=BIG_INTEGER))
    )


LINE_TOOLS, LINE_FILES = _build_tool_statement(_line_results), _build_file_statement(_line_results)
STORE_TOOLS, STORE_FILES = (
    _build_tool_statement(_store_results),
    _build_file_statement(_store_results),
)
LINE_CALL_COUNT = Statement(
    select(func.count()).select_from(_statistics_segments.join(tool_calls, _is_on_line(tool_calls)))
)
STORE_TOTALS = Statement(
    select(
        *(
            select(func.count()).select_from(table).scalar_subquery().label(table.name)
            for table in (sessions, messages, tool_calls)
        )
    )
)


def statistics(
    connection: Connection,
    session_id: str | None = None,
    *,
    encoding: str = ESTIMATE_NAME,
    files: int = 20,
    policy: Policy = STANDARD_POLICY,
) -> Statistics:
    """Return the uses of tools and files on a session's line.

    Without a session they are those of the whole store. ``files`` limits the number of listed
    files, the costliest first; ``policy`` decides which results failed, and the kind of a tool.
    Raises SessionNotFound.
    """
    values: dict[str, Any] = {
        "encoding": encoding,
        "limit": files,
        "kinds": json.dumps(dict(policy.tool_kinds)),
        "sniff": int(policy.identity == "sniff"),
        **build_sign_switches(policy),
    }
    if session_id is None:
        counts: Row = STORE_TOTALS.one(connection)
        tool_rows = STORE_TOOLS.rows(connection, **values)
        file_rows = STORE_FILES.rows(connection, **values)
    else:
        pointer = lines.load_pointer(connection, session_id)
        values |= {**pointer.line, "start": 1, "last": pointer.head}
        counts = (1, pointer.head, LINE_CALL_COUNT.value(connection, **values))
        tool_rows = LINE_TOOLS.rows(connection, **values)
        file_rows = LINE_FILES.rows(connection, **values)
    session_count, message_count, call_count = counts
    tools = [ToolUse._make(row) for row in tool_rows]
    file_uses = [FileCounts._make(row) for row in file_rows]
    return Statistics(session_count, message_count, call_count, tools, file_uses)


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
    call_id, text = (
        find_answered_call_id(entry.message),
        extract_content_text(entry.message["content"]),
    )
    why = (str(entry.rule), reason, tokens, saved)
    return Replaced(entry.seq or 0, tool_name, paths, *why, call_id, text)
