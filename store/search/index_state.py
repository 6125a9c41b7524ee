"""The state of the index: whether it is switched on, and which documents have no entry.

This is all that a probe asks, so nothing is loaded here that reads or writes documents.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from ..database import Statement, settings
from ..history import search_entries
from .scope import Scope, cache_statement

ENTRIES_SETTING = "search_entries"
"""The setting of a server that tells how far older messages have got their entries."""
ENTRIES_COMPLETE = "complete"
GET_SETTING = Statement(select(settings.c.value).where(settings.c.name == bindparam("setting")))

_message_entry = "r.tree_id = m.tree_id AND r.branch = m.branch AND r.seq = m.seq AND r.summary = 0"
_summary_entry = "r.tree_id = s.tree_id AND r.summary = s.summary"


class UnindexedSql(NamedTuple):
    """The tables and conditions of messages ``m`` and summaries ``s`` without an entry.

    ``order`` is the column of the order of storing. Steps of the index take messages in the order
    of ``step_order``, those ``after`` the key that earlier steps have reached.
    """

    messages: str
    messages_where: str
    order: str
    after: str
    step_order: str
    summaries: str
    summaries_where: str


_FILE_UNINDEXED = UnindexedSql(
    "messages m",
    f"""+m.rowid > COALESCE((SELECT m.rowid FROM search_rows r JOIN messages m ON {_message_entry}
    WHERE r.number > 0 ORDER BY r.number DESC LIMIT 1), -1)""",
    "rowid",
    "true",
    "m.rowid",
    "summaries s",
    f"""s.rowid > COALESCE((SELECT s.rowid FROM search_rows r JOIN summaries s ON {_summary_entry}
    WHERE r.number < 0 ORDER BY r.number LIMIT 1), -1)""",
)
_SERVER_UNINDEXED = UnindexedSql(
    "messages m",
    f"NOT EXISTS (SELECT 1 FROM search_rows r WHERE {_message_entry})",
    "stored_at",
    "(m.tree_id, m.branch, m.seq) > (CAST(:tree_id AS bigint), CAST(:branch AS bigint),"
    " CAST(:seq AS bigint))",
    "m.tree_id, m.branch, m.seq",
    f"summaries s LEFT JOIN search_rows r ON {_summary_entry}"
    " AND r.branch = s.branch AND r.seq = s.last",
    "r.tree_id IS NULL",
)
UNINDEXED_SQL = {"sqlite": _FILE_UNINDEXED, "postgresql": _SERVER_UNINDEXED}
WHOLE_STORE = Scope()


def build_unindexed_sql(connection: Connection, scope: Scope = WHOLE_STORE) -> UnindexedSql:
    """Return the SQL of the messages and summaries of a scope that have no entry.

    On a file all new messages have the highest places of their table; the sign before a place makes
    SQLite find the messages of few trees by their trees.
    """
    sql = UNINDEXED_SQL[connection.dialect.name]
    where = sql.messages_where if scope.parameters else sql.messages_where.removeprefix("+")
    return sql._replace(
        messages_where=f"{where}{scope.tree_condition('m')}",
        summaries_where=f"{sql.summaries_where}{scope.tree_condition('s')}",
    )


def is_search_on(connection: Connection) -> bool:
    """Tell whether searching is switched on."""
    value = GET_SETTING.value(connection, setting=search_entries.SEARCH_SETTING)
    return bool(value != search_entries.SEARCH_OFF_VALUE)


def is_index_behind(connection: Connection, scope: Scope = WHOLE_STORE) -> bool:
    """Tell whether a scope has messages or summaries that have no entry."""
    is_file = connection.dialect.name == "sqlite"
    if not is_file and GET_SETTING.value(connection, setting=ENTRIES_SETTING) == ENTRIES_COMPLETE:
        return False
    # On a file a quick check finds out whether any document has no entry.
    if is_file and scope.parameters and not is_index_behind(connection):
        return False
    new = build_unindexed_sql(connection, scope)
    queries = (
        f"SELECT 1 FROM {new.messages} WHERE {new.messages_where} LIMIT 1",
        f"SELECT 1 FROM {new.summaries} WHERE {new.summaries_where} LIMIT 1",
    )
    return any(cache_statement(each).row(connection, **scope.parameters) for each in queries)
