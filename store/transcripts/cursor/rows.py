"""Chats of Cursor's database (``state.vscdb``), each gathered from the rows that hold it.

A chat of today is a row, and a row for each bubble of it; its head tells their order. Older chats
hold their bubbles, and the oldest lie all in one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import JsonFields
from ..database import Layout, SqliteConnection, load_table_names, parse_json_cell
from ..events import NoteEvent, get_fields, get_list, get_text

SELECT_CURSOR_CHATS = """
    SELECT key, value FROM cursorDiskKV
    WHERE key >= 'composerData:' AND key < 'composerData;'
    ORDER BY key
"""

SELECT_CURSOR_BUBBLES = """
    SELECT key, value FROM cursorDiskKV
    WHERE key >= :first AND key < :behind
    ORDER BY rowid
"""

SELECT_CURSOR_HEAD = "SELECT value FROM composerHeaders WHERE composerId = :name"

SELECT_OLDEST_CHATS = """
    SELECT value FROM ItemTable
    WHERE key = 'workbench.panel.aichat.view.aichat.chatdata'
"""


def _load_cursor_chats(rows: SqliteConnection) -> Iterator[Any]:
    """Yield each chat: its metadata and its bubbles."""
    tables = load_table_names(rows)
    if "cursorDiskKV" in tables:
        has_heads = "composerHeaders" in tables
        for key, value in rows.execute(SELECT_CURSOR_CHATS):
            chat, name = get_fields(parse_json_cell(value)), key.partition(":")[2]
            if value is not None and not chat:
                yield NoteEvent(None, f"the chat {name!r} is left out, it is no JSON", broken=True)
            elif chat:
                head = get_fields(_load_cursor_head(rows, name)) if has_heads else {}
                known = {"composerId": name, **head, **chat}
                yield {"composerData": known, "bubbles": _load_bubbles(rows, name, chat)}
    for (value,) in rows.execute(SELECT_OLDEST_CHATS):
        for tab in map(get_fields, get_list(get_fields(parse_json_cell(value)).get("tabs"))):
            known = {"composerId": get_text(tab.get("tabId")), "name": tab.get("chatTitle")}
            yield {"composerData": known, "bubbles": get_list(tab.get("bubbles"))}


def _load_cursor_head(rows: SqliteConnection, name: str) -> Any:
    found = rows.execute(SELECT_CURSOR_HEAD, {"name": name}).fetchone()
    return parse_json_cell(found[0]) if found else None


def _load_bubbles(rows: SqliteConnection, name: str, chat: JsonFields) -> list[Any]:
    """Return a chat's bubbles: those that it holds, else those of its rows, under their ids."""
    held = get_list(chat.get("conversation"))
    if held:
        return held
    first = f"bubbleId:{name}:"
    found = rows.execute(SELECT_CURSOR_BUBBLES, {"first": first, "behind": f"bubbleId:{name};"})
    return [
        get_fields(parse_json_cell(value)) | {"bubbleId": key.removeprefix(first)}
        for key, value in found
        if value is not None
    ]


CURSOR_LAYOUT = Layout(frozenset({"ItemTable.value"}), _load_cursor_chats)
"""How Cursor's databases are laid out: that of all chats, and older ones, of each workspace."""
