"""The OpenAI chat format: exactly the keys that the API knows, with the types that it takes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..messages import Message
from .placed import ApiCall, Placed

PARTS: dict[str, dict[str, type]] = {
    "system": {"text": str},
    "developer": {"text": str},
    "user": {"text": str, "image_url": dict, "input_audio": dict, "file": dict},
    "assistant": {"text": str, "refusal": str},
    "tool": {"text": str},
}
"""The roles of the API, the content parts that each may have, and the type of what a part holds
under its own name.

Any other role speaks as the user, any other part is sent as its JSON text.
"""

_SURROGATES = re.compile("[\ud800-\udfff]")


def write(placed: Sequence[Placed]) -> list[Message]:
    """Return a request as messages, one for each."""
    return [clean(each) for each in placed]


def clean(placed: Placed) -> Message:
    """Return one message with nothing in it that the API refuses.

    No key it does not know, no lone surrogate, no value of a type it does not take.
    """
    message = placed.message
    role = message["role"]
    if role not in PARTS:
        role = "user"
    if role == "tool":
        return {
            "role": role,
            "tool_call_id": sendable(placed.call_id or ""),
            "content": _content(message.get("content"), role),
        }
    sent: Message = {"role": role}
    name = message.get("name")
    if isinstance(name, str) and name:
        sent["name"] = sendable(name)
    sent |= _said(message.get("content"), placed.calls, role)
    return sent


def sendable(text: str) -> str:
    """Return a text with U+FFFD for lone surrogates: a request that holds one is refused."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def _said(content: Any, calls: Sequence[ApiCall], role: str) -> Message:
    """Return the content, and the calls if there are any: beside them null stays null."""
    if not calls:
        return {"content": _content(content, role)}
    return {
        "content": None if content is None else _content(content, role),
        "tool_calls": [_call(call) for call in calls],
    }


def _content(content: Any, role: str) -> Any:
    """Return a content as a text or a list of known parts.

    Whatever is neither is sent as its JSON text.
    """
    if isinstance(content, str):
        return sendable(content)
    if content is None:
        return ""
    if not isinstance(content, list):
        return _json_text(content)
    return [_part(part, PARTS[role]) for part in content] or ""


def _part(part: Any, known: dict[str, type]) -> Message:
    if isinstance(part, str):
        return _text_part(sendable(part))
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in known:
        return _text_part(_json_text(part))
    held = part.get(kind)
    if not isinstance(held, known[kind]) or held == {}:
        return _text_part(_json_text(part))
    if isinstance(held, str):
        return {"type": kind, kind: sendable(held)}
    return {"type": kind, kind: json.loads(_json_text(held))}


def _text_part(text: str) -> Message:
    return {"type": "text", "text": text}


def _call(call: ApiCall) -> Message:
    function = {"name": sendable(call.name), "arguments": _arguments(call.arguments)}
    return {"id": sendable(call.id), "type": "function", "function": function}


def _arguments(given: Any) -> str:
    if isinstance(given, str):
        return sendable(given)
    return "{}" if given is None else _json_text(given)


def _json_text(value: Any) -> str:
    return sendable(json.dumps(value, ensure_ascii=False))
