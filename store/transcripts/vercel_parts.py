"""Messages of the Vercel AI SDK, which other programs keep too, as messages of the chat."""

from __future__ import annotations

from collections.abc import Iterator

from ..records import Message
from ..text import JsonFields
from .conversations import (
    build_chat_message,
    build_picture_part,
    build_result_message,
    join_content,
)
from .parser_events import (
    build_chat_call,
    drop_empty_fields,
    find_first_text,
    get_fields,
    get_objects,
    get_text,
    join_texts,
)

VERCEL_CALL_TYPE, VERCEL_RESULT_TYPE = "tool-call", "tool-result"
VERCEL_THOUGHT_TYPES = ("reasoning", "thinking", "redacted-reasoning")
VERCEL_ROLES = ("system", "user", "assistant", "tool")


def is_vercel_message(value: object) -> bool:
    """Tell whether a value is a message whose parts can be read."""
    fields = get_fields(value)
    content = fields.get("content")
    return get_text(fields.get("role")) in VERCEL_ROLES and isinstance(content, str | list)


def parse_vercel_message(told: JsonFields, name: str) -> Iterator[Message]:
    """Yield what a message amounts to: text and calls, then results."""
    content = told["content"]
    parts = get_objects(content)
    results = _list_parts_of(parts, VERCEL_RESULT_TYPE)
    calls = _list_parts_of(parts, VERCEL_CALL_TYPE)
    thoughts = _list_parts_of(parts, *VERCEL_THOUGHT_TYPES)
    others = [part for part in parts if part not in (*results, *calls, *thoughts)]
    said = (
        content if isinstance(content, str) else join_content(list(map(parse_media_part, others)))
    )
    if said or calls or thoughts:
        yield build_chat_message(
            "assistant" if told["role"] == "tool" else told["role"],
            said,
            tool_calls=[
                _parse_vercel_call(call, f"{name}-call-{number}")
                for number, call in enumerate(calls, 1)
            ],
            reasoning_content=join_texts(part.get("text") for part in thoughts),
        )
    yield from map(_parse_vercel_result, results)


def _list_parts_of(parts: list[JsonFields], *kinds: str) -> list[JsonFields]:
    return [part for part in parts if part.get("type") in kinds]


def _parse_vercel_call(part: JsonFields, fallback: str) -> JsonFields:
    given = part.get("input", part.get("args"))
    return build_chat_call(
        get_text(part.get("toolCallId")) or fallback, part.get("toolName"), given
    )


def _parse_vercel_result(part: JsonFields) -> Message:
    """Return a result: its value, which newer versions wrap with its type."""
    output = part.get("output", part.get("result"))
    kind = get_text(get_fields(output).get("type")) or ""
    if kind and "value" in get_fields(output):
        output = get_fields(output)["value"]
    if isinstance(output, list):
        output = [parse_media_part(each) if get_fields(each) else each for each in output]
    failed = part.get("isError") is True or kind.startswith("error")
    return build_result_message(
        part.get("toolCallId"),
        output,
        failed=failed,
        **drop_empty_fields({"name": get_text(part.get("toolName"))}),
    )


def parse_media_part(part: JsonFields) -> JsonFields:
    """Return a picture or a text as a part of the chat, another part as it is."""
    kind = get_text(part.get("type")) or ""
    media = find_first_text(map(part.get, ("mediaType", "mimeType")))
    data = find_first_text(map(part.get, ("image", "data", "url")))
    if (
        kind in ("image", "media", "file", "image-data")
        and data
        and (kind != "file" or (media or "").startswith("image/"))
    ):
        if data.startswith(("data:", "http")):
            return {"type": "image_url", "image_url": {"url": data}}
        return build_picture_part(media, data)
    return part
