"""A console for queries, in a process of its own, with queries that are ready to be asked."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .. import QueryRefused, SessionNotFound, StoreError
from ..inspection import query, views, writing_role
from .page_rendering import FOLDER, Values, Visit, page

ROW_LIMIT = 500
QUERY_SECONDS = 10.0
LONGEST_CELL = 500
READY_QUERIES = ("analysis.sql", "../../examples/analysis.sql")
"""Where the queries are: in the room, or in a checkout."""
QUESTION = re.compile(r"^-- question \d+: ", re.MULTILINE)


class ReadyQuery(NamedTuple):
    """A question, and the query that answers it."""

    question: str
    sql: str


class QueryAnswer(NamedTuple):
    """The rows of a query, or why there are none."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool
    problem: str


@page("/sql", "sql.html")
def show_sql(visit: Visit) -> Values:
    """Return the answer to a query. Raises StoreError where SQL is off."""
    target = visit.site.target
    if target is None:
        raise SessionNotFound(visit.say("no_sql"))
    if role := writing_role(target):
        raise QueryRefused(visit.say("writing_role", role=role))
    asked = visit.get("sql")
    return {
        "asked": asked,
        "answer": run_query(target, asked) if asked else None,
        "views": load_views(target),
        "ready": load_ready_queries(),
        "place_of": link_cells,
    }


def run_query(target: Any, asked: str) -> QueryAnswer:
    """Return the answer to a query, or its problem."""
    try:
        found = query(target, asked, limit=ROW_LIMIT, timeout=QUERY_SECONDS)
    except StoreError as problem:
        return QueryAnswer((), [], False, str(problem))
    rows = [tuple(map(show_cell, row)) for row in found.rows]
    return QueryAnswer(found.columns, rows, found.truncated, "")


def show_cell(value: Any) -> Any:
    """Return a value of a row as a page shows it: a number, or a text that is not too long."""
    if value is None or isinstance(value, int | float):
        return round(value, 6) if isinstance(value, float) else value
    text = str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


def link_cells(columns: tuple[str, ...], row: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the session that a row is about, and the position; None where it names none."""
    named = dict(zip(columns, row, strict=True))
    return named.get("session_id"), named.get("seq")


@cache
def load_views(target: Any) -> dict[str, tuple[str, ...]]:
    """Return the views of a store, which are the same as long as it is open."""
    return views(target)


@cache
def load_ready_queries() -> list[ReadyQuery]:
    """Return the queries of the analysis, without their comments."""
    paths = (Path(FOLDER, name) for name in READY_QUERIES)
    text = next(path.read_text("utf-8") for path in paths if path.exists())
    return [*map(parse_ready_query, QUESTION.split(text)[1:])]


def parse_ready_query(text: str) -> ReadyQuery:
    """Return a question, which is the first line, and the query after its comments."""
    question, *lines = text.strip().splitlines()
    kept = [line for line in lines if not line.startswith("--")]
    return ReadyQuery(question, "\n".join(kept).strip())
