"""Parts of Google's Gemini API as messages of the chat, as Gemini CLI and its likes record them.

Text becomes content, thoughts become reasoning, function calls and their responses become tool
calls and tool messages; a part without a counterpart stays as it is.
"""

from __future__ import annotations

import json
from typing import Any

from ...records import Message
from ...text import JsonFields, wrap_in_list
from ..parser_events import build_chat_call, build_text_part, get_fields, get_text, simplify_content

GEMINI_RESPONSE_KEYS = ("output", "error", "content", "result")
"""Keys under which a response that is one text has it."""


def list_gemini_parts(content: object) -> list[Any]:
    """Return a content as parts: a text, one part, or a list of either."""
    if content in (None, ""):
        return []
    return [
        build_text_part(each) if isinstance(each, str) else each for each in wrap_in_list(content)
    ]


def parse_gemini_content(parts: list[Any]) -> object:
    """Return what parts say beside thoughts, calls and responses, in its simplest form."""
    return simplify_content(
        [
            _parse_gemini_part(part)
            for part in parts
            if (
                not (
                    _is_gemini_thought(part)
                    or _is_gemini_response(part)
                    or "functionCall" in get_fields(part)
                )
            )
        ]
    )


def join_gemini_thoughts(parts: list[Any]) -> str:
    """Return what a model thought."""
    thoughts = (part for part in parts if _is_gemini_thought(part))
    return "\n".join(filter(None, (get_text(part.get("text")) for part in thoughts)))


def parse_gemini_calls(parts: list[Any], name: str) -> list[JsonFields]:
    """Return the calls among parts; those without an id are named after their message."""
    calls = [get_fields(get_fields(part).get("functionCall")) for part in parts]
    numbered = enumerate(filter(None, calls), 1)
    return [parse_gemini_call(call, f"{name}-call-{number}") for number, call in numbered]


def parse_gemini_call(call: JsonFields, fallback: str) -> JsonFields:
    """Return a call with its arguments as JSON text."""
    arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
    return build_chat_call(get_text(call.get("id")) or fallback, call.get("name"), arguments)


def list_gemini_responses(parts: list[Any]) -> list[JsonFields]:
    """Return the function responses among parts."""
    return [part["functionResponse"] for part in parts if _is_gemini_response(part)]


def parse_gemini_response(response: JsonFields) -> Message:
    """Return a function's response as a tool message; it may have parts of its own."""
    said = response.get("response")
    told = get_fields(said)
    key, *others = told or [None]
    text = told[key] if key in GEMINI_RESPONSE_KEYS and not others else None
    if not isinstance(text, str):
        text = json.dumps(said, ensure_ascii=False)
    beside = [_parse_gemini_part(part) for part in list_gemini_parts(response.get("parts"))]
    message: Message = {
        "role": "tool",
        "content": [build_text_part(text), *beside] if beside else text,
    }
    if get_text(response.get("id")):
        message["tool_call_id"] = response["id"]
    if get_text(response.get("name")):
        message["name"] = response["name"]
    return message | ({"messageStatus": "error"} if key == "error" else {})


def _is_gemini_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("thought") is True


def _is_gemini_response(part: Any) -> bool:
    return bool(get_fields(get_fields(part).get("functionResponse")))


def _parse_gemini_part(part: Any) -> Any:
    """Return a part of the content: a text, a picture as ``image_url``, another as it is."""
    match part:
        case {"text": str(text), **rest} if not rest:
            return build_text_part(text)
        case {"inlineData": {"mimeType": str(kind), "data": str(data)}} if kind[:6] == "image/":
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
        case dict():
            return part
    return build_text_part(json.dumps(part, ensure_ascii=False))
