"""Sessions of Grok Build, made up in the shape that its version 0.2.114 writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kind_checks import Counts, bring, check_counts, check_prefixes, write_rows

from store import Store
from store.importing import import_file
from store.transcripts import sniff

VERSION = "0.2.114"
NAME = "019f6000-0000-7000-8000-00000000000a"


def text(words: str) -> list[dict[str, str]]:
    """Return a content of one text."""
    return [{"type": "text", "text": words}]


def call(name: str, tool: str, **given: Any) -> dict[str, Any]:
    """Return a call."""
    return {"id": name, "name": tool, "arguments": json.dumps(given)}


CALLS = [call("c1", "Read", path="a.py"), call("c2", "Shell", command="make")]
HISTORY: list[dict[str, Any]] = [
    {"type": "system", "content": "You are Grok."},
    {"type": "user", "content": text("House rules."), "synthetic_reason": "project_instructions"},
    {"type": "user", "content": text("Mend the loop."), "prompt_index": 0},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Read it first."}],
        "encrypted_content": "AAAA",
    },
    {"type": "assistant", "content": "Reading.", "tool_calls": CALLS, "model_id": "grok-4.5"},
    {"type": "tool_result", "tool_call_id": "c1", "content": "while 1: pass"},
    {"type": "tool_result", "tool_call_id": "c2", "content": "make: *** no rule"},
    {
        "type": "backend_tool_call",
        "kind": {"tool_type": "web_search", "id": "ws_1", "action": {"query": "make"}},
    },
    {"type": "assistant", "content": "Mended.", "model_id": "grok-4.5"},
    {"type": "user", "content": text("Thanks."), "prompt_index": 1},
    {"type": "assistant", "content": "Gladly.", "model_id": "grok-4.5"},
]
OLD = [
    {"role": "system", "content": "You are Grok."},
    {"role": "user", "content": "Mend the loop."},
    {
        "role": "assistant",
        "content": "Reading.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
        ],
        "model_id": "grok-4.5",
        "reasoning_content": "Read it first.",
    },
    {"role": "tool", "content": "while 1: pass", "tool_call_id": "c1"},
]
SUMMARY = {
    "info": {"id": NAME, "cwd": "/home/ada/loop"},
    "created_at": "2026-07-18T10:00:00Z",
    "session_summary": "A loop",
    "generated_title": "Mend the loop for good",
    "current_model_id": "grok-4.5",
    "parent_session_id": "019f5000",
    "head_branch": "main",
}


def shown(kind: str, moment: int, **update: Any) -> dict[str, Any]:
    """Return a line of what the screen showed."""
    params = {"update": {"sessionUpdate": kind, **update}, "_meta": {"agentTimestampMs": moment}}
    return {"timestamp": moment // 1000, "method": "session/update", "params": params}


COST = {"inputTokens": 120, "cachedReadTokens": 100, "outputTokens": 5, "cacheCreationTokens": 10}
UPDATES = [
    shown("user_message_chunk", 1_784_368_800_000, content=text("Mend the loop.")[0]),
    shown(
        "user_message_chunk",
        1_784_368_800_001,
        content={"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
    ),
    shown("tool_call", 1_784_368_801_000, toolCallId="c1", status="pending"),
    shown("tool_call_update", 1_784_368_802_000, toolCallId="c1", status="completed"),
    shown("tool_call_update", 1_784_368_803_000, toolCallId="c2", status="failed"),
    shown(
        "turn_completed",
        1_784_368_804_000,
        prompt_id="p1",
        usage={"modelUsage": {"grok-4.5": COST}},
    ),
    shown("user_message_chunk", 1_784_368_900_000, content=text("Thanks.")[0]),
]


def session(folder: Path, *, beside: bool = True, rows: list[Any] = HISTORY) -> Path:
    """Write a session's folder; return its history."""
    path = write_rows(folder / NAME / "chat_history.jsonl", rows)
    if beside:
        write_rows(path.with_name("updates.jsonl"), UPDATES)
        path.with_name("summary.json").write_text(json.dumps(SUMMARY, indent=2))
    return path


def own_counts(rows: list[Any]) -> Counts:
    """Count what a history says."""
    kinds = [row.get("type", row.get("role")) for row in rows]
    calls = sum(len(row.get("tool_calls", ())) for row in rows)
    results = kinds.count("tool_result") + kinds.count("tool")
    silent = kinds.count("reasoning") + kinds.count("backend_tool_call")
    return Counts(1, len(kinds) - silent, calls, results)


def test_a_session_of_grok_build(tmp_path: Path) -> None:
    """What was said, called, thought and spent, with times and pictures of the screen's log."""
    brought = bring(session(tmp_path), "grok_build")
    check_counts(brought, own_counts(HISTORY))
    (opened,), (line,) = brought.sessions, brought.messages
    assert (opened.id, opened.title, opened.project_root) == (
        NAME,
        SUMMARY["generated_title"],
        "/home/ada/loop",
    )
    assert opened.metadata["model"] == "grok-4.5"
    assert opened.metadata["parent_session"] == "019f5000"
    asked, answer, result, failed, last = line[2:7]
    assert asked["timestamp"] == 1_784_368_800_000
    assert asked["content"][1]["image_url"]["url"].endswith("iVBORw0KGgo=")
    assert answer["reasoning_content"] == "Read it first."
    assert answer["grok_build"]["rows"][0]["encrypted_content"] == "AAAA"
    assert (result["timestamp"], "messageStatus" in result) == (1_784_368_802_000, False)
    assert failed["messageStatus"] == "error"
    assert last["grok_build"]["rows"][0]["kind"]["id"] == "ws_1"
    (spent,) = brought.usages
    assert (spent.input, spent.output, spent.cached, spent.model) == (120, 5, 100, "grok-4.5")


def test_a_history_alone_and_an_old_one(tmp_path: Path) -> None:
    """Without the files beside it a session has no times; the first version has roles."""
    alone = bring(session(tmp_path, beside=False), "grok_build")
    check_counts(alone, own_counts(HISTORY))
    assert (alone.sessions[0].id, alone.sessions[0].title) == (NAME, "House rules.")
    old = bring(session(tmp_path / "old", beside=False, rows=OLD), "grok_build")
    check_counts(old, own_counts(OLD))
    assert old.messages[0][2]["reasoning_content"] == "Read it first."


def test_a_cost_that_the_screen_tells_later(tmp_path: Path) -> None:
    """It comes by a later import, though the history is the same; once."""
    path = session(tmp_path)
    write_rows(path.with_name("updates.jsonl"), [*UPDATES[:-2], UPDATES[-1]])
    with Store(":memory:") as store:
        import_file(store, path)
        assert store.usages(NAME) == []
        write_rows(path.with_name("updates.jsonl"), UPDATES)
        for _ in range(2):
            (imported,) = import_file(store, path).sessions
            assert (imported.appended, imported.differs_at) == (0, None)
            assert [each.input for each in store.usages(NAME)] == [120]


@pytest.mark.slow
def test_a_growing_history(tmp_path: Path) -> None:
    """In any state, then whole, it is what it is at once; other programs' rows are none of it."""
    check_prefixes(session(tmp_path, beside=False), "grok_build", HISTORY, first=3)
    path = write_rows(tmp_path / "chat.jsonl", [{"role": "user", "content": "Hi."}])
    assert sniff(path) == "openai"
