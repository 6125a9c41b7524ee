"""Sessions of OpenAI's Agents SDK (``SQLiteSession``): items of the Responses API, as they are.

Its ``AdvancedSQLiteSession`` has branches, which share the items before they part; the one that
was written to last is the present one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ...text import Fields
from ..database import Layout, Rows, json_in
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    fields_of,
    iso_milliseconds,
    text_of,
    title_of,
)
from ..several import conversations
from ..source import Source, Value
from ..trees import Tree, tree_events
from .answers import RESPONSES

SESSIONS = "SELECT session_id, created_at FROM agent_sessions ORDER BY rowid"
ITEMS = "SELECT id, message_data FROM agent_messages WHERE session_id = ? ORDER BY id"
BRANCHED = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'message_structure'"
BRANCHES = """
    SELECT branch_id, message_id FROM message_structure
    WHERE session_id = ? ORDER BY sequence_number, id
"""


def looks(value: Any) -> bool:
    """Tell whether a value is a session of such a database."""
    return fields_of(value).get("store") == "openai_agents"


def parse(source: Source) -> Iterator[Event]:
    """Return each session, and its branches after it."""
    return conversations(source, looks, "session of the database", _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    fields = fields_of(item.value)
    items, lines = fields["items"], fields["lines"]
    parents: dict[str, str | None] = {}
    for line in lines:
        for before, name in pairwise([None, *line]):
            parents.setdefault(str(name), before)
    present = max(lines, key=lambda line: _number(line[-1]))
    tree = Tree(parents, present[-1], lambda name: [items[name]])
    title = title_of(items[name] for name in present)
    created = iso_milliseconds(fields.get("created_at"))
    name = names.name(text_of(fields.get("id")))
    opened = Opened(name, title, None, {}, created_at=created)
    for event in tree_events(tree, opened):
        yield event._replace(format=RESPONSES.format) if isinstance(event, Said) else event


def _number(name: object) -> int:
    """Return the number that an item has in its table, 0 where it has none."""
    return int(name) if isinstance(name, str) and name.isdecimal() else 0


def _sessions(rows: Rows) -> Iterator[Any]:
    is_branched = rows.execute(BRANCHED).fetchone() is not None
    for name, created in rows.execute(SESSIONS):
        items: dict[str, Fields] = {}
        for number, text in rows.execute(ITEMS, (name,)):
            item = json_in(text)
            if isinstance(item, dict):
                items[str(number)] = item
            else:
                yield Noted(None, f"item {number} of {name} cannot be read", broken=True)
        if items:
            lines = _lines(rows, name, items) if is_branched else []
            told = {"id": name, "created_at": created, "items": items}
            yield told | {"store": "openai_agents", "lines": lines or [list(items)]}


def _lines(rows: Rows, name: str, items: dict[str, Fields]) -> list[list[str]]:
    """Return the items of each branch, by their numbers."""
    lines: dict[str, list[str]] = {}
    for branch, number in rows.execute(BRANCHES, (name,)):
        if str(number) in items:
            lines.setdefault(branch, []).append(str(number))
    return list(lines.values())


LAYOUT = Layout(frozenset({"agent_sessions.session_id", "agent_messages.message_data"}), _sessions)
"""How the SDK's database is laid out."""
