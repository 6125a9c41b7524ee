"""Sessions of OpenAI's Agents SDK (``SQLiteSession``): items of the Responses API, as they are.

Its ``AdvancedSQLiteSession`` has branches, which share the items before they part; the one that
was written to last is the present one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ...text import JsonFields
from ..database import Layout, SqliteConnection, parse_json_cell
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    find_title,
    get_fields,
    get_text,
    parse_iso_milliseconds,
)
from ..source import SourceValue, TranscriptSource, parse_conversations
from ..trees import Tree, build_tree_events
from .answers import RESPONSES_API

__all__ = ["OPENAI_AGENTS_LAYOUT", "is_openai_agents_session", "parse_openai_agents"]

SELECT_AGENT_SESSIONS = "SELECT session_id, created_at FROM agent_sessions ORDER BY rowid"
SELECT_AGENT_ITEMS = "SELECT id, message_data FROM agent_messages WHERE session_id = ? ORDER BY id"
SELECT_BRANCH_TABLE = (
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'message_structure'"
)
SELECT_BRANCH_ITEMS = """
    SELECT branch_id, message_id FROM message_structure
    WHERE session_id = ? ORDER BY sequence_number, id
"""


def is_openai_agents_session(value: Any) -> bool:
    """Tell whether a value is a session of such a database."""
    return get_fields(value).get("store") == "openai_agents"


def parse_openai_agents(source: TranscriptSource) -> Iterator[Event]:
    """Return each session, and its branches after it."""
    return parse_conversations(
        source, is_openai_agents_session, "session of the database", _parse_agents_session
    )


def _parse_agents_session(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    fields = get_fields(item.value)
    items, lines = fields["items"], fields["lines"]
    parents: dict[str, str | None] = {}
    for line in lines:
        for before, name in pairwise([None, *line]):
            parents.setdefault(str(name), before)
    present = max(lines, key=lambda line: _parse_item_number(line[-1]))
    tree = Tree(parents, present[-1], lambda name: [items[name]])
    title = find_title(items[name] for name in present)
    created = parse_iso_milliseconds(fields.get("created_at"))
    name = names.name(get_text(fields.get("id")))
    opened = SessionEvent(name, title, None, {}, created_at=created)
    for event in build_tree_events(tree, opened):
        yield (
            event._replace(format=RESPONSES_API.format)
            if isinstance(event, SessionMessage)
            else event
        )


def _parse_item_number(name: object) -> int:
    """Return the number that an item has in its table, 0 where it has none."""
    return int(name) if isinstance(name, str) and name.isdecimal() else 0


def _load_agents_sessions(rows: SqliteConnection) -> Iterator[Any]:
    is_branched = rows.execute(SELECT_BRANCH_TABLE).fetchone() is not None
    for name, created in rows.execute(SELECT_AGENT_SESSIONS):
        items: dict[str, JsonFields] = {}
        for number, text in rows.execute(SELECT_AGENT_ITEMS, (name,)):
            item = parse_json_cell(text)
            if isinstance(item, dict):
                items[str(number)] = item
            else:
                yield NoteEvent(None, f"item {number} of {name} cannot be read", broken=True)
        if items:
            lines = _load_branch_items(rows, name, items) if is_branched else []
            told = {"id": name, "created_at": created, "items": items}
            yield told | {"store": "openai_agents", "lines": lines or [list(items)]}


def _load_branch_items(
    rows: SqliteConnection, name: str, items: dict[str, JsonFields]
) -> list[list[str]]:
    """Return the items of each branch, by their numbers."""
    lines: dict[str, list[str]] = {}
    for branch, number in rows.execute(SELECT_BRANCH_ITEMS, (name,)):
        if str(number) in items:
            lines.setdefault(branch, []).append(str(number))
    return list(lines.values())


OPENAI_AGENTS_LAYOUT = Layout(
    frozenset({"agent_sessions.session_id", "agent_messages.message_data"}), _load_agents_sessions
)
"""How the SDK's database is laid out."""
