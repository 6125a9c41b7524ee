"""Chats of Cursor's database (``state.vscdb``), each gathered from the rows that hold it.

A chat of today is a row, and a row for each bubble of it; its head tells their order. Older chats
hold their bubbles, and the oldest lie all in one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import Fields
from ..database import Layout, Rows, json_in, tables_in
from ..events import Noted, fields_of, list_of, text_of

CHATS = """
    SELECT key, value FROM cursorDiskKV
    WHERE key >= 'composerData:' AND key < 'composerData;'
    ORDER BY key
"""

BUBBLES = """
    SELECT key, value FROM cursorDiskKV
    WHERE key >= :first AND key < :behind
    ORDER BY rowid
"""

HEAD = "SELECT value FROM composerHeaders WHERE composerId = :name"

OLDEST = """
    SELECT value FROM ItemTable
    WHERE key = 'workbench.panel.aichat.view.aichat.chatdata'
"""


def _chats(rows: Rows) -> Iterator[Any]:
    """Yield each chat: its metadata and its bubbles."""
    tables = tables_in(rows)
    if "cursorDiskKV" in tables:
        has_heads = "composerHeaders" in tables
        for key, value in rows.execute(CHATS):
            chat, name = fields_of(json_in(value)), key.partition(":")[2]
            if value is not None and not chat:
                yield Noted(None, f"the chat {name!r} is left out, it is no JSON", broken=True)
            elif chat:
                head = fields_of(_head(rows, name)) if has_heads else {}
                known = {"composerId": name, **head, **chat}
                yield {"composerData": known, "bubbles": _bubbles(rows, name, chat)}
    for (value,) in rows.execute(OLDEST):
        for tab in map(fields_of, list_of(fields_of(json_in(value)).get("tabs"))):
            known = {"composerId": text_of(tab.get("tabId")), "name": tab.get("chatTitle")}
            yield {"composerData": known, "bubbles": list_of(tab.get("bubbles"))}


def _head(rows: Rows, name: str) -> Any:
    found = rows.execute(HEAD, {"name": name}).fetchone()
    return json_in(found[0]) if found else None


def _bubbles(rows: Rows, name: str, chat: Fields) -> list[Any]:
    """Return a chat's bubbles: those that it holds, else those of its rows, under their ids."""
    held = list_of(chat.get("conversation"))
    if held:
        return held
    first = f"bubbleId:{name}:"
    found = rows.execute(BUBBLES, {"first": first, "behind": f"bubbleId:{name};"})
    return [
        fields_of(json_in(value)) | {"bubbleId": key.removeprefix(first)}
        for key, value in found
        if value is not None
    ]


LAYOUT = Layout(frozenset({"ItemTable.value"}), _chats)
"""How Cursor's databases are laid out: that of all chats, and older ones, of each workspace."""
