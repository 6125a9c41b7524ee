"""A message of goose as messages of the chat: results come before the text sent with them.

Its other fields are kept under one extra key, ``goose``.
"""

from __future__ import annotations

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
    join_texts,
    simplify_content,
)

GOOSE_ROLES = ("user", "assistant")

GOOSE_CALL_TYPES = ("toolRequest", "frontendToolRequest")
GOOSE_RESULT_TYPE = "toolResponse"
GOOSE_THOUGHT_TYPES = ("thinking", "redactedThinking")
GOOSE_SCREEN_TYPES = ("toolConfirmationRequest", "actionRequired", "systemNotification")
"""Types of parts that were for the screen."""

_GOOSE_MESSAGE_KEYS = ("id", "role", "content", "created", "metadata", "session_id", "timestamp")


def is_goose_message(value: object) -> bool:
    """Tell whether a JSON value is a message that can be read."""
    fields = get_fields(value)
    content = fields.get("content")
    return fields.get("role") in GOOSE_ROLES and "created" in fields and isinstance(content, list)


def is_goose_only_message(value: object) -> bool:
    """Tell whether a message is goose's, by a part that only goose has or by its ``created``."""
    fields = get_fields(value)
    kinds = {part.get("type") for part in get_objects(fields.get("content"))}
    known = {*GOOSE_CALL_TYPES, GOOSE_RESULT_TYPE, *GOOSE_SCREEN_TYPES}
    return is_goose_message(value) and (bool(kinds & known) or isinstance(fields["created"], int))


def parse_goose_message(name: str, told: JsonFields) -> list[Message]:
    """Return what a message amounts to; the first has its id."""
    parts = get_objects(told["content"])
    made = [_parse_goose_result(part) for part in parts if part.get("type") == GOOSE_RESULT_TYPE]
    said = _parse_goose_parts(told["role"], parts)
    made += [said] if said else []
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
    extra = drop_empty_fields(
        {**drop_keys(told, *_GOOSE_MESSAGE_KEYS), **_collect_answer_facts(told)}
    )
    if made and extra:
        made[0]["goose"] = extra | made[0].get("goose", {})
    return [
        message | drop_empty_fields({"timestamp": convert_to_milliseconds(told.get("created"))})
        for message in made
    ]


def _collect_answer_facts(told: JsonFields) -> JsonFields:
    """Return the model of an answer and its cost, as newer versions tell them."""
    metadata = get_fields(told.get("metadata"))
    return {
        "model": get_nested(metadata, "inference", "resolvedModel"),
        "usage": metadata.get("usage"),
    }


def _parse_goose_parts(role: str, parts: list[JsonFields]) -> Message | None:
    """Return the text, thoughts and calls as a message; None if there are none."""
    calls = [part for part in parts if part.get("type") in GOOSE_CALL_TYPES]
    content = simplify_content(list(map(_parse_goose_part, filter(_is_goose_content, parts))))
    message = drop_empty_fields(
        {"tool_calls": list(map(_parse_goose_call, calls)), **_parse_goose_thoughts(parts)}
    )
    if not content and not message:
        return None
    extra = drop_empty_fields({"calls": list(filter(None, map(_collect_goose_call_extra, calls)))})
    return {"role": role, "content": content, **message} | drop_empty_fields({"goose": extra})


def _is_goose_content(part: JsonFields) -> bool:
    return part.get("type") not in (
        *GOOSE_CALL_TYPES,
        GOOSE_RESULT_TYPE,
        *GOOSE_THOUGHT_TYPES,
        *GOOSE_SCREEN_TYPES,
    )


def _parse_goose_thoughts(parts: list[JsonFields]) -> JsonFields:
    """Return thoughts: as Anthropic's blocks where all are signed, else as text."""
    thoughts = [part for part in parts if part.get("type") in GOOSE_THOUGHT_TYPES]
    if all(part.get("signature") or part.get("data") for part in thoughts):
        return {"thinking_blocks": list(map(_build_goose_thought_block, thoughts))}
    return {"reasoning_content": join_texts(part.get("thinking") for part in thoughts)}


def _build_goose_thought_block(part: JsonFields) -> JsonFields:
    kind = "thinking" if part["type"] == "thinking" else "redacted_thinking"
    return {**part, "type": kind}


def _parse_goose_part(part: JsonFields) -> JsonFields:
    match part:
        case {"type": "text", "text": str(text)}:
            return build_text_part(text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    return part


def _parse_goose_call(part: JsonFields) -> JsonFields:
    asked = {"name": "unknown", **get_fields(get_nested(part, "toolCall", "value"))}
    return build_chat_call(part.get("id"), asked["name"], asked.get("arguments"))


def _collect_goose_call_extra(part: JsonFields) -> JsonFields:
    """Return what a call says beside its name and arguments, such as why it could not be read."""
    rest = drop_keys(part, "type", "id", "toolCall")
    return drop_empty_fields({**rest, "error": get_nested(part, "toolCall", "error")})


def _parse_goose_result(part: JsonFields) -> Message:
    told = get_fields(part.get("toolResult"))
    value = told.get("value")
    content = get_objects(value) or get_objects(get_nested(value, "content"))
    failed = told.get("status") == "error" or get_nested(value, "isError") is True
    said = simplify_content(list(map(_parse_goose_part, content))) or told.get("error")
    message: Message = {"role": "tool", "content": said or "", "tool_call_id": part.get("id")}
    return message | drop_empty_fields({"messageStatus": "error" if failed else ""})
