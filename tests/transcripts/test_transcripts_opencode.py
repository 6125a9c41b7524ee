"""Sessions of opencode, made up after its source."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from store import Store
from store.importing import import_file
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

TOKENS = {"input": 5, "output": 9, "reasoning": 1, "cache": {"read": 60, "write": 7}}
END = {"type": "step-finish", "reason": "stop", "tokens": TOKENS, "cost": 0.1}


def said(name: str, role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a message."""
    info = {"id": name, "sessionID": "s", "role": role, "time": {"created": 1767225601500}}
    model = {"modelID": "gpt-5", "providerID": "openai"} if role == "assistant" else {}
    return {"info": {**info, **model, **more}, "parts": list(parts)}


def text(words: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    """Return a part with words."""
    return {"type": kind, "text": words, **more}


def tool(name: str, status: str, **more: Any) -> dict[str, Any]:
    """Return a call with its result."""
    time = {"start": 1767225602000, "end": 1767225602500}
    state = {"status": status, "input": {"path": "a"}, "time": time, **more}
    return {"type": "tool", "callID": name, "tool": "read", "state": state}


def session(*messages: Any, **more: Any) -> dict[str, Any]:
    """Return a session."""
    info = {"id": "s", "title": "New session - 2026", "directory": "/w", "version": "1.2"}
    return {"info": {**info, **more}, "messages": list(messages)}


def write(path: Path, *sessions: Any) -> Path:
    """Write sessions as documents."""
    path.write_text("\n".join(json.dumps(each, indent=1) for each in sessions))
    return path


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in read(path) if isinstance(event, SessionMessage)]


def opened(path: Path) -> list[SessionEvent]:
    """Return the sessions of a file."""
    return [event for event in read(path) if isinstance(event, SessionEvent)]


def notes(path: Path) -> list[str]:
    """Return the notes on a file."""
    return [event.text for event in read(path) if isinstance(event, NoteEvent)]


STEPS = (
    {"type": "step-start"},
    text("Hm", "reasoning"),
    tool("c1", "completed", output="words", title="a"),
    tool("c2", "error", error="denied"),
    END,
    {"type": "patch", "files": []},
    {"type": "step-start"},
    text("Done."),
    tool("c3", "running"),
)
TALK = [said("m1", "user", text("Read a.")), said("m2", "assistant", *STEPS, parentID="m1")]


def test_a_file_is_a_session(tmp_path: Path) -> None:
    """Each step is an answer with its results; tokens are told by steps."""
    path = write(tmp_path / "f.json", session(*TALK, parentID="p"))
    assert sniff(path) == "opencode"
    (opening,) = opened(path)
    assert (opening.session_id, opening.title) == ("s", "Read a.")
    assert (opening.project_root, opening.metadata["parent_session"]) == ("/w", "p")
    assert opening.metadata["model"] == "gpt-5"
    asked, call, result, failed, last = messages(path)
    assert (asked["content"], asked["id"]) == ("Read a.", "m1")
    assert (call["content"], call["reasoning_content"], call["id"]) == (None, "Hm", "m2")
    assert [each["id"] for each in call["tool_calls"]] == ["c1", "c2"]
    assert call["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"path": "a"}'}
    assert (result["tool_call_id"], result["content"]) == ("c1", "words")
    assert result["timestamp"] == 1767225602500
    assert (failed["content"], failed["messageStatus"]) == ("denied", "error")
    assert (last["content"], last["id"], len(last["tool_calls"])) == ("Done.", "m2-4", 1)
    (spent,) = parse_message_usage(call)
    assert (spent.tokens, spent.model, spent.provider) == (
        UsageTokens(72, 10, 60, 7),
        "gpt-5",
        "openai",
    )
    assert parse_message_usage(last) == []
    assert notes(path) == ["left out 1 patch part"]


def test_what_a_user_sends(tmp_path: Path) -> None:
    """Pictures are parts, other files are kept beside; what is not sent is not said."""
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AA"}
    other = {"type": "file", "mime": "text/plain", "url": "file:///w/a"}
    parts = (text("See"), text("hidden", ignored=True), picture, other)
    answer = said("m2", "assistant", text("Yes."), tokens=TOKENS, cost=0.1)
    path = write(tmp_path / "f", session(said("m1", "user", *parts), answer, title="Mine"))
    see, yes = messages(path)
    assert see["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    ]
    assert see["opencode"]["files"] == [other]
    assert [each.tokens.output for each in parse_message_usage(yes)] == [10]
    assert opened(path)[0].title == "Mine"


def test_what_was_reverted_is_a_branch(tmp_path: Path, url: str) -> None:
    """It is a fork of the session, which is rewound; with a part named its message stays."""
    path = write(tmp_path / "f", session(*TALK))
    with Store(url) as store:
        import_file(store, path)
        for _ in range(2):
            report = import_file(store, write(path, session(*TALK, revert={"messageID": "m2"})))
            assert {each.differs_at for each in report.sessions} == {None}
        assert [each.message["content"] for each in store.messages("s")] == ["Read a."]
        assert len(store.messages("s/branch-m2")) == 5
    write(path, session(*TALK, revert={"messageID": "m2", "partID": "x"}))
    assert len(opened(path)) == 1


def test_a_compaction_hides_what_came_before(tmp_path: Path, url: str) -> None:
    """What its question names as kept stays in sight."""
    for tail, hidden in (({}, 3), ({"tail_start_id": "m3"}, 2)):
        rows = [
            said("m1", "user", text("One")),
            said("m2", "assistant", text("Old.")),
            said("m3", "user", text("Two")),
            said("m4", "user", {"type": "compaction", "auto": True, **tail}),
            said("m5", "assistant", text("They counted."), summary=True, parentID="m4"),
            said("m6", "user", text("Three")),
        ]
        path = write(tmp_path / "f", session(*rows))
        told = [
            event for event in read(path) if isinstance(event, SessionMessage | CompactionEvent)
        ]
        assert told[5] == CompactionEvent(hidden)
    with Store(url) as store:
        import_file(store, path)
        view = json.dumps(store.view("s").messages)
    assert "They counted." in view
    assert "Two" in view
    assert "Old." not in view


def test_several_sessions_and_broken_ones(tmp_path: Path) -> None:
    """Documents side by side are sessions; what is no message is noted, the rest is kept."""
    path = write(tmp_path / "f", session(*TALK[:1], {"info": 1}), session(id="t"), {"odd": 1})
    assert [each.session_id for each in opened(path)] == ["s", "t"]
    assert len(messages(path)) == 1
    assert notes(path) == [
        "an object with 'info' is no message",
        "an object with 'odd' is no session: it has no 'info' and no 'messages'",
    ]


def test_a_database_tells_what_its_export_tells(tmp_path: Path) -> None:
    """Each session of it is read as if it had been exported."""
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as rows, rows:
        rows.executescript("""
            CREATE TABLE session (
                id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT,
                time_created INTEGER, time_archived INTEGER
            );
            CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
            CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);
        """)
        revert = json.dumps({"messageID": "m2"})
        known = ("s", "top", "/w", "Mine", revert, 1767225600000, None)
        rows.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", known)
        for place, message in enumerate(TALK, 1):
            told = json.dumps(message["info"])
            name = message["info"]["id"]
            rows.execute("INSERT INTO message VALUES (?, 's', ?, ?)", (name, place, told))
            for number, part in enumerate(message["parts"]):
                cells = (f"p{place}-{number}", name, json.dumps(part))
                rows.execute("INSERT INTO part VALUES (?, ?, 's', ?)", cells)
    assert sniff(path) == "opencode"
    first, branch = opened(path)
    assert (first.session_id, first.title, first.project_root) == ("s", "Mine", "/w")
    assert first.metadata["parent_session"] == "top"
    assert first.metadata["opencode"]["time"] == {"created": 1767225600000}
    assert branch.session_id == "s/branch-m2"
    exported = write(tmp_path / "f", session(*TALK, revert={"messageID": "m2"}))
    assert [each["content"] for each in messages(path)] == [
        each["content"] for each in messages(exported)
    ]


def test_a_folder_tells_what_its_export_tells(tmp_path: Path) -> None:
    """A session's messages and their parts lie in folders named after them."""
    storage = tmp_path / "storage"
    keep(storage / "session" / "global" / "s.json", {"id": "s", "directory": "/w"})
    for message in TALK:
        name = message["info"]["id"]
        keep(storage / "message" / "s" / f"{name}.json", message["info"])
        for number, part in enumerate(message["parts"]):
            keep(storage / "part" / name / f"p{number}.json", part)
    path = storage / "session" / "global" / "s.json"
    assert sniff(path) == "opencode"
    assert [(each.session_id, each.project_root) for each in opened(path)] == [("s", "/w")]
    assert messages(path) == messages(write(tmp_path / "f", session(*TALK)))
    (storage / "message" / "s" / "zz.json").write_text("{")
    assert notes(path)[0].startswith("zz.json is left out: Expecting property name")


def keep(path: Path, value: Any) -> None:
    """Write a value, in a folder that may not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
