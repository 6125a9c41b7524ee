"""Sessions of pi: made up in the shape of real ones, and after its source."""

from __future__ import annotations

import json
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

HEAD = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01", "cwd": "/w"}
USAGE = {"input": 5, "output": 9, "cacheRead": 60, "cacheWrite": 7, "cost": {"total": 0.1}}


def entry(name: str | None, parent: str | None, kind: str, /, **more: Any) -> dict[str, Any]:
    """Return an entry; without a name it is one of the first version."""
    ids = {"id": name, "parentId": parent} if name else {}
    return {"type": kind, **ids, "timestamp": "2026-01-01T00:00:01Z", **more}


def said(name: str | None, parent: str | None, role: str, content: Any, **more: Any) -> Any:
    """Return an entry with a message."""
    message = {"role": role, "content": content, "timestamp": 1767225602500, **more}
    return entry(name, parent, "message", message=message)


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


CALL = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}}
THOUGHT = {"type": "thinking", "thinking": "Hm", "thinkingSignature": "sig"}
CLAUDE = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude", "usage": USAGE}
TALK = [
    said("u1", None, "user", [text("Read a.")]),
    said("a1", "u1", "assistant", [THOUGHT, CALL], **CLAUDE),
    said("t1", "a1", "toolResult", [text("no")], toolCallId="c1", toolName="read", isError=True),
    said("a2", "t1", "assistant", [text("Done.")], **CLAUDE),
]


def write(path: Path, *rows: Any) -> Path:
    """Write a head and entries as lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in (HEAD, *rows)))
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


def test_a_file_is_a_session(tmp_path: Path) -> None:
    """What was said, called, thought and spent; the rest of each message is kept."""
    rows = [*TALK, entry("n", "a2", "session_info", name="Mine"), entry("l", "n", "label")]
    path = write(tmp_path / "f.jsonl", *rows)
    assert sniff(path) == "pi"
    (session,) = opened(path)
    assert (session.session_id, session.title, session.project_root) == ("s", "Mine", "/w")
    assert session.metadata == {"model": "claude", "pi": {"version": 3, "timestamp": "2026-01-01"}}
    asked, call, result, last = messages(path)
    assert (asked["content"], asked["id"], asked["timestamp"]) == ("Read a.", "u1", 1767225602500)
    assert call["thinking_blocks"] == [{"type": "thinking", "thinking": "Hm", "signature": "sig"}]
    assert call["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"path": "a"}'}
    assert (result["tool_call_id"], result["name"]) == ("c1", "read")
    assert (result["content"], result["messageStatus"]) == ("no", "error")
    assert (last["content"], last["pi"]) == ("Done.", CLAUDE)
    (spent,) = parse_message_usage(last)
    assert (spent.tokens, spent.model) == (UsageTokens(72, 9, 60, 7), "claude")
    assert notes(path) == ["left out 1 label entry"]


def test_the_first_version_and_other_entries(tmp_path: Path) -> None:
    """Entries without ids follow each other; thoughts of other providers are text."""
    picture = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    run = {"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 0}
    private = {**run, "excludeFromContext": True}
    rows = [
        said(None, None, "user", [text("See"), picture]),
        said(None, None, "assistant", [THOUGHT, text("Yes.")], api="openai-responses"),
        entry(None, None, "message", message=run),
        entry(None, None, "message", message=private),
        entry(None, None, "custom_message", content="Injected", customType="x"),
        said(None, None, "user", "Bye"),
    ]
    path = write(tmp_path / "f.jsonl", *rows)
    with path.open("a") as file:
        file.write("3\n")
    see, yes, ran, injected, bye = messages(path)
    assert see["content"][1]["image_url"]["url"] == "data:image/png;base64,AAAA"
    assert (yes["reasoning_content"], yes["pi"]["signatures"]) == ("Hm", ["sig"])
    assert (ran["content"], ran["pi"]["exitCode"]) == ("Ran `ls`\na.txt", 0)
    assert (injected["content"], injected["pi"]) == ("Injected", {"customType": "x"})
    assert (bye["content"], bye["id"]) == ("Bye", "entry-6")
    assert notes(path)[-2:] == ["3 is no entry of a session", "left out 1 message entry"]


def test_a_step_back_is_a_branch(tmp_path: Path, url: str) -> None:
    """What was left is a fork, what was told of it a message; growth rewinds the session."""
    path = write(tmp_path / "f.jsonl", *TALK)
    with Store(url) as store:
        import_file(store, path)
        told = entry("b", "u1", "branch_summary", summary="It was read.", fromId="a2")
        for _ in range(2):
            report = import_file(store, write(path, *TALK, told, said("u2", "b", "user", "Now?")))
            assert {each.differs_at for each in report.sessions} == {None}
        line = [each.message["content"] for each in store.messages("s")]
        assert line == ["Read a.", "It was read.", "Now?"]
        assert len(store.messages("s/branch-a1")) == 4


def test_a_compaction_hides_what_was_not_kept(tmp_path: Path, url: str) -> None:
    """The summary stands for what comes before the first entry that was kept."""
    rows = [
        *TALK,
        said("u2", "a2", "user", "Kept?"),
        entry("k", "u2", "compaction", summary="They read a.", firstKeptEntryId="u2"),
        said("u3", "k", "user", "Go on."),
    ]
    path = write(tmp_path / "f.jsonl", *rows)
    told = [event for event in read(path) if isinstance(event, SessionMessage | CompactionEvent)]
    assert told[5] == CompactionEvent(4, "They read a.")
    with Store(url) as store:
        import_file(store, path)
        view = json.dumps(store.view("s").messages)
    assert "They read a." in view
    assert "Kept?" in view
    assert "Done." not in view


def test_files_side_by_side(tmp_path: Path) -> None:
    """A second head begins a session; an entry whose parent is lost follows the one before it."""
    rows = [said("u1", None, "user", "One"), {**HEAD, "id": "t"}, said("x", "lost", "user", "Two")]
    path = write(tmp_path / "f.jsonl", *rows, said("y", "gone", "user", "Three"))
    assert [each.session_id for each in opened(path)] == ["s", "t"]
    assert [each["content"] for each in messages(path)] == ["One", "Two", "Three"]
