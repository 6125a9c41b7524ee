"""Chats of Cursor's command, made up in the shape that ``cursor-agent`` 2026.06.26 writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kind_checks import Counts, bring, check_counts, check_growth, write_tables

NAME = "0b9c3f52-1111-4222-8333-abcdefabcdef"
TABLES = """
    CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB);
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);
"""
AGENT = {
    "agentId": NAME,
    "name": "An endless one",
    "workspacePath": "/home/ada/loop",
    "mode": "default",
}
MODEL = {"cursor": {"modelName": "composer-2.5"}}
MOMENT = 1_754_000_000_000


def text(words: str) -> dict[str, Any]:
    """Return a part of text."""
    return {"type": "text", "text": words}


BLOBS: list[Any] = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": [text("<user_info>\nOS: linux\n</user_info>")]},
    b"\x0a\x03abc",
    {
        "role": "user",
        "content": [text("<user_query>\nMend the loop.\n</user_query>")],
        "createdAt": MOMENT,
    },
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": "Read it."},
            text("Reading."),
            {"type": "tool-call", "toolCallId": "c1", "toolName": "Read", "args": {"path": "a"}},
            {"type": "tool-call", "toolCallId": "c2", "toolName": "Shell", "args": {}},
        ],
        "createdAt": MOMENT + 1000,
        "providerOptions": MODEL,
    },
    {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": "c1", "toolName": "Read", "result": "while 1"},
            {
                "type": "tool-result",
                "toolCallId": "c2",
                "toolName": "Shell",
                "result": {"exit": 1},
                "isError": True,
            },
        ],
    },
    {"role": "assistant", "content": [text("Mended.")], "providerOptions": MODEL},
]


def database(path: Path, count: int = len(BLOBS)) -> Path:
    """Write the database of a chat with its first blobs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Any] = [("meta", {"key": "0", "value": json.dumps(AGENT).encode().hex()})]
    for number, blob in enumerate(BLOBS[:count]):
        data = blob if isinstance(blob, bytes) else json.dumps(blob).encode()
        rows.append(("blobs", {"id": f"{number:064}", "data": data}))
    return write_tables(path, TABLES, rows)


def test_a_chat_of_the_command(tmp_path: Path) -> None:
    """What was said, called and thought, with its title, model, folder and times."""
    path = database(tmp_path / NAME / "store.db")
    path.with_name("meta.json").write_text(json.dumps({"title": "A loop", "createdAtMs": MOMENT}))
    brought = bring(path, "cursor_cli")
    told = [blob for blob in BLOBS if isinstance(blob, dict)]
    parts = [part for blob in told for part in blob["content"] if isinstance(part, dict)]
    calls, results = (
        sum(part["type"] == kind for part in parts) for kind in ("tool-call", "tool-result")
    )
    spoken = sum(blob["role"] != "tool" for blob in told)
    check_counts(brought, Counts(1, spoken + results, calls, results))
    (opened,), (line,) = brought.sessions, brought.messages
    assert (opened.id, opened.title, opened.project_root) == (NAME, "A loop", "/home/ada/loop")
    assert opened.metadata["model"] == "composer-2.5"
    reading, _, failed, mended = line[3:]
    assert (reading["reasoning_content"], reading["timestamp"]) == ("Read it.", MOMENT + 1000)
    assert (failed["content"], failed["messageStatus"]) == ('{"exit": 1}', "error")
    assert mended["content"] == "Mended."


def test_a_chat_that_grew(tmp_path: Path) -> None:
    """After some messages, then whole, it is what it is at once."""
    states = [lambda at, end=end: database(at, end) for end in (4, 5, len(BLOBS))]
    check_growth(tmp_path / "store.db", "cursor_cli", states)
