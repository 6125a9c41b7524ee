"""JSON inside SQL, on both engines: an object's rows, rows as an object, an array's elements."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Select,
    bindparam,
    cast,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from .columns import BIG


class JsonPairs(FunctionElement[Any]):
    """The keys and values of a JSON object, as rows ``key``, ``value``."""

    inherit_cache = True


class Elements(FunctionElement[Any]):
    """The elements of a JSON array, as rows ``value``."""

    inherit_cache = True


class AsObject(FunctionElement[str]):
    """Rows of names and values as the text of a JSON object, in whatever order they are found."""

    inherit_cache = True


def pairs_sql(value: str, dialect: str) -> str:
    """Return SQL for the keys and values of a JSON object, given SQL for the object."""
    if dialect == "postgresql":
        return f"json_each_text(CAST({value} AS json))"
    return f"json_each({value})"


def runs_sql(value: str, dialect: str) -> str:
    """Return a query for the runs of branches in a JSON array, given SQL for the array."""
    rows, element = f"json_each({value})", "json_extract(value, '$[{}]')"
    if dialect == "postgresql":
        rows = f"json_array_elements(CAST({value} AS json))"
        element = "CAST(value ->> {} AS BIGINT)"
    branch, first, last = map(element.format, range(3))
    return f"SELECT {branch} AS branch, {first} AS first, {last} AS last FROM {rows}"  # noqa: S608


def joined_sql(column: str, dialect: str) -> str:
    """Return SQL for the texts of a column as one text, with commas between them."""
    joined = "string_agg" if dialect == "postgresql" else "group_concat"
    return f"{joined}({column}, ', ')"


@compiles(JsonPairs)
def _pairs_of(element: JsonPairs, compiler: SQLCompiler, **options: Any) -> str:
    return pairs_sql(compiler.process(element.clauses, **options), compiler.dialect.name)


@compiles(AsObject)
def _as_object_sqlite(element: AsObject, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_group_object({compiler.process(element.clauses, **options)})"


@compiles(AsObject, "postgresql")
def _as_object_postgresql(element: AsObject, compiler: SQLCompiler, **options: Any) -> str:
    rows = compiler.process(element.clauses, **options)
    return f"COALESCE(CAST(json_object_agg({rows}) AS text), '{{}}')"


@compiles(Elements)
def _elements_sqlite(element: Elements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(Elements, "postgresql")
def _elements_postgresql(element: Elements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS json))"


def select_positions(name: str) -> Select[int]:
    """Build a subquery of the positions in a bound JSON array."""
    elements = Elements(bindparam(name)).table_valued("value", name=name)
    return select(cast(elements.c.value, BIG))
