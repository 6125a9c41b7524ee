"""Lines of an agent's transcript as messages.

Its calls have no ids there, and seldom results; a result answers the oldest call that waits.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator

from ...messages import Message
from ...text import Fields
from ..blocks import answer_messages, blocks_of, user_messages
from ..events import fields_of, simplest_content, telling, text_of, without

ROLES = ("user", "assistant")

ASKED = re.compile(r".*<user_query>\s*(.*?)\s*</user_query>.*", re.DOTALL)
"""The user's input within a sent text."""


def is_line(value: object) -> bool:
    """Tell whether a value is a line that can be read."""
    fields = fields_of(value)
    said = fields_of(fields.get("message"))
    return fields.get("role") in ROLES and bool(blocks_of(said.get("content")))


def is_state(value: object) -> bool:
    """Tell whether a value is a line that tells what the program did."""
    fields = fields_of(value)
    return "role" not in fields and text_of(fields.get("type")) is not None


def messages_in(lines: Iterable[tuple[int, Fields]]) -> Iterator[Message]:
    """Yield what lines say, each given with its number, after which its calls are named."""
    waiting: deque[str] = deque()
    for number, line in lines:
        told = line["message"]
        blocks = [
            _linked(_named(block, f"{number}-{place}"), waiting)
            for place, block in enumerate(blocks_of(told["content"]) or [], 1)
        ]
        made = _asked(blocks) if line["role"] == "user" else answer_messages(blocks)
        extra = {**without(line, "role", "message"), **without(told, "role", "content")}
        made[0] |= telling({"cursor": telling(extra)})
        yield from made


def _asked(blocks: list[Fields]) -> list[Message]:
    made = user_messages(blocks, blocks)
    if made[-1]["role"] == "user":
        made[-1]["content"] = simplest_content(made[-1]["content"]) or ""
    return made


def _linked(block: Fields, waiting: deque[str]) -> Fields:
    """Note a call that waits; return a result with the call that it answers."""
    if block.get("type") == "tool_use":
        waiting.append(block["id"])
    if block.get("type") != "tool_result":
        return block
    told = text_of(block.get("tool_use_id"))
    answered = told or next(iter(waiting), None)
    if answered and answered in waiting:
        waiting.remove(answered)
    return {**block, "tool_use_id": answered}


def _named(block: Fields, number: str) -> Fields:
    """Return a block; a call that has no id, with one."""
    if block.get("type") != "tool_use" or block.get("id"):
        return block
    return {**block, "id": f"call-{number}"}


def typed(text: str) -> str:
    """Return the user's input within a sent text."""
    return ASKED.sub(r"\1", text)
