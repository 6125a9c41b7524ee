"""Conversations to compact, and short ways to ask what came of it."""

from __future__ import annotations

import json
from typing import Any

from conversations import NOW

from store import Policy, Store
from store.summaries import SummaryRequest

Message = dict[str, Any]
COUNT = Policy.named("message_count")
RATIO = Policy.named("token_ratio")
TURNS = Policy.named("turns")
HEADING = "[对话摘要 - 早期上下文]"


def chat(count: int, first: int = 0) -> list[Message]:
    """Users and assistants in turn."""
    return [
        {"role": "assistant" if i % 2 else "user", "content": f"消息 {i} " + "说的话" * 20}
        for i in range(first, first + count)
    ]


def begun(store: Store, messages: list[Message], now: int | None = None) -> str:
    """A session with these messages, stored at a moment."""
    session_id = store.create_session().id
    store.append(session_id, messages, now=now)
    return session_id


def short(request: SummaryRequest) -> str:
    """A summarizer."""
    return "对话摘要：他们谈过"


def broken_summarizer(request: SummaryRequest) -> str:
    """One whose model is down."""
    raise ConnectionError("no route to host")


def contents(store: Store, session_id: str, policy: Policy = COUNT) -> list[Any]:
    """What a view says."""
    return [message["content"] for message in store.view(session_id, policy, now=NOW).messages]


def query(store: Store, session_id: str, text: str) -> list[dict[str, Any]]:
    """Rows of a session's tree, in the order of their keys."""
    with store.database.reading() as connection:
        tree = f"SELECT tree_id FROM session_ids WHERE id = '{session_id}'"
        asked = f"SELECT * FROM {text} WHERE tree_id = ({tree}) ORDER BY 1, 2, 3"
        rows = connection.exec_driver_sql(asked)
        return [dict(row) for row in rows.mappings()]


def tool(name: str, arguments: Message, content: str, call_id: str) -> list[Message]:
    """A call and its result."""
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": content, "timestamp": NOW},
    ]


def work(number: int) -> list[Message]:
    """A turn in which a file is read and changed, a command succeeds and another one fails."""
    failed = {"stdout": "", "stderr": f"make: *** error {number}", "exitCode": 2}
    return [
        {"role": "user", "content": f"please do {number} " + "and take your time " * 30},
        *tool("filesystem-read", {"filePath": f"src/file{number}.ts"}, "1→x", f"r{number}"),
        *tool("filesystem-edit", {"filePath": f"src/file{number}.ts"}, "ok", f"e{number}"),
        *tool(
            "terminal-execute",
            {"command": f"npm test {number}"},
            '{"stdout":"ok","exitCode":0}',
            f"t{number}",
        ),
        *tool("terminal-execute", {"command": f"make {number}"}, json.dumps(failed), f"m{number}"),
        *tool(
            "mystery", {"command": f"launch {number}"}, f"Error: no rocket {number}", f"x{number}"
        ),
    ]


def facts(numbers: range) -> list[str]:
    """What must be found of these turns."""
    return [
        line
        for number in numbers
        for line in (
            f"- src/file{number}.ts (修改)\n",
            f"- npm test {number} (退出码 0)\n",
            f"- make {number} (退出码 2)\n",
            f"make: *** error {number}",
            f"- Error: no rocket {number} (mystery)",
        )
    ]
