"""Sessions of Qwen Code, made up after its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from store import Store
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff

USAGE = {
    "promptTokenCount": 100,
    "candidatesTokenCount": 9,
    "thoughtsTokenCount": 4,
    "totalTokenCount": 109,
    "cachedContentTokenCount": 60,
}


def row(name: str, parent: str | None, kind: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """Return a row with a message of parts."""
    role = "model" if kind == "assistant" else "user"
    known = {"uuid": name, "parentUuid": parent, "sessionId": "s", "type": kind, "cwd": "/w"}
    said = {"message": {"role": role, "parts": list(parts)}} if parts else {}
    return {**known, "timestamp": "2026-01-01T00:00:01Z", "version": "0.15.6", **said, **more}


def called(**more: Any) -> dict[str, Any]:
    """Return a call."""
    return {"functionCall": {"name": "read_file", "args": {"path": "a"}, **more}}


def answered(**more: Any) -> dict[str, Any]:
    """Return a response."""
    said = {"name": "read_file", "response": {"output": "words"}, **more}
    return {"functionResponse": said}


STATE = {"subtype": "ui_telemetry", "systemPayload": {"uiEvent": {}}}
TALK = [
    row("u1", None, "user", {"text": "Read a."}),
    row("s1", "u1", "system", **STATE),
    row("a1", "s1", "assistant", {"text": "Hm.", "thought": True}, called(id="c1"), model="qwen"),
    row("t1", "a1", "tool_result", answered(id="c1"), toolCallResult={"status": "success"}),
    row("a2", "t1", "assistant", {"text": "Done."}, model="qwen", usageMetadata=USAGE),
]


def write(path: Path, *rows: dict[str, Any]) -> Path:
    """Write rows as lines."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in read(path) if isinstance(event, SessionMessage)]


def test_a_file_is_a_session(tmp_path: Path) -> None:
    """Also where a row of the program comes first; rows the model did not see are counted."""
    title = {"subtype": "custom_title", "systemPayload": {"customTitle": "Mine"}}
    path = write(tmp_path / "f.jsonl", row("s0", None, "system", **STATE), *TALK)
    assert sniff(path) == "qwen_code"
    write(path, *TALK, row("s2", "a2", "system", **title))
    opened = next(event for event in read(path) if isinstance(event, SessionEvent))
    assert (opened.session_id, opened.title, opened.project_root) == ("s", "Mine", "/w")
    assert opened.metadata == {"model": "qwen", "qwen_code": {"version": "0.15.6"}}
    asked, call, result, last = messages(path)
    assert (asked["content"], asked["id"]) == ("Read a.", "u1")
    assert (call["content"], call["reasoning_content"]) == (None, "Hm.")
    assert call["tool_calls"][0]["function"] == {"name": "read_file", "arguments": '{"path": "a"}'}
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c1", "words")
    assert last["content"] == "Done."
    notes = [event.text for event in read(path) if isinstance(event, NoteEvent)]
    assert notes == ["left out 2 system lines (1 custom_title, 1 ui_telemetry)"]


def test_results_without_ids_are_linked_by_name(tmp_path: Path) -> None:
    """And those that only the program's own copy tells, by what it says."""
    copied = {"callId": "x", "name": "grep", "result": "found", "status": "error"}
    rows = [
        row("u1", None, "user", {"text": "Go."}),
        row("a1", "u1", "assistant", called(), called(id="x", name="grep")),
        row("t2", "a1", "tool_result", toolCallResult=copied),
        row("t1", "t2", "tool_result", answered()),
    ]
    _, call, grep, result = messages(write(tmp_path / "f.jsonl", *rows))
    assert [each["id"] for each in call["tool_calls"]] == ["a1-call-1", "x"]
    assert (grep["tool_call_id"], grep["content"]) == ("x", "found")
    assert grep["messageStatus"] == "error"
    assert result["tool_call_id"] == "a1-call-1"


def test_rewinds_and_growth_and_usage(tmp_path: Path, url: str) -> None:
    """What was taken back is a fork of the session; costs are counted once."""
    path = write(tmp_path / "f.jsonl", *TALK)
    back = {"subtype": "rewind", "systemPayload": {"truncatedCount": 2}}
    with Store(url) as store:
        import_file(store, path)
        anew = [row("r", "u1", "system", **back), row("a3", "r", "assistant", {"text": "No."})]
        for _ in range(2):
            report = import_file(store, write(path, *TALK, *anew))
            assert not [note for note in report.notes if note.broken]
        line = [stored.message["content"] for stored in store.messages("s")]
        assert line == ["Read a.", "No."]
        branch = [stored.message["content"] for stored in store.messages("s/branch-s1")]
        assert branch == ["Read a.", None, "words", "Done."]
        told = [(each.input, each.output, each.cached, each.model) for each in store.usages("s")]
        assert told == [(100, 9, 60, "qwen")]
        assert not store.verify()
