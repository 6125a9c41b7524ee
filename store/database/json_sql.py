"""Functions of SQL that each engine spells in its own way: on JSON, and on texts."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Select,
    Text,
    bindparam,
    cast,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from .schema import BIG_INTEGER


class JsonPairs(FunctionElement[Any]):
    """The keys and values of a JSON object, as rows ``key``, ``value``."""

    inherit_cache = True


class JsonElements(FunctionElement[Any]):
    """The elements of a JSON array, as rows ``value``."""

    inherit_cache = True


class JsonObjectText(FunctionElement[str]):
    """Rows of names and values as the text of a JSON object, in whatever order they are found."""

    inherit_cache = True


class TextBytes(FunctionElement[int]):
    """The number of bytes of a text in UTF-8."""

    inherit_cache = True


class IsAmongTexts(FunctionElement[bool]):
    """Whether a column is one of the texts in a JSON array; each is looked up in an index."""

    inherit_cache = True


class CodePointText(FunctionElement[str]):
    """A text that is compared by its code points, whatever the language of the database."""

    type = Text()
    inherit_cache = True


class JsonArrayText(FunctionElement[str]):
    """A column of rows as the text of a JSON array, in the order of another column."""

    inherit_cache = True


@compiles(TextBytes)
def _compile_bytes_sqlite(element: TextBytes, compiler: SQLCompiler, **options: Any) -> str:
    return f"length(CAST({compiler.process(element.clauses, **options)} AS BLOB))"


@compiles(TextBytes, "postgresql")
def _compile_bytes_postgresql(element: TextBytes, compiler: SQLCompiler, **options: Any) -> str:
    return f"octet_length({compiler.process(element.clauses, **options)})"


@compiles(IsAmongTexts)
def _compile_texts_sqlite(element: IsAmongTexts, compiler: SQLCompiler, **options: Any) -> str:
    column, array = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({array}))"  # noqa: S608


@compiles(IsAmongTexts, "postgresql")
def _compile_texts_postgresql(element: IsAmongTexts, compiler: SQLCompiler, **options: Any) -> str:
    column, array = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} = ANY(ARRAY(SELECT json_array_elements_text(CAST({array} AS json))))"


@compiles(CodePointText)
def _compile_text_sqlite(element: CodePointText, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(CodePointText, "postgresql")
def _compile_text_postgresql(element: CodePointText, compiler: SQLCompiler, **options: Any) -> str:
    return f'{compiler.process(element.clauses, **options)} COLLATE "C"'


def render_pairs_sql(value: str, dialect: str) -> str:
    """Return SQL for the keys and values of a JSON object, given SQL for the object."""
    if dialect == "postgresql":
        return f"json_each_text(CAST({value} AS json))"
    return f"json_each({value})"


@compiles(JsonPairs)
def _compile_pairs(element: JsonPairs, compiler: SQLCompiler, **options: Any) -> str:
    return render_pairs_sql(compiler.process(element.clauses, **options), compiler.dialect.name)


@compiles(JsonObjectText)
def _compile_object_sqlite(element: JsonObjectText, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_group_object({compiler.process(element.clauses, **options)})"


@compiles(JsonObjectText, "postgresql")
def _compile_object_postgresql(
    element: JsonObjectText, compiler: SQLCompiler, **options: Any
) -> str:
    rows = compiler.process(element.clauses, **options)
    return f"COALESCE(CAST(json_object_agg({rows}) AS text), '{{}}')"


@compiles(JsonArrayText)
def _compile_array_sqlite(element: JsonArrayText, compiler: SQLCompiler, **options: Any) -> str:
    # SQLite has no order in an aggregate before 3.44; it keeps the one of the subquery.
    value, _ = element.clauses
    return f"json_group_array({compiler.process(value, **options)})"


@compiles(JsonArrayText, "postgresql")
def _compile_array_postgresql(element: JsonArrayText, compiler: SQLCompiler, **options: Any) -> str:
    value, order = (compiler.process(each, **options) for each in element.clauses)
    return f"COALESCE(CAST(json_agg({value} ORDER BY {order}) AS text), '[]')"


@compiles(JsonElements)
def _compile_elements_sqlite(element: JsonElements, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(JsonElements, "postgresql")
def _compile_elements_postgresql(
    element: JsonElements, compiler: SQLCompiler, **options: Any
) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS json))"


def select_positions(name: str) -> Select[int]:
    """Build a subquery of the positions in a bound JSON array."""
    return select(cast(select_texts(name).selected_columns.value, BIG_INTEGER))


def select_texts(name: str) -> Select[Any]:
    """Build a subquery of the texts in a bound JSON array."""
    return select(JsonElements(bindparam(name)).table_valued("value", name=name).c.value)
