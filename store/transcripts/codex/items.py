"""Items of the OpenAI Responses API, as Codex stores them, in the OpenAI chat shape.

A pure translation: text and images become content parts, calls become tool calls, and outputs
become tool messages. What an item says beyond that is its extra; a reasoning item stays whole,
because it must be sent back as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...messages import Message
from ...text import Fields
from ..events import (
    fields_of,
    first_text,
    iso_milliseconds,
    simplest_content,
    text_of,
    text_part,
    without,
)
from ..shelf import Numbers

ApiItem = Fields

SPEECH = ("message", "agent_message")
"""Types of items that someone says; another agent's message is read as a user's."""

ARGUMENTS = ("arguments", "input", "action")
"""Keys that hold what a call asks for: of a function, of a tool for free text, of the API's own."""

RESULTS = ("output", "outputs", "result", "results")
"""Keys under which the call of a tool that ran on the server holds its own result."""

PART_TYPES = {"input_text": "text", "output_text": "text", "input_image": "image_url"}
"""Type of a content part → the chat's, which is also the key that holds it."""

_LINKS = ("type", "call_id")
_NOT_ASKED = (*_LINKS, *RESULTS, "id", "status", "name")


def is_call(kind: str) -> bool:
    """Tell whether items of a type are tool calls."""
    return kind.endswith("_call")


def is_output(kind: str) -> bool:
    """Tell whether items of a type are the results of tool calls."""
    return kind.endswith("_output")


def is_answer(item: ApiItem) -> bool:
    """Tell whether an item came from the model."""
    kind = str(item.get("type"))
    if kind == "message":
        return item.get("role") == "assistant"
    return kind == "reasoning" or is_call(kind)


def parts_of(content: object) -> list[Any]:
    """Return a message's content as parts of the chat; one without a counterpart stays as it is."""
    if content is None:
        return []
    if isinstance(content, list):
        return [_part(part) for part in content]
    return [_part(content)]


def call_of(item: ApiItem) -> Fields:
    """Return a call item as a tool call; free text becomes the argument ``input``."""
    call_id = _call_id(item)
    call = {} if call_id is None else {"id": call_id}
    function = {
        "name": (text_of(item.get("name")) or str(item["type"]).removesuffix("_call")),
        "arguments": _arguments(item),
    }
    return call | {"type": "function", "function": function}


def own_result(item: ApiItem) -> Message | None:
    """Return the result that a call item holds itself, None where it holds none."""
    key = _first_key(item, RESULTS)
    if key is None:
        return None
    message: Message = {"role": "tool", "content": _result(item[key])}
    call_id = _call_id(item)
    if call_id is not None:
        message["tool_call_id"] = call_id
    return message


def output_message(item: ApiItem) -> Message:
    """Return an output item as a tool message."""
    key = next((key for key in (*RESULTS, "tools") if key in item), "output")
    content = _json(item[key]) if key == "tools" else _result(item.get(key))
    message: Message = {"role": "tool", "content": content}
    if text_of(item.get("call_id")):
        message["tool_call_id"] = item["call_id"]
    if fields_of(item.get(key)).get("success") is False:
        message["messageStatus"] = "error"
    return message


def extra_of(item: ApiItem) -> Fields:
    """Return the type of an item, and its fields that are no content, call or result."""
    kind = str(item.get("type"))
    if kind == "reasoning":
        return {"type": kind}  # it stays whole beside its extra
    rest = without(item, *_used(item, kind))
    said = {key: held for key, held in rest.items() if held is not None}
    return {"type": kind} | said


def _used(item: ApiItem, kind: str) -> tuple[str, ...]:
    """Return the keys of an item that became content, a call or a result."""
    if kind in SPEECH:
        return ("type", "role", "content")
    if is_output(kind):
        return (*_LINKS, *RESULTS, "tools")
    if not is_call(kind):
        return _LINKS
    name = ("name",) if text_of(item.get("name")) else ()
    return (*_LINKS, *name, *RESULTS, _asked(item) or "")


def _call_id(item: ApiItem) -> str | None:
    return text_of(item.get("call_id")) or text_of(item.get("id"))


def _arguments(item: ApiItem) -> object:
    """Return a call's arguments: JSON text as it is, anything else as JSON text."""
    key = _asked(item)
    if key is None and "arguments" in item:
        return None
    if key is None:
        return _json(without(item, *_NOT_ASKED))
    if key == "input":
        return _json({"input": item[key]})
    if key == "arguments" and isinstance(item[key], str):
        return item[key]
    return _json(item[key])


def _asked(item: ApiItem) -> str | None:
    """Return the key that holds what a call asks for, None where none does."""
    return _first_key(item, ARGUMENTS)


def _first_key(item: ApiItem, keys: tuple[str, ...]) -> str | None:
    said = (key for key in keys if item.get(key) is not None)
    return next(said, None)


def _part(part: Any) -> Any:
    if isinstance(part, str):
        return text_part(part)
    if not isinstance(part, dict):
        return text_part(_json(part))
    kind = part.get("type")
    chat = PART_TYPES.get(kind) if isinstance(kind, str) else None
    if chat is None or not isinstance(part.get(chat), str):
        return part
    return part | {"type": chat} if chat == "text" else _image_part(part)


def _image_part(part: Fields) -> Fields:
    image = {"url": part["image_url"]}
    if "detail" in part:
        image["detail"] = part["detail"]
    return without(part, "detail") | {"type": "image_url", "image_url": image}


def _result(value: Any) -> object:
    """Return a result's content.

    Text stays as it is, parts become the chat's, an object with content of its own becomes that.
    """
    if isinstance(value, dict) and isinstance(value.get("content"), str | list):
        value = value["content"]
    is_part = isinstance(value, dict) and "type" in value
    return parts_of(value) if is_part or isinstance(value, list) else value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def finished(messages: Iterable[Message]) -> Iterator[Message]:
    """Return messages in their last form.

    Their content is as simple as it can be, and each has the API's id where it is its own alone.
    """
    taken = Numbers()
    for message in messages:
        if message["role"] == "assistant":
            message["content"] = simplest_content(message["content"])
        extra = message.get("codex", {})
        items = extra.get("items", [extra])
        texts = [item for item in items if item.get("type") == "message"]
        wanted = first_text(item.get("id") for item in [*texts, *items])
        if wanted and wanted not in taken:
            taken[wanted] = 1
            message["id"] = wanted
        yield message


def timed(message: Message, at: object) -> Message:
    """Return a message with the moment that a row gives, if it gives one."""
    moment = iso_milliseconds(at)
    if moment is not None:
        message["timestamp"] = moment
    return message


def parent_session_of(meta: ApiItem) -> str | None:
    """Return the session that made this one as its subagent."""
    subagent = fields_of(fields_of(meta.get("source")).get("subagent"))
    spawn = fields_of(subagent.get("thread_spawn"))
    return text_of(meta.get("parent_thread_id")) or text_of(spawn.get("parent_thread_id"))


def unusual(item: ApiItem) -> Fields:
    """Return an item's extra, with its type only where that is not the usual one."""
    extra = extra_of(item)
    usual = "message" if item.get("type") == "message" else "function_call_output"
    if extra["type"] == usual:
        del extra["type"]
    return extra
