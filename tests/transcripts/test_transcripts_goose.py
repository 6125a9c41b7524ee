"""Sessions of goose, made up after its source."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from store.transcripts import (
    CompactionEvent,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    UsageTokens,
    parse_message_usage,
    read,
    sniff,
)

REQUEST = {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}
RESULT = {"status": "success", "value": {"content": [{"type": "text", "text": "a.txt"}]}}


def said(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "created": 1767225601, "content": list(parts), **more}


def text(words: str) -> dict[str, Any]:
    """Return a part that is a text."""
    return {"type": "text", "text": words}


TALK = [
    said("user", text("List."), id="u1"),
    said(
        "assistant",
        {"type": "thinking", "thinking": "Hm", "signature": "sig"},
        text("So."),
        {"type": "toolRequest", "id": "c", "toolCall": REQUEST},
    ),
    said("user", {"type": "toolResponse", "id": "c", "toolResult": RESULT}),
    said("assistant", text("One file.")),
]


def events(path: Path, kind: type) -> list[Any]:
    """Return the events of a kind."""
    return [event for event in read(path) if isinstance(event, kind)]


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in events(path, SessionMessage)]


def lines(path: Path, *rows: Any) -> Path:
    """Write rows as lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def database(path: Path, *told: Any) -> Path:
    """Write a database with one session."""
    with closing(sqlite3.connect(path)) as rows, rows:
        rows.executescript("""
            CREATE TABLE sessions (
                id TEXT, name TEXT, description TEXT, working_dir TEXT, created_at TEXT,
                model_config_json TEXT, total_tokens INTEGER
            );
            CREATE TABLE messages (
                id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT,
                content_json TEXT, created_timestamp INTEGER, metadata_json TEXT
            );
        """)
        model = json.dumps({"model_name": "m"})
        session = ("s", "Mine", "", "/w", "2026-01-01 00:00:00", model, 9)
        rows.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", session)
        for each in told:
            cells = json.dumps(each["content"]), json.dumps(each.get("metadata", {}))
            rows.execute(
                "INSERT INTO messages VALUES (NULL, ?, 's', ?, ?, 1767225601, ?)",
                (each.get("id"), each["role"], *cells),
            )
    return path


def test_a_database_an_export_and_lines_tell_the_same(tmp_path: Path) -> None:
    """Results stand before what was said; thoughts are kept with their signatures."""
    head = {"working_dir": "/w", "description": "Mine", "message_count": 4}
    export = {"id": "s", "name": "Mine", "working_dir": "/w", "conversation": TALK}
    document = tmp_path / "e.json"
    document.write_text(json.dumps(export, indent=1))
    paths = database(tmp_path / "d", *TALK), document, lines(tmp_path / "s.jsonl", head, *TALK)
    for path in paths:
        assert sniff(path) == "goose"
        (session,) = events(path, SessionEvent)
        assert (session.session_id, session.title, session.project_root) == ("s", "Mine", "/w")
        asked, called, result, last = messages(path)
        assert (asked["id"], asked["content"], asked["timestamp"]) == (
            "u1",
            "List.",
            1767225601000,
        )
        assert called["thinking_blocks"][0]["signature"] == "sig"
        function = {"name": "shell", "arguments": '{"command": "ls"}'}
        assert called["tool_calls"] == [{"id": "c", "type": "function", "function": function}]
        assert (called["content"], result["content"]) == ("So.", "a.txt")
        assert (result["tool_call_id"], last["content"]) == ("c", "One file.")
    (session,) = events(paths[0], SessionEvent)
    assert session.metadata == {
        "model": "m",
        "goose": {"total_tokens": 9, "model_config": {"model_name": "m"}},
    }


def test_lines_without_a_head_and_what_fails(tmp_path: Path) -> None:
    """A call that could not be read says why; what was for the screen is counted."""
    broken = {"type": "toolRequest", "id": "c", "toolCall": {"status": "error", "error": "odd"}}
    failed = {"type": "toolResponse", "id": "c", "toolResult": {"status": "error", "error": "no"}}
    picture = {"type": "image", "data": "AA", "mimeType": "image/png"}
    notice = {"type": "systemNotification", "msg": "x"}
    thought = {"type": "thinking", "thinking": "Hm", "signature": ""}
    rows = [
        said("user", text("See"), picture),
        said("assistant", thought, broken),
        said("user", failed),
        said("assistant", notice),
    ]
    path = lines(tmp_path / "f", *rows, 3)
    assert sniff(path) == "goose"
    see, called, result = messages(path)
    assert see["content"][1]["image_url"]["url"] == "data:image/png;base64,AA"
    assert (called["reasoning_content"], called["content"]) == ("Hm", None)
    assert called["tool_calls"][0]["function"]["name"] == "unknown"
    assert called["goose"] == {"calls": [{"error": "odd"}]}
    assert (result["content"], result["messageStatus"]) == ("no", "error")
    assert [event.text for event in events(path, NoteEvent)] == [
        "3 is no message",
        "left out 1 notice, which were for the screen",
    ]


def test_what_the_agent_no_longer_sees_is_hidden(tmp_path: Path) -> None:
    """It stands before what it sees."""
    hidden = [{**each, "metadata": {"agentVisible": False}} for each in TALK]
    path = database(tmp_path / "d", *hidden, said("user", text("They listed.")))
    told = [event for event in read(path) if isinstance(event, SessionMessage | CompactionEvent)]
    assert told[4] == CompactionEvent(4)


def test_what_newer_versions_tell_of_an_answer(tmp_path: Path) -> None:
    """Which model answered, and what it cost."""
    usage = {"inputTokens": 100, "outputTokens": 8, "cacheReadTokens": 90, "cacheWriteTokens": 5}
    metadata = {"inference": {"resolvedModel": "m"}, "usage": usage}
    path = lines(
        tmp_path / "s", said("user", text("a")), said("assistant", text("b"), metadata=metadata)
    )
    asked, answered = messages(path)
    assert "goose" not in asked
    assert [(each.tokens, each.model) for each in parse_message_usage(answered)] == [
        (UsageTokens(100, 8, 90, 5), "m")
    ]
