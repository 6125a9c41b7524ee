"""Sessions of Hermes Agent, made up in the shape of its database of July 2026."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kind_checks import Counts, bring, check_counts, check_growth, write_tables

TABLES = """
    CREATE TABLE sessions (id TEXT, source TEXT, model TEXT, started_at REAL, cwd TEXT,
        git_branch TEXT, title TEXT, archived INTEGER, parent_session_id TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,
        tool_calls TEXT, tool_call_id TEXT, tool_name TEXT, reasoning_content TEXT,
        finish_reason TEXT, effect_disposition TEXT, active INTEGER, timestamp REAL);
"""
SESSION = {
    "id": "h-1",
    "source": "cli",
    "model": "hermes-4",
    "started_at": 1_784_000_000.5,
    "cwd": "/home/ada/loop",
    "title": "Mend the loop",
}
CALLS = [
    {"id": name, "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    for name in ("c1", "c2")
]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
ROWS: list[dict[str, Any]] = [
    {"role": "session_meta", "content": "{}"},
    {
        "role": "user",
        "content": "\0json:" + json.dumps([{"type": "text", "text": "Mend."}, PICTURE]),
    },
    {"role": "assistant", "tool_calls": json.dumps(CALLS), "reasoning_content": "Make it."},
    {"role": "tool", "content": "no rule", "tool_call_id": "c1", "tool_name": "terminal"},
    {"role": "tool", "content": "", "tool_call_id": "c2", "effect_disposition": "denied"},
    {"role": "assistant", "content": "Taken back.", "active": 0},
    {"role": "assistant", "content": "Mended.", "finish_reason": "stop"},
]


def database(path: Path, count: int = len(ROWS)) -> Path:
    """Write the database with its first rows."""
    told = [
        {"session_id": "h-1", "active": 1, "timestamp": 1_784_000_001.0 + number, **row}
        for number, row in enumerate(ROWS[:count])
    ]
    return write_tables(path, TABLES, [("sessions", SESSION), *(("messages", row) for row in told)])


def test_a_session_of_hermes(tmp_path: Path) -> None:
    """What was said, called and thought, with its title, folder, model and times."""
    brought = bring(database(tmp_path / "state.db"), "hermes")
    kept = [row for row in ROWS if row.get("active", 1) and row["role"] != "session_meta"]
    results = sum(row["role"] == "tool" for row in kept)
    check_counts(brought, Counts(1, len(kept), len(CALLS), results))
    (opened,), (line,) = brought.sessions, brought.messages
    assert (opened.id, opened.title, opened.project_root) == (
        "h-1",
        "Mend the loop",
        "/home/ada/loop",
    )
    assert opened.metadata["model"] == "hermes-4"
    asked, called, _, denied, mended = line
    assert asked["content"][1] == PICTURE
    assert (called["reasoning_content"], called["timestamp"]) == ("Make it.", 1_784_000_003_000)
    assert denied["messageStatus"] == "error"
    assert mended["hermes"] == {"finish_reason": "stop"}


def test_a_database_that_grew(tmp_path: Path) -> None:
    """After some rows, then whole, it is what it is at once."""
    states = [lambda at, end=end: database(at, end) for end in (2, 4, len(ROWS))]
    check_growth(tmp_path / "state.db", "hermes", states)
