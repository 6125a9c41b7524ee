"""Translate a line of Kiro's files to messages: a prompt, an answer, or results."""

from __future__ import annotations

import json
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import (
    call_of,
    fields_of,
    joined,
    milliseconds_of,
    objects_of,
    telling,
    text_of,
    text_part,
    within,
    without,
)

ROLES = {"Prompt": "user", "AssistantMessage": "assistant", "ToolResults": "tool"}
"""Kind of a line → role in the chat."""

READ = ("text", "thinking", "toolUse")
"""Kinds of parts that a message expresses in its own way."""

_SAID = ("message_id", "content", "results")


def is_line(value: object) -> bool:
    """Tell whether a JSON value is a line of such a file."""
    fields = fields_of(value)
    return isinstance(fields.get("kind"), str) and bool(fields_of(fields.get("data")))


def is_told(line: Fields) -> bool:
    """Tell whether a line is a message that can be read."""
    return line["kind"] in ROLES and isinstance(line["data"].get("content"), list)


def messages_of(line: Fields) -> list[Message]:
    """Return the messages of a line; the first one has the id of the line."""
    told = line["data"]
    parts = objects_of(told["content"])
    if line["kind"] == "ToolResults":
        made = list(map(_result, map(fields_of, _of(parts, "toolResult"))))
    else:
        made = [_said(ROLES[line["kind"]], parts)]
    for number, message in enumerate(made, 1):
        name = text_of(told.get("message_id"))
        ending = "" if number == 1 else f"-{number}"
        message.update({"id": name + ending} if name else {})
    extra = telling(without(told, *_SAID))
    return [
        each
        | telling({"timestamp": milliseconds_of(within(told, "meta", "timestamp"))})
        | telling({"kiro": extra})
        for each in made
    ]


def _said(role: str, parts: list[Fields]) -> Message:
    content = joined(map(_text, _of(parts, "text")), "\n")
    others = [
        {"type": str(part.get("kind")), "data": part.get("data")}
        for part in parts
        if part.get("kind") not in READ
    ]
    more = {
        "reasoning_content": joined(map(_text, _of(parts, "thinking"))),
        "tool_calls": list(map(_call, _of(parts, "toolUse"))),
    }
    said: Any = [text_part(content), *others] if others else content
    if role == "assistant" and not said:
        said = None
    return {"role": role, "content": said} | telling(more)


def _of(parts: list[Fields], kind: str) -> list[Any]:
    return [part.get("data") for part in parts if part.get("kind") == kind]


def _text(data: Any) -> str:
    return text_of(data) or text_of(within(data, "text")) or ""


def _call(data: Any) -> Fields:
    told = fields_of(data)
    return call_of(told.get("toolUseId"), told.get("name"), told.get("input"))


def _result(told: Fields) -> Message:
    content = told.get("content")
    said = text_of(content) or "\n".join(map(_returned, objects_of(content)))
    message: Message = {"role": "tool", "tool_call_id": told.get("toolUseId"), "content": said}
    return message | telling({"messageStatus": "error" if told.get("status") == "error" else None})


def _returned(part: Fields) -> str:
    data = part.get("data")
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
