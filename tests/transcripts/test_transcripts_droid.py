"""Sessions of Droid: made up in the shape of a real stream, and after descriptions of its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from store import Store
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff

HEAD = {"type": "session_start", "id": "s", "title": "t", "sessionTitle": "Mine", "cwd": "/w"}
INIT = {
    "type": "system",
    "subtype": "init",
    "cwd": "/w",
    "session_id": "s",
    "model": "m",
    "tools": [],
}
USE = {"type": "tool_use", "id": "c", "name": "Read", "input": {"file_path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True}


def entry(name: str, role: str, *blocks: Any, parent: str | None = None, **more: Any) -> Any:
    """Return an entry with a message."""
    said = {"role": role, "content": list(blocks), **more}
    at = {"timestamp": "2026-01-01T00:00:01Z", "parentId": parent}
    return {"type": "message", "id": name, **at, "message": said}


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


TALK = [
    entry("u1", "user", text("Read a.")),
    entry("a1", "assistant", {"type": "thinking", "thinking": "Hm"}, USE, parent="u1"),
    entry("u2", "user", RESULT, parent="a1"),
    entry("a2", "assistant", text("It is not there."), parent="u2"),
]


def write(path: Path, *rows: Any) -> Path:
    """Write rows as lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def events(path: Path, kind: type) -> list[Any]:
    """Return the events of a kind."""
    return [event for event in read(path) if isinstance(event, kind)]


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in events(path, SessionMessage)]


def notes(path: Path) -> list[str]:
    """Return the notes on a file."""
    return [event.text for event in events(path, NoteEvent)]


def test_a_file_is_a_session(tmp_path: Path) -> None:
    """Its entries are messages of Anthropic's; what only the user saw is left out."""
    unseen = entry("n", "user", text("Notice"), visibility="user_only")
    rows = [*TALK, {"type": "todo_state", "todos": []}, unseen, {"odd": 1}]
    path = write(tmp_path / "f", HEAD, *rows)
    assert sniff(path) == "droid"
    (session,) = events(path, SessionEvent)
    assert (session.session_id, session.title, session.project_root) == ("s", "Mine", "/w")
    asked, call, result, last = messages(path)
    assert (asked["id"], asked["timestamp"]) == ("u1", 1767225601000)
    assert (call["reasoning_content"], call["content"]) == ("Hm", None)
    assert call["tool_calls"][0]["function"] == {"name": "Read", "arguments": '{"file_path": "a"}'}
    assert (result["tool_call_id"], result["messageStatus"]) == ("c", "error")
    assert last["content"] == "It is not there."
    assert notes(path) == [
        "an object with 'odd' is no entry of a session",
        "left out 1 message entry",
        "left out 1 todo_state entry",
    ]


def test_what_was_left_is_a_branch(tmp_path: Path, url: str) -> None:
    """A fork behind what came before; growth rewinds the session."""
    path = write(tmp_path / "f", HEAD, *TALK)
    with Store(url) as store:
        import_file(store, path)
        again = entry("u3", "user", text("Read b."), parent="u1")
        report = import_file(store, write(path, HEAD, *TALK, again))
        assert {each.differs_at for each in report.sessions} == {None}
        line = [each.message["content"] for each in store.messages("s")]
        assert line == [[text("Read a.")], [text("Read b.")]]
        assert len(store.messages("s/branch-a1")) == 4


def test_a_subagent_names_its_parent(tmp_path: Path) -> None:
    """Several sessions may lie in one file."""
    child = {**HEAD, "id": "c", "callingSessionId": "s", "callingToolUseId": "x"}
    path = write(tmp_path / "f", HEAD, TALK[0], child, TALK[0])
    first, second = events(path, SessionEvent)
    assert (first.session_id, second.metadata["parent_session"]) == ("s", "s")
    assert second.metadata["droid"]["callingToolUseId"] == "x"


def test_a_stream_is_a_session(tmp_path: Path) -> None:
    """Calls go to the answer that they belong to, and make one where it said nothing."""
    of = {"session_id": "s", "timestamp": 1767225601000}
    called = {"type": "tool_call", "toolName": "LS", "parameters": {"p": 1}, **of}
    path = write(
        tmp_path / "f",
        INIT,
        {"type": "message", "role": "user", "id": "u", "text": "Go.", **of},
        {"type": "message", "role": "assistant", "id": "a", "text": "So.", **of},
        {**called, "id": "c1", "messageId": "a"},
        {**called, "id": "c2", "messageId": "b"},
        {"type": "tool_result", "id": "c1", "isError": False, "value": "x", **of},
        {"type": "tool_result", "id": "c2", "isError": True, "error": {"why": 1}, **of},
        {"type": "completion", "numTurns": 1},
    )
    assert sniff(path) == "droid"
    (session,) = events(path, SessionEvent)
    assert (session.session_id, session.project_root) == ("s", "/w")
    assert session.metadata == {"model": "m", "droid": {"tools": []}}
    asked, said, called_only, seen, failed = messages(path)
    assert (asked["content"], said["content"], called_only["content"]) == ("Go.", "So.", None)
    assert [each["id"] for each in said["tool_calls"] + called_only["tool_calls"]] == ["c1", "c2"]
    assert (seen["tool_call_id"], seen["content"]) == ("c1", "x")
    assert (failed["content"], failed["messageStatus"]) == ('{"why": 1}', "error")
    assert notes(path) == ["left out an object with 'type', 'numTurns'"]
