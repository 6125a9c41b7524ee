"""Lines of an agent's transcript as messages.

Its calls have no ids there, and seldom results; a result answers the oldest call that waits.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator

from ...messages import Message
from ...text import JsonFields
from ..blocks import build_answer_messages, build_user_messages, parse_blocks
from ..events import drop_empty_fields, drop_keys, get_fields, get_text, simplify_content

CURSOR_LINE_ROLES = ("user", "assistant")

USER_QUERY_PATTERN = re.compile(r".*<user_query>\s*(.*?)\s*</user_query>.*", re.DOTALL)
"""The user's input within a sent text."""


def is_cursor_line(value: object) -> bool:
    """Tell whether a value is a line that can be read."""
    fields = get_fields(value)
    said = get_fields(fields.get("message"))
    return fields.get("role") in CURSOR_LINE_ROLES and bool(parse_blocks(said.get("content")))


def is_cursor_state(value: object) -> bool:
    """Tell whether a value is a line that tells what the program did."""
    fields = get_fields(value)
    return "role" not in fields and get_text(fields.get("type")) is not None


def parse_cursor_lines(lines: Iterable[tuple[int, JsonFields]]) -> Iterator[Message]:
    """Yield what lines say, each given with its number, after which its calls are named."""
    waiting: deque[str] = deque()
    for number, line in lines:
        told = line["message"]
        blocks = [
            _link_result_to_call(_ensure_call_id(block, f"{number}-{place}"), waiting)
            for place, block in enumerate(parse_blocks(told["content"]) or [], 1)
        ]
        made = (
            _parse_cursor_question(blocks)
            if line["role"] == "user"
            else build_answer_messages(blocks)
        )
        extra = {**drop_keys(line, "role", "message"), **drop_keys(told, "role", "content")}
        made[0] |= drop_empty_fields({"cursor": drop_empty_fields(extra)})
        yield from made


def _parse_cursor_question(blocks: list[JsonFields]) -> list[Message]:
    made = build_user_messages(blocks, blocks)
    if made[-1]["role"] == "user":
        made[-1]["content"] = simplify_content(made[-1]["content"]) or ""
    return made


def _link_result_to_call(block: JsonFields, waiting: deque[str]) -> JsonFields:
    """Note a call that waits; return a result with the call that it answers."""
    if block.get("type") == "tool_use":
        waiting.append(block["id"])
    if block.get("type") != "tool_result":
        return block
    told = get_text(block.get("tool_use_id"))
    answered = told or next(iter(waiting), None)
    if answered and answered in waiting:
        waiting.remove(answered)
    return {**block, "tool_use_id": answered}


def _ensure_call_id(block: JsonFields, number: str) -> JsonFields:
    """Return a block; a call that has no id, with one."""
    if block.get("type") != "tool_use" or block.get("id"):
        return block
    return {**block, "id": f"call-{number}"}
