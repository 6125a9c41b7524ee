"""Rows of a tree in the order of their keys, read a few at a time.

A server sends the whole answer to a query, so wide rows are asked for in pages: each begins after
the last key of the one before. Such a query is prepared once, while a cursor that stays open is
declared, read and closed anew for each tree. What is written meanwhile does not disturb it.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    Connection,
    LargeBinary,
    Select,
    Table,
    Text,
    bindparam,
    collate,
    literal_column,
    tuple_,
)

from ..database import (
    BIG_INTEGER,
    Row,
    Statement,
    attachments,
    message_facts,
    tool_result_paths,
    tool_results,
)

WIDE_ROWS, NARROW_ROWS = 50, 500
"""The rows of a page: those that hold texts, and those that hold numbers."""
MOST_ROWS = {
    attachments: 1,  # a row may have megabytes
    **dict.fromkeys((message_facts, tool_results, tool_result_paths), NARROW_ROWS),
}


class TreePages:
    """A query of a table for one tree; its columns have the keys of the table among them."""

    def __init__(self, query: Select[Any], table: Table) -> None:
        keys = list(table.primary_key)[1:]
        self._names = [f"after_{key.name}" for key in keys]
        self._first = {f"after_{key.name}": _get_least_value(key) for key in keys}
        names = [column.name for column in query.selected_columns]
        self._get_keys = itemgetter(*(names.index(key.name) for key in keys))
        self._is_single, self._most = len(keys) == 1, MOST_ROWS.get(table, WIDE_ROWS)
        after = [bindparam(f"after_{key.name}", type_=key.type) for key in keys]
        of_tree = query.where(table.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER))

        def build_page(ordered: list[Any]) -> Select[Any]:
            begins = tuple_(*ordered) > tuple_(*after)
            if self._is_single:
                begins = ordered[0] > after[0]
            page = of_tree.where(begins).order_by(*ordered)
            return page.limit(literal_column(str(self._most)))

        by_character: list[Any] = list(keys)
        for at, key in enumerate(keys):
            if isinstance(key.type, Text):
                by_character[at] = collate(key, "C")
        self._page: Statement[Row] = Statement(build_page(keys), on_server=build_page(by_character))

    def scan(self, connection: Connection, tree_id: int) -> Iterator[Row]:
        """Yield the rows of a tree, in one order on all servers: texts by their characters."""
        after: dict[str, Any] | None = self._first
        while after:
            page = self._page.rows(connection, tree_id=tree_id, **after)
            yield from page
            after = None
            if len(page) == self._most:
                last = self._get_keys(page[-1])
                after = dict(zip(self._names, [last] if self._is_single else last, strict=True))


def _get_least_value(key: Any) -> Any:
    """Return a value that is before all values of a key."""
    if isinstance(key.type, LargeBinary):
        return b""
    return "" if isinstance(key.type, Text) else -1
