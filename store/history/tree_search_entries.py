"""The entries of the index of searches of a tree that came from another store, on a server."""

from __future__ import annotations

from sqlalchemy import Connection, text

from ..database import Statement
from .lines import Segment
from .raw_messages import decode_stored_rows, load_stored_rows
from .search_entries import EntryPlace, write_message_entries, write_summary_entry

ENTRIES_AT_ONCE = 64
"""Messages that are read at once to write their entries."""
RUNS_WITHOUT_ENTRIES = Statement(
    text(
        """SELECT m.branch, MIN(m.seq), MAX(m.seq) FROM messages m
    WHERE m.tree_id = :tree_id AND NOT EXISTS (
        SELECT 1 FROM search_rows r
        WHERE r.tree_id = :tree_id AND r.branch = m.branch AND r.seq = m.seq AND r.summary = 0
    )
    GROUP BY m.branch ORDER BY m.branch"""
    )
)
TREE_SUMMARY_TEXTS = Statement(
    text(
        "SELECT s.branch, s.last, s.summary, s.title, s.body FROM summaries s"
        " WHERE s.tree_id = :tree_id ORDER BY s.summary"
    )
)


def write_missing_entries(connection: Connection, tree_id: int) -> None:
    """Write the entries of a tree that came from another store, on a server."""
    if connection.dialect.name != "postgresql":
        return
    for branch, first, last in RUNS_WITHOUT_ENTRIES.rows(connection, tree_id=tree_id):
        for start in range(first, last + 1, ENTRIES_AT_ONCE):
            stop = min(last, start + ENTRIES_AT_ONCE - 1)
            run = Segment(branch, start, stop).within(tree_id)
            rows, _ = decode_stored_rows(load_stored_rows(connection, run))
            write_message_entries(connection, (tree_id, branch), rows)
    for branch, last, number, title, body in TREE_SUMMARY_TEXTS.rows(connection, tree_id=tree_id):
        write_summary_entry(connection, EntryPlace(tree_id, branch, last, number), title, body)
