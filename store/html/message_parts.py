"""What a message shows, whatever the format it came in: texts, thoughts, pictures, calls, results.

A message is read by the shapes of its parts, as the formats of providers have them; a part of no
known shape is shown as its JSON. Nothing is raised for any message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..messages import Media, Message, find_text_under, is_redacted, parse_media
from ..text import JsonFields, parse_object

PICTURE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
"""The pictures that are shown: none of them can hold a script."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")

SHOWN_ROLES = {"model": "assistant", "function": "tool"}
"""The roles that are shown as another."""


class Part(NamedTuple):
    """A piece of a content: a ``text``, a ``picture`` (its URL), a ``file`` or a ``value``."""

    kind: str
    text: str


class CallPart(NamedTuple):
    """A call of a tool, with its arguments as fields, or as a text if they are none."""

    id: str | None
    name: str
    fields: JsonFields
    text: str = ""


class ResultPart(NamedTuple):
    """A result of a tool: the id of its call, its content, and whether it says that it failed."""

    id: str | None
    name: str | None
    parts: list[Part]
    failed: bool


class MessageParts(NamedTuple):
    """The parts of a message, in their order within each kind."""

    role: str
    thoughts: list[str]
    parts: list[Part]
    calls: list[CallPart]
    results: list[ResultPart]


def can_show_picture(media: Media) -> bool:
    """Tell whether a picture is at hand, and of a type that is shown."""
    data = media.data
    return media.type in PICTURE_TYPES and data is not None and bool(_BASE64.fullmatch(data))


def read_message(message: Message) -> MessageParts:
    """Return the parts of a message."""
    role = message.get("role")
    kind = message.get("type")
    by_type = "assistant" if kind in _CALL_TYPES or kind in _THOUGHT_TYPES else "tool"
    shown = role if isinstance(role, str) else by_type if isinstance(kind, str) else "other"
    read = MessageParts(SHOWN_ROLES.get(shown, shown), [], [], [], [])
    if is_redacted(message):
        read.parts.append(Part("file", "redacted"))
        if message.get("redacted") is not True:
            read.parts.append(Part("text", message["content"]))
        return read
    for key in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(message.get(key), str) and message[key].strip():
            read.thoughts.append(message[key])
            break
    for key in ("thinking_blocks", "reasoning_items"):
        _read_blocks(read, message.get(key))
    if read.role == "tool" and "content" in message:
        _add_result(read, message, message["content"])
    elif kind in _PART_READERS and "role" not in message:
        _PART_READERS[str(kind)](read, message)
    else:
        _read_blocks(read, message.get("content", message.get("parts")))
    for call in _list_objects(message.get("tool_calls")):
        _add_call(read, call)
    if isinstance(message.get("function_call"), dict):
        _add_call(read, message["function_call"])
    return read


def _read_blocks(read: MessageParts, content: Any) -> None:
    """Add the parts of a content."""
    if isinstance(content, str):
        if content.strip():
            read.parts.append(Part("text", content))
        return
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            read.parts.append(Part("text", part))
        elif isinstance(part, dict):
            _PART_READERS.get(str(part.get("type")), _add_other)(read, part)
        elif part is not None:
            read.parts.append(Part("value", render_json_text(part)))


def _add_other(read: MessageParts, part: JsonFields) -> None:
    """Add a part without a type of its own: those of Gemini, media, or one that is not known."""
    call, answer = part.get("functionCall"), part.get("functionResponse")
    held = part.get("inlineData", part.get("inline_data"))
    media = parse_media({"type": "image", **held} if isinstance(held, dict) else part)
    if isinstance(call, dict):
        _add_call(read, call)
    elif isinstance(answer, dict):
        _add_result(read, answer, answer.get("response"))
    elif media is not None:
        read.parts.append(_describe_media(media))
    elif isinstance(part.get("text"), str) and part.get("thought") is True:
        read.thoughts.append(part["text"])
    elif isinstance(part.get("text"), str):
        read.parts.append(Part("text", part["text"]))
    elif part:
        read.parts.append(Part("value", render_json_text(part)))


def _describe_media(media: Media) -> Part:
    if can_show_picture(media):
        return Part("picture", f"data:{media.type};base64,{media.data}")
    return Part("file", f"{media.type}, {media.size}")


def _add_text(read: MessageParts, part: JsonFields) -> None:
    text = part.get("text", part.get("refusal"))
    if isinstance(text, str):
        if text.strip():
            read.parts.append(Part("text", text))
    else:
        read.parts.append(Part("value", render_json_text(part)))


def _add_thought(read: MessageParts, part: JsonFields) -> None:
    """Add the readable part of a thought; one that is sealed shows nothing."""
    texts = [part[key] for key in ("thinking", "text") if isinstance(part.get(key), str)]
    for key in ("summary", "content"):
        held = _list_objects(part.get(key))
        texts += [each["text"] for each in held if isinstance(each.get("text"), str)]
    read.thoughts.extend(text for text in texts if text.strip())


def _add_call(read: MessageParts, call: JsonFields) -> None:
    """Add a call in any of the shapes in use."""
    function = call.get("function") if isinstance(call.get("function"), dict) else call
    assert isinstance(function, dict)
    keys = ("arguments", "input", "args", "parameters", "action")
    given = next((function[key] for key in keys if function.get(key) is not None), None)
    fields = parse_object(given)
    text = "" if fields or given in (None, "", "{}", {}) else render_json_text(given)
    name = find_text_under(function, ("name", "type")) or "?"
    read.calls.append(CallPart(find_text_under(call, ("call_id", "id")), name, fields, text))


def _add_result(read: MessageParts, answer: JsonFields, content: Any) -> None:
    """Add a result, with its status."""
    inner = MessageParts("tool", [], [], [], [])
    is_plain = isinstance(content, str | list)
    _read_blocks(inner, content if is_plain else _read_plain_output(content))
    said = next((each.text for each in inner.parts if each.kind == "text"), "")
    failed = (
        answer.get("is_error") is True
        or answer.get("messageStatus") == "error"
        or said.lstrip().startswith("Error:")
    )
    call_id = find_text_under(answer, ("tool_call_id", "tool_use_id", "call_id", "id"))
    read.results.append(
        ResultPart(call_id, find_text_under(answer, ("name",)), inner.parts, failed)
    )


def _read_plain_output(content: Any) -> Any:
    """Return the text of a result that is an object with nothing else, else its JSON."""
    if isinstance(content, dict) and len(content) == 1:
        (held,) = content.values()
        if isinstance(held, str):
            return held
    return None if content is None else render_json_text(content)


def _add_own_result(read: MessageParts, part: JsonFields) -> None:
    _add_result(read, part, part.get("content", part.get("output")))


def _list_objects(value: Any) -> Iterator[JsonFields]:
    return (each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict))


def render_json_text(value: Any) -> str:
    """Return a value as JSON on several lines, a text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError):
        return f"[{type(value).__name__}]"


_TEXT_TYPES = ("text", "input_text", "output_text", "refusal", "summary_text")
_THOUGHT_TYPES = ("thinking", "redacted_thinking", "reasoning")
_CALL_TYPES = (
    *("tool_use", "server_tool_use", "mcp_tool_use", "function_call", "custom_tool_call"),
    *("local_shell_call", "web_search_call", "computer_call", "mcp_call", "tool_call"),
)
_RESULT_TYPES = (
    *("tool_result", "web_search_tool_result", "mcp_tool_result", "function_call_output"),
    *("custom_tool_call_output", "local_shell_call_output", "computer_call_output"),
)
_PART_READERS: Mapping[str, Callable[[MessageParts, JsonFields], None]] = {
    **dict.fromkeys(_TEXT_TYPES, _add_text),
    **dict.fromkeys(_THOUGHT_TYPES, _add_thought),
    **dict.fromkeys(_CALL_TYPES, _add_call),
    **dict.fromkeys(_RESULT_TYPES, _add_own_result),
}
"""What reads a part, by its type."""
