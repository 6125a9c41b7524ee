"""ReAct text: a whole request as one text, for models that are asked for Thought and Action.

Each message is labelled with its role and followed by an empty line. Texts with Thought and Action
stay unchanged; native calls are written in the same way, without their ids. In a line that looks
like a label the bracket is replaced, or a file that was read could speak as the system.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from ..messages import Message, content_text
from .openai import clean, sendable
from .placed import Placed

ACTION = "Action: "
FINISH = "Finish"

_FORGED = re.compile(r"(?im)^([^\S\n]*)\[(?=(?:system|developer|user|assistant|tool)\])")
"""A line within a message that looks like a label."""


def write(placed: Sequence[Placed]) -> list[Message]:
    """Return a request as one user message: ``[role] …``, one after another.

    Calls that the store made up are left out: without ids, no result needs one.
    """
    said = [clean(each) for each in placed if not each.is_made_up_call]
    return [{"role": "user", "content": sendable("\n\n".join(_labelled(said)))}]


def asks_for_tool(said: str) -> bool:
    """Tell whether the assistant's text names an action that does not finish its turn."""
    return ACTION in said and f"{ACTION}{FINISH}[" not in said


def _labelled(messages: Sequence[Message]) -> Iterator[str]:
    for message, following in zip_longest(messages, messages[1:]):
        role = message["role"]
        content = message.get("content")
        if not isinstance(content, list):
            said = content_text(content)
        else:
            said = "\n".join(content_text([part]) or f"({_kind(part)})" for part in content)
        if role == "assistant":
            calls = message.get("tool_calls") or ()
            ends = following is None or following["role"] not in ("assistant", "tool")
            if calls:
                thought = (
                    [(said if said.lstrip().startswith("Thought:") else f"Thought: {said}")]
                    if said
                    else []
                )
                said = "\n".join([*thought, *map(_action, calls)])
            elif ends and ACTION not in said:
                said = f"{ACTION}{FINISH}[{said}]"
        unforged = _FORGED.sub(r"\1(", said)
        yield f"[{role}] {unforged}"


def _action(call: Message) -> str:
    name, asked = call[call["type"]].values()
    return f"{ACTION}{name}[{asked}]"


def _kind(part: Any) -> str:
    if isinstance(part, dict):
        return str(part.get("type", "part"))
    return json.dumps(part, ensure_ascii=False)
