"""The command that asks the store in SQL: sql."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ..inspection import query, views, writing_role
from . import render
from .options import Json, announce_store, get_place
from .terminal import Cell, Column

DEFAULT_ROW_LIMIT = 1000
"""Rows that `sql` prints by default."""
MAX_CELL_LENGTH = 200
"""Code points of a value in a table; --json has them all."""

WRITING_ROLE_WARNING = (
    "the role {!r} may change this store, and a query can do what its role may;"
    " for queries that you do not trust use one that may only SELECT (docs/reliability.md)"
)

QueryRows = list[tuple[Any, ...]]


VIEW_COLUMNS = (Column("view"), Column("columns", wide=True))


SelectStatement = Annotated[
    str | None,
    typer.Argument(
        metavar="SELECT",
        help="One SELECT; - reads it from standard input. Default: list the views.",
        show_default=False,
    ),
]
RowLimit = Annotated[
    int,
    typer.Option("--limit", "-n", metavar="N", min=0, help="The maximum number of rows."),
]
QueryTimeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="The time limit.")
]


def sql(
    ctx: typer.Context,
    statement: SelectStatement = None,
    limit: RowLimit = DEFAULT_ROW_LIMIT,
    timeout: QueryTimeout = 10.0,
    json: Json = False,
) -> None:
    """Run a read-only SELECT, or list the views for people.

    Tables can be read too.
    """
    get_place(ctx).require()
    if statement is None:
        _print_view_list(ctx, json=json)
        return
    if statement == "-":
        statement = sys.stdin.read()
    found = query(get_place(ctx).target, statement, limit=limit, timeout=timeout)
    if json:
        names = [*_number_repeated_names(found.columns)]
        render.print_json_list(dict(zip(names, row, strict=True)) for row in found.rows)
    else:
        print_query_rows(found.columns, found.rows)
    announce_store(ctx)
    role = writing_role(get_place(ctx).target)
    if role:
        render.print_problem(WRITING_ROLE_WARNING.format(role))
    if found.truncated:
        render.print_problem(f"only the first {len(found.rows)} rows; --limit gives more")


def _print_view_list(ctx: typer.Context, *, json: bool) -> None:
    found = views(get_place(ctx).target)
    announce_store(ctx)
    if json:
        render.print_json(found)
    else:
        render.show_table(VIEW_COLUMNS, [(name, ", ".join(found[name])) for name in found])


def print_query_rows(
    columns: tuple[str, ...],
    rows: QueryRows,
    *,
    width: int | None = None,
) -> None:
    """Print the answer of a query as a table, or row by row if the table is too wide."""
    cells = [[_format_cell(value) for value in row] for row in rows]
    render.show_rows([*_build_columns(columns, rows)], cells, width=width)


def _build_columns(names: tuple[str, ...], rows: QueryRows) -> Iterator[Column]:
    for index, name in enumerate(names):
        yield _build_column(name, [row[index] for row in rows])


def _build_column(name: str, values: list[Any]) -> Column:
    """Return the column for some values, a column of numbers if all are numbers."""
    number = bool(values) and all(map(_is_number, values))
    return Column(name, number=number, wide=not number)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | None)


def _format_cell(value: object) -> Cell:
    if value is None:
        return "∅"
    if isinstance(value, str):
        return render.shorten_to_line(value, MAX_CELL_LENGTH)
    return json_format.dumps(value)


def _number_repeated_names(names: tuple[str, ...]) -> Iterator[str]:
    """Yield a query's column names as keys; a repeated name is followed by its place."""
    for index, name in enumerate(names):
        is_second = name in names[:index]
        yield f"{name}_{index + 1}" if is_second else name
