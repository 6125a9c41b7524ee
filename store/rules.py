"""The rules of a view as one statement: rank a line's tool results by window functions, judge each, say why.

It reads the narrow tables only, so what will be replaced is known before any content is touched. Ranks are over the
positions that the view shows; (moment, position) orders them, the later position being newer on a tie (A0.8).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, cast, func, literal_column, null, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.sql.selectable import CTE

from .lines import segments_cte
from .schema import BIG, tool_kinds, tool_result_paths, tool_results
from .statements import Statement


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

_pairs = func.pairs(bindparam("kinds")).table_valued("key", "value", name="pairs")


def of_kind(kind: str) -> ColumnElement[bool]:
    """Tell of a result whether its tool is of a kind, by a list of names: less than a join with all kinds.

    The kinds of the bound JSON object ``kinds`` stand over those of the table.
    """
    name = tool_kinds.c.name
    known: ColumnElement[str] = literal_column(f"'{kind}'")
    stored = select(name).where(tool_kinds.c.kind == known, name.not_in(select(_pairs.c.key)))
    return _r.c.tool_name.in_(stored.union_all(select(_pairs.c.key).where(_pairs.c.value == known)))


_overrides = (  # once and not for each result: parsing JSON costs more than looking up a name
    select(_pairs.c.key.label("name"), _pairs.c.value.label("kind")).cte("overrides").prefix_with("MATERIALIZED")
)
_kind: ColumnElement[str] = func.coalesce(_overrides.c.kind, tool_kinds.c.kind)
_nameless = func.coalesce(_r.c.tool_name, literal_column("''")) == literal_column("''")


def _terminal(of_that_kind: ColumnElement[bool]) -> ColumnElement[int]:
    """Tell of a result whether it is a command's output: by its tool, else by how it looks."""
    by_looks = or_(_is("sniff"), _nameless)
    return case((by_looks, _r.c.looks_terminal), (of_that_kind, _one), else_=_zero)


_on_line = and_(
    _r.c.tree_id == bindparam("tree_id"),
    _r.c.branch == _segments.c.branch,
    _r.c.seq.between(_segments.c.first, _segments.c.last),
)
_shown = and_(_r.c.seq >= _number("start"), or_(_r.c.call_seq >= _number("start"), _is("adopt")))
_judged_yet = _r.c.seq < _number("judged_before")


def _judge(terminal: ColumnElement[bool], file_read: ColumnElement[bool], *columns: ColumnElement[Any]) -> Select[Any]:
    """Build a line's results with what is said of each by itself, given what tells of each whether it is of a kind."""
    is_terminal = _terminal(terminal)
    command = is_terminal == _one
    nonzero = and_(_is("stderr_nonzero"), func.coalesce(_r.c.exit_code, _one) != _zero)
    error = case(
        (_r.c.error_prefix == _one, _one),
        (_r.c.status == literal_column("'error'"), _one),
        (and_(_r.c.has_stderr == _one, command, or_(_is("stderr_always"), nonzero)), _one),
        (and_(_is("exit_code_is_error"), _r.c.exit_code != _zero, command), _one),
        else_=_zero,
    )
    told = {
        "is_terminal": is_terminal,
        "is_read": case((and_(file_read, _judged_yet), _one), else_=_zero),
        "is_error": error,
        "is_pending": case((_r.c.status == literal_column("'pending'"), _one), else_=_zero),
    }
    narrow = (_r.c[name] for name in ("branch", "seq", "tool_name", "at", "length", "size", "paths_complete"))
    said = (says.label(name) for name, says in told.items())
    return select(*narrow, *columns, *said).select_from(_segments).join(_r, _on_line).where(_shown)


def _takes_slot(of: CTE) -> ColumnElement[bool]:
    """Tell of a result whether it takes one of the slots of the newest."""
    counts = or_(of.c.is_error == _zero, _is("errors_take_slots"))
    return and_(of.c.at.is_not(None), of.c.seq < _number("judged_before"), counts)


def _is_read(of: CTE) -> ColumnElement[bool]:
    """Tell of a result whether it counts as a read of its files."""
    return and_(of.c.is_read == _one, of.c.is_error == _zero, of.c.is_pending == _zero, of.c.at.is_not(None))


_judged = (
    _judge(
        _kind == literal_column("'terminal'"),
        _kind == literal_column("'file_read'"),
        _kind.label("kind"),
        _r.c.call_seq,
        _r.c.call_position,
    )
    .outerjoin(tool_kinds, tool_kinds.c.name == _r.c.tool_name)
    .outerjoin(_overrides, _overrides.c.name == _r.c.tool_name)
    .cte("judged")
)
_ranked = (  # narrow, since its sort carries all that it is given
    select(
        _judged.c.seq,
        func.row_number().over(order_by=(_judged.c.at.desc(), _judged.c.seq.desc())).label("nth"),
    )
    .where(_takes_slot(_judged))
    .cte("ranked")
)
_newest = select(_ranked.c.seq).where(_ranked.c.nth <= _number("terminal_keep"))

_p = tool_result_paths
_reads = (
    select(
        _p.c.seq,
        _judged.c.at,
        _p.c.path,
        case((_is("dedupe"), _one), else_=_p.c.mentions).label("mentions"),
    )
    .select_from(_judged)
    .join(
        _p,
        and_(_p.c.tree_id == bindparam("tree_id"), _p.c.branch == _judged.c.branch, _p.c.seq == _judged.c.seq),
    )
    .where(_is_read(_judged))
    .cte("reads")
)


def _nth_of_path(reads: CTE) -> ColumnElement[int]:
    """Rank reads among those of the same file, the newest first."""
    newest_first = (reads.c.at.desc(), reads.c.seq.desc())
    return func.sum(reads.c.mentions).over(partition_by=reads.c.path, order_by=newest_first, rows=(None, 0))


def _nth_of_read(nth: ColumnElement[int]) -> ColumnElement[int]:
    """Rank a read by the file of it that counts."""
    return case((_is("batch_any"), func.max(nth)), else_=func.min(nth))


_again = select(_reads.c.seq, _nth_of_path(_reads).label("nth")).cte("again")
_files = select(_again.c.seq, _nth_of_read(_again.c.nth).label("nth")).group_by(_again.c.seq).cte("files")


def _is_ripe(of: CTE) -> ColumnElement[bool]:
    """Tell of a result whether any rule may replace it."""
    return and_(
        of.c.is_error == _zero,
        of.c.is_pending == _zero,
        of.c.at.is_not(None),
        of.c.seq < _number("protected_from"),
    )


def _saves(placeholder: str, of: CTE = _judged) -> ColumnElement[bool]:
    """Tell of a result whether replacing it saves as much as it must."""
    saving = of.c.length - _number(placeholder)
    return or_(_number("min_saving") == _zero, saving >= _number("min_saving"))


def _is_finished(of: CTE) -> ColumnElement[bool]:
    """Tell of a result whether its short form is enough."""
    return and_(
        _is("tool_output"),
        of.c.seq < _number("running_from"),
        or_(of.c.is_error == _zero, _number("errors_stay") == _zero),
        of.c.is_pending == _zero,
    )


_ripe = _is_ripe(_judged)
_old = _judged.c.at < _number("old_before")
_kept = _judged.c.seq.in_(_newest)

_stale_read = and_(_files.c.nth > _number("file_read_keep"), or_(_is("batch_any"), _judged.c.paths_complete == _one))
_output = and_(_is("terminal"), _judged.c.is_terminal == _one)
_says = {
    "terminal": and_(_output, _ripe, ~_kept, _old, _judged.c.length > _zero, _saves("terminal_placeholder")),
    "file_read": and_(_is("file_read"), _judged.c.is_read == _one, _ripe, _stale_read, _saves("file_read_placeholder")),
    "tool_output": _is_finished(_judged),
    "error": _judged.c.is_error == _one,
    "pending": _judged.c.is_pending == _one,
    "undated": _judged.c.at.is_(None),
    "current_turn": _judged.c.seq >= _number("protected_from"),
    "newest": and_(_output, _kept),
    "young": and_(_output, ~_old),
    "small": or_(_output, and_(_is("file_read"), _judged.c.is_read == _one, _stale_read)),
    "no_path": and_(_is("file_read"), _judged.c.is_read == _one, _files.c.seq.is_(None)),
    "newest_reads": and_(_is("file_read"), _judged.c.is_read == _one),
}
VERDICTS = Statement(
    select(
        _judged.c.seq,
        _judged.c.call_seq,
        _judged.c.call_position,
        case(*((says, literal_column(f"'{why}'")) for why, says in _says.items()), else_=literal_column("'other'")),
        _judged.c.length,
        _judged.c.size,
        _judged.c.tool_name,
        _judged.c.kind,
        _judged.c.branch,
    )
    .select_from(_judged)
    .outerjoin(_files, _files.c.seq == _judged.c.seq)
    .order_by(_judged.c.seq)
)

# Below: what the rules save. A check needs no more than the sum, so nothing is ranked where one place tells, and no
# column is carried that the sum does not need.

_lean = _judge(of_kind("terminal"), of_kind("file_read")).cte("judged")
_tokens = (literal_column("11") * _lean.c.size - _lean.c.length + literal_column("39")).op("/", precedence=8)(
    literal_column("40")
)
_no_slot = or_(
    _lean.c.at < _number("slot_at"),
    and_(_lean.c.at == _number("slot_at"), _lean.c.seq <= _number("slot_seq")),
)
_is_output = and_(
    _is("terminal"),
    _lean.c.is_terminal == _one,
    _is_ripe(_lean),
    _lean.c.at < _number("old_before"),
    _lean.c.length > _zero,
    _no_slot,
    _saves("terminal_placeholder", _lean),
)
_is_old_read = and_(  # of what counts as a read, which is neither an error nor pending, and dated
    _is("file_read"),
    _lean.c.seq < _number("protected_from"),
    or_(_is("batch_any"), _lean.c.paths_complete == _one),
    _saves("file_read_placeholder", _lean),
)
_of_read = and_(_p.c.tree_id == bindparam("tree_id"), _p.c.branch == _lean.c.branch, _p.c.seq == _lean.c.seq)
_lean_reads = (  # apart from the ranks: their sort carries what it is given, not what that is computed of
    select(
        _lean.c.seq,
        _lean.c.at,
        _p.c.path,
        case((_p.c.path.is_(None), _zero), (_is("dedupe"), _one), else_=_p.c.mentions).label("mentions"),
        case((and_(_is("sniff"), _is_output), null()), (_is_old_read, _tokens - _number("file_read_tokens"))).label(
            "saving"
        ),
    )
    .select_from(_lean)
    .outerjoin(_p, _of_read)  # not an inner join, which SQLite would begin with the paths of the whole tree
    .where(_is_read(_lean))
    .cte("lean_reads")
)
_lean_again = select(_lean_reads.c.seq, _lean_reads.c.saving, _nth_of_path(_lean_reads).label("nth")).cte("again")
_old_reads = (
    select(_lean_again.c.seq, func.max(_lean_again.c.saving).label("saving"))
    .group_by(_lean_again.c.seq)
    .having(_nth_of_read(_lean_again.c.nth) > _number("file_read_keep"))
    .cte("old_reads")
)


def _total(tokens: ColumnElement[int]) -> ColumnElement[int]:
    return cast(func.coalesce(func.sum(tokens), _zero), BIG)


SLOTLESS = Statement(
    select(_lean.c.at, _lean.c.seq)
    .where(_takes_slot(_lean))
    .order_by(_lean.c.at.desc(), _lean.c.seq.desc())
    .limit(_one)
    .offset(_number("terminal_keep"))
)
"""The newest tool result that has no slot, nor has any older one."""
OUTPUT_SAVED = Statement(select(_total(_tokens - _number("terminal_tokens"))).where(_is_output))
"""About how many tokens the terminal rule saves."""
READS_SAVED = Statement(select(_total(_old_reads.c.saving)))
"""About how many tokens the file-read rule saves of what the terminal rule leaves."""
OLD_READS = Statement(
    select(_old_reads.c.seq, cast(_old_reads.c.saving, BIG)).where(_old_reads.c.saving.is_not(null()))
)
"""What the file-read rule replaces of what the terminal rule leaves, and about how many tokens that saves."""
FINISHED = Statement(
    select(_lean.c.branch, _lean.c.seq, _lean.c.tool_name, tool_kinds.c.kind, _lean.c.length, _lean.c.size)
    .select_from(_lean)
    .outerjoin(tool_kinds, tool_kinds.c.name == _lean.c.tool_name)
    .where(case((_is_output, _zero), else_=_one) == _one, _is_finished(_lean))
)
"""The results whose short form is enough, where neither the terminal rule nor the file-read rule replaces them: of the
latter it knows nothing, and the kinds are those of the table."""
READS = Statement(
    select(_lean.c.seq, _p.c.path, _p.c.start_line, _p.c.end_line, _p.c.contiguous)
    .select_from(_lean)
    .outerjoin(_p, _of_read)
    .where(_is_read(_lean))
    .order_by(_lean.c.at.desc(), _lean.c.seq.desc())
)
"""The files and lines that were read, the newest reads first; one of which no file is known is among them."""
