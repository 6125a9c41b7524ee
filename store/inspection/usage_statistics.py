"""Where the tokens go: per tool and per file, on one line or in the whole store.

Only the narrow tables are read: tokens are the stored counts of an encoding, else estimates from
lengths. Nothing here knows what a view would replace.
"""

from __future__ import annotations

import json
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

from ..database import (
    BIG,
    Row,
    Statement,
    messages,
    sessions,
    token_counts,
    tool_calls,
    tool_kinds,
    tool_result_paths,
    tool_results,
)
from ..history import Pointer, lines, segments_cte
from ..policy import DEFAULT, Policy
from ..tokens import ESTIMATE, FRAMING_TOKENS
from ..tools import switches
from ..view import is_failure, is_terminal_output, kind_overrides


class ToolUse(NamedTuple):
    """What one tool returned.

    ``failed`` results are those that a view by the same policy takes for errors.
    """

    name: str | None
    kind: str
    results: int
    failed: int
    tokens: int


class FileUse(NamedTuple):
    """What named one file; the tokens of a result that named several count for each of them."""

    path: str
    reads: int
    edits: int
    results: int
    tokens: int


class Statistics(NamedTuple):
    """Counts of one session's line, or of the whole store.

    There, messages that sessions share count once.
    """

    sessions: int
    messages: int
    tool_calls: int
    tools: list[ToolUse]
    files: list[FileUse]


Values = dict[str, Any]
"""What the statements bind, by name."""

_r, _p = tool_results, tool_result_paths
_zero: ColumnElement[int] = literal_column("0")
_one: ColumnElement[int] = literal_column("1")
_segments = segments_cte()
_of_tree = bindparam("tree_id", type_=BIG)


def _on_line(table: FromClause) -> ColumnElement[bool]:
    return and_(
        table.c.tree_id == _of_tree,
        table.c.branch == _segments.c.branch,
        table.c.seq.between(_segments.c.first, _segments.c.last),
    )


def _named(table: FromClause) -> ColumnElement[bool]:
    return table.c.name == _r.c.tool_name


_counted = and_(
    token_counts.c.tree_id == _r.c.tree_id,
    token_counts.c.branch == _r.c.branch,
    token_counts.c.seq == _r.c.seq,
    token_counts.c.encoding == bindparam("encoding"),
)


def _judged(results: FromClause) -> FromClause:
    """Put the kind of its tool and its stored count beside each tool result."""
    kinds = results.outerjoin(tool_kinds, _named(tool_kinds))
    own_kinds = kinds.outerjoin(kind_overrides, _named(kind_overrides))
    return own_kinds.outerjoin(token_counts, _counted)


_line_results = _judged(_segments.join(_r, _on_line(_r)))
_all_results = _judged(_r)


def _count_if(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(case((condition, _one), else_=_zero)), _zero)


# What `tokens.estimate_size` computes, rounded up; a text never has fewer bytes than code points.
_estimated: ColumnElement[int] = (
    literal_column("11") * _r.c.size - _r.c.length + literal_column("39")
) // literal_column("40")
_framing: ColumnElement[int] = literal_column(str(FRAMING_TOKENS))
_each = func.coalesce(token_counts.c.tokens, _estimated + _framing)
_tokens = cast(func.sum(_each), BIG)  # PostgreSQL sums to numeric
_kind: ColumnElement[str] = func.coalesce(
    kind_overrides.c.kind, tool_kinds.c.kind, literal_column("'other'")
)
_failed = is_failure(is_terminal_output(_kind == literal_column("'terminal'")) == _one) == _one


def _tools(results: FromClause) -> Statement[Row]:
    return Statement(
        select(_r.c.tool_name, _kind, func.count(), _count_if(_failed), _tokens)
        .select_from(results)
        .group_by(_r.c.tool_name, _kind)
        .order_by(_tokens.desc(), _r.c.tool_name)
    )


def _count_of(kind: str) -> ColumnElement[Any]:
    return _count_if(_kind == literal_column(f"'{kind}'"))


_reads, _edits = _count_of("file_read"), _count_of("file_edit")
_naming = and_(
    _p.c.tree_id == _r.c.tree_id,
    _p.c.branch == _r.c.branch,
    _p.c.seq == _r.c.seq,
)


def _files(results: FromClause) -> Statement[Row]:
    return Statement(
        select(_p.c.path, _reads, _edits, func.count(), _tokens)
        .select_from(results.join(_p, _naming))
        .group_by(_p.c.path)
        .order_by(_tokens.desc(), _p.c.path)
        .limit(bindparam("limit", type_=BIG))
    )


TOOLS, FILES = _tools(_line_results), _files(_line_results)
ALL_TOOLS, ALL_FILES = _tools(_all_results), _files(_all_results)
CALLS = Statement(
    select(func.count()).select_from(_segments.join(tool_calls, _on_line(tool_calls)))
)
TOTALS = Statement(
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
    encoding: str = ESTIMATE,
    files: int = 20,
    policy: Policy = DEFAULT,
) -> Statistics:
    """Return what tools returned, and about which files, on a session's line.

    Without a session it is the whole store. ``files`` limits how many files are listed, the
    costliest first; ``policy`` says which results failed, and of what kind a tool is. Raises
    SessionNotFound.
    """
    values = {"encoding": encoding, "limit": files, **_switches(policy)}
    if session_id is None:
        return _of_all(connection, values)
    return _of_line(connection, lines.load_pointer(connection, session_id), values)


def _switches(policy: Policy) -> Values:
    """Return what the queries ask of a policy."""
    kinds = json.dumps(dict(policy.tool_kinds))
    sniff = int(policy.identity == "sniff")
    return {"kinds": kinds, "sniff": sniff, **switches(policy)}


def _of_all(connection: Connection, values: Values) -> Statistics:
    counts = TOTALS.one(connection)
    tools = ALL_TOOLS.rows(connection, **values)
    return _told(counts, tools, ALL_FILES.rows(connection, **values))


def _of_line(connection: Connection, pointer: Pointer, values: Values) -> Statistics:
    line = {**pointer.line, "start": 1, "last": pointer.head, **values}
    counts = (1, pointer.head, CALLS.value(connection, **line))
    tools = TOOLS.rows(connection, **line)
    return _told(counts, tools, FILES.rows(connection, **line))


def _told(counts: Row, tools: list[Row], files: list[Row]) -> Statistics:
    """Return counts of sessions, messages and calls, with rows of tools and of files."""
    sessions, messages, calls = counts
    return Statistics(
        sessions,
        messages,
        calls,
        [ToolUse._make(row) for row in tools],
        [FileUse._make(row) for row in files],
    )
