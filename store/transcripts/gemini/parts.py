"""Parts of Google's Gemini API as messages of the chat, as Gemini CLI and its likes record them.

Text becomes content, thoughts become reasoning, function calls and their responses become tool
calls and tool messages; a part without a counterpart stays as it is.
"""

from __future__ import annotations

import json
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..events import fields_of, simplest_content, text_of, text_part

SAID = ("output", "error", "content", "result")
"""Keys under which a response that is one text has it."""


def parts_in(content: object) -> list[Any]:
    """Return a content as parts: a text, one part, or a list of either."""
    if content in (None, ""):
        return []
    return [text_part(each) if isinstance(each, str) else each for each in as_list(content)]


def content_of(parts: list[Any]) -> object:
    """Return what parts say beside thoughts, calls and responses, in its simplest form."""
    return simplest_content(
        [
            _part(part)
            for part in parts
            if (not (_is_thought(part) or _is_response(part) or "functionCall" in fields_of(part)))
        ]
    )


def thoughts_in(parts: list[Any]) -> str:
    """Return what a model thought."""
    thoughts = (part for part in parts if _is_thought(part))
    return "\n".join(filter(None, (text_of(part.get("text")) for part in thoughts)))


def calls_in(parts: list[Any], name: str) -> list[Fields]:
    """Return the calls among parts; those without an id are named after their message."""
    calls = [fields_of(fields_of(part).get("functionCall")) for part in parts]
    numbered = enumerate(filter(None, calls), 1)
    return [call_of(call, f"{name}-call-{number}") for number, call in numbered]


def call_of(call: Fields, fallback: str) -> Fields:
    """Return a call with its arguments as JSON text."""
    arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
    function = {"name": text_of(call.get("name")) or "", "arguments": arguments}
    return {"id": text_of(call.get("id")) or fallback, "type": "function", "function": function}


def responses_in(parts: list[Any]) -> list[Fields]:
    """Return the function responses among parts."""
    return [part["functionResponse"] for part in parts if _is_response(part)]


def result_of(response: Fields) -> Message:
    """Return a function's response as a tool message; it may have parts of its own."""
    said = response.get("response")
    told = fields_of(said)
    key, *others = told or [None]
    text = told[key] if key in SAID and not others else None
    if not isinstance(text, str):
        text = json.dumps(said, ensure_ascii=False)
    beside = [_part(part) for part in parts_in(response.get("parts"))]
    message: Message = {"role": "tool", "content": [text_part(text), *beside] if beside else text}
    if text_of(response.get("id")):
        message["tool_call_id"] = response["id"]
    if text_of(response.get("name")):
        message["name"] = response["name"]
    return message | ({"messageStatus": "error"} if key == "error" else {})


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("thought") is True


def _is_response(part: Any) -> bool:
    return bool(fields_of(fields_of(part).get("functionResponse")))


def _part(part: Any) -> Any:
    """Return a part of the content: a text, a picture as ``image_url``, another as it is."""
    match part:
        case {"text": str(text), **rest} if not rest:
            return text_part(text)
        case {"inlineData": {"mimeType": str(kind), "data": str(data)}} if kind[:6] == "image/":
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
        case dict():
            return part
    return text_part(json.dumps(part, ensure_ascii=False))
