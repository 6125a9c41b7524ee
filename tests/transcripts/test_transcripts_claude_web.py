"""Sessions of Claude Code on the web, made up in the shape that its API gave in December 2025."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kind_checks import Counts, bring, check_counts, check_growth

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}


def row(second: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a row, which has neither an id nor a session."""
    message = {"role": role, "content": content}
    return {"type": role, "timestamp": f"2025-12-24T10:00:{second:02}.000Z", **more} | {
        "message": message
    }


CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py", "is_error": False}
ROWS = [
    row(0, "user", "List the files."),
    row(1, "assistant", [{"type": "text", "text": "Looking."}, CALL], usage=USAGE, cwd="/app"),
    row(2, "user", [RESULT]),
    row(3, "assistant", [{"type": "text", "text": "One: a.py."}], usage=USAGE),
    row(4, "user", "List the files."),
    row(5, "assistant", [{"type": "text", "text": "One: a.py."}]),
]


def write(path: Path, rows: list[Any] = ROWS, **more: Any) -> Path:
    """Write a session."""
    path.write_text(json.dumps({**more, "loglines": rows}, indent=1))
    return path


def test_a_session_of_the_web(tmp_path: Path) -> None:
    """Its file names it; a row that says the same again is a turn of its own."""
    brought = bring(write(tmp_path / "session_01.json"), "claude_code")
    check_counts(brought, Counts(1, len(ROWS), 1, 1))
    (opened,), (line,) = brought.sessions, brought.messages
    assert (opened.id, opened.title) == ("session_01", "List the files.")
    assert opened.project_root == "/app"
    assert line[0]["timestamp"] == 1_766_570_400_000
    assert [(each.input, each.output, each.cached) for each in brought.usages] == [(100, 5, 90)] * 2


def test_rows_with_ids_are_those_of_a_file(tmp_path: Path) -> None:
    """A session may be named, and its rows tell what they follow."""
    rows = [
        {**each, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None}
        for number, each in enumerate(ROWS)
    ]
    brought = bring(write(tmp_path / "a.json", [*rows, 7], session_id="s-1"), "claude_code")
    (opened,), (line,) = brought.sessions, brought.messages
    assert (opened.id, len(line), line[0]["id"]) == ("s-1", len(ROWS), "u0")
    assert [note.text for note in brought.report.notes if note.broken] == [
        "7 is no line of a session"
    ]


def test_a_growing_session(tmp_path: Path) -> None:
    """After any row, then whole, it is what it is at once."""
    states = [lambda at, rows=ROWS[:end]: write(at, rows) for end in range(1, len(ROWS) + 1)]
    check_growth(tmp_path / "s.json", "claude_code", states)
