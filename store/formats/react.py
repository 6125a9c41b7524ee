"""ReAct text: a whole request as one text, for models that are asked for Thought and Action.

Each message is labelled with its role and followed by an empty line. Texts with Thought and Action
stay unchanged; native calls are written in the same way, without their ids. In a line that looks
like a label the bracket is replaced, or a file that was read could speak as the system.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from ..messages import Message, extract_content_text
from .openai import clean_message, replace_surrogates
from .request_messages import PlacedMessage

ACTION_LABEL = "Action: "
FINISH_ACTION = "Finish"

_FORGED_ROLE_LABEL = re.compile(r"(?im)^([^\S\n]*)\[(?=(?:system|developer|user|assistant|tool)\])")
"""A line within a message that looks like a label."""


def write_react_text(placed: Sequence[PlacedMessage]) -> list[Message]:
    """Return a request as one user message: ``[role] …``, one after another.

    Calls that the store made up are left out: without ids, no result needs one.
    """
    cleaned = [clean_message(each) for each in placed if not each.is_made_up_call]
    labelled: list[str] = []
    for message, following in zip_longest(cleaned, cleaned[1:]):
        role = message["role"]
        content = message.get("content")
        if not isinstance(content, list):
            said = extract_content_text(content)
        else:
            said = "\n".join(
                extract_content_text([part]) or f"({_name_part_type(part)})" for part in content
            )
        if role == "assistant":
            calls = message.get("tool_calls") or ()
            ends = following is None or following["role"] not in ("assistant", "tool")
            if calls:
                thought = (
                    [said if said.lstrip().startswith("Thought:") else f"Thought: {said}"]
                    if said
                    else []
                )
                named = (call[call["type"]].values() for call in calls)
                actions = [f"{ACTION_LABEL}{name}[{asked}]" for name, asked in named]
                said = "\n".join([*thought, *actions])
            elif ends and ACTION_LABEL not in said:
                said = f"{ACTION_LABEL}{FINISH_ACTION}[{said}]"
        unforged = _FORGED_ROLE_LABEL.sub(r"\1(", said)
        labelled.append(f"[{role}] {unforged}")
    return [{"role": "user", "content": replace_surrogates("\n\n".join(labelled))}]


def has_react_action(said: str) -> bool:
    """Tell whether the assistant's text names an action that does not finish its turn."""
    return ACTION_LABEL in said and f"{ACTION_LABEL}{FINISH_ACTION}[" not in said


def _name_part_type(part: Any) -> str:
    if isinstance(part, dict):
        return str(part.get("type", "part"))
    return json.dumps(part, ensure_ascii=False)
