"""A message of goose as messages of the chat: results come before the text sent with them.

Its other fields are kept under one extra key, ``goose``.
"""

from __future__ import annotations

from ...messages import Message
from ...text import Fields
from ..events import (
    call_of,
    fields_of,
    joined,
    milliseconds_of,
    objects_of,
    simplest_content,
    telling,
    text_part,
    within,
    without,
)

ROLES = ("user", "assistant")

CALLS = ("toolRequest", "frontendToolRequest")
RESULT = "toolResponse"
THOUGHTS = ("thinking", "redactedThinking")
UNSENT = ("toolConfirmationRequest", "actionRequired", "systemNotification")
"""Types of parts that were for the screen."""

_SAID = ("id", "role", "content", "created", "metadata", "session_id", "timestamp")


def is_message(value: object) -> bool:
    """Tell whether a JSON value is a message that can be read."""
    fields = fields_of(value)
    content = fields.get("content")
    return fields.get("role") in ROLES and "created" in fields and isinstance(content, list)


def is_own(value: object) -> bool:
    """Tell whether a message is goose's, by a part that only goose has or by its ``created``."""
    fields = fields_of(value)
    kinds = {part.get("type") for part in objects_of(fields.get("content"))}
    known = {*CALLS, RESULT, *UNSENT}
    return is_message(value) and (bool(kinds & known) or isinstance(fields["created"], int))


def messages_of(name: str, told: Fields) -> list[Message]:
    """Return what a message amounts to; the first has its id."""
    parts = objects_of(told["content"])
    made = [_result(part) for part in parts if part.get("type") == RESULT]
    said = _said(told["role"], parts)
    made += [said] if said else []
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
    extra = telling({**without(told, *_SAID), **_answered(told)})
    if made and extra:
        made[0]["goose"] = extra | made[0].get("goose", {})
    return [
        message | telling({"timestamp": milliseconds_of(told.get("created"))}) for message in made
    ]


def _answered(told: Fields) -> Fields:
    """Return the model of an answer and its cost, as newer versions tell them."""
    metadata = fields_of(told.get("metadata"))
    return {
        "model": within(metadata, "inference", "resolvedModel"),
        "usage": metadata.get("usage"),
    }


def _said(role: str, parts: list[Fields]) -> Message | None:
    """Return the text, thoughts and calls as a message; None if there are none."""
    calls = [part for part in parts if part.get("type") in CALLS]
    content = simplest_content(list(map(_part, filter(_is_content, parts))))
    message = telling({"tool_calls": list(map(_call, calls)), **_thoughts(parts)})
    if not content and not message:
        return None
    extra = telling({"calls": list(filter(None, map(_beside, calls)))})
    return {"role": role, "content": content, **message} | telling({"goose": extra})


def _is_content(part: Fields) -> bool:
    return part.get("type") not in (*CALLS, RESULT, *THOUGHTS, *UNSENT)


def _thoughts(parts: list[Fields]) -> Fields:
    """Return thoughts: as Anthropic's blocks where all are signed, else as text."""
    thoughts = [part for part in parts if part.get("type") in THOUGHTS]
    if all(part.get("signature") or part.get("data") for part in thoughts):
        return {"thinking_blocks": list(map(_block, thoughts))}
    return {"reasoning_content": joined(part.get("thinking") for part in thoughts)}


def _block(part: Fields) -> Fields:
    kind = "thinking" if part["type"] == "thinking" else "redacted_thinking"
    return {**part, "type": kind}


def _part(part: Fields) -> Fields:
    match part:
        case {"type": "text", "text": str(text)}:
            return text_part(text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    return part


def _call(part: Fields) -> Fields:
    asked = {"name": "unknown", **fields_of(within(part, "toolCall", "value"))}
    return call_of(part.get("id"), asked["name"], asked.get("arguments"))


def _beside(part: Fields) -> Fields:
    """Return what a call says beside its name and arguments, such as why it could not be read."""
    rest = without(part, "type", "id", "toolCall")
    return telling({**rest, "error": within(part, "toolCall", "error")})


def _result(part: Fields) -> Message:
    told = fields_of(part.get("toolResult"))
    value = told.get("value")
    content = objects_of(value) or objects_of(within(value, "content"))
    failed = told.get("status") == "error" or within(value, "isError") is True
    said = simplest_content(list(map(_part, content))) or told.get("error")
    message: Message = {"role": "tool", "content": said or "", "tool_call_id": part.get("id")}
    return message | telling({"messageStatus": "error" if failed else ""})
