"""The statement of a view, run by a driver that knows nothing of the store, beside the view."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import Any, NamedTuple

import sqlalchemy

from store import Policy, Store
from store.records import Entry
from store.text import is_text

BY_SQL = (None, "terminal", "file_read", "hidden")
"""The rules of rows whose content SQL has."""
RENAMED = re.compile(r"^the (id|tool) .* is sent as ", re.DOTALL)
"""Begins what an entry says of an id or a name that is sent as another one."""


class Sent(NamedTuple):
    """A row of the statement."""

    position: int
    role: str
    rule: str | None
    reason: str
    content: str | None
    made_by: str


def rows_of(url: str | sqlalchemy.URL, statement: str) -> list[Sent]:
    """Return the rows of a statement, as the database's own driver gives them."""
    address = sqlalchemy.make_url(url)
    if address.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(address.database))) as connection:
            return [Sent(*row) for row in connection.execute(statement)]
    import psycopg

    plain = address.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as server:
        return [Sent(*row) for row in server.execute(statement)]  # type: ignore[call-overload]


def agree(
    store: Store,
    session: str,
    policy: Policy,
    *,
    now: int,
    at: int | None = None,
) -> list[Sent]:
    """Demand of each message of a line that statement and view say the same; return the rows."""
    view = store.view(session, policy, at=at, now=now)
    entries = {entry.seq: entry for entry in view.entries if entry.seq}
    hidden = store.hidden(session, at)
    rows = rows_of(store.database.url, store.view_sql(session, policy, at=at, now=now))
    assert [row.position for row in rows] == [*range(1, view.at + 1)]
    for row in rows:
        entry = entries.get(row.position)
        if entry is not None:
            assert row.role == entry.message["role"]
            _same(row, entry)
        else:
            assert row.content is None
            rule = "hidden" if row.position in hidden else "left_out"
            assert row.rule == rule
            assert (rule == "hidden") != (row.position in view.stats.left_out)
    return rows


def _same(row: Sent, entry: Entry) -> None:
    """An entry and its row say the same, but for names that the statement leaves out.

    These are what repairs name, and the ids and names of tools that are sent as other ones.
    """
    assert row.rule == entry.rule
    reason = "; ".join(part for part in entry.reason.split("; ") if not RENAMED.match(part))
    if row.rule == "repair":
        assert reason.startswith(row.reason)
    else:
        assert row.reason == reason
    content = entry.message.get("content")
    if row.made_by == "python":
        assert row.content is None
        assert row.rule not in BY_SQL or not is_text(content)
        return
    assert row.rule in BY_SQL
    assert is_content(row.content, content)


def is_content(given: str | None, sent: Any) -> bool:
    """Tell whether a column has a content: a text as it is, all else as JSON."""
    return given == sent or (given is not None and json.loads(given) == sent)
