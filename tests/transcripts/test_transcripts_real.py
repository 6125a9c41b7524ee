from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts

from store.transcripts import Event, NoteEvent, SessionEvent, SessionMessage, read, sniff

pytestmark = needs_transcripts

FOLDERS = {
    "claude_code_jsonl": "claude_code",
    "tau_bench": "tau_bench",
    "swe_agent_traj": "swe_agent",
    "openai_chat_llm_log": "openai",
    "cline_messages": "anthropic",
    "mini_swe_agent_traj": "mini_swe_agent",
    "tau2_bench": "tau2_bench",
    "inspect_eval_log": "inspect",
    "toolbench_dfs": "toolbench",
    "moatless_tree": "moatless",
    "codex_rollout": "codex",
    "openhands_events_v1": "openhands",
    "openhands_v0_history": "openhands",
    "chatgpt_export": "chatgpt",
    "gemini_cli_chat": "gemini_cli",
    "copilot_cli_events": "copilot_cli",
    "droid_stream_json": "droid",
    "pi_session": "pi",
    "opencode_export": "opencode",
    "sharegpt": "sharegpt",
    "oasst_tree": "oasst",
    "anthropic_messages_http": "exchanges",
    "openai_chat_http": "exchanges",
    "openai_responses_http": "exchanges",
    "claude_stream_json": "stream_json",
}
"""Folder of recorded conversations → the kind that reads it."""

COUNTED = ("claude_code_jsonl", "tau_bench", "swe_agent_traj", "codex_rollout")
"""Folders of which the manifest counts what is counted here too."""


def files(*folders: str) -> list[Path]:
    """Return the recorded conversations of some folders."""
    return sorted(path for folder in folders for path in (TRANSCRIPTS / folder).glob("*"))


def every(*folders: str) -> Any:
    """Run a test for each recorded conversation of some folders."""
    return pytest.mark.parametrize("path", files(*folders), ids=lambda path: path.name[-48:])


@cache
def events(path: Path) -> list[Event]:
    """Return a file's events, read once for all tests."""
    return list(read(path))


def said(path: Path) -> list[dict[str, Any]]:
    """Return a file's messages."""
    return [event.message for event in events(path) if isinstance(event, SessionMessage)]


def api_messages(path: Path) -> Iterator[dict[str, Any]]:
    """Return the API's messages in a Claude Code file, read in the plainest way."""
    for line in lines_of(path):
        if line["type"] in ("user", "assistant"):
            yield line["message"]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a Claude Code file."""
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.startswith(b"{")]


def strings(value: object) -> Iterator[str]:
    """Return every text inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def blocks(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the blocks of one type of an API message."""
    content = message["content"]
    return (
        [block for block in content if block["type"] == kind] if isinstance(content, list) else []
    )


@pytest.mark.sampled(15)
@every(*FOLDERS)
def test_a_real_file_is_read_whole(path: Path) -> None:
    """The kind is found by content, nothing is broken, and a second reading is equal."""
    assert sniff(path) == FOLDERS[path.parent.name]
    assert [event for event in events(path) if isinstance(event, NoteEvent) and event.broken] == []
    assert any(isinstance(event, SessionEvent) for event in events(path))
    assert list(read(path)) == events(path)


@every("tau_bench", "swe_agent_traj", "openai_chat_llm_log", "mini_swe_agent_traj")
def test_real_messages_come_out_as_they_are(path: Path) -> None:
    """Where the file holds messages of this shape, they pass through unchanged."""
    record = json.loads(path.read_text())
    key = {"tau_bench": "traj", "swe_agent_traj": "history"}.get(path.parent.name, "messages")
    assert said(path) == record[key]


@every("gemini_cli_chat")
def test_no_text_of_a_gemini_session_is_lost(path: Path) -> None:
    """Each text of the file is in its messages, but for arguments, which are JSON text there."""
    there = "\n".join(strings(said(path)))
    told = json.loads(path.read_bytes())["messages"]
    for record in told:
        for call in record.get("toolCalls", ()):
            there += "\n".join([call["timestamp"], *strings(call.pop("args"))])
        assert [text for text in strings(without_kind(record)) if text not in there] == []


@every("copilot_cli_events")
def test_no_text_of_an_event_of_copilot_is_lost(path: Path) -> None:
    """Each text that was typed, said, thought or returned is in the messages."""
    there = set(strings(said(path)))
    data = [line["data"] for line in lines_of(path) if line["type"] in COPILOT_MESSAGES]
    told = [text for each in data for text in values_of(each, "content")]
    told += [text for each in data for text in values_of(each, "reasoningText")]
    assert set(told) - there <= {""}
    made = [each["id"] for message in said(path) for each in calls_of(message)]
    asked = [text for each in data for text in values_of(each.get("toolRequests"), "toolCallId")]
    assert made == asked


COPILOT_MESSAGES = (
    *("user.message", "system.message", "system.notification"),
    *("assistant.message", "tool.execution_complete"),
)


@every("pi_session")
def test_no_text_of_an_entry_of_pi_is_lost(path: Path) -> None:
    """Each text, thought and call of the file is in its messages."""
    told = [line["message"] for line in lines_of(path) if line["type"] == "message"]
    there = set(strings(said(path)))
    for key in ("text", "thinking", "thinkingSignature"):
        assert {text for each in told for text in values_of(each, key)} - there <= {""}
    asked = [block["arguments"] for each in told for block in blocks(each, "toolCall")]
    made = [call["function"]["arguments"] for message in said(path) for call in calls_of(message)]
    assert list(map(json.loads, made)) == asked
    assert len(said(path)) == len(told)


@every("sharegpt", "oasst_tree")
def test_no_text_of_a_data_set_is_lost(path: Path) -> None:
    """Each turn, and each reply of a tree, is one message."""
    told = [json.loads(line) for line in path.read_text().splitlines()] if is_lines(path) else None
    key = "text" if told else "value"
    texts = Counter(values_of(told or json.loads(path.read_text()), key))
    assert Counter(message["content"] for message in said(path)) == texts


def is_lines(path: Path) -> bool:
    """Tell whether a file has a value a line."""
    return path.suffix == ".jsonl"


def without_kind(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without what its message says in another way: its type and its time."""
    return {key: held for key, held in record.items() if key not in ("type", "timestamp")}


@every("claude_code_jsonl")
@pytest.mark.sampled(4)
def test_no_text_of_the_api_is_lost(path: Path) -> None:
    """Each text, thinking, signature, image, call and result of the file is in its messages."""
    there = set(strings(said(path)))
    there |= {url.partition(";base64,")[2] for url in there if url.startswith("data:")}
    arguments = {
        call["id"]: call["function"]["arguments"]
        for message in said(path)
        for call in calls_of(message)
    }
    for message in api_messages(path):
        for call in blocks(message, "tool_use"):
            assert json.loads(arguments[call.get("id")]) == call.pop("input")
        assert [text for text in strings(message["content"]) if text not in there | TYPES] == []


TYPES = {"text", "tool_use", "tool_result", "image", "base64", "image/png", "image/jpeg"}
"""What a block's type says in another way once it is a message, a call or an image's URL."""


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a message's tool calls, each with an id or None."""
    return [{"id": None} | call for call in message.get("tool_calls", ())]


@every("claude_code_jsonl")
@pytest.mark.sampled(4)
def test_every_line_and_call_is_in_one_place(path: Path) -> None:
    """Each line is in one message (or is one's copy), ids are unique, results come after their
    calls.
    """
    lines = [
        uuid
        for message in said(path)
        for key in ("uuids", "copies")
        for uuid in message["claude_code"].get(key, ())
    ]
    there = {line["uuid"] for line in lines_of(path) if is_said(line)}
    assert set(lines) - {None} == there | in_progress(path)
    ids: Counter[str] = Counter()
    called: set[str] = set()
    for event in events(path):
        if isinstance(event, SessionEvent):
            ids, called = Counter(), set()
        elif isinstance(event, SessionMessage):
            ids[event.message.get("id", str(id(event)))] += 1
            assert ids.most_common(1)[0][1] == 1
            called |= {call["id"] for call in calls_of(event.message)}
            assert event.message.get("tool_call_id") in called | {None}


def in_progress(path: Path) -> set[str]:
    """Return the lines of subagents that stand in rows of progress."""
    shown = (line.get("data", {}) for line in lines_of(path) if line["type"] == "progress")
    return {each["message"]["uuid"] for each in shown if each["type"] == "agent_progress"}


def is_said(line: dict[str, Any]) -> bool:
    """Tell whether a line is of the conversation, or holds what was typed beside it."""
    queued = line.get("attachment", {}).get("type") == "queued_command"
    return queued or line["type"] in ("user", "assistant")


@every("codex_rollout")
def test_no_item_of_a_rollout_is_lost(path: Path) -> None:
    """Every text, call, output and encrypted thought of the items is in the messages, as often as
    in the file.
    """
    lines = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    there = Counter(strings(said(path)))
    for key in ("arguments", "text", "encrypted_content", "call_id"):
        plain = [item for item in items if item["type"] != "tool_search_output"]
        wanted = Counter(text for item in plain for text in values_of(item, key))
        assert {text for text, count in wanted.items() if there[text] < count} == set()
    asked = [call["function"]["arguments"] for message in said(path) for call in calls_of(message)]
    given = [{"input": item["input"]} for item in items if "input" in item]
    assert [json.loads(each) for each in asked if each and each.startswith('{"input": ')] == given
    outputs = [item["output"] for item in items if isinstance(item.get("output"), str)]
    assert (
        Counter(outputs)
        - Counter(m["content"] for m in said(path) if isinstance(m["content"], str))
        == Counter()
    )


def values_of(value: object, key: str) -> Iterator[str]:
    """Return every text that stands under a key inside a JSON value."""
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from values_of(inner, key)
    if isinstance(value, dict) and isinstance(value.get(key), str):
        yield value[key]


@every("openhands_events_v1", "openhands_v0_history")
def test_no_text_of_an_event_is_lost(path: Path) -> None:
    """Every prompt, answer, call and observation is in the messages.

    Each call of the model is there once.
    """
    records = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    history = [event for record in records for event in record.get("history", [record])]
    there = set(strings(said(path)))
    responses = [
        event["tool_call_metadata"]["model_response"] for event in history if has_call(event)
    ]
    answers = [response["choices"][0]["message"] for response in responses]
    v1_calls = [event["tool_call"] for event in history if event.get("kind") == "ActionEvent"]
    for part in [*answers, *v1_calls, *(event.get("thought") for event in history)]:
        assert set(strings(part)) - there <= {"assistant"}
    seen = [event for event in history if event.get("observation") not in (None, "recall", "null")]
    assert {event["content"] for event in seen if "content" in event} <= there | {""}
    assert sum(len(calls_of(message)) for message in said(path)) == len(answers) + len(v1_calls)


def has_call(event: dict[str, Any]) -> bool:
    """Tell whether an event of OpenHands V0 is an action that a model called for."""
    return "action" in event and bool(event.get("tool_call_metadata"))


def manifest() -> list[Any]:
    """Return the manifest's rows of the files that are read here, as parameters."""
    path = TRANSCRIPTS / "MANIFEST.tsv"
    lines = path.read_text().splitlines() if path.is_file() else []
    rows = csv.DictReader(lines, delimiter="\t")
    return [pytest.param(row, id=row["path"][-48:]) for row in rows if row["format"] in COUNTED]


@pytest.mark.parametrize("row", manifest())
def test_counts_agree_with_the_manifest(row: dict[str, str]) -> None:
    """Messages (lines, for Claude Code) and tool calls are as many as counted when the files were
    collected.
    """
    path = TRANSCRIPTS / row["path"]
    shown = in_progress(path) if row["format"] == "claude_code_jsonl" else set()
    counted = [
        each for each in said(path) if shown.isdisjoint(uuids_of(each.get("claude_code", {})))
    ]
    calls = sum(len(message.get("tool_calls") or ()) for message in counted)
    actions = f"text_actions={row['tool_calls']};"
    assert calls == (0 if actions in row["notes"] else int(row["tool_calls"]))
    if row["format"] == "codex_rollout":
        return  # counted by items there, many of which are one message
    if row["format"] != "claude_code_jsonl":
        assert len(said(path)) == int(row["messages"])
    else:
        lines = sum(map(len, map(uuids_of, facts_of(path)))) - len(shown)
        attached = [line for line in lines_of(path) if line["type"] == "attachment"]
        lines -= sum(map(is_said, attached))
        assert lines == int(row["messages"])


def uuids_of(facts: dict[str, Any]) -> list[str]:
    """Return the lines that are in a message, or are its copies."""
    return [uuid for key in ("uuids", "copies") for uuid in facts.get(key, ()) if uuid]


def facts_of(path: Path) -> list[dict[str, Any]]:
    """Return what each message's lines say, once for lines that gave several messages."""
    found: dict[int, dict[str, Any]] = {}
    for message in said(path):
        found.setdefault(id(message["claude_code"]["uuids"]), message["claude_code"])
    return list(found.values())
