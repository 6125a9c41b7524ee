"""The OpenAI chat format: exactly the keys that the API knows, with the types that it takes."""

from __future__ import annotations

import json
import re
from typing import Any

from ..messages import Message
from ..repair import ApiCall, Placed

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
"""The roles of the API; any other speaks as the user."""
PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
"""The content parts of the API; any other is sent as its JSON text."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(placed: Placed) -> Message:
    """Return a message with nothing in it that the API refuses: no unknown key, no lone surrogate, no odd type."""
    message, call_id = placed.message, placed.call_id
    role = message["role"] if message["role"] in ROLES else "user"
    sent: Message = {"role": role}
    if role == "tool":
        sent["tool_call_id"] = scrubbed(call_id or "")
        sent["content"] = _content(message.get("content"), texts_only=True)
        return sent
    name = message.get("name")
    if isinstance(name, str) and name:
        sent["name"] = scrubbed(name)
    content = message.get("content")
    if placed.calls:
        sent["content"] = None if content is None else _content(content)
        sent["tool_calls"] = [_call(call) for call in placed.calls]
    else:
        sent["content"] = _content(content)
    return sent


def scrubbed(text: str) -> str:
    """Return a text with U+FFFD for lone surrogates: a request that holds one is refused."""
    if text.isascii():
        return text
    return _SURROGATES.sub("\ufffd", text)


def _content(content: Any, *, texts_only: bool = False) -> Any:
    """Return a content as a text or a list of known parts; whatever is neither is sent as its JSON text."""
    if isinstance(content, str):
        return scrubbed(content)
    if content is None:
        return ""
    if not isinstance(content, list):
        return scrubbed(_json(content))
    known = {"text"} if texts_only else PARTS
    return [_part(part, known) for part in content] or ""


def _part(part: Any, known: frozenset[str] | set[str]) -> Message:
    if isinstance(part, str):
        return {"type": "text", "text": scrubbed(part)}
    if isinstance(part, dict) and part.get("type") in known:
        if part["type"] != "text":
            return part
        text = part.get("text")
        return {"type": "text", "text": scrubbed(text if isinstance(text, str) else _json(text))}
    return {"type": "text", "text": scrubbed(_json(part))}


def _call(call: ApiCall) -> Message:
    arguments = (
        call.arguments if isinstance(call.arguments, str) else _json({} if call.arguments is None else call.arguments)
    )
    function = {"name": scrubbed(call.name), "arguments": scrubbed(arguments)}
    return {"id": scrubbed(call.id), "type": "function", "function": function}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
