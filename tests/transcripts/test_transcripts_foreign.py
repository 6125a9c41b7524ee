"""Files of programs that are not read, though they look like those that are."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import UnknownTranscript
from store.importing import import_file
from store.transcripts import NoteEvent, SessionMessage, read, sniff
from store.transcripts.other_programs import COLUMNS_BY_PROGRAM, PROGRAM_BY_STATE_KEY, PROGRAM_MARKS


def user(content: object = "x") -> dict[str, Any]:
    """Return a message that is alike in most shapes."""
    return {"role": "user", "content": content}


def answer(*parts: object, **more: Any) -> dict[str, Any]:
    """Return an answer with some parts."""
    return {"role": "assistant", "content": list(parts), **more}


def row(role: str, **message: Any) -> dict[str, Any]:
    """Return a row such as Claude Code and Qwen Code write."""
    return {"type": role, "uuid": "u", "sessionId": "s", "message": {"role": role, **message}}


QWEN = [row("user", parts=[{"text": "hi"}]), row("assistant", parts=[{"text": "ho"}])]
TOOL_USE = answer({"type": "tool_use", "id": "t", "name": "f", "input": {}})
FLAT = {"id": "c", "name": "f", "arguments": {}}

LOOK_ALIKES = {
    "tau2-bench": [{"messages": [user(), answer(tool_calls=[FLAT | {"requestor": "user"}])]}],
    "LangChain": [user(), answer(tool_calls=[{"id": "c", "name": "f", "args": {}}])],
    "whose tool calls have no 'function'": [user(), answer(tool_calls=[FLAT])],
    "goose": [user(), answer({"type": "toolRequest", "id": "t", "toolCall": {}})],
    "the Vercel AI SDK": [[user(), answer({"type": "tool-call", "toolCallId": "t"})]],
    "Amazon Bedrock": [{"messages": [user([{"text": "x"}]), answer({"toolUse": {}})]}],
    "of pi": [{"messages": [user(), answer({"type": "toolCall", "id": "t"})]}],
    "Google's Gemini API": [user(), answer({"functionCall": {"name": "f"}})],
}
"""Words of the refusal → values that look like messages of the chat."""

BACK = {"type": "tool_result", "id": "t", "output": [{"type": "text", "text": "x = 1"}]}
AGENT_SCOPE = {"name": "Friday", "metadata": {}, "timestamp": "2026-03-16 09:00:00.000"}
QWENPAW = [
    {"id": "m1", **AGENT_SCOPE, **user([{"type": "text", "text": "Read it."}])},
    {"id": "m2", **AGENT_SCOPE, **TOOL_USE},
    {"id": "m3", **AGENT_SCOPE, "role": "system", "content": [BACK]},
]
CORTEX = [
    user([{"type": "text", "text": "Ask."}]),
    answer({"type": "tool_use", "tool_use": {"tool_use_id": "t", "name": "sql", "input": {}}}),
    user([{"type": "tool_result", "tool_result": {"tool_use_id": "t", "content": []}}]),
]

OTHERS: dict[str, list[list[Any]]] = {
    "Cline (what its screen shows)": [
        [{"ts": 1, "type": "say", "say": "text", "text": "x", "role": "user", "content": "x"}],
        [[{"ts": 1, "type": "ask", "ask": "followup", "text": "x"}]],
    ],
    "QwenPaw": [[{"agent": {"memory": {"content": [[QWENPAW[0], []]]}}}]],
    "AgentScope, as QwenPaw writes it": [QWENPAW],
    "Grok Build (what its screen shows)": [
        [{"method": "session/update", "params": {"update": {"sessionUpdate": "plan"}}}]
    ],
    "Grok Build (beside its session)": [
        [{"info": {"id": "g", "cwd": "/app"}, "num_chat_messages": 2}],
        [{"turnCount": 1, "toolsUsed": [], "primaryModelId": "grok-4.5"}],
    ],
    "Gemini CLI (without a message)": [
        [{"sessionId": "s", "projectHash": "h", "messages": [{"type": "info", "content": "x"}]}]
    ],
    "GitHub Copilot (its old history.json)": [[{"history": [{"role": "user", "text": "x"}]}]],
    "a program whose messages have no 'content'": [[{"role": "user", "text": "x"}]],
    "Command Code": [
        [
            {"sessionId": "s", "metadata": {"cwd": "/"}, **user([{"type": "text", "text": "x"}])},
            {"sessionId": "s", **answer({"type": "tool-call", "toolCallId": "t"})},
        ]
    ],
    "Snowflake Cortex": [
        [{"session_id": "s", "history_length": 1, "connection_name": "c"}],
        CORTEX,
    ],
    "Zencoder": [
        [{"id": "s", "creationReason": "newChat", "createdAt": "2026-01-01"}],
        [user([{"type": "text", "text": "x", "tag": "user-input"}]), answer({"type": "tool-call"})],
    ],
    "WorkBuddy": [
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
            {"type": "function_call", "callId": "c", "name": "f", "arguments": "{}"},
        ],
        [{"type": "function_call_result", "callId": "c", "output": {"type": "text", "text": "x"}}],
    ],
    "Poolside": [
        [{"type": "session.start", "session_start": {"workspace": "/", "prompt": "x"}}],
        [{"type": "session.input", "session_input": {"prompt": "x"}}],
    ],
    "Codebuff or Freebuff": [[[{"variant": "user", "content": "x", "timestamp": "10:00 PM"}]]],
    "DeepSeek Harness": [
        [
            {"type": "session", "id": "s"},
            {"type": "user/message", "seq": 1, "data": {"content": []}},
        ]
    ],
    "Posit Assistant": [[{"schemaVersion": "3", "messages": [{"lmMessageIds": [0]}]}]],
    "Zed": [[{"messages": [{"User": {"content": []}}]}], [{"messages": [{"Agent": {}}]}]],
    "Letta": [
        [{"agent_type": "a", "messages": [{"tool_calls": []}], "in_context_message_indices": []}],
    ],
    "Cowork (a record beside its session)": [[{"cliSessionId": "c", "processName": "p"}]],
    "ChatGPT (a conversation that does not tell its present path)": [
        [{"mapping": {}, "create_time": 1}]
    ],
    "Claude Code (its stream-json)": [
        [{"type": "system", "subtype": "init", "cwd": "/", "session_id": "s"}]
    ],
    "goose (its stream-json)": [[{"type": "message", "message": {"role": "assistant"}}]],
    "opencode (its run --format json)": [[{"type": "text", "sessionID": "s", "part": {}}]],
    "Continue (its list of sessions)": [
        [[{"sessionId": "s", "title": "t", "dateCreated": "1", "workspaceDirectory": "/"}]]
    ],
    "Kiro before 1.0": [
        [{"executionId": "e", "chat": [{"role": "human"}]}],
        [{"sessionId": "s", "history": [{"message": {"role": "user"}, "executionId": "e"}]}],
    ],
    "ToolBench": [[{"answer_generation": {}}]],
    "Moatless Tools (its transitions)": [
        [{"transitions": [{"state": {"name": "Search"}, "actions": [{"action": {"query": "q"}}]}]}]
    ],
    "a recorder of HTTP requests": [[{"request": {}, "response": {}}]],
}
"""Program → files of it, each as the values of its lines."""

COLUMNS = {
    "Warp": {
        "agent_conversations": "conversation_id, conversation_data",
        "ai_queries": "exchange_id, input",
    },
    "Zed": {"threads": "id, summary, updated_at, data_type, data"},
    "Forge": {"conversations": "conversation_id, title, context, metrics"},
    "Shelley": {"messages": "message_id, llm_data, user_data"},
    "Piebald": {"message_parts": "id, parent_chat_message_id", "chats": "id, message_count"},
    "Devin (its database; its transcripts are read)": {
        "message_nodes": "node_id, chat_message",
        "sessions": "id, main_chain_id",
    },
    "Omnigent": {"conversation_items": "conversation_id, position, type, data"},
    "ZCode": {
        "session": "id, workspace_id, directory",
        "message": "id, data",
        "part": "id, message_id, data",
        "model_usage": "session_id, computed_total_tokens",
    },
}
"""Program → tables of its database, with their columns."""


def write(path: Path, values: list[Any]) -> Path:
    """Write a value a line."""
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
    return path


@pytest.mark.parametrize("words", LOOK_ALIKES)
def test_a_file_that_only_looks_like_a_kind_is_refused_by_name(tmp_path: Path, words: str) -> None:
    """Its calls or words would be lost; what tells it may be said late."""
    values = LOOK_ALIKES[words]
    path = write(tmp_path / "f.jsonl", [*values[:-1], *values[:-1] * 40, values[-1]])
    with pytest.raises(UnknownTranscript, match=f"looks like a file .*{words}.*docs/transcripts"):
        sniff(path)
    write(path, [values])
    if not isinstance(values[0], list):
        with pytest.raises(UnknownTranscript, match=words):
            sniff(path)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("program", OTHERS)
def test_a_file_of_a_known_program_is_refused_by_name(tmp_path: Path, program: str) -> None:
    """Whether or not a kind would take it for its own; nothing of it is stored."""
    with Store(tmp_path / "chat.db", durability="normal") as store:
        for number, values in enumerate(OTHERS[program]):
            path = write(tmp_path / f"{number}.jsonl", values)
            with pytest.raises(UnknownTranscript, match=re.escape(program)) as refused:
                import_file(store, path)
            assert refused.value.program == program
        assert store.sessions() == []


@pytest.mark.parametrize("program", COLUMNS)
def test_a_database_of_a_known_program_is_refused_by_name(tmp_path: Path, program: str) -> None:
    """Its columns tell it."""
    path = tmp_path / "f.db"
    with closing(sqlite3.connect(path)) as database, database:
        for table, columns in COLUMNS[program].items():
            database.execute(f"CREATE TABLE {table} ({columns})")
    with pytest.raises(UnknownTranscript, match=re.escape(program)) as refused:
        sniff(path)
    assert refused.value.program == program


def test_the_state_of_another_editor_is_refused_by_name(tmp_path: Path) -> None:
    """It is laid out as Cursor's, and has a key of its own."""
    path = tmp_path / "state.vscdb"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE ItemTable (key, value)")
        database.execute("INSERT INTO ItemTable VALUES (?, '{}')", [*PROGRAM_BY_STATE_KEY])
    with pytest.raises(UnknownTranscript, match="Trae"):
        sniff(path)


@pytest.mark.parametrize("kind", ["tool_use", "tool_result", "thinking"])
def test_parts_that_opencode_names_otherwise_tell_a_fork(tmp_path: Path, kind: str) -> None:
    """Its tables are those of opencode; a text that speaks of such parts tells nothing."""
    path = tmp_path / "f.db"
    cells = [json.dumps({"type": each, "text": '"type":"tool_use"'}) for each in ("text", kind)]
    with closing(sqlite3.connect(path)) as database:
        for table, columns in {**COLUMNS["ZCode"], "model_usage": "session_id"}.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
        for cell, found in zip(
            [*cells[:1], "{thinking", cells[1]], (None, None, "ZCode"), strict=True
        ):
            with database:
                database.execute("INSERT INTO part (data) VALUES (?)", [cell])
            if found is None:
                assert sniff(path) == "opencode"
                continue
            with pytest.raises(UnknownTranscript, match="ZCode") as refused:
                sniff(path)
            assert refused.value.program == found


def test_each_program_of_the_tables_is_tried() -> None:
    """A new row brings an example along."""
    assert {mark.program for mark in PROGRAM_MARKS} == OTHERS.keys()
    assert COLUMNS_BY_PROGRAM.keys() == COLUMNS.keys()


@pytest.mark.parametrize("one_a_line", [True, False])
def test_a_kind_that_is_named_reads_all_the_same_and_says_so(
    tmp_path: Path, one_a_line: bool
) -> None:
    """Whoever names the kind gets the messages as they are, and is told once what they may miss."""
    values = [user(), TOOL_USE, TOOL_USE]
    path = write(tmp_path / "f.jsonl", values if one_a_line else [values])
    events = list(read(path, kind="openai"))
    assert [event.message for event in events if isinstance(event, SessionMessage)] == values
    notes = [event for event in events if isinstance(event, NoteEvent)]
    assert [("Anthropic" in note.text, note.broken) for note in notes] == [(True, True)]


def test_rows_without_readable_words_are_broken(tmp_path: Path, url: str) -> None:
    """Also where the kind is named: nothing comes of such a file."""
    path = write(tmp_path / "f.jsonl", QWEN)
    events = list(read(path, kind="claude_code"))
    assert [event.broken for event in events if isinstance(event, NoteEvent)] == [True, True, False]
    with Store(url) as store, pytest.raises(UnknownTranscript, match="has no message"):
        import_file(store, path, kind="claude_code")


@pytest.mark.parametrize(
    "value",
    [
        {"history": [{"role": "user", "words": "x"}]},
        [{"name": "Ann", "role": "admin", "content": "x"}],
        {"kind": "Event", "source": {"component": "kubelet"}, "timestamp": "2026-01-01"},
    ],
)
def test_what_only_has_a_name_in_common_is_refused(tmp_path: Path, value: object) -> None:
    """A list called history, a role that is none, an event of something else."""
    with pytest.raises(UnknownTranscript, match="begins with"):
        sniff(write(tmp_path / "f.jsonl", [value]))


def test_what_is_no_text_in_utf_8_is_named(tmp_path: Path) -> None:
    """Compressed or otherwise encoded files are refused with what to do, whatever the kind."""
    path = write(tmp_path / "f.jsonl", [user(), user()])
    text = path.read_text()
    (tmp_path / "gzip").write_bytes(gzip.compress(text.encode()))
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.write(path)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        (tmp_path / encoding).write_bytes(text.encode(encoding))
    for name in ("gzip", "zip", "utf-16", "utf-16-le", "utf-16-be"):
        for kind in (None, "openai"):
            with pytest.raises(UnknownTranscript, match=name.upper()[:6] + "|" + name):
                list(read(tmp_path / name, kind=kind))
