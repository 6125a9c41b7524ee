"""Rows that may be hits, where they stand in the order of storing, and what they say.

A row is a message or a summary. It is read narrow first: who has it, and when it was said, decides
of most whether they are hits. What it says is read of those that are left, many at a time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from sqlalchemy import Connection

from ..history import NO_LIMIT
from ..messages import Columns, Message, assemble, join_call
from .dialects import spelling, statement
from .said import in_summary, said, tools_in
from .scope import Counted

CHUNK = 64
"""Rows whose texts are read at once."""


class Row(NamedTuple):
    """A message or a summary (0: none) that may be a hit.

    ``place`` is where it stands in the order of storing, the higher the later: in a file that of
    its row, on a server the moment; those of summaries are below all messages. ``record`` is the
    compaction that made a summary, ``branch`` and ``seq`` are its last position.
    """

    place: int
    tree_id: int
    branch: int
    seq: int
    summary: int
    role: str
    at: int
    made_on: int
    made_at: int
    record: int

    @property
    def counted(self) -> Counted:
        """What makes it count on a line."""
        return Counted(self.made_on, self.made_at, self.record)


_MESSAGE = (
    "m.tree_id, m.branch, m.seq, 0 AS summary, m.role, COALESCE(m.created_at, m.stored_at) AS at,"
    " m.branch AS made_on, m.seq AS made_at, 0 AS record"
)
_SUMMARY = (
    "s.tree_id, s.branch, s.last, s.summary, 'summary' AS role, s.created_at AS at,"
    " c.branch AS made_on, c.head AS made_at, c.compaction AS record"
)
OF_MESSAGE = "m.tree_id = r.tree_id AND m.branch = r.branch AND m.seq = r.seq"
OF_RECORD = "c.tree_id = s.tree_id AND c.summary = s.summary"
AFTER_MESSAGES = -NO_LIMIT
"""Added to the place of a summary among summaries it gives that among all rows."""

Place = tuple[int, int, int]
"""Where a message is stored: its tree, its branch, its position."""

_columns = ", ".join(f"m.{name}" for name in Columns._fields)
_at = "{0}.tree_id = p.tree_id AND {0}.branch = p.branch AND {0}.seq = p.seq"
_MESSAGES = f"SELECT p.tree_id, p.branch, p.seq, {_columns} FROM {{}} p CROSS JOIN messages m"
_CALLS = (
    "SELECT p.tree_id, p.branch, p.seq, c.call_id, c.name, c.arguments_form, c.arguments, c.extra"
    " FROM {} p CROSS JOIN tool_calls c"
)
_TOOLS = "SELECT p.tree_id, p.branch, p.seq, t.tool_name FROM {} p CROSS JOIN tool_results t"
_SUMMARIES = (
    "SELECT p.tree_id, p.branch, p.seq, s.title, s.body FROM {} p CROSS JOIN summaries s"
    " WHERE s.tree_id = p.tree_id AND s.summary = p.seq"
)


def message_row(connection: Connection) -> str:
    """Return the columns of a row that is a message ``m``."""
    return f"{spelling(connection).message_place} AS place, {_MESSAGE}"


def summary_row(connection: Connection) -> str:
    """Return the columns of a row that is a summary ``s`` of a record ``c``."""
    return f"{AFTER_MESSAGES} + {spelling(connection).summary_place} AS place, {_SUMMARY}"


def messages_at(connection: Connection, places: Iterable[Place]) -> dict[Place, Message]:
    """Return the messages that are stored at some places, as messages of a chat."""
    listed = json.dumps([*places])
    listing = spelling(connection).places
    calls: dict[Place, list[object]] = {}
    sql = f"{_CALLS} WHERE {_at.format('c')} ORDER BY c.tree_id, c.branch, c.seq, c.position"
    for tree_id, branch, seq, *call in statement(sql.format(listing)).rows(
        connection, places=listed
    ):
        calls.setdefault((tree_id, branch, seq), []).append(join_call(*call))
    sql = f"{_MESSAGES} WHERE {_at.format('m')}"
    found = statement(sql.format(listing)).rows(connection, places=listed)
    return {
        (tree_id, branch, seq): assemble(columns, calls.get((tree_id, branch, seq)))
        for tree_id, branch, seq, *columns in found
    }


def texts(
    connection: Connection, rows: Collection[Row], tools: frozenset[str] | None = None
) -> dict[Row, str]:
    """Return what rows say; with ``tools`` of those alone that are calls or results of them."""
    stored = {row: (row.tree_id, row.branch, row.seq) for row in rows if not row.summary}
    messages = messages_at(connection, stored.values()) if stored else {}
    answered = _tools_at(connection, stored.values()) if stored and tools is not None else {}
    found = {
        row: said(messages[place])
        for row, place in stored.items()
        if tools is None or not tools.isdisjoint((answered.get(place), *tools_in(messages[place])))
    }
    summaries = {row: (row.tree_id, 0, row.summary) for row in rows if row.summary}
    if summaries:
        told = statement(_SUMMARIES.format(spelling(connection).places)).rows(
            connection, places=json.dumps([*summaries.values()])
        )
        bodies = {(tree_id, 0, number): in_summary(*each) for tree_id, _, number, *each in told}
        found |= {row: bodies[place] for row, place in summaries.items()}
    return found


def _tools_at(connection: Connection, places: Iterable[Place]) -> dict[Place, str | None]:
    """Return the tool of each result that is stored at one of some places."""
    sql = f"{_TOOLS} WHERE {_at.format('t')}".format(spelling(connection).places)
    rows = statement(sql).rows(connection, places=json.dumps([*places]))
    return {(tree_id, branch, seq): name for tree_id, branch, seq, name in rows}
