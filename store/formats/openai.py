"""The OpenAI chat format: exactly the keys that the API knows, with the types that it takes."""

from __future__ import annotations

import json
import re
from typing import Any

from ..messages import Message
from ..repair import ApiCall, Placed

PARTS: dict[str, dict[str, type]] = {
    "system": {"text": str},
    "developer": {"text": str},
    "user": {"text": str, "image_url": dict, "input_audio": dict, "file": dict},
    "assistant": {"text": str, "refusal": str},
    "tool": {"text": str},
}
"""The roles of the API and the content parts that each may have, with what a part holds under its own name.

Any other role speaks as the user, any other part is sent as its JSON text.
"""

_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(placed: Placed) -> Message:
    """Return a message with nothing in it that the API refuses: no unknown key, no lone surrogate, no odd type."""
    _, message, _, calls, call_id, _ = placed
    role = message["role"] if message["role"] in PARTS else "user"
    content = message.get("content")
    if role == "tool":
        return {"role": role, "tool_call_id": scrubbed(call_id or ""), "content": _content(content, role)}
    sent: Message = {"role": role}
    name = message.get("name")
    if isinstance(name, str) and name:
        sent["name"] = scrubbed(name)
    sent["content"] = None if calls and content is None else _content(content, role)
    if calls:
        sent["tool_calls"] = [_call(call) for call in calls]
    return sent


def scrubbed(text: str) -> str:
    """Return a text with U+FFFD for lone surrogates: a request that holds one is refused."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def _content(content: Any, role: str) -> Any:
    """Return a content as a text or a list of known parts; whatever is neither is sent as its JSON text."""
    if isinstance(content, str):
        return scrubbed(content)
    if content is None:
        return ""
    if not isinstance(content, list):
        return scrubbed(_json(content))
    return [_part(part, PARTS[role]) for part in content] or ""


def _part(part: Any, known: dict[str, type]) -> Message:
    if isinstance(part, str):
        return {"type": "text", "text": scrubbed(part)}
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in known:
        return {"type": "text", "text": scrubbed(_json(part))}
    held = part.get(kind)
    if not isinstance(held, known[kind]) or held == {}:
        return {"type": "text", "text": scrubbed(_json(part))}
    return {"type": kind, kind: scrubbed(held) if isinstance(held, str) else json.loads(scrubbed(_json(held)))}


def _call(call: ApiCall) -> Message:
    arguments = (
        call.arguments if isinstance(call.arguments, str) else _json({} if call.arguments is None else call.arguments)
    )
    function = {"name": scrubbed(call.name), "arguments": scrubbed(arguments)}
    return {"id": scrubbed(call.id), "type": "function", "function": function}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
