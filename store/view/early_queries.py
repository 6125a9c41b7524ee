"""The queries of every view of a line, sent to a server together before the first one is asked."""

from __future__ import annotations

from sqlalchemy import Connection

from ..history import Line, Pointer, ViewCache, facts, usages
from .counts import ANY_COUNT
from .visible_set import ANY_RECORD, CACHED_RECORDS, RECORD_OUTCOMES


def send_view_queries(connection: Connection, pointer: Pointer, last: int) -> None:
    """Send a server what a view up to a position will ask for, whatever its answers are.

    A tree whose compactions are cached is asked for those that count on the line.
    """
    tree, cache = {"tree_id": pointer.tree_id}, ViewCache(connection, pointer.tree_id)
    ANY_RECORD.send(connection, **tree)
    if cache.is_enabled and cache.has(CACHED_RECORDS):
        RECORD_OUTCOMES.send(connection, **pointer.line, last=last, newest=pointer.newest)
    cache.send_changes()
    facts.TOOL_KINDS_JSON.send(connection)
    ANY_COUNT.send(connection, **tree)
    usages.send_last_usage(Line(connection, pointer), last)
