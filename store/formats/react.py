"""ReAct text: a request as one labelled string, for models that are asked for Thought and Action (S4.58-S4.60).

What was said as Thought and Action stays verbatim; native calls are written the same way. No call ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from ..messages import Message, content_text

ACTION = "Action: "
FINISH = "Finish"


def text(messages: Sequence[Message]) -> str:
    """Return messages of the OpenAI chat format as ReAct text: ``[role] …``, one after another."""
    return "\n".join(_lines(messages))


def _lines(messages: Sequence[Message]) -> Iterator[str]:
    for message, following in zip_longest(messages, messages[1:]):
        role = message["role"]
        said = _said(message.get("content"))
        if role == "assistant":
            said = _step(said, message.get("tool_calls") or (), _ends_turn(following))
        yield f"[{role}] {said}"


def _ends_turn(following: Message | None) -> bool:
    return following is None or following["role"] not in ("assistant", "tool")


def _step(said: str, calls: Sequence[Message], ends: bool) -> str:
    """Return one step of the assistant: its thought and actions, or the answer that finishes its turn (S4.8)."""
    if calls:
        actions = [f"{ACTION}{call['function']['name']}[{call['function']['arguments']}]" for call in calls]
        return "\n".join([*([_thought(said)] if said else []), *actions])
    if ACTION in said or not ends:
        return said
    return f"{ACTION}{FINISH}[{said}]"


def _thought(said: str) -> str:
    return said if said.lstrip().startswith("Thought:") else f"Thought: {said}"


def _said(content: Any) -> str:
    """Return what a content says; parts that are no text are named."""
    if not isinstance(content, list):
        return content_text(content)
    return "\n".join(content_text([part]) or f"({_kind(part)})" for part in content)


def _kind(part: Any) -> str:
    return str(part.get("type", "part")) if isinstance(part, dict) else json.dumps(part, ensure_ascii=False)
