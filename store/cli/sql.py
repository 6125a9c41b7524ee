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
        columns = views(get_place(ctx).target)
        announce_store(ctx)
        if json:
            render.print_json(columns)
        else:
            render.show_table(VIEW_COLUMNS, [(name, ", ".join(columns[name])) for name in columns])
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


def print_query_rows(
    columns: tuple[str, ...],
    rows: QueryRows,
    *,
    width: int | None = None,
) -> None:
    """Print the answer of a query as a table, or row by row if the table is too wide."""
    shown = []
    for index, name in enumerate(columns):
        number = bool(rows) and all(isinstance(row[index], int | float | None) for row in rows)
        shown.append(Column(name, number=number, wide=not number))
    cells: list[list[Cell]] = [
        [
            "∅"
            if value is None
            else render.shorten_to_line(value, MAX_CELL_LENGTH)
            if isinstance(value, str)
            else json_format.dumps(value)
            for value in row
        ]
        for row in rows
    ]
    render.show_rows(shown, cells, width=width)


def _number_repeated_names(names: tuple[str, ...]) -> Iterator[str]:
    """Yield a query's column names as keys; a repeated name is followed by its place."""
    for index, name in enumerate(names):
        is_second = name in names[:index]
        yield f"{name}_{index + 1}" if is_second else name
