"""Traces, made up in the shapes of OTLP (conventions 1.38), Phoenix, Logfire and Langfuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kind_checks import Counts, bring, check_counts, check_prefixes, write_rows

START = 1_781_293_600_000
TRACE = "a" * 32


def part(kind: str, **told: Any) -> dict[str, Any]:
    """Return a part of a message of the conventions."""
    return {"type": kind, **told}


QUESTION = {"role": "user", "parts": [part("text", content="Weather in Oslo?")]}
CALL = part("tool_call", id="c1", name="weather", arguments={"city": "Oslo"})
ASKING = {"role": "assistant", "parts": [part("reasoning", content="Ask."), CALL]}
RESULT = {"role": "tool", "parts": [part("tool_call_response", id="c1", response="Rain")]}
ANSWER = {"role": "assistant", "parts": [part("text", content="It rains.")]}
LINE = [QUESTION, ASKING, RESULT, ANSWER]
COUNTS = Counts(1, 4, 1, 1)


def attribute(key: str, held: Any) -> dict[str, Any]:
    """Return an attribute of OTLP."""
    if isinstance(held, int):
        return {"key": key, "value": {"intValue": str(held)}}
    return {
        "key": key,
        "value": {"stringValue": held if isinstance(held, str) else json.dumps(held)},
    }


def otlp(number: int, told: dict[str, Any]) -> dict[str, Any]:
    """Return an export of one span."""
    span = {
        "traceId": TRACE,
        "spanId": f"{number:016}",
        "startTimeUnixNano": str((START + number) * 1_000_000),
        "attributes": [attribute(key, held) for key, held in told.items()],
    }
    return {"resourceSpans": [{"scopeSpans": [{"scope": {}, "spans": [span]}]}]}


def asked(sent: list[Any], given: list[Any], tokens: int) -> dict[str, Any]:
    """Return the attributes of a request."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "talk",
        "gen_ai.request.model": "gpt-5.5",
        "gen_ai.provider.name": "azure",
        "gen_ai.input.messages": sent,
        "gen_ai.output.messages": given,
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": 7,
    }


RUN = {**asked(LINE, [], 300), "gen_ai.operation.name": "invoke_agent"}
REQUESTS = [asked(LINE[:1], [ASKING], 100), asked(LINE[:3], [ANSWER], 200), RUN]
OTHER = asked([{"role": "user", "parts": [part("text", content="Sum it up.")]}], [ANSWER], 50)
TRACES = [otlp(number, told) for number, told in enumerate([*REQUESTS, OTHER], 1)]

FLAT = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-5.5",
    "llm.token_count.prompt": 100,
    "llm.token_count.completion": 7,
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Weather in Oslo?",
    "llm.input_messages.1.message.role": "assistant",
    "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "weather",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": "{}",
    "llm.input_messages.2.message.role": "tool",
    "llm.input_messages.2.message.tool_call_id": "c1",
    "llm.input_messages.2.message.content": "Rain",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.contents.0.message_content.type": "text",
    "llm.output_messages.0.message.contents.0.message_content.text": "It rains.",
}
PHOENIX = {
    "name": "ChatCompletion",
    "context": {"trace_id": TRACE, "span_id": "b" * 16},
    "start_time": "2026-06-12T19:46:40+00:00",
    "attributes": FLAT,
}
LOGFIRE = {
    "trace_id": TRACE,
    "span_id": "c" * 16,
    "start_timestamp": "2026-06-12T19:46:40Z",
    "attributes": {**RUN, "gen_ai.operation.name": "chat"},
}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
LANGFUSE = {
    "id": "o1",
    "traceId": TRACE,
    "type": "GENERATION",
    "startTime": "2026-06-12T19:46:40.000Z",
    "model": "gpt-5.5",
    "input": {
        "messages": [
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
        ]
    },
    "output": {"role": "assistant", "content": "It rains."},
    "usageDetails": {"input": 100, "output": 7, "total": 107},
}


def test_traces_of_otlp(tmp_path: Path) -> None:
    """Requests that repeat each other are one line; another one begins a session of its own."""
    brought = bring(write_rows(tmp_path / "traces.jsonl", TRACES), "traces")
    check_counts(brought, Counts(2, 6, 1, 1))
    main, other = brought.sessions
    assert (main.id, main.title, main.metadata["model"]) == ("talk", "Weather in Oslo?", "gpt-5.5")
    assert other.metadata["parent_session"] == "talk"
    question, asking, result, answer = brought.messages[0]
    assert question["timestamp"] == START + 1
    assert (asking["reasoning_content"], result["content"]) == ("Ask.", "Rain")
    assert answer["content"] == "It rains."
    told = sorted((each.input, each.output, each.model) for each in brought.usages)
    assert told == [(tokens, 7, "gpt-5.5") for tokens in (50, 100, 200)]


@pytest.mark.parametrize(
    "span", [PHOENIX, LOGFIRE, LANGFUSE], ids=["phoenix", "logfire", "langfuse"]
)
def test_exports_of_spans(tmp_path: Path, span: dict[str, Any]) -> None:
    """In a list or one a line; each has the messages in a shape of its own."""
    (tmp_path / "list.json").write_text(json.dumps([span], indent=2))
    for path in (tmp_path / "list.json", write_rows(tmp_path / "rows.jsonl", [span])):
        brought = bring(path, "traces")
        check_counts(brought, COUNTS)
        assert brought.messages[0][3]["content"] == "It rains."
        assert len(brought.usages) == 1


def test_calls_alone(tmp_path: Path) -> None:
    """Visual Studio's Copilot records the calls of a conversation, and no text of it."""
    tools = [
        {
            "gen_ai.conversation.id": "talk",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": f"call-{tool}",
            "gen_ai.tool.call.arguments": {"path": "App.cs"},
            "gen_ai.tool.call.result": "Done.",
        }
        for tool in ("get_file", "run_build")
    ]
    run = {"gen_ai.conversation.id": "talk", "gen_ai.operation.name": "invoke_agent"}
    rows = [otlp(number, told) for number, told in enumerate([run, *tools])]
    check_counts(bring(write_rows(tmp_path / "vs.jsonl", rows), "traces"), Counts(1, 4, 2, 2))


@pytest.mark.slow
def test_growing_traces(tmp_path: Path) -> None:
    """After any span, then whole, they are what they are at once."""
    check_prefixes(tmp_path / "traces.jsonl", "traces", TRACES)
