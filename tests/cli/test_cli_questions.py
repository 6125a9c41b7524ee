"""What people ask of an imported home, each by one line of the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, Run, needs_transcripts
from test_cli_folders import written

MENDED = (
    "SELECT session_id, title, MAX(f.at) AS at FROM file_log f JOIN session_log USING (session_id)"
    " WHERE f.kind = 'file_edit' AND f.path LIKE '%{}' AND substr(f.at, 1, 7) = '{}' GROUP BY 1, 2"
)
REGENERATED = (
    "SELECT f.session_id, m.seq, m.content FROM session_log f JOIN session_messages m"
    " ON m.session_id = f.session_id AND m.seq = f.forked_at + 1 WHERE m.role = 'assistant'"
)


def asked(run: Run, *arguments: object) -> Any:
    """Return what a line of the command prints as JSON."""
    ran = run(*arguments, "--json")
    assert ran.status == 0, ran
    return json.loads(ran.out)


def claude(session: str, month: str, file: str) -> list[dict[str, Any]]:
    """Return what Claude Code writes of a prompt, and of an edit with its tokens."""
    edit = {"file_path": file, "old_string": "a", "new_string": "b"}
    call = {"type": "tool_use", "id": "t1", "name": "Edit", "input": edit}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    usage = {"input_tokens": 1_000_000, "output_tokens": 100_000}
    answer = {"id": "m1", "model": "claude-sonnet-4-5", "content": [call], "usage": usage}
    contents = [{"role": "user", "content": f"Mend {file}."}, answer | {"role": "assistant"}]
    return [
        {
            "type": message["role"],
            "sessionId": session,
            "uuid": f"{session}-{number}",
            "parentUuid": f"{session}-{number - 1}" if number else None,
            "timestamp": f"{month}-07T10:00:0{number}Z",
            "cwd": "/home/me/parcel",
            "message": message,
        }
        for number, message in enumerate([*contents, {"role": "user", "content": [result]}])
    ]


def chatgpt() -> list[dict[str, Any]]:
    """Return an export with a question and its answer, which was regenerated."""
    nodes: dict[str, dict[str, Any]] = {"root": {"id": "root", "message": None, "parent": None}}
    for name, parent, role, text in (
        ("u1", "root", "user", "How many parcels?"),
        ("a1", "u1", "assistant", "Two parcels."),
        ("a2", "u1", "assistant", "Three parcels."),
    ):
        content = {"content_type": "text", "parts": [text]}
        message = {"id": name, "author": {"role": role}, "content": content, "recipient": "all"}
        nodes[name] = {"id": name, "message": message | {"create_time": 1.7e9}, "parent": parent}
    told = {"title": "Parcels", "mapping": nodes, "current_node": "a2", "conversation_id": "c1"}
    return [told | {"create_time": 1.7e9}]


def test_a_home_is_asked_in_one_line_each(run: Run, tmp_path: Path) -> None:
    """Where a file was mended in a month, what a project cost in it, what was regenerated."""
    home = tmp_path / "home"
    for name, month, file in (("old", "2026-03", "zones.py"), ("new", "2026-04", "zones.py")):
        written(home / f"{name}.jsonl", *claude(name, month, f"/home/me/parcel/{file}"))
    written(home / "other.jsonl", *claude("other", "2026-04", "/home/me/parcel/cells.py"))
    (home / "conversations.json").write_text(json.dumps(chatgpt()), "utf-8")
    assert run("import", home).status == 0

    (mended,) = asked(run, "sql", MENDED.format("zones.py", "2026-04"))
    assert mended["session_id"] == "new"
    (found, *_) = asked(run, "search", "zones.py", "--tool", "Edit", "--since", "2026-04-01")
    assert found["session"]["id"] == "new"

    span = ("--since", "2026-04-01", "--until", "2026-05-01")
    paid = asked(run, "usage", "--by", "project", "--by", "source", *span)
    assert [[each["name"], each["requests"], each["cost"]] for each in paid] == [
        [["/home/me/parcel", "claude_code"], 2, 9.0]
    ]

    assert [each["content"] for each in asked(run, "sql", REGENERATED)] == ["Two parcels."]


@needs_transcripts
@pytest.mark.slow
@pytest.mark.sqlite_only
def test_recordings_are_asked_in_one_line_each(run: Run) -> None:
    """The same of what five programs recorded."""
    kinds = ("claude_code_jsonl", "codex_rollout", "pi_session", "gemini_cli_chat", "oasst_tree")
    assert run("import", *(TRANSCRIPTS / kind for kind in kinds)).status == 0
    (mended,) = asked(run, "sql", MENDED.format("theme.ts", "2025-11"))
    assert mended["session_id"].startswith("d703a1a9")
    span = ("--since", "2026-03-01", "--until", "2026-05-01")
    paid = asked(run, "usage", "--by", "project", "--by", "source", *span)
    assert {"claude_code", "codex"} <= {each["name"][1] for each in paid if each["cost"]}
    assert len(asked(run, "sql", REGENERATED)) > 10
