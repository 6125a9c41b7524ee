"""Files of named queries: SQL written for people, where Core would be harder to read.

A file is a list of sections. Each begins with a line such as ``-- query: verdicts`` and lasts to
the next; the word tells its purpose (a query to run, a part of others), the name is its own.
``{name}`` is replaced by the section of that name, ``{name:word}`` by the same section with
``word`` for each ``{it}`` in it. A section ``-- server: name`` stands for that name where a server
is asked. The engines write four things differently: ``{pairs:kinds}`` is
the keys and values of the JSON object that is bound as ``:kinds``, ``{runs:runs}`` the runs of
branches in the JSON array that is bound as ``:runs``, ``{list:path}`` the texts of a column joined
into one, ``{array:path}`` the values of a column as the text of a JSON array. Comments do not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

from sqlalchemy import String, TextClause, bindparam, column, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.selectable import CTE

from .json_sql import render_pairs_sql
from .schema import BIG_INTEGER
from .statements import DIALECTS, Row, RowT, Statement

_SECTION_HEADING = re.compile(r"^-- (\w+): (\w+)$", re.MULTILINE)
_SQL_COMMENT = re.compile(r"\s*--.*$", re.MULTILINE)
_CONTROL_CHARACTERS = re.compile(r"([\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069])")
_BOUND_NAME = re.compile(r":([a-z]\w*)")
_SECTION_HOLE = re.compile(r"\{(\w+)(?::(\w+))?\}")


class Queries:
    """The sections of files of named queries.

    Bound values are whole numbers, except those named in ``texts``. ``filled`` are texts by name
    that are made elsewhere, and are used like sections.
    """

    def __init__(
        self,
        *paths: Path,
        texts: tuple[str, ...] = (),
        **filled: str,
    ) -> None:
        self.names: dict[str, list[str]] = {}
        self._sections = dict(filled)
        self._server_sections: dict[str, str] = {}
        self._texts = texts
        written = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        _, *pieces = _SECTION_HEADING.split(written)
        for use, name, section in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            self.names.setdefault(use, []).append(name)
            sections = self._server_sections if use == "server" else self._sections
            sections[name] = _SQL_COMMENT.sub("", section).strip()

    @overload
    def statement(self, name: str) -> Statement[Row]: ...
    @overload
    def statement(self, name: str, row: type[RowT]) -> Statement[RowT]: ...
    def statement(self, name: str, row: type[Any] | None = None) -> Statement[Any]:
        """Return the query of a name as a statement; ``row`` as `Statement` takes it."""
        query = self.construct(name)
        return Statement(query, row) if row else Statement(query)

    def construct(self, name: str) -> TextClause:
        """Return the query of a name as a construct."""
        written = {dialect: self._filled(name, "", dialect) for dialect in DIALECTS}
        return _DialectQuery(written, self._typed)

    def table(self, name: str, *columns: str) -> CTE:
        """Return the query of a name as a table of whole numbers, by the names of its columns."""
        selected = (column(each, BIG_INTEGER) for each in columns)
        return self.construct(name).columns(*selected).cte(name)

    def written(self, name: str, dialect: str, values: dict[str, Any]) -> str:
        """Return the query of a name with its values written into it, for people and shells."""

        def literal(bound: re.Match[str]) -> str:
            # Characters that act on a terminal, or end a line, are written by their numbers.
            value = values[bound[1]]
            if isinstance(value, int):
                return str(int(value))
            function = "chr" if dialect == "postgresql" else "char"
            pieces = (
                f"{function}({ord(piece)})"
                if _CONTROL_CHARACTERS.match(piece)
                else _quote_text(piece, dialect)
                for piece in _CONTROL_CHARACTERS.split(value)
            )
            return " || ".join(pieces)

        return _BOUND_NAME.sub(literal, self._filled(name, "", dialect)) + ";"

    def _typed(self, written: str) -> TextClause:
        """Return a query with the types of its values, which PostgreSQL requires."""
        construct = text(written)
        for bound in construct.compile().params:
            known = String() if bound in self._texts else BIG_INTEGER
            construct = construct.bindparams(bindparam(bound, type_=known))
        return construct

    def _filled(self, name: str, word: str, dialect: str) -> str:
        """Return a section with its holes filled, and those of its parts likewise."""
        if name == "it":
            return word
        is_on_server = dialect == "postgresql"
        if name == "pairs":
            return render_pairs_sql(f":{word}", dialect)
        if name == "array":
            array = f"COALESCE(CAST(json_agg({word}) AS text), '[]')"
            return array if is_on_server else f"json_group_array({word})"
        if name == "list":
            return f"{'string_agg' if is_on_server else 'group_concat'}({word}, ', ')"
        if name == "lookup":
            return _look_up(self._filled(word, "", dialect), is_on_server)
        if name == "runs":
            rows, element = f"json_each(:{word})", "json_extract(value, '$[{}]')"
            if is_on_server:
                rows = f"json_array_elements(CAST(:{word} AS json))"
                element = "CAST(value ->> {} AS BIGINT)"
            branch, first, last = map(element.format, range(3))
            return f"SELECT {branch} AS branch, {first} AS first, {last} AS last FROM {rows}"  # noqa: S608

        def filled(hole: re.Match[str]) -> str:
            return self._filled(hole[1], hole[2] or word, dialect)

        sections = self._sections | self._server_sections if is_on_server else self._sections
        return _SECTION_HOLE.sub(filled, sections[name])


def _look_up(row: str, is_on_server: bool) -> str:
    """Return the join with a table that has one row by its key: the table, and a condition.

    A server that does not know yet how many rows a table has would read all of a tree for each.
    """
    table, condition = row.split("\nWHERE ")
    if not is_on_server:
        return f"JOIN {table} ON {condition}"
    alias = table.rsplit(maxsplit=1)[-1]
    return f"JOIN LATERAL (SELECT * FROM {row} OFFSET 0) AS {alias} ON true"  # noqa: S608


def _quote_text(text: str, dialect: str) -> str:
    quoted = text.replace("'", "''")
    if dialect == "postgresql" and "\\" in text:
        return "E'" + quoted.replace("\\", "\\\\") + "'"
    return f"'{quoted}'"


class _DialectQuery(TextClause):
    """A text for each dialect; the types of its values are put in when it is compiled."""

    inherit_cache = False

    def __init__(self, texts: dict[str, str], typed: Callable[[str], TextClause]) -> None:
        super().__init__("")
        self.texts = texts
        self.typed = typed


@compiles(_DialectQuery)
def _compile_query(element: _DialectQuery, compiler: SQLCompiler, **options: Any) -> str:
    written = element.texts[compiler.dialect.name]
    return compiler.process(element.typed(written), **options)
