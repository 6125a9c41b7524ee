"""The entries of the index of searches on a server, written with their messages and summaries.

So a search there finds all committed messages, and looks at no others; no append waits for the
entries of another tree. An entry's number is random: it joins the lists of a search, and tells no
order. In a file, numbers follow the order of storing, and entries are written later, by searches.

A server writes no entry while searching is switched off. Entries of older stores, and of messages
appended meanwhile, are written afterwards.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from .. import messages  # imported whole, since a file never needs what makes entries
from ..database import Row, Statement
from .lines import TREE_LOCK

SEARCH_OFF_VALUE = "off"
SEARCH_SETTING = "search"
_INSERT = f"""INSERT INTO search_rows (tree_id, branch, seq, summary, number, words, names)
    SELECT CAST(:tree_id AS bigint), CAST(:branch AS bigint), CAST(:seq AS bigint),
        CAST(:summary AS bigint), CAST(:number AS bigint), CAST(:words AS tsvector),
        CAST(:names AS text)
    WHERE NOT EXISTS (
        SELECT 1 FROM settings
        WHERE name = '{SEARCH_SETTING}' AND value = '{SEARCH_OFF_VALUE}'
    )
    ON CONFLICT (tree_id, branch, seq, summary) DO"""  # noqa: S608 - constants
WRITE_ENTRY = Statement(
    text(f"{_INSERT} UPDATE SET words = excluded.words, names = excluded.names")
)
"""Writes an entry in the transaction of its message, and replaces an older one."""
ADD_ENTRY = Statement(text(f"{_INSERT} NOTHING"))
"""Adds the entry of a message that was stored before, unless it has one by now."""


class EntryPlace(NamedTuple):
    """The place of a message, or of a summary (0: none) and its last position."""

    tree_id: int
    branch: int
    seq: int
    summary: int = 0


def build_entry(place: EntryPlace, said: str) -> dict[str, Any]:
    """Return the entry of a message or a summary on a server."""
    words, names = messages.build_server_forms(said)
    number = secrets.randbits(62) + 1
    values = {"number": -number if place.summary else number, "words": words, "names": names}
    return place._asdict() | values


def lock_trees_by_number(connection: Connection, trees: Iterable[int]) -> None:
    """Lock trees of a server in the order of their numbers, so that no message is erased there."""
    for tree_id in sorted(set(trees)):
        TREE_LOCK.run(connection, tree_id=tree_id)


def add_older_entry(connection: Connection, place: EntryPlace, said: str) -> None:
    """Write the entry of a message that was stored before on a server, unless it has one."""
    ADD_ENTRY.run(connection, **build_entry(place, said))


def write_message_entries(
    connection: Connection, place: tuple[int, ...], rows: Iterable[Row]
) -> None:
    """Write the entries of messages on a server, on the branch of a place.

    Rows begin with the position and the message.
    """
    if connection.dialect.name == "postgresql":
        entries = [
            build_entry(EntryPlace(place[0], place[1], seq), messages.join_message_texts(message))
            for seq, message, *_ in rows
        ]
        WRITE_ENTRY.run_many(connection, entries)


def write_summary_entry(
    connection: Connection, place: EntryPlace, title: str | None, body: str
) -> None:
    """Write the entry of a summary on a server."""
    if connection.dialect.name == "postgresql":
        WRITE_ENTRY.run(connection, **build_entry(place, messages.join_summary_texts(title, body)))
