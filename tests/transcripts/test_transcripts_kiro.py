"""Sessions of Kiro, made up after descriptions of its database and files."""

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
    is_kept,
    parse_message_usage,
    read,
    sniff,
)

STATE = {"env_state": {"current_working_directory": "/w"}}
ASKED = {"content": {"Prompt": {"prompt": "List."}}, "timestamp": "2026-01-01T00:00:01Z"}
USE = {"id": "c", "name": "shell", "args": {"command": "ls"}}
REQUEST = {"model_id": "m", "input_tokens": 9, "output_tokens": 2, "response_size": 5}
BACK = {"tool_use_id": "c", "content": [{"Text": "a"}, {"Json": {"b": 1}}], "status": "Error"}
HISTORY = [
    {
        "user": {**ASKED, "env_context": STATE},
        "assistant": {"ToolUse": {"message_id": "a1", "content": "So.", "tool_uses": [USE]}},
        "request_metadata": REQUEST,
    },
    {
        "user": {"content": {"ToolUseResults": {"tool_use_results": [BACK]}}, "timestamp": None},
        "assistant": {"Response": {"message_id": "a2", "content": "One file."}},
    },
]


def events(path: Path, kind: type) -> list[Any]:
    """Return the events of a kind."""
    return [event for event in read(path) if isinstance(event, kind)]


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in events(path, SessionMessage)]


def database(path: Path, value: str) -> Path:
    """Write a database with one chat."""
    with closing(sqlite3.connect(path)) as rows, rows:
        rows.execute("CREATE TABLE conversations_v2 (key, conversation_id, value, created_at)")
        row = ("/w", "s", value, 1767225600000)
        rows.execute("INSERT INTO conversations_v2 VALUES (?, ?, ?, ?)", row)
    return path


def test_a_database_and_what_was_saved_tell_the_same(tmp_path: Path) -> None:
    """Turns are messages, with their calls, results and what they cost."""
    chat = {"conversation_id": "s", "history": [*HISTORY, {"odd": 1}], "tools": {"x": []}}
    saved = tmp_path / "f.json"
    saved.write_text(json.dumps(chat))
    for path in (database(tmp_path / "d", json.dumps(chat)), saved):
        assert sniff(path) == "kiro"
        (session,) = events(path, SessionEvent)
        assert (session.session_id, session.title, session.project_root) == ("s", "List.", "/w")
        asked, called, result, last = messages(path)
        assert (asked["content"], asked["timestamp"]) == ("List.", 1767225601000)
        function = {"name": "shell", "arguments": '{"command": "ls"}'}
        assert called["tool_calls"] == [{"id": "c", "type": "function", "function": function}]
        assert (called["id"], called["content"]) == ("a1", "So.")
        assert [(each.tokens, each.model) for each in parse_message_usage(called)] == [
            (UsageTokens(9, 2), "m")
        ]
        assert (result["tool_call_id"], result["content"]) == ("c", 'a\n{"b": 1}')
        assert (result["messageStatus"], last["content"]) == ("error", "One file.")
        (note,) = events(path, NoteEvent)
        assert (note.text, note.broken) == ("left out 1 turn that cannot be read", True)
    assert events(database(tmp_path / "b", "{"), NoteEvent)[0].text.startswith(
        "the chat 's' is left"
    )


@pytest.mark.parametrize("unasked", [None, {}, "absent"])
def test_a_turn_without_a_question_is_what_the_agent_went_on_with(
    tmp_path: Path, unasked: object
) -> None:
    """Its answer and its calls are kept, and nothing is left out."""
    user = {} if unasked == "absent" else {"content": unasked}
    goes_on = {"user": user, "assistant": {"ToolUse": {"content": "On.", "tool_uses": [USE]}}}
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"conversation_id": "s", "history": [HISTORY[0], goes_on]}))
    asked, called, last = messages(path)
    assert (asked["role"], called["role"], last["content"]) == ("user", "assistant", "On.")
    assert [call["id"] for each in (called, last) for call in each["tool_calls"]] == ["c", "c"]
    assert events(path, NoteEvent) == []


def line(kind: str, name: str, *parts: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """Return a line of a file."""
    content = [{"kind": each, "data": data} for each, data in parts]
    return {"version": "v1", "kind": kind, "data": {"message_id": name, "content": content, **more}}


def test_a_file_of_lines(tmp_path: Path) -> None:
    """What the file beside it tells is known of the session."""
    back = {"toolUseId": "c", "content": [{"kind": "json", "data": {"a": 1}}], "status": "error"}
    use = {"toolUseId": "c", "name": "shell", "input": {"command": "ls"}}
    text, picture = ("text", "See"), ("image", {"x": 1})
    rows = [
        line("Prompt", "p", ("text", "List."), meta={"timestamp": 1767225601}),
        line("AssistantMessage", "a", ("thinking", {"text": "Hm"}), ("toolUse", use)),
        line("ToolResults", "r", ("toolResult", back), ("toolResult", {"content": "x"})),
        line("Prompt", "q", text, picture),
        {"kind": "Compaction", "data": {"x": 1}},
        {"odd": 1},
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sniff(path) == "kiro"
    assert events(path, SessionEvent)[0].session_id == "s"
    known = {"session_id": "k", "cwd": "/w", "title": "Mine", "session_state": {}, "x": 1}
    path.with_suffix(".json").write_text(json.dumps(known))
    (session,) = events(path, SessionEvent)
    assert (session.session_id, session.title, session.project_root) == ("k", "Mine", "/w")
    assert session.metadata == {"kiro": {"x": 1}}
    asked, called, failed, other, seen = messages(path)
    assert (asked["id"], asked["timestamp"]) == ("p", 1767225601000)
    assert (called["reasoning_content"], called["content"]) == ("Hm", None)
    assert called["tool_calls"][0]["function"]["arguments"] == '{"command": "ls"}'
    assert (failed["id"], failed["content"], failed["messageStatus"]) == ("r", '{"a": 1}', "error")
    assert (other["id"], other["content"]) == ("r-2", "x")
    assert seen["content"] == [{"type": "text", "text": "See"}, {"type": "image", "data": {"x": 1}}]
    assert [event.text for event in events(path, NoteEvent)] == [
        "an object with 'odd' is no line of a session",
        "left out 1 Compaction line",
    ]


def record(name: str, payload: str, /, **more: Any) -> dict[str, Any]:
    """Return a record of a newer session."""
    moment = "2026-09-01T17:52:55.268Z"
    return {"id": name, "timestamp": moment, "payload": {"type": payload, **more}}


CALL = {"toolCallId": "c", "toolName": "read", "args": {"path": "/src"}}
RECORDS = [
    record("u", "user", content="Look.", images=[], documents=[]),
    record("b", "turn_start", executionId="e"),
    record("r", "assistant", content="Hm", operationType="Reasoning"),
    record("s", "assistant", content="So.", operationType="Say"),
    record("p", "tool_call", status="pending", **CALL),
    record("q", "tool_call", status="approved", **CALL),
    record("o", "tool_result", toolCallId="c", success=False, content="none"),
]
ENDED = [
    record("t", "tombstone", kind="summarization", effectiveFromMessageId="u"),
    record("m", "assistant", content="They looked.", operationType="Summary"),
    record("a", "assistant", content=[{"text": "Done."}], operationType="Say"),
]


def test_a_folder_of_records(tmp_path: Path) -> None:
    """An answer's records are one message, a call told twice is one, a summary hides what was."""
    folder = tmp_path / "sess_1"
    folder.mkdir()
    path = folder / "messages.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in [*RECORDS, *ENDED]))
    assert sniff(path) == "kiro"
    assert events(path, SessionEvent)[0].session_id == "sess_1"
    known = {"id": "k", "title": "Mine", "modelId": "auto", "workspacePaths": ["/w"], "status": "x"}
    times = {"createdAt": "2026-09-01T00:00:00Z", "rootConversationId": "top"}
    (folder / "session.json").write_text(json.dumps(known | times))
    (session,) = events(path, SessionEvent)
    assert (session.session_id, session.title, session.project_root) == ("k", "Mine", "/w")
    assert session.created_at == 1788220800000
    kept = {"kiro": {"status": "x"}, "model": "auto", "parent_session": "top"}
    assert session.metadata == kept
    asked, called, result, last = messages(path)
    assert (asked["content"], asked["id"], asked["timestamp"]) == ("Look.", "u", 1788285175268)
    assert (called["reasoning_content"], called["content"], called["id"]) == ("Hm", "So.", "r")
    function = {"name": "read", "arguments": '{"path": "/src"}'}
    assert called["tool_calls"] == [{"id": "c", "type": "function", "function": function}]
    assert (result["tool_call_id"], result["content"]) == ("c", "none")
    assert (result["messageStatus"], last["content"]) == ("error", "Done.")
    assert events(path, CompactionEvent) == [CompactionEvent(3, "They looked.")]
    assert [event.text for event in events(path, NoteEvent)] == [
        "left out 1 tombstone record",
        "left out 1 turn_start record",
    ]


def write_records(path: Path, *rows: dict[str, Any]) -> Path:
    """Write a file of records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def begun(name: str, agent: str) -> dict[str, Any]:
    """Return the record of a sub-agent's start."""
    told = {"parentExecutionId": "e", "subSessionId": agent, "subAgentName": "gatherer"}
    return record(name, "sub_agent_start", prompt=f"Look for {agent}.", explanation="Look", **told)


def test_sub_agents_are_linked_sessions(tmp_path: Path) -> None:
    """What each was asked stands in the file of whoever began it: the session, or another."""
    folder = tmp_path / ".kiro/sessions/0f/sess_1"
    dispatch = {"toolCallId": "d", "toolName": "invoke_sub_agent", "args": {}}
    dispatched = record("p", "tool_call", _meta={"kiro": {"agentSubtaskId": "a1"}}, **dispatch)
    write_records(folder / "messages.jsonl", *RECORDS[:1], dispatched, begun("b", "a1"))
    (folder / "session.json").write_text('{"id": "k", "modelId": "m", "workspacePaths": ["/w"]}')
    own = {"operationType": "Say", "subExecutionId": "a1"}
    said = record("s", "assistant", content="Found.", **own)
    first = write_records(folder / "sub-executions/a1.jsonl", said, begun("c", "a2"))
    below = record("t", "assistant", content="Deep.", **own | {"subExecutionId": "a2"})
    second = write_records(folder / "sub-executions/a2.jsonl", below)
    alone = write_records(folder / "sub-executions/a3.jsonl", below)
    with Store(":memory:") as store:
        files = [each for each in sorted(tmp_path.rglob("*.json*")) if is_kept(each)]
        brought = [import_file(store, each) for each in files]
        assert sorted(one.id for each in brought for one in each.sessions) == [
            *("k", "k/agent-a1", "k/agent-a2", "k/agent-a3")
        ]
        session = store.session("k/agent-a1")
        assert (session.title, session.project_root) == ("Look", "/w")
        link = {"parent_session": "k", "parent_call": "d"}
        kept = {"kiro": {"subAgentName": "gatherer"}, "model": "m"}
        assert store.session("k/agent-a1").metadata == link | kept
        assert [each.message["content"] for each in store.messages("k/agent-a1")] == [
            *("Look for a1.", "Found.")
        ]
        assert store.session("k/agent-a2").metadata["parent_session"] == "k/agent-a1"
        assert store.messages("k/agent-a2")[0].message["content"] == "Look for a2."
    for path, asked in ((first, 1), (second, 1), (alone, 0)):
        assert sniff(path) == "kiro"
        assert len(messages(path)) == 1 + asked


def test_an_answer_behind_calls_is_another(tmp_path: Path) -> None:
    """A call ends what was said before it, also where its result is missing."""
    path = tmp_path / "messages.jsonl"
    more = record("z", "assistant", content="On.", operationType="Say")
    path.write_text("".join(json.dumps(each) + "\n" for each in [*RECORDS[:5], more]))
    assert [each["content"] for each in messages(path)] == ["Look.", "So.", "On."]


def test_what_was_taken_back_is_a_branch(tmp_path: Path) -> None:
    """A tombstone that is no summary's takes back a message and what came behind it."""
    path = tmp_path / "messages.jsonl"
    more = [
        record("v", "user", content="Wrong."),
        record("w", "assistant", content="No.", operationType="Say"),
        record("t", "tombstone", effectiveFromMessageId="v", metadata={"truncatedMessageCount": 2}),
        record("x", "user", content="Right."),
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in [*RECORDS, *more]))
    told = list(read(path))
    sessions = [event.session_id for event in told if isinstance(event, SessionEvent)]
    assert sessions == [tmp_path.name, f"{tmp_path.name}/branch-v"]
    assert [each["content"] for each in messages(path)][-3:] == ["Right.", "Wrong.", "No."]
    stem = events(path, SessionEvent)[1].stem
    assert (stem.session_id, stem.after) == (tmp_path.name, 3)


def test_records_without_ids_and_with_one_are_all_told(tmp_path: Path) -> None:
    """Where names of messages would be the same, numbers tell them apart."""
    path = tmp_path / "messages.jsonl"
    rows = [record("u", "user", content=str(number)) for number in range(500)]
    rows += [{"payload": {"type": "user", "content": "last"}} for _ in range(2)]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    assert [each["content"] for each in messages(path)] == [*map(str, range(500)), "last", "last"]
