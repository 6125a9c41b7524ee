"""A made-up file of each kind of transcript: what its own tests read, put together as a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import test_transcripts_aider as aider
import test_transcripts_amp as amp
import test_transcripts_anthropic as anthropic
import test_transcripts_antigravity as antigravity
import test_transcripts_benchmarks as benchmarks
import test_transcripts_chatgpt as chatgpt
import test_transcripts_claude_ai as claude_ai
import test_transcripts_codex as codex
import test_transcripts_continue_dev as continue_dev
import test_transcripts_copilot_cli as copilot_cli
import test_transcripts_cursor as cursor
import test_transcripts_cursor_cli as cursor_cli
import test_transcripts_data_sets as data_sets
import test_transcripts_droid as droid
import test_transcripts_exchanges as exchanges
import test_transcripts_frameworks as frameworks
import test_transcripts_gemini_cli as gemini_cli
import test_transcripts_gemini_takeout as gemini_takeout
import test_transcripts_goose as goose
import test_transcripts_grok_build as grok_build
import test_transcripts_hermes as hermes
import test_transcripts_kimi as kimi
import test_transcripts_kiro as kiro
import test_transcripts_langgraph as langgraph
import test_transcripts_opencode as opencode
import test_transcripts_openhands as openhands
import test_transcripts_pi as pi
import test_transcripts_qwen_code as qwen_code
import test_transcripts_responses as responses
import test_transcripts_stores as stores
import test_transcripts_stream_json as stream_json
import test_transcripts_traces as traces
import test_transcripts_vscode_chat as vscode_chat

from benchmarks import bring
from benchmarks.workload import conversation

Write = Callable[[Path], object]

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "What is there?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL, CALL | {"id": "c2"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    {"role": "user", "content": "And?"},
    {"role": "assistant", "content": "Nothing else."},
]


def lines(*values: Any) -> Write:
    """Return what writes a value a line."""
    return lambda path: path.write_text("".join(f"{json.dumps(each)}\n" for each in values))


ASKED = {"id": "c1", "name": "look", "arguments": {}, "requestor": "assistant"}
PLAYED = [
    *TALK[:2],
    {"role": "assistant", "content": None, "tool_calls": [ASKED]},
    {"role": "tool", "id": "c1", "content": "a.py", "requestor": "assistant"},
    *TALK[4:],
]
SIMULATION = {"id": "s", "task_id": "t", "messages": PLAYED, "reward_info": {"reward": 1}}
TREE = data_sets.tree(data_sets.reply("a", "So."), data_sets.reply("b", "Or so.", rank=0))
SEARCH = {
    "tree": {
        "tree": benchmarks.node(
            "Action Input",
            "",
            benchmarks.node("Thought", "Hm", finished=True),
            benchmarks.node("Thought", "No use."),
        )
    },
    "answer_generation": {"query": "Why?"},
}
NODES = [
    {"node_id": 0, "parent_id": None, "message": "Mend it."},
    {"node_id": 1, "parent_id": 0, "action": {"x": 1}, "observation": {"message": "ok"}},
]
ROLLOUT = [
    codex.META,
    codex.CONTEXT,
    codex.said("user", "List."),
    codex.item("reasoning", **codex.THOUGHT),
    codex.call("c1"),
    codex.result("c1"),
    codex.said("assistant", "Done."),
]
CLAUDE_CODE = [
    {
        "type": each["role"],
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s",
        "timestamp": f"2026-01-01T00:00:0{number}Z",
        "message": {"id": f"m{number}", **each},
    }
    for number, each in enumerate(anthropic.LINE)
]
SAMPLES: dict[str, Write] = {
    "tau2_bench": lines(SIMULATION),
    "mini_swe_agent": lines({"trajectory_format": "mini-swe-agent-1", "messages": TALK}),
    "inspect": lines({**benchmarks.HEAD, "samples": [benchmarks.SAMPLE]}),
    "goose": lambda path: goose.database(path, *goose.TALK),
    "amp": lines(amp.THREAD),
    "openai": lines(*TALK),
    "anthropic": lines(*anthropic.LINE),
    "exchanges": lambda path: path.write_text(
        exchanges.exchange(
            "/v1/chat/completions",
            {"messages": [exchanges.USER]},
            exchanges.ANSWERS["openai"][2],
        )
    ),
    "tau_bench": lines({"task_id": 1, "trial": 0, "reward": 1.0, "traj": TALK}),
    "swe_agent": lines({"history": TALK, "trajectory": []}),
    "qwen_code": lines(*qwen_code.TALK),
    "claude_code": lines(*CLAUDE_CODE),
    "stream_json": lines(*stream_json.STREAM),
    "codex": lines(*ROLLOUT),
    "responses": lines(*responses.ITEMS),
    "openhands": lines(
        openhands.SPOKEN,
        openhands.act(3, "c1", "r1", "Look."),
        openhands.observe(4, "c1", content=[openhands.text("seen")]),
    ),
    "chatgpt": lines(chatgpt.conversation("u2", *chatgpt.TREE)),
    "claude_ai": lines(claude_ai.conversation(*claude_ai.TALK)),
    "gemini_cli": lines({**gemini_cli.HEAD, "messages": list(gemini_cli.TALK)}),
    "copilot_cli": lines(*copilot_cli.events(*copilot_cli.TURN)),
    "vscode_chat": lines(vscode_chat.chat(vscode_chat.agent())),
    "cursor": lambda path: cursor.chat(path, cursor.BUBBLES),
    "droid": lines(droid.HEAD, *droid.TALK),
    "kiro": lambda path: kiro.database(
        path, json.dumps({"conversation_id": "s", "history": kiro.HISTORY})
    ),
    "aider": lambda path: path.write_text(aider.FIRST),
    "pi": lines(pi.HEAD, *pi.TALK),
    "opencode": lines(opencode.session(*opencode.TALK)),
    "grok_build": lines(*grok_build.HISTORY),
    "antigravity": antigravity.database,
    "cursor_cli": cursor_cli.database,
    "kimi": lines(*kimi.WIRE),
    "gemini_takeout": gemini_takeout.own_activity,
    "traces": lines(*traces.TRACES),
    "hermes": hermes.database,
    "continue_dev": continue_dev.session,
    "frameworks": lines({"steps": frameworks.ATIF, **frameworks.HEAD}),
    "sharegpt": lines(
        {"conversations": [data_sets.turn("human", "Hi."), data_sets.turn("gpt", "Hello.")]}
    ),
    "moss": lines(data_sets.MOSS),
    "agent_bench": lines(data_sets.RUN),
    "toolbench": lines(SEARCH),
    "moatless": lines({"agent": {"system_prompt": "Be."}, "nodes": NODES}),
    "oasst": lines(TREE),
    "openai_agents": lambda path: stores.database(
        path,
        stores.AGENTS,
        [
            ("agent_sessions", {"session_id": "s"}),
            *(
                ("agent_messages", {"session_id": "s", "message_data": json.dumps(each)})
                for each in stores.ITEMS
            ),
        ],
    ),
    "adk": lambda path: stores.database(
        path,
        stores.ADK,
        [
            ("sessions", {"app_name": "a", "user_id": "u", "id": "s"}),
            (
                "events",
                {
                    "app_name": "a",
                    "user_id": "u",
                    "session_id": "s",
                    "id": "e",
                    "timestamp": 1_700_000_000,
                    "event_data": json.dumps(
                        {"content": {"role": "user", "parts": [{"text": "Hi"}]}}
                    ),
                },
            ),
        ],
    ),
    "llm": lambda path: stores.logged(path, stores.LLM + stores.LLM_TOOLS, []),
    "langgraph": lambda path: langgraph.saved(
        path,
        langgraph.row(1, langgraph.WHOLE),
        langgraph.row(2, [*langgraph.WHOLE, langgraph.THANKS], 1),
        langgraph.row(3, [*langgraph.WHOLE, langgraph.OSLO], 1),
    ),
    "open_webui": lines(
        {
            "id": "w",
            "chat": {
                "history": {
                    "currentId": "b",
                    "messages": {
                        "a": {"parentId": None, "role": "user", "content": "Hi."},
                        "b": {"parentId": "a", "role": "assistant", "content": "Hello."},
                    },
                }
            },
        }
    ),
    "librechat": lines(
        {
            "conversationId": "l",
            "messages": [
                {"messageId": "u", "text": "Hi.", "isCreatedByUser": True},
                {"messageId": "a", "parentMessageId": "u", "text": "So.", "isCreatedByUser": False},
            ],
        }
    ),
}
"""Kind → what writes a file of it."""

LONG: dict[str, Write] = {
    "openai": lines(*conversation(120)),
    "claude_code": lambda path: bring.write(path, 300_000),
}
"""Likewise, of long sessions."""
