"""Items of the OpenAI Responses API, as Codex stores them, in the OpenAI chat shape.

A pure translation: text and images become content parts, calls become tool calls, and outputs
become tool messages. What an item says beyond that is its extra; a reasoning item stays whole,
because it must be sent back as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..disk_buffer import KeyNumbers
from ..parser_events import (
    build_text_part,
    drop_keys,
    find_first_text,
    get_fields,
    get_text,
    parse_iso_milliseconds,
    simplify_content,
)

ApiItem = JsonFields

SPOKEN_ITEM_TYPES = ("message", "agent_message")
"""Types of items that someone says; another agent's message is read as a user's."""

ARGUMENT_KEYS = ("arguments", "input", "action")
"""Keys that hold what a call asks for: of a function, of a tool for free text, of the API's own."""

RESULT_KEYS = ("output", "outputs", "result", "results")
"""Keys under which the call of a tool that ran on the server holds its own result."""

CODEX_PART_TYPES = {"input_text": "text", "output_text": "text", "input_image": "image_url"}
"""Type of a content part → the chat's, which is also the key that holds it."""

_LINK_KEYS = ("type", "call_id")
_NON_ARGUMENT_KEYS = (*_LINK_KEYS, *RESULT_KEYS, "id", "status", "name")


def is_call_type(kind: str) -> bool:
    """Tell whether items of a type are tool calls."""
    return kind.endswith("_call")


def is_output_type(kind: str) -> bool:
    """Tell whether items of a type are the results of tool calls."""
    return kind.endswith("_output")


def is_answer_item(item: ApiItem) -> bool:
    """Tell whether an item came from the model."""
    kind = str(item.get("type"))
    if kind == "message":
        return item.get("role") == "assistant"
    return kind == "reasoning" or is_call_type(kind)


def parse_codex_parts(content: object) -> list[Any]:
    """Return a message's content as parts of the chat; one without a counterpart stays as it is."""
    if content is None:
        return []
    if isinstance(content, list):
        return [_parse_codex_part(part) for part in content]
    return [_parse_codex_part(content)]


def parse_codex_call(item: ApiItem) -> JsonFields:
    """Return a call item as a tool call; free text becomes the argument ``input``."""
    call_id = _find_item_call_id(item)
    call = {} if call_id is None else {"id": call_id}
    function = {
        "name": get_text(item.get("name")) or str(item["type"]).removesuffix("_call"),
        "arguments": _render_item_arguments(item),
    }
    return call | {"type": "function", "function": function}


def parse_own_result(item: ApiItem) -> Message | None:
    """Return the result that a call item holds itself, None where it holds none."""
    key = _find_first_key(item, RESULT_KEYS)
    if key is None:
        return None
    message: Message = {"role": "tool", "content": _parse_codex_result(item[key])}
    call_id = _find_item_call_id(item)
    if call_id is not None:
        message["tool_call_id"] = call_id
    return message


def parse_output_item(item: ApiItem) -> Message:
    """Return an output item as a tool message."""
    key = next((key for key in (*RESULT_KEYS, "tools") if key in item), "output")
    content = _render_item_json(item[key]) if key == "tools" else _parse_codex_result(item.get(key))
    message: Message = {"role": "tool", "content": content}
    if get_text(item.get("call_id")):
        message["tool_call_id"] = item["call_id"]
    if get_fields(item.get(key)).get("success") is False:
        message["messageStatus"] = "error"
    return message


def collect_item_extra(item: ApiItem) -> JsonFields:
    """Return the type of an item, and its fields that are no content, call or result."""
    kind = str(item.get("type"))
    if kind == "reasoning":
        return {"type": kind}  # it stays whole beside its extra
    rest = drop_keys(item, *_list_converted_keys(item, kind))
    said = {key: held for key, held in rest.items() if held is not None}
    return {"type": kind} | said


def _list_converted_keys(item: ApiItem, kind: str) -> tuple[str, ...]:
    """Return the keys of an item that became content, a call or a result."""
    if kind in SPOKEN_ITEM_TYPES:
        return ("type", "role", "content")
    if is_output_type(kind):
        return (*_LINK_KEYS, *RESULT_KEYS, "tools")
    if not is_call_type(kind):
        return _LINK_KEYS
    name = ("name",) if get_text(item.get("name")) else ()
    return (*_LINK_KEYS, *name, *RESULT_KEYS, _find_argument_key(item) or "")


def _find_item_call_id(item: ApiItem) -> str | None:
    return get_text(item.get("call_id")) or get_text(item.get("id"))


def _render_item_arguments(item: ApiItem) -> object:
    """Return a call's arguments: JSON text as it is, anything else as JSON text."""
    key = _find_argument_key(item)
    if key is None and "arguments" in item:
        return None
    if key is None:
        return _render_item_json(drop_keys(item, *_NON_ARGUMENT_KEYS))
    if key == "input":
        return _render_item_json({"input": item[key]})
    if key == "arguments" and isinstance(item[key], str):
        return item[key]
    return _render_item_json(item[key])


def _find_argument_key(item: ApiItem) -> str | None:
    """Return the key that holds what a call asks for, None where none does."""
    return _find_first_key(item, ARGUMENT_KEYS)


def _find_first_key(item: ApiItem, keys: tuple[str, ...]) -> str | None:
    said = (key for key in keys if item.get(key) is not None)
    return next(said, None)


def _parse_codex_part(part: Any) -> Any:
    if isinstance(part, str):
        return build_text_part(part)
    if not isinstance(part, dict):
        return build_text_part(_render_item_json(part))
    kind = part.get("type")
    chat = CODEX_PART_TYPES.get(kind) if isinstance(kind, str) else None
    if chat is None or not isinstance(part.get(chat), str):
        return part
    return part | {"type": chat} if chat == "text" else _parse_codex_image(part)


def _parse_codex_image(part: JsonFields) -> JsonFields:
    image = {"url": part["image_url"]}
    if "detail" in part:
        image["detail"] = part["detail"]
    return drop_keys(part, "detail") | {"type": "image_url", "image_url": image}


def _parse_codex_result(value: Any) -> object:
    """Return a result's content.

    Text stays as it is, parts become the chat's, an object with content of its own becomes that.
    """
    if isinstance(value, dict) and isinstance(value.get("content"), str | list):
        value = value["content"]
    is_part = isinstance(value, dict) and "type" in value
    return parse_codex_parts(value) if is_part or isinstance(value, list) else value


def _render_item_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def finish_messages(messages: Iterable[Message]) -> Iterator[Message]:
    """Return messages in their last form.

    Their content is as simple as it can be, and each has the API's id where it is its own alone.
    """
    taken = KeyNumbers()
    for message in messages:
        if message["role"] == "assistant":
            message["content"] = simplify_content(message["content"])
        extra = message.get("codex", {})
        items = extra.get("items", [extra])
        texts = [item for item in items if item.get("type") == "message"]
        wanted = find_first_text(item.get("id") for item in [*texts, *items])
        if wanted and wanted not in taken:
            taken[wanted] = 1
            message["id"] = wanted
        yield message


def set_message_time(message: Message, at: object) -> Message:
    """Return a message with the moment that a row gives, if it gives one."""
    moment = parse_iso_milliseconds(at)
    if moment is not None:
        message["timestamp"] = moment
    return message


def find_parent_session(meta: ApiItem) -> str | None:
    """Return the session that made this one as its subagent."""
    subagent = get_fields(get_fields(meta.get("source")).get("subagent"))
    spawn = get_fields(subagent.get("thread_spawn"))
    return get_text(meta.get("parent_thread_id")) or get_text(spawn.get("parent_thread_id"))
