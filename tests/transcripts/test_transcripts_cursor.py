"""Chats of Cursor, made up after descriptions of its database and its agents' files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

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

TABLES = """
    CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
    CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
"""

CALL = {"name": "read_file", "toolCallId": "c1", "rawArgs": '{"target_file": "a"}'}
BUBBLES = {
    "u1": {"type": 1, "text": "Read a.", "createdAt": "2026-01-01T00:00:01Z", "images": []},
    "h1": {"type": 2, "text": "", "capabilityType": 30, "thinking": {"text": "Hm"}},
    "t1": {"type": 2, "text": "", "toolFormerData": {**CALL, "status": "error", "error": "no"}},
    "a1": {"type": 2, "text": "It is not there.", "tokenCount": {"inputTokens": 9}},
}


def chat(path: Path, bubbles: dict[str, Any], of: str = "s", **known: Any) -> Path:
    """Write a chat with bubbles in this order; the database is made where there is none."""
    heads = [{"bubbleId": each, "type": 1} for each in bubbles]
    head = {"composerId": of, "fullConversationHeadersOnly": heads, **known}
    rows = {f"bubbleId:{of}:{each}": bubble for each, bubble in bubbles.items()}
    return write(path, {f"composerData:{of}": head, **rows})


def write(path: Path, rows: dict[str, Any], table: str = "cursorDiskKV") -> Path:
    """Write rows of a table."""
    is_new = not path.exists()
    with closing(sqlite3.connect(path)) as database, database:
        if is_new:
            database.executescript(TABLES)
        cells = [(key, json.dumps(value).encode()) for key, value in rows.items()]
        database.executemany(f"INSERT INTO {table} VALUES (?, ?)", cells)
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


def test_a_chat_is_a_session(tmp_path: Path) -> None:
    """What was said, called, thought and spent, in the order of the head."""
    root = {"uri": {"fsPath": "/w/a b"}}
    known = {"name": "Mine", "modelConfig": {"modelName": "m"}, "createdAt": 1767225600000}
    path = chat(tmp_path / "state.vscdb", BUBBLES, workspaceIdentifier=root, **known)
    assert sniff(path) == "cursor"
    (session,) = events(path, SessionEvent)
    assert (session.session_id, session.title, session.project_root) == ("s", "Mine", "/w/a b")
    assert session.metadata == {"model": "m", "cursor": {"createdAt": 1767225600000}}
    asked, call, result, last = messages(path)
    assert (asked["content"], asked["id"], asked["timestamp"]) == ("Read a.", "u1", 1767225601000)
    assert call["reasoning_content"] == "Hm"
    function = {"name": "read_file", "arguments": '{"target_file": "a"}'}
    assert call["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]
    assert (result["tool_call_id"], result["content"]) == ("c1", "no")
    assert result["messageStatus"] == "error"
    assert last["content"] == "It is not there."
    assert [each.tokens for each in parse_message_usage(last)] == [UsageTokens(9)]
    assert notes(path) == []


def test_arguments_and_results_in_other_shapes(tmp_path: Path) -> None:
    """Arguments are an object, whatever the model wrote; a call without an end has no result."""
    told = {"name": "f", "toolCallId": "c"}
    calls = [
        {**told, "rawArgs": "{", "params": {"a": 1}, "result": {"b": 2}},
        {**told, "rawArgs": "[1]", "status": "loading"},
        {"tool": 7, "rawArgs": "{}", "status": "cancelled"},
    ]
    rows = {f"b{place}": {"type": 2, "toolFormerData": each} for place, each in enumerate(calls)}
    path = chat(tmp_path / "f", rows, of="c")
    made = [call["function"] for each in messages(path) for call in each.get("tool_calls", ())]
    assert [each["arguments"] for each in made] == ['{"a": 1}', '{"input": "[1]"}', "{}"]
    assert made[2]["name"] == "tool_7"
    results = [each for each in messages(path) if each["role"] == "tool"]
    assert [each["content"] for each in results] == ['{"b": 2}', ""]
    assert results[1]["cursor"] == {"status": "cancelled"}


def test_a_chat_grows_and_bubbles_leave_it(tmp_path: Path, url: str) -> None:
    """What is new is added; what the chat no longer shows is counted."""
    path = chat(tmp_path / "f", BUBBLES)
    with Store(url) as store:
        import_file(store, path)
        more = {**BUBBLES, "u2": {"type": 1, "text": "And b?"}}
        report = import_file(store, chat(path, more))
        assert [each.appended for each in report.sessions] == [1]
    chat(path, {"u1": BUBBLES["u1"], "gone": BUBBLES["u1"]})
    write(path, {"bubbleId:s:gone": None})
    told = notes(path)
    assert told[0].startswith("left out 1 bubble of 's'")
    assert told[1] == "left out 4 bubbles that 's' no longer shows"


def test_a_summary_hides_what_it_stands_for(tmp_path: Path) -> None:
    """It stands behind the last bubble that it tells of."""
    summary = {"summary": "They read a.", "truncationLastBubbleIdInclusive": "t1"}
    path = chat(tmp_path / "f", BUBBLES, latestConversationSummary={"summary": summary})
    told = [event for event in read(path) if isinstance(event, SessionMessage | CompactionEvent)]
    assert told[3] == CompactionEvent(3, "They read a.")


def test_older_chats(tmp_path: Path) -> None:
    """Chats that hold their bubbles, and the tabs of the first versions; broken ones are noted."""
    held = [{"type": 1, "bubbleId": "x", "text": "One"}, {"type": 9}]
    path = write(tmp_path / "f", {"composerData:o": {"composerId": "o", "conversation": held}})
    tab = {"tabId": "t", "chatTitle": "Old", "bubbles": [{"type": "user", "text": "Two"}]}
    key = "workbench.panel.aichat.view.aichat.chatdata"
    write(path, {key: {"tabs": [tab]}}, "ItemTable")
    write(path, {"composerData:p": 3})
    assert [each.session_id for each in events(path, SessionEvent)] == ["o", "t"]
    assert [each["content"] for each in messages(path)] == ["One", "Two"]
    assert notes(path) == ["the chat 'p' is left out, it is no JSON"]


def test_a_workspace_of_the_first_versions(tmp_path: Path) -> None:
    """Its database has one table; a file beside it tells of which folder it is."""
    path = tmp_path / "state.vscdb"
    tab = {"tabId": "t", "bubbles": [{"id": "b", "type": "user", "text": "One"}]}
    value = json.dumps({"tabs": [tab]})
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(TABLES.splitlines()[1])
        key = "workbench.panel.aichat.view.aichat.chatdata"
        database.execute("INSERT INTO ItemTable VALUES (?, ?)", (key, value))
    assert [each.project_root for each in events(path, SessionEvent)] == [None]
    path.with_name("workspace.json").write_text(json.dumps({"folder": "file:///home/a%20b"}))
    assert [each.project_root for each in events(path, SessionEvent)] == ["/home/a b"]
    assert [each["content"] for each in messages(path)] == ["One"]


def test_heads_and_subagents(tmp_path: Path) -> None:
    """Newer versions keep heads in a table of their own; a subagent tells whose it is."""
    path = chat(tmp_path / "f", {"u1": BUBBLES["u1"]})
    head = {"name": "Task", "subagentInfo": {"parentComposerId": "top", "toolCallId": "c"}}
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE composerHeaders (composerId, value)")
        database.execute("INSERT INTO composerHeaders VALUES ('s', ?)", (json.dumps(head),))
    (session,) = events(path, SessionEvent)
    assert (session.title, session.metadata["parent_session"]) == ("Task", "top")


def test_an_agents_transcript(tmp_path: Path) -> None:
    """Its calls have no ids and no results; a subagent's file lies beside those of its parent."""
    folder = tmp_path / "p" / "subagents"
    folder.mkdir(parents=True)
    asked = "<user_query>\nGo.\n</user_query>"
    use = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    rows = [
        {"role": "user", "message": {"content": [{"type": "text", "text": asked}]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "So."}, use]}},
        {"odd": 1},
    ]
    path = folder / "s.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    assert sniff(path) == "cursor"
    (session,) = events(path, SessionEvent)
    assert (session.session_id, session.title) == ("s/transcript", "Go.")
    assert session.metadata == {"parent_session": "p/transcript"}
    first, second = messages(path)
    assert (first["content"], second["content"]) == (asked, "So.")
    assert second["tool_calls"][0]["id"] == "call-2-2"
    assert notes(path) == ["an object with 'odd' is no line of a chat"]


def test_results_in_an_agents_transcript(tmp_path: Path) -> None:
    """A result answers the oldest call that waits; what the program did is counted."""
    use = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    words = {"type": "text", "text": "So."}
    rows = [
        {"role": "user", "message": {"content": [{"type": "text", "text": "Go."}]}},
        {"role": "assistant", "message": {"content": [use, use]}},
        {"role": "user", "message": {"content": [{"type": "tool_result", "content": "a"}]}},
        {
            "role": "assistant",
            "message": {"content": [use, result(tool_use_id="call-4-1"), result(), words]},
        },
        {"type": "turn_ended", "status": "success"},
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    told = [(each["role"], each.get("tool_call_id")) for each in messages(path)]
    assert told == [
        ("user", None),
        ("assistant", None),
        ("tool", "call-2-1"),
        ("assistant", None),
        ("tool", "call-4-1"),
        ("tool", "call-2-2"),
        ("assistant", None),
    ]
    assert notes(path) == ["left out 1 turn_ended line"]


def result(**call: str) -> dict[str, Any]:
    """Return a result, which may tell the call that it answers."""
    return {"type": "tool_result", "content": "b", **call}


WINDSURF = {
    "tabs": {
        "tabs": [
            {
                "tabId": "w",
                "chatTitle": "A tab",
                "bubbles": [{"type": "user", "text": "Why?"}, {"type": "assistant", "text": "So."}],
            }
        ]
    },
    "requests": {
        "version": 1,
        "sessionId": "w",
        "customTitle": "A tab",
        "creationDate": 1710000000000,
        "requests": [
            {
                "requestId": "r",
                "message": {"text": "Why?"},
                "response": [{"value": "S"}, {"value": "o."}],
                "timestamp": 1710000000000,
            }
        ],
    },
}


@pytest.mark.parametrize("shape", WINDSURF)
def test_a_chat_of_windsurf(tmp_path: Path, shape: str) -> None:
    """It lies where the first versions of Cursor had theirs, with what the assistant said."""
    path = tmp_path / "state.vscdb"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE ItemTable (key TEXT PRIMARY KEY, value TEXT)")
        key = "workbench.panel.aichat.view.aichat.chatdata"
        database.execute("INSERT INTO ItemTable VALUES (?, ?)", (key, json.dumps(WINDSURF[shape])))
    (opened,) = (event for event in read(path) if isinstance(event, SessionEvent))
    assert (opened.session_id, opened.title) == ("w", "A tab")
    told = [(each["role"], each["content"]) for each in messages(path)]
    assert told == [("user", "Why?"), ("assistant", "So.")]
