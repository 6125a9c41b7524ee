"""Items of the OpenAI Responses API, as Codex records them, in the OpenAI chat shape: a pure translation.

Text and images become content parts, calls become tool calls, outputs tool messages. Whatever an item says beyond that
is among its facts; a reasoning item stays whole, because it must be sent back as it is.
"""

from __future__ import annotations

import json
from typing import Any

from .events import text_of

Item = dict[str, Any]
Message = dict[str, Any]

SPEECH = ("message", "agent_message")
"""Types of items that someone says; an agent's message comes from another agent, and is read as a user's."""

ARGUMENTS = ("arguments", "input", "action")
"""Keys that hold what a call asks for: of a function, of a tool that takes free text, of a tool of the API itself."""

RESULTS = ("output", "outputs", "result", "results")
"""Keys under which the call of a tool that ran on the server holds its own result."""

PART_TYPES = {"input_text": "text", "output_text": "text", "input_image": "image_url"}
"""Type of a content part → the chat's, which is also the key that holds it."""

_LINKS = ("type", "call_id")


def is_call(kind: str) -> bool:
    """Tell whether items of a type are tool calls."""
    return kind.endswith("_call")


def is_output(kind: str) -> bool:
    """Tell whether items of a type are the results of tool calls."""
    return kind.endswith("_output")


def is_answer(item: Item) -> bool:
    """Tell whether an item came from the model."""
    kind = str(item.get("type"))
    return kind == "reasoning" or is_call(kind) or (kind == "message" and item.get("role") == "assistant")


def parts_of(content: object) -> list[Any]:
    """Return a message's content as parts of the chat; a part without a counterpart stays as it is."""
    if content is None:
        return []
    return [_part(part) for part in (content if isinstance(content, list) else [content])]


def call_of(item: Item) -> dict[str, Any]:
    """Return a call item as a tool call; free text is the argument ``input``, as Codex's functions have it."""
    kind = str(item["type"])
    function = {"name": text_of(item.get("name")) or kind.removesuffix("_call"), "arguments": _arguments(item)}
    call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
    return ({"id": call_id} if call_id else {}) | {"type": "function", "function": function}


def own_result(item: Item) -> Message | None:
    """Return the result that a call item holds itself, None where it holds none."""
    key = next((key for key in RESULTS if item.get(key) is not None), None)
    if key is None:
        return None
    call_id = call_of(item).get("id")
    return {"role": "tool", "content": _result(item[key])} | ({"tool_call_id": call_id} if call_id else {})


def output_message(item: Item) -> Message:
    """Return an output item as a tool message."""
    key = next((key for key in (*RESULTS, "tools") if key in item), "output")
    content = _result(item.get(key)) if key != "tools" else _json(item[key])
    message: Message = {"role": "tool", "content": content}
    if text_of(item.get("call_id")):
        message["tool_call_id"] = item["call_id"]
    if isinstance(item.get(key), dict) and item[key].get("success") is False:
        message["messageStatus"] = "error"
    return message


def facts_of(item: Item) -> dict[str, Any]:
    """Return what an item says beyond what became content, a call or a result; its type is always said."""
    kind = str(item.get("type"))
    used: tuple[str, ...] = _LINKS
    if kind in SPEECH:
        used = ("type", "role", "content")
    elif kind == "reasoning":
        used = tuple(item)  # it stays whole beside its facts
    elif is_call(kind):
        name = ("name",) if text_of(item.get("name")) else ()
        used = (*_LINKS, *name, *RESULTS, _asked(item) or "")
    elif is_output(kind):
        used = (*_LINKS, *RESULTS, "tools")
    return {"type": kind} | {key: value for key, value in item.items() if key not in used and value is not None}


def _arguments(item: Item) -> object:
    """Return a call's arguments: JSON text as it is, anything else as JSON text."""
    key = _asked(item)
    if key is None and "arguments" in item:
        return None
    if key is None:
        rest = {key: value for key, value in item.items() if key not in (*_LINKS, *RESULTS, "id", "status", "name")}
        return _json(rest)
    if key == "input":
        return _json({"input": item[key]})
    return item[key] if key == "arguments" and isinstance(item[key], str) else _json(item[key])


def _asked(item: Item) -> str | None:
    """Return the key that holds what a call asks for, None where none does."""
    return next((key for key in ARGUMENTS if item.get(key) is not None), None)


def _part(part: Any) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict):
        return {"type": "text", "text": _json(part)}
    kind = part.get("type")
    chat = PART_TYPES.get(kind) if isinstance(kind, str) else None
    held = part.get(chat) if chat else None
    if chat is None or not isinstance(held, str):
        return part
    if chat == "text":
        return part | {"type": chat}
    image = {"url": held} | ({"detail": part["detail"]} if "detail" in part else {})
    return {key: value for key, value in part.items() if key != "detail"} | {"type": chat, chat: image}


def _result(value: Any) -> object:
    """Return a result's content: text as it is, parts as the chat's, an object's own content where it has one."""
    if isinstance(value, dict) and isinstance(value.get("content"), str | list):
        value = value["content"]
    return parts_of(value) if isinstance(value, list) or (isinstance(value, dict) and "type" in value) else value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
