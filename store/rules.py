"""The rules of a view as one statement: rank a line's tool results by window functions, judge each, say why.

It reads the narrow tables only, so what will be replaced is known before any content is touched. Ranks are over the
positions that the view shows; (moment, position) orders them, the later position being newer on a tie (A0.8).
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, case, cast, func, literal_column, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from .lines import Pointer, segments_cte
from .policy import Policy
from .schema import BIG, messages, tool_kinds, tool_result_paths, tool_results
from .statements import Row, Statement

NEVER = 2**62
"""A position beyond all lines."""


class Verdict(NamedTuple):
    """What the rules say of a tool result; ``rule`` None means that it stays, ``why`` is a key of REASONS."""

    seq: int
    call: tuple[int, int] | None
    rule: str | None
    why: str
    nth: int | None
    length: int
    size: int
    tool_name: str | None


REASONS = {
    "terminal": "output of a command, {nth} newest tool result and over {minutes} minutes old",
    "file_read": "{keep} newer reads of the same file are kept",
    "error": "errors always stay",
    "pending": "the tool is still running",
    "undated": "no timestamp, so no age and no rank",
    "current_turn": "part of the current turn",
    "newest": "one of the newest {slots} tool results",
    "young": "not over {minutes} minutes old",
    "small": "replacing it would save too little",
    "no_path": "the file it read is not known",
    "newest_reads": "among the newest {keep} reads of each of its files",
    "uncovered": "newer kept reads do not cover its lines",
    "other": "no rule is about this tool",
}
"""Why a tool result is replaced or stays."""


class pairs(GenericFunction[Any]):  # noqa: N801 - SQL functions are written small
    """The keys and values of a JSON object, as rows ``key``, ``value``."""

    inherit_cache = True


class elements(GenericFunction[Any]):  # noqa: N801
    """The elements of a JSON array, as rows ``value``."""

    inherit_cache = True


@compiles(pairs)
def _pairs_sqlite(element: pairs, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(pairs, "postgresql")
def _pairs_postgresql(element: pairs, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each_text(CAST({compiler.process(element.clauses, **options)} AS json))"


@compiles(elements)
def _elements_sqlite(element: elements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(elements, "postgresql")
def _elements_postgresql(element: elements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS json))"


def positions(name: str) -> Select[int]:
    """Build a subquery of the positions in a bound JSON array."""
    return select(cast(func.elements(bindparam(name)).table_valued("value", name=name).c.value, BIG))


def _number(name: str) -> ColumnElement[int]:
    return bindparam(name, type_=BIG)


def _is(name: str) -> ColumnElement[bool]:
    """Bind a switch of the policy, 0 or 1."""
    return _number(name) == literal_column("1")


_zero: ColumnElement[int] = literal_column("0")
_one: ColumnElement[int] = literal_column("1")

_segments = segments_cte()
_r = tool_results

_overrides = func.pairs(bindparam("kinds")).table_valued("key", "value", name="overrides")
_named = (
    select(_overrides.c.key.label("name"), _overrides.c.value.label("kind"))
    .union_all(select(tool_kinds.c.name, tool_kinds.c.kind).where(tool_kinds.c.name.not_in(select(_overrides.c.key))))
    .cte("kinds")
)

_nameless = func.coalesce(_r.c.tool_name, literal_column("''")) == literal_column("''")
_is_terminal = case(
    (or_(_is("sniff"), _nameless), _r.c.looks_terminal),
    (_named.c.kind == literal_column("'terminal'"), _one),
    else_=_zero,
)
_results = (
    select(
        _r.c.branch,
        _r.c.seq,
        _r.c.call_seq,
        _r.c.call_position,
        _r.c.tool_name,
        _r.c.at,
        _r.c.status,
        _r.c.exit_code,
        _r.c.has_stderr,
        _r.c.error_prefix,
        _r.c.length,
        _r.c.size,
        _r.c.paths_complete,
        _is_terminal.label("is_terminal"),
        case((_named.c.kind == literal_column("'file_read'"), _one), else_=_zero).label("is_read"),
    )
    .select_from(_segments)
    .join(
        _r,
        and_(
            _r.c.tree_id == bindparam("tree_id"),
            _r.c.branch == _segments.c.branch,
            _r.c.seq.between(_segments.c.first, _segments.c.last),
        ),
    )
    .outerjoin(_named, _named.c.name == _r.c.tool_name)
    .where(
        _r.c.seq >= _number("start"),
        or_(_r.c.call_seq >= _number("start"), _is("adopt")),
    )
    .cte("results")
)

_stderr = and_(
    _results.c.is_terminal == _one,
    _results.c.has_stderr == _one,
    or_(
        _is("stderr_always"),
        and_(_is("stderr_nonzero"), func.coalesce(_results.c.exit_code, _one) != _zero),
    ),
)
_exit = and_(_is("exit_code_is_error"), _results.c.is_terminal == _one, _results.c.exit_code != _zero)
_judged = select(
    _results,
    case(
        (_results.c.error_prefix == _one, _one),
        (_results.c.status == literal_column("'error'"), _one),
        (_stderr, _one),
        (_exit, _one),
        else_=_zero,
    ).label("is_error"),
    case((_results.c.status == literal_column("'pending'"), _one), else_=_zero).label("is_pending"),
).cte("judged")

_takes_slot = case(
    (_judged.c.at.is_(None), _zero),
    (and_(_judged.c.is_error == _one, _number("errors_take_slots") == _zero), _zero),
    else_=_one,
)
_ranked = select(
    _judged,
    func.row_number().over(partition_by=_takes_slot, order_by=(_judged.c.at.desc(), _judged.c.seq.desc())).label("nth"),
).cte("ranked")

_p = tool_result_paths
_reads = (
    select(
        _p.c.seq,
        _judged.c.at,
        _p.c.path,
        _p.c.start_line,
        _p.c.end_line,
        _p.c.contiguous,
        func.sum(case((_is("dedupe"), _one), else_=_p.c.mentions))
        .over(partition_by=_p.c.path, order_by=(_judged.c.at.desc(), _judged.c.seq.desc()), rows=(None, 0))
        .label("nth"),
    )
    .select_from(_judged)
    .join(
        _p,
        and_(
            _p.c.tree_id == bindparam("tree_id"),
            _p.c.branch == _judged.c.branch,
            _p.c.seq == _judged.c.seq,
        ),
    )
    .where(
        _judged.c.is_read == _one,
        _judged.c.is_error == _zero,
        _judged.c.is_pending == _zero,
        _judged.c.at.is_not(None),
    )
    .cte("reads")
)
_stale = case((_reads.c.nth > _number("file_read_keep"), _one), else_=_zero)
_files = (
    select(_reads.c.seq, func.min(_stale).label("all_stale"), func.max(_stale).label("any_stale"))
    .group_by(_reads.c.seq)
    .cte("files")
)

_ripe = and_(
    _ranked.c.is_error == _zero,
    _ranked.c.is_pending == _zero,
    _ranked.c.at.is_not(None),
    _ranked.c.seq < _number("protected_from"),
)
_old = _ranked.c.at < _number("old_before")
_kept = _ranked.c.nth <= _number("terminal_keep")


def _saves(placeholder: str) -> ColumnElement[bool]:
    saving = _ranked.c.length - _number(placeholder)
    return or_(_number("min_saving") == _zero, saving >= _number("min_saving"))


_stale_read = or_(
    and_(_is("batch_all"), _files.c.all_stale == _one, _ranked.c.paths_complete == _one),
    and_(_is("batch_any"), _files.c.any_stale == _one),
)
_output = and_(_is("terminal"), _ranked.c.is_terminal == _one)
_says = {
    "terminal": and_(_output, _ripe, ~_kept, _old, _ranked.c.length > _zero, _saves("terminal_placeholder")),
    "file_read": and_(_is("file_read"), _ranked.c.is_read == _one, _ripe, _stale_read, _saves("file_read_placeholder")),
    "error": _ranked.c.is_error == _one,
    "pending": _ranked.c.is_pending == _one,
    "undated": _ranked.c.at.is_(None),
    "current_turn": _ranked.c.seq >= _number("protected_from"),
    "newest": and_(_output, _kept),
    "young": and_(_output, ~_old),
    "small": or_(_output, and_(_is("file_read"), _ranked.c.is_read == _one, _stale_read)),
    "no_path": and_(_is("file_read"), _ranked.c.is_read == _one, _files.c.seq.is_(None)),
    "newest_reads": and_(_is("file_read"), _ranked.c.is_read == _one),
}
VERDICTS = Statement(
    select(
        _ranked.c.seq,
        _ranked.c.call_seq,
        _ranked.c.call_position,
        case(*((says, literal_column(f"'{why}'")) for why, says in _says.items()), else_=literal_column("'other'")),
        _ranked.c.nth,
        _ranked.c.length,
        _ranked.c.size,
        _ranked.c.tool_name,
    )
    .select_from(_ranked)
    .outerjoin(_files, _files.c.seq == _ranked.c.seq)
    .order_by(_ranked.c.seq)
)
READS = Statement(
    select(_reads.c.seq, _reads.c.path, _reads.c.start_line, _reads.c.end_line, _reads.c.contiguous).order_by(
        _reads.c.at.desc(), _reads.c.seq.desc()
    )
)
LAST_USER = Statement(
    select(messages.c.seq)
    .where(
        messages.c.tree_id == bindparam("tree_id"),
        messages.c.branch == bindparam("branch"),
        messages.c.seq.between(bindparam("first"), bindparam("last")),
        messages.c.role == literal_column("'user'"),
    )
    .order_by(messages.c.seq.desc())
    .limit(literal_column("1"))
)


def verdicts(
    connection: Connection, pointer: Pointer, policy: Policy, *, start: int, last: int, protected_from: int, now: int
) -> dict[int, Verdict]:
    """Return what the rules say of each tool result from position ``start`` to ``last``, by position."""
    values = {
        "tree_id": pointer.tree_id,
        "branch": pointer.branch,
        "start": start,
        "last": last,
        **_switches(policy),
        "protected_from": protected_from,
        "old_before": now - policy.terminal_max_age,
    }
    rows = VERDICTS.rows(connection, **values)
    found = {seq: _verdict(seq, *row) for seq, *row in rows}
    if policy.range_aware:
        _keep_uncovered(found, READS.rows(connection, **values))
    return found


def reason(verdict: Verdict, policy: Policy) -> str:
    """Return in words why a tool result is replaced or stays."""
    return REASONS[verdict.why].format(
        nth=f"{verdict.nth}.",
        keep=policy.file_read_keep,
        slots=policy.terminal_keep,
        minutes=f"{policy.terminal_max_age / 60_000:g}",
    )


def _verdict(seq: int, call_seq: int | None, call_position: int | None, why: str, *rest: Any) -> Verdict:
    call = None if call_seq is None or call_position is None else (call_seq, call_position)
    return Verdict(seq, call, why if why in ("terminal", "file_read") else None, why, *rest)


def _switches(policy: Policy) -> dict[str, Any]:
    """Return the policy as values of the statement: switches as 0 or 1, placeholders by their length."""
    return {
        "kinds": json.dumps(dict(policy.tool_kinds)),
        "sniff": int(policy.identity == "sniff"),
        "adopt": int(policy.orphans == "adopt"),
        "stderr_always": int(policy.stderr_is_error == "always"),
        "stderr_nonzero": int(policy.stderr_is_error == "nonzero_exit"),
        "exit_code_is_error": int(policy.exit_code_is_error),
        "errors_take_slots": int(policy.errors_take_slots),
        "dedupe": int(policy.dedupe),
        "batch_all": int(policy.batch_rule == "all"),
        "batch_any": int(policy.batch_rule == "any"),
        "terminal": int(policy.terminal),
        "terminal_keep": policy.terminal_keep,
        "terminal_placeholder": len(policy.terminal_placeholder),
        "file_read": int(policy.file_read),
        "file_read_keep": policy.file_read_keep,
        "file_read_placeholder": len(policy.file_read_placeholder),
        "min_saving": policy.min_saving,
    }


def _keep_uncovered(found: dict[int, Verdict], reads: list[Row]) -> None:
    """Keep every read whose lines the newer kept reads do not cover (A1.5); a kept one covers in its turn.

    ``reads`` come newest first. Lines that were not read in one piece cover nothing.
    """
    kept: dict[str, list[tuple[int, int]]] = {}
    for seq, group in groupby(reads, key=lambda read: read[0]):
        read = [(path, (first or 1, last or NEVER), contiguous) for _, path, first, last, contiguous in group]
        if found[seq].rule == "file_read" and not all(_covers(kept.get(path, []), lines) for path, lines, _ in read):
            found[seq] = found[seq]._replace(rule=None, why="uncovered")
        if found[seq].rule is None:
            for path, lines, contiguous in read:
                kept.setdefault(path, []).extend([lines] if contiguous else [])


def _covers(kept: list[tuple[int, int]], lines: tuple[int, int]) -> bool:
    """Tell whether the kept ranges together hold every line of a range."""
    first, last = lines
    for low, high in sorted(kept):
        if low > first:
            return False
        first = max(first, high + 1)
        if first > last:
            return True
    return first > last
