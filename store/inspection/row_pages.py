"""Rows of a tree in the order of their keys, read a few at a time.

A server sends the whole answer to a query, so wide rows are asked for in pages: each begins after
the last key of the one before. Such a query is prepared once, while a cursor that stays open is
declared, read and closed anew for each tree. What is written meanwhile does not disturb it.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        names = query.selected_columns.keys()
        self._places = {f"after_{key.name}": names.index(key.name) for key in keys}
        self._first = dict(zip(self._places, map(_get_least_value, keys), strict=True))
        self._most = MOST_ROWS.get(table, WIDE_ROWS)
        page = query.limit(literal_column(str(self._most)))
        on_server = _build_query_after_keys(page, keys, list(map(_order_by_character, keys)))
        self._page: Statement[Row] = Statement(
            _build_query_after_keys(page, keys, keys), on_server=on_server
        )

    def scan(self, connection: Connection, tree_id: int) -> Iterator[Row]:
        """Yield the rows of a tree, in one order on all servers: texts by their characters."""
        after: dict[str, Any] | None = self._first
        while after:
            page = self._page.rows(connection, tree_id=tree_id, **after)
            yield from page
            after = None
            if len(page) == self._most:
                last = page[-1]
                after = {name: last[at] for name, at in self._places.items()}


def _build_query_after_keys(page: Select[Any], keys: list[Any], ordered: list[Any]) -> Select[Any]:
    """Build the query for rows of a tree after given keys, as these are ordered."""
    tree_id = keys[0].table.c.tree_id
    of_tree = page.where(tree_id == bindparam("tree_id", type_=BIG_INTEGER))
    after = [bindparam(f"after_{key.name}", type_=key.type) for key in keys]
    return of_tree.where(tuple_(*ordered) > tuple_(*after)).order_by(*ordered)


def _order_by_character(key: Any) -> Any:
    return collate(key, "C") if isinstance(key.type, Text) else key


def _get_least_value(key: Any) -> Any:
    """Return a value that is before all values of a key."""
    if isinstance(key.type, LargeBinary):
        return b""
    return "" if isinstance(key.type, Text) else -1
