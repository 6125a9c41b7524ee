"""The parts of a message that a page shows: texts, thoughts, pictures, calls and results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..records import Message, extract_content_text

HIDDEN_BY_DEFAULT = ("call", "result", "thinking", "other")


class ShownPart(NamedTuple):
    """A part of a message: its kind, the name of its tool, and its text.

    ``length`` is the length of the whole text, of which ``text`` is the beginning.
    """

    kind: str
    name: str
    text: str
    length: int


def list_message_parts(message: Message, longest: int) -> list[ShownPart]:
    """Return the parts of a message, each text cut where it is too long."""
    return [
        ShownPart(kind, name, text[:longest], len(text))
        for kind, name, text in _yield_parts(message)
        if text or kind == "call"
    ]


def measure_parts(parts: list[ShownPart]) -> int:
    """Return about how many code points parts take on a page."""
    return sum(len(part.text) + 200 for part in parts)


def _yield_parts(message: Message) -> Iterator[tuple[str, str, str]]:
    thought = message.get("reasoning_content") or message.get("thinking")
    if isinstance(thought, str):
        yield "thinking", "", thought
    kind = "result" if message.get("role") == "tool" else "text"
    yield kind, str(message.get("name") or ""), extract_content_text(message.get("content"))
    for call in message.get("tool_calls") or ():
        function: Any = call.get("function") if isinstance(call, dict) else None
        given = function if isinstance(function, dict) else {}
        arguments = given.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        yield "call", str(given.get("name") or ""), text
