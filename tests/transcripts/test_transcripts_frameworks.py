"""Messages of frameworks: made up in the shapes of the versions that their names tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kind_checks import Counts, bring, check_counts, check_prefixes, write_rows

ASK, THINK, OUT, SAY = "Weather in Oslo?", "Ask the tool.", "Rain", "It rains."
GIVEN = {"city": "Oslo"}


def constructed(kind: str, **told: Any) -> dict[str, Any]:
    """Return a message as LangChain 1.2 dumps it."""
    path = ["langchain_core", "messages", kind]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": told}


CALLED = {"id": "c1", "name": "weather", "args": GIVEN, "type": "tool_call"}
COST = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
LANGCHAIN = [
    constructed("HumanMessage", content=ASK, type="human"),
    constructed("AIMessage", content="", tool_calls=[CALLED], usage_metadata=COST),
    constructed("ToolMessage", content=OUT, tool_call_id="c1", status="success", type="tool"),
    constructed("AIMessage", content=[{"type": "text", "text": SAY}], type="ai"),
]
STORED = [
    {"type": "human", "data": {"content": ASK}},
    {"type": "ai", "data": {"content": "", "tool_calls": [CALLED]}},
    {"type": "tool", "data": {"content": OUT, "tool_call_id": "c1"}},
    {"type": "ai", "data": {"content": SAY}},
]
"""What LangChain's ``messages_to_dict`` returns."""


def part(kind: str, **told: Any) -> dict[str, Any]:
    """Return a part of pydantic-ai 2."""
    return {"part_kind": kind, **told}


PYDANTIC = [
    {"kind": "request", "parts": [part("user-prompt", content=ASK)]},
    {
        "kind": "response",
        "parts": [
            part("thinking", content=THINK),
            part("tool-call", tool_name="weather", tool_call_id="c1", args=GIVEN),
        ],
        "usage": {"input_tokens": 100, "output_tokens": 7},
        "model_name": "gpt-5.5",
        "timestamp": "2026-06-12T19:46:40Z",
    },
    {
        "kind": "request",
        "parts": [part("tool-return", tool_name="weather", tool_call_id="c1", content=OUT)],
    },
    {"kind": "response", "parts": [part("text", content=SAY)], "model_name": "gpt-5.5"},
]
TOOL = {"type": "tool-weather", "toolCallId": "c1", "state": "output-available"}
VERCEL = [
    {"id": "u", "role": "user", "parts": [{"type": "text", "text": ASK}]},
    {
        "id": "a",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": THINK, "state": "done"},
            {**TOOL, "input": GIVEN, "output": OUT},
            {"type": "step-start"},
            {"type": "text", "text": SAY, "state": "done"},
        ],
    },
]
"""UI messages of the Vercel AI SDK 5."""
GEMINI = [
    {"role": "user", "parts": [{"text": ASK}]},
    {
        "role": "model",
        "parts": [
            {"text": THINK, "thought": True},
            {"functionCall": {"id": "c1", "name": "weather", "args": GIVEN}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "c1", "name": "weather", "response": {"output": OUT}}}
        ],
    },
    {"role": "model", "parts": [{"text": SAY}]},
]
HEAD = {
    "schema_version": "ATIF-v1.4",
    "session_id": "run-1",
    "agent": {"name": "harbor", "model_name": "gpt-5.5"},
}
ATIF = [
    {"step_id": 1, "source": "user", "message": ASK, "timestamp": "2026-06-12T19:46:40Z"},
    {
        "step_id": 2,
        "source": "agent",
        "message": "",
        "reasoning_content": THINK,
        "tool_calls": [{"tool_call_id": "c1", "function_name": "weather", "arguments": GIVEN}],
        "observation": {"results": [{"source_call_id": "c1", "content": OUT}]},
        "metrics": {"prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 60},
    },
    {"step_id": 3, "source": "agent", "message": SAY},
]
FUNCTION = {"id": "c1", "function": {"name": "weather", "arguments": json.dumps(GIVEN)}}


def spoken(role: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a message of Letta's agent file."""
    content = [{"type": "text", "text": text}] if text else []
    return {"role": role, "content": content, "agent_id": "agent-0", **more}


LETTA = {
    "agents": [
        {
            "id": "agent-0",
            "in_context_message_ids": ["m1"],
            "messages": [
                spoken("user", ASK, id="m1"),
                spoken("assistant", "", tool_calls=[FUNCTION]),
                spoken("tool", OUT, tool_call_id="c1", name="weather"),
                spoken("assistant", SAY),
            ],
        }
    ],
    "blocks": [],
}
DOCUMENTS: dict[str, Any] = {
    "langchain": LANGCHAIN,
    "langchain_stored": STORED,
    "pydantic_ai": PYDANTIC,
    "vercel": VERCEL,
    "vercel_held": {"id": "chat-1", "messages": VERCEL},
    "gemini": GEMINI,
    "gemini_request": {"model": "gemini-3-pro", "contents": GEMINI},
    "atif": {**HEAD, "steps": ATIF},
    "letta": LETTA,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_a_framework(tmp_path: Path, name: str) -> None:
    """A question, a call, its result and an answer, in whatever shape."""
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(DOCUMENTS[name], indent=2))
    brought = bring(path, "frameworks")
    check_counts(brought, Counts(1, 4, 1, 1))
    asked, called, result, answer = brought.messages[0]
    assert (asked["content"], result["content"], answer["content"]) == (ASK, OUT, SAY)
    function = called["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("weather", GIVEN)
    thinks = name in ("pydantic_ai", "vercel", "vercel_held", "gemini", "gemini_request", "atif")
    assert called.get("reasoning_content") == (THINK if thinks else None)
    costs = name in ("langchain", "pydantic_ai", "atif")
    assert [(each.input, each.output) for each in brought.usages] == [(100, 7)] * costs


@pytest.mark.slow
def test_growing_lines_of_frameworks(tmp_path: Path) -> None:
    """After any line, then whole, they are what they are at once."""
    for rows in (LANGCHAIN, PYDANTIC, VERCEL, GEMINI):
        check_prefixes(tmp_path / "talk.jsonl", "frameworks", rows)
    check_counts(bring(write_rows(tmp_path / "l.jsonl", GEMINI), "frameworks"), Counts(1, 4, 1, 1))
