"""Commands that ask about the store as a whole: sql, verify."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ..inspection import OLDER, check, query, views, writing_role
from . import render
from .options import Json, place, tell
from .shown import Cell, Column

ROWS = 1000
"""Rows that `sql` prints by default."""
CELL = 200
"""Code points of a value in a table; --json has them all."""

WRITES = (
    "the role {!r} may change this store, and a query can do what its role may;"
    " for queries that you do not trust use one that may only SELECT (docs/reliability.md)"
)

Rows = list[tuple[Any, ...]]

FINDING_COLUMNS = (
    Column("check"),
    Column("where", wide=True),
    Column("problem", wide=True),
)

VIEW_COLUMNS = (Column("view"), Column("columns", wide=True))


Statement = Annotated[
    str | None,
    typer.Argument(
        metavar="SELECT",
        help="One SELECT; - reads it from standard input. None: the views are listed.",
        show_default=False,
    ),
]
Limit = Annotated[
    int,
    typer.Option("--limit", "-n", metavar="N", min=0, help="Rows, at most."),
]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="How long it may take.")
]


def sql(
    ctx: typer.Context,
    statement: Statement = None,
    limit: Limit = ROWS,
    timeout: Timeout = 10.0,
    json: Json = False,
) -> None:
    """Run a read-only SELECT, or list the views for people.

    It sees the tables, too.
    """
    place(ctx).require()
    if statement is None:
        _list_views(ctx, json=json)
        return
    if statement == "-":
        statement = sys.stdin.read()
    found = query(place(ctx).target, statement, limit=limit, timeout=timeout)
    if json:
        names = [*_distinct(found.columns)]
        render.print_json_list(dict(zip(names, row, strict=True)) for row in found.rows)
    else:
        table(found.columns, found.rows)
    tell(ctx)
    role = writing_role(place(ctx).target)
    if role:
        render.complain(WRITES.format(role))
    if found.truncated:
        render.complain(f"only the first {len(found.rows)} rows; --limit gives more")


def _list_views(ctx: typer.Context, *, json: bool) -> None:
    found = views(place(ctx).target)
    tell(ctx)
    if json:
        render.print_json(found)
    else:
        render.table(VIEW_COLUMNS, [(name, ", ".join(found[name])) for name in found])


def verify(ctx: typer.Context, json: Json = False) -> None:
    """Check every promise that the data can show broken.

    Exit status 1 if any is.
    """
    place(ctx).require()
    found = check(place(ctx).target)
    wrong = [each for each in found if each.check != OLDER]
    tell(ctx)
    if json:
        render.print_json_list(each._asdict() for each in found)
    elif wrong:
        render.table(FINDING_COLUMNS, wrong)
    else:
        render.say("nothing is wrong")
    for each in found:
        if each not in wrong:
            render.remark(f"{each.where}: {each.problem}")
    raise typer.Exit(int(bool(wrong)))


def table(
    columns: tuple[str, ...],
    rows: Rows,
    *,
    width: int | None = None,
) -> None:
    """Print the answer of a query as a table, or row by row if the table is too wide."""
    cells = [[_cell(value) for value in row] for row in rows]
    render.rows([*_columns(columns, rows)], cells, width=width)


def _columns(names: tuple[str, ...], rows: Rows) -> Iterator[Column]:
    for index, name in enumerate(names):
        yield _column(name, [row[index] for row in rows])


def _column(name: str, values: list[Any]) -> Column:
    """Return the column for some values, a column of numbers if all are numbers."""
    number = bool(values) and all(map(_is_number, values))
    return Column(name, number=number, wide=not number)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | None)


def _cell(value: object) -> Cell:
    if value is None:
        return "∅"
    if isinstance(value, str):
        return render.one_line(value, CELL)
    return json_format.dumps(value)


def _distinct(names: tuple[str, ...]) -> Iterator[str]:
    """Yield a query's column names as keys; a repeated name is followed by its place."""
    for index, name in enumerate(names):
        is_second = name in names[:index]
        yield f"{name}_{index + 1}" if is_second else name
