"""The program that compares two checkouts by what they make of recorded conversations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recordings import main

TALK = [
    {"role": "user", "content": "List the files."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    {"role": "assistant", "content": "There is one: a.py."},
]


def printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines that the program prints about a folder."""
    assert main([str(folder)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_change_of_what_is_made_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs print the same lines; another answer changes those that hold it, and no other."""
    (tmp_path / "notes.bin").write_bytes(b"\0")
    (tmp_path / "talk.json").write_text(json.dumps(TALK), encoding="utf-8")
    before = printed(tmp_path, capsys)
    assert printed(tmp_path, capsys) == before
    assert len(before) > 60
    assert not [line for line in before if "Error" in line]
    (tmp_path / "talk.json").write_text(json.dumps([*TALK[:3], TALK[0]]), encoding="utf-8")
    after = printed(tmp_path, capsys)
    changed = {old.split("\t")[2] for old, new in zip(before, after, strict=True) if old != new}
    assert {"messages", "view raw gemini", "export codex", "context turns"} <= changed
    assert "refused" not in changed
