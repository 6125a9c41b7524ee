"""Translate a line of Kiro's files to messages: a prompt, an answer, or results."""

from __future__ import annotations

import json
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import (
    build_chat_call,
    build_text_part,
    convert_to_milliseconds,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_nested,
    get_objects,
    get_text,
    join_texts,
)

KIRO_LINE_ROLES = {"Prompt": "user", "AssistantMessage": "assistant", "ToolResults": "tool"}
"""Kind of a line → role in the chat."""

KIRO_PART_KINDS = ("text", "thinking", "toolUse")
"""Kinds of parts that a message expresses in its own way."""

_KIRO_LINE_KEYS = ("message_id", "content", "results")


def is_kiro_line(value: object) -> bool:
    """Tell whether a JSON value is a line of such a file."""
    fields = get_fields(value)
    return isinstance(fields.get("kind"), str) and bool(get_fields(fields.get("data")))


def is_kiro_message(line: JsonFields) -> bool:
    """Tell whether a line is a message that can be read."""
    return line["kind"] in KIRO_LINE_ROLES and isinstance(line["data"].get("content"), list)


def parse_kiro_line(line: JsonFields) -> list[Message]:
    """Return the messages of a line; the first one has the id of the line."""
    told = line["data"]
    parts = get_objects(told["content"])
    if line["kind"] == "ToolResults":
        made = list(
            map(_parse_kiro_result, map(get_fields, _list_kiro_part_data(parts, "toolResult")))
        )
    else:
        made = [_parse_kiro_parts(KIRO_LINE_ROLES[line["kind"]], parts)]
    for number, message in enumerate(made, 1):
        name = get_text(told.get("message_id"))
        ending = "" if number == 1 else f"-{number}"
        message.update({"id": name + ending} if name else {})
    extra = drop_empty_fields(drop_keys(told, *_KIRO_LINE_KEYS))
    return [
        each
        | drop_empty_fields(
            {"timestamp": convert_to_milliseconds(get_nested(told, "meta", "timestamp"))}
        )
        | drop_empty_fields({"kiro": extra})
        for each in made
    ]


def _parse_kiro_parts(role: str, parts: list[JsonFields]) -> Message:
    content = join_texts(map(_parse_kiro_text, _list_kiro_part_data(parts, "text")), "\n")
    others = [
        {"type": str(part.get("kind")), "data": part.get("data")}
        for part in parts
        if part.get("kind") not in KIRO_PART_KINDS
    ]
    more = {
        "reasoning_content": join_texts(
            map(_parse_kiro_text, _list_kiro_part_data(parts, "thinking"))
        ),
        "tool_calls": list(map(_parse_kiro_call, _list_kiro_part_data(parts, "toolUse"))),
    }
    said: Any = [build_text_part(content), *others] if others else content
    if role == "assistant" and not said:
        said = None
    return {"role": role, "content": said} | drop_empty_fields(more)


def _list_kiro_part_data(parts: list[JsonFields], kind: str) -> list[Any]:
    return [part.get("data") for part in parts if part.get("kind") == kind]


def _parse_kiro_text(data: Any) -> str:
    return get_text(data) or get_text(get_nested(data, "text")) or ""


def _parse_kiro_call(data: Any) -> JsonFields:
    told = get_fields(data)
    return build_chat_call(told.get("toolUseId"), told.get("name"), told.get("input"))


def _parse_kiro_result(told: JsonFields) -> Message:
    content = told.get("content")
    said = get_text(content) or "\n".join(map(_render_kiro_result_part, get_objects(content)))
    message: Message = {"role": "tool", "tool_call_id": told.get("toolUseId"), "content": said}
    return message | drop_empty_fields(
        {"messageStatus": "error" if told.get("status") == "error" else None}
    )


def _render_kiro_result_part(part: JsonFields) -> str:
    data = part.get("data")
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
