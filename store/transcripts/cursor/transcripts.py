"""A line of an agent's transcript as a message; its calls have no ids there, and no results."""

from __future__ import annotations

import re

from ...messages import Message
from ...text import Fields
from ..blocks import assistant_message, blocks_of
from ..events import fields_of, simplest_content, telling, without

ROLES = ("user", "assistant")

ASKED = re.compile(r".*<user_query>\s*(.*?)\s*</user_query>.*", re.DOTALL)
"""What a user typed, in what was sent."""


def is_line(value: object) -> bool:
    """Tell whether a value is a line that can be read."""
    fields = fields_of(value)
    said = fields_of(fields.get("message"))
    return fields.get("role") in ROLES and bool(blocks_of(said.get("content")))


def message_of(line: Fields, number: int) -> Message:
    """Return what a line says; its calls are named after its number."""
    told = line["message"]
    blocks = [_named(block, f"{number}-{place}") for place, block in _numbered(told["content"])]
    if line["role"] == "user":
        message: Message = {"role": "user", "content": simplest_content(blocks) or ""}
    else:
        message, _ = assistant_message(blocks)
    extra = {**without(line, "role", "message"), **without(told, "role", "content")}
    return message | telling({"cursor": telling(extra)})


def _numbered(content: object) -> enumerate[Fields]:
    return enumerate(blocks_of(content) or [], 1)


def _named(block: Fields, number: str) -> Fields:
    """Return a block; a call that has no id, with one."""
    if block.get("type") != "tool_use" or block.get("id"):
        return block
    return {**block, "id": f"call-{number}"}


def typed(text: str) -> str:
    """Return what a user typed, of what was sent."""
    return ASKED.sub(r"\1", text)
