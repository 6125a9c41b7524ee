"""Commands about the store as a whole: sql, verify, migrate."""

from __future__ import annotations

import json as json_format
import sys
from typing import Annotated, Any

import typer

from ..engine import Database
from ..inspection import query
from ..migrate import upgrade
from ..schema import HEAD
from . import render
from .options import Json, existing, require, target
from .render import Cell, Column

ROWS = 1000
"""Rows that `sql` prints where nothing else is asked for."""
CELL = 200
"""Code points of a value in a table; --json has them all."""

FINDING_COLUMNS = (Column("check"), Column("where", wide=True), Column("problem", wide=True))


def sql(
    ctx: typer.Context,
    statement: Annotated[str, typer.Argument(metavar="SELECT", help="One SELECT; - reads it from standard input.")],
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=0, help="Rows, at most.")] = ROWS,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long it may take.")] = 10.0,
    json: Json = False,
) -> None:
    """Run a read-only SELECT on the tables and on the views for people (session_messages, tool_log, turn_log, …)."""
    require(target(ctx))
    found = query(target(ctx), sys.stdin.read() if statement == "-" else statement, limit=limit, timeout=timeout)
    if json:
        names = _distinct(found.columns)
        render.print_json_list(dict(zip(names, row, strict=True)) for row in found.rows)
    else:
        table(found.columns, found.rows)
    if found.truncated:
        render.complain(f"only the first {len(found.rows)} rows; --limit gives more")


def verify(ctx: typer.Context, json: Json = False) -> None:
    """Check every promise that the store's data can show broken; exit status 1 if any is."""
    with existing(ctx) as store:
        found = store.verify()
    if json:
        render.print_json_list(each._asdict() for each in found)
    elif found:
        render.table(FINDING_COLUMNS, found)
    else:
        render.say("nothing is wrong")
    raise typer.Exit(int(bool(found)))


def migrate(ctx: typer.Context, json: Json = False) -> None:
    """Bring a store to the newest schema; opening it with any other command does the same."""
    require(target(ctx))
    database = Database(target(ctx))
    try:
        before = upgrade(database)
    finally:
        database.close()
    if json:
        render.print_json({"from": before, "to": HEAD})
    elif before == HEAD:
        render.say(f"schema {HEAD} already: the newest")
    else:
        render.say(f"schema {before or '(empty)'} → {HEAD}")


def table(columns: tuple[str, ...], rows: list[tuple[Any, ...]], *, width: int | None = None) -> None:
    """Print the answer of a query as a table."""
    numbers = [
        bool(rows) and all(isinstance(row[index], int | float | None) for row in rows) for index in range(len(columns))
    ]
    drawn = [Column(name, number=number, wide=not number) for name, number in zip(columns, numbers, strict=True)]
    render.table(drawn, [[_cell(value) for value in row] for row in rows], width=width)


def _cell(value: object) -> Cell:
    if value is None:
        return "∅"
    if isinstance(value, str):
        return render.one_line(value, CELL)
    return json_format.dumps(value)


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Return a query's column names as keys: a second one of a name gets its place behind it."""
    return [f"{name}_{place}" if name in names[: place - 1] else name for place, name in enumerate(names, 1)]
