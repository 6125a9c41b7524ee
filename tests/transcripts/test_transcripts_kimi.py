"""Sessions of Kimi's command, made up in the shapes of protocol 1.3 and of protocol 1.4."""

from __future__ import annotations

import json
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from kind_checks import Counts, bring, check_counts, check_prefixes, write_rows

START = 1_704_067_200


def happened(second: float, kind: str, **payload: Any) -> dict[str, Any]:
    """Return an event of protocol 1.3."""
    return {"timestamp": START + second, "message": {"type": kind, "payload": payload}}


def called(name: str, tool: str) -> dict[str, Any]:
    """Return a call of protocol 1.3."""
    function = {"name": tool, "arguments": '{"pattern": "*.py"}'}
    return {"type": "function", "id": name, "function": function}


USAGE = {"input_other": 100, "output": 20, "input_cache_read": 400, "input_cache_creation": 0}
BELOW = [
    {"type": "TurnBegin", "payload": {"user_input": "Count them."}},
    {"type": "ContentPart", "payload": {"type": "text", "text": "Two."}},
]
WIRE = [
    {"type": "metadata", "protocol_version": "1.3"},
    happened(0, "TurnBegin", user_input=[{"type": "text", "text": "Mend the loop."}]),
    happened(1, "StepBegin", n=1),
    happened(2, "ContentPart", type="think", think="Find it.", encrypted=None),
    happened(3, "ContentPart", type="text", text="Looking."),
    happened(4, "ToolCall", **called("t1", "Glob")),
    happened(5, "ToolCall", **called("t2", "Task")),
    happened(6, "StatusUpdate", context_tokens=520, token_usage=USAGE),
    happened(7, "ToolResult", tool_call_id="t1", return_value={"is_error": True, "output": "no"}),
    *(happened(8, "SubagentEvent", task_tool_call_id="t2", event=each) for each in BELOW),
    happened(
        9,
        "ToolResult",
        tool_call_id="t2",
        return_value={"is_error": False, "output": [{"type": "text", "text": "Two."}]},
    ),
    happened(10, "ApprovalRequest", id="a"),
    happened(11, "ContentPart", type="text", text="Mended."),
    happened(12, "TurnEnd"),
    happened(20, "TurnBegin", user_input="Thanks."),
    happened(21, "ContentPart", type="text", text="Gladly."),
]
MOMENT = 1_782_012_661_000


def looped(second: int, kind: str, **event: Any) -> dict[str, Any]:
    """Return an event of protocol 1.4."""
    told = {"type": kind, **event}
    return {"type": "context.append_loop_event", "event": told, "time": MOMENT + second * 1000}


ASKED = [{"type": "text", "text": "List the files."}]
SPENT = {"inputOther": 10, "output": 3, "inputCacheRead": 20, "inputCacheCreation": 5}
CODE_WIRE = [
    {"type": "metadata", "protocol_version": "1.4", "created_at": MOMENT},
    {"type": "config.update", "modelAlias": "kimi-code/k3", "time": MOMENT},
    {"type": "turn.prompt", "input": ASKED, "origin": {"kind": "user"}, "time": MOMENT},
    {
        "type": "context.append_message",
        "message": {"role": "user", "content": ASKED, "toolCalls": []},
        "time": MOMENT,
    },
    looped(1, "step.begin", step=1),
    looped(2, "content.part", part={"type": "think", "think": "Plainly."}),
    looped(3, "tool.call", toolCallId="t1", name="Bash", args={"command": "ls"}),
    looped(4, "step.end", usage=SPENT, finishReason="tool_use"),
    looped(5, "tool.result", toolCallId="t1", result={"output": "a.py", "isError": False}),
    looped(6, "step.begin", step=2),
    looped(7, "content.part", part={"type": "text", "text": "One: a.py."}),
    looped(8, "step.end", usage={**SPENT, "output": 4}, finishReason="end_turn"),
    {"type": "usage.record", "model": "kimi-code/k3", "usage": SPENT, "time": MOMENT},
]


def test_a_session_of_kimi_cli(tmp_path: Path) -> None:
    """Its folder names it, and the project by a digest; the agent below is a session of its own."""
    digest = md5(b"/home/ada/loop").hexdigest()
    path = write_rows(tmp_path / "sessions" / digest / "u-1" / "wire.jsonl", WIRE)
    (tmp_path / "kimi.json").write_text(json.dumps({"work_dirs": [{"path": "/home/ada/loop"}]}))
    brought = bring(path, "kimi")
    kinds = [row.get("message", {}).get("type") for row in WIRE]
    asked, results = kinds.count("TurnBegin"), kinds.count("ToolResult")
    answers = 3  # before the results, after them, and in the second turn
    messages = asked + answers + results + len(BELOW)
    check_counts(brought, Counts(2, messages, kinds.count("ToolCall"), results))
    main, agent = brought.sessions
    assert (main.id, main.title, main.project_root) == ("u-1", "Mend the loop.", "/home/ada/loop")
    assert (agent.id, agent.metadata["parent_session"]) == ("u-1/agent-t2", "u-1")
    question, looking, failed, listed, *_ = brought.messages[0]
    assert question["timestamp"] == START * 1000
    assert (looking["content"], looking["reasoning_content"]) == ("Looking.", "Find it.")
    assert (failed["content"], failed["messageStatus"]) == ("no", "error")
    assert listed["content"] == "Two."
    (spent,) = brought.usages
    assert (spent.input, spent.output, spent.cached) == (500, 20, 400)


def test_a_session_of_kimi_code(tmp_path: Path) -> None:
    """Its steps have the model and what they cost; an agent's file is named after its session."""
    for agent, name, parent in (("main", "s-1", None), ("agent-0", "s-1/agent-0", "s-1")):
        brought = bring(write_rows(tmp_path / f"s-1/agents/{agent}/wire.jsonl", CODE_WIRE), "kimi")
        check_counts(brought, Counts(1, 4, 1, 1))
        (opened,) = brought.sessions
        assert (opened.id, opened.metadata["model"]) == (name, "kimi-code/k3")
        assert opened.metadata.get("parent_session") == parent
        told = [(each.input, each.output, each.cached, each.model) for each in brought.usages]
        assert told == [(35, 3, 20, "kimi-code/k3"), (35, 4, 20, "kimi-code/k3")]


@pytest.mark.slow
def test_growing_wires(tmp_path: Path) -> None:
    """After any event, then whole, they are what they are at once."""
    check_prefixes(tmp_path / "one.jsonl", "kimi", WIRE, first=2)
    check_prefixes(tmp_path / "two.jsonl", "kimi", CODE_WIRE, first=3)
