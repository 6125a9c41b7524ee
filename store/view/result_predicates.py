"""Conditions on tool results for the statements of other rooms, in SQLAlchemy Core.

They test the kind of the tool, whether the result is a command's output, and whether it failed.
The judging has the same conditions in ``rules.sql``; both use one table of the signs of failure.
"""

from __future__ import annotations

from sqlalchemy import (
    ColumnElement,
    TextClause,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    text,
)

from ..database import BIG_INTEGER, JsonPairs, tool_kinds, tool_results
from ..tools import render_signs_sql

_literal_zero: ColumnElement[int] = literal_column("0")
_literal_one: ColumnElement[int] = literal_column("1")
_filtered_results = tool_results
_kind_pairs = JsonPairs(bindparam("kinds")).table_valued("key", "value", name="pairs")


def is_of_kind(kind: str) -> ColumnElement[bool]:
    """Build the condition that a result's tool is of a kind, as a list of names instead of a join.

    The kinds of the bound JSON object ``kinds`` override those of the table.
    """
    name = tool_kinds.c.name
    known: ColumnElement[str] = literal_column(f"'{kind}'")
    own = select(_kind_pairs.c.key)
    stored = select(name).where(tool_kinds.c.kind == known, name.not_in(own))
    bound = own.where(_kind_pairs.c.value == known)
    return _filtered_results.c.tool_name.in_(stored.union_all(bound))


kind_overrides = (  # once and not for each result: parsing JSON costs more than looking up a name
    select(_kind_pairs.c.key.label("name"), _kind_pairs.c.value.label("kind"))
    .cte("overrides")
    .prefix_with("MATERIALIZED")
)
_is_nameless = func.coalesce(_filtered_results.c.tool_name, literal_column("''")) == literal_column(
    "''"
)


def is_terminal_output(of_that_kind: ColumnElement[bool]) -> ColumnElement[int]:
    """Build the test whether a result is a command's output: by its tool, else by its looks."""
    sniffed = bindparam("sniff", type_=BIG_INTEGER) == _literal_one
    by_looks = or_(sniffed, _is_nameless)
    return case(
        (by_looks, _filtered_results.c.looks_terminal),
        (of_that_kind, _literal_one),
        else_=_literal_zero,
    )


def _build_failure_signs(*, commands_only: bool) -> TextClause:
    """Build the condition that a result has one of the signs of failure."""
    found = text(render_signs_sql(_filtered_results.name, commands_only=commands_only))
    bound = [bindparam(name, type_=BIG_INTEGER) for name in found.compile().params]
    return found.bindparams(*bound)


has_failure_sign = _build_failure_signs(commands_only=False)
"""The condition that a result has a sign of failure valid for every tool and every policy."""


def is_failure(command: ColumnElement[bool]) -> ColumnElement[int]:
    """Build the test whether a result failed, given the condition for a command's output."""
    of_command = and_(command, _build_failure_signs(commands_only=True))
    return case((has_failure_sign, _literal_one), (of_command, _literal_one), else_=_literal_zero)
