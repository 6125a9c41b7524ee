"""Blocks of messages, as frameworks have them, and what a chat says of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..records import Message


class BlockShape(NamedTuple):
    """How a framework names what a chat has a place for.

    ``kind`` is the field with the type of a block; ``call`` is the type of calls, followed by their
    fields. ``pictures`` are the fields that have a picture: as an URL, or, with the field that has
    its type, as the base64 of its bytes.
    """

    kind: str
    call: str
    call_id: str
    name: str
    arguments: str
    pictures: Mapping[str, str | None]


BLOCK_SHAPES = {
    "agent_framework": BlockShape(
        "type", "function_call", "call_id", "name", "arguments", {"uri": None}
    ),
    "llama_index": BlockShape(
        *("block_type", "tool_call", "tool_call_id", "tool_name", "tool_kwargs"),
        {"image": "image_mimetype", "url": None},
    ),
}
"""The shapes by the keys under which what a chat cannot say is kept."""


def shape_blocks(blocks: Iterable[Message], shape: BlockShape, *, calls: bool = False) -> Message:
    """Return the content and, if it may have some, the calls of a message with these blocks.

    Under ``rest`` are the blocks without what is said so.
    """
    row: Message = {"content": "", "rest": []}
    parts: list[Message] = []
    for block in blocks:
        rest = dict(block)
        row["rest"].append(rest)
        if block[shape.kind] == "text":
            parts.append({"type": "text", "text": rest.pop("text")})
        elif field := find_picture(block, shape):
            kind = shape.pictures[field]
            start = f"data:{block[kind] or 'image/png'};base64," if kind else ""
            parts.append({"type": "image_url", "image_url": {"url": start + block[field]}})
            rest[field] = ""
        elif calls and is_call(block, shape):
            row.setdefault("tool_calls", []).append(shape_block_call(rest, shape))
    if parts:
        is_text = len(parts) == 1 and parts[0]["type"] == "text"
        row["content"] = parts[0]["text"] if is_text else parts
    return row


def find_picture(block: Message, shape: BlockShape) -> str | None:
    """Return the field with the picture of a block; None if it has none."""
    kinds = (block.get("media_type"), block[shape.kind])
    if not any(str(kind).startswith("image") for kind in kinds):
        return None
    return next((field for field in shape.pictures if block.get(field)), None)


def is_call(block: Message, shape: BlockShape) -> bool:
    """Tell whether a block is a call that a chat can say."""
    return bool(block[shape.kind] == shape.call and block.get(shape.call_id))


def shape_block_call(rest: Message, shape: BlockShape) -> Message:
    """Take a call out of a block, and return it as a chat has it."""
    given = rest.get(shape.arguments)
    arguments = given if isinstance(given, str) else json.dumps(given or {})
    if given is not None:
        rest[shape.arguments] = "" if isinstance(given, str) else {}
    called = {"name": rest.pop(shape.name), "arguments": arguments}
    return {"id": rest.pop(shape.call_id), "type": "function", "function": called}


def restore_blocks(row: Message, rests: list[Message] | None, shape: BlockShape) -> list[Message]:
    """Return the blocks of a message; what it says is that of the row, whoever replaced it.

    Without ``rests``, as another program stores a message, they are those of a chat.
    """
    said = list_block_parts(row.get("content"))
    called = row.get("tool_calls") or []
    if rests is None:
        rests = [{shape.kind: shape.call, shape.arguments: {}} for _ in called]
    places = [get_block_place(rest, shape) for rest in rests]
    if places.count("part") != len(said):
        said = [part for part in said if part.get("text")]
        others = [rest for rest, place in zip(rests, places, strict=True) if place != "part"]
        rests = [*({shape.kind: "text"} for _ in said), *others]
    parts, calls = iter(said), iter(called)
    return [restore_block(rest, parts, calls, shape) for rest in rests]


def list_block_parts(content: Any) -> list[Message]:
    """Return the parts of a content; a text is one."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content is not None else []


def get_block_place(rest: Message, shape: BlockShape) -> str | None:
    """Return where the row has what a block lacks; None if it lacks nothing."""
    lacking = [field for field in shape.pictures if rest.get(field) == ""]
    if lacking or rest[shape.kind] == "text":
        return "part"
    return "call" if rest[shape.kind] == shape.call and shape.name not in rest else None


def restore_block(
    rest: Message, parts: Iterator[Message], calls: Iterator[Message], shape: BlockShape
) -> Message:
    """Return a block with what the row has of it."""
    place = get_block_place(rest, shape)
    if place == "call":
        return restore_block_call(rest, next(calls), shape)
    if place != "part":
        return rest
    part = next(parts)
    if rest[shape.kind] == "text":
        return {**rest, "text": part["text"]}
    field = next(field for field in shape.pictures if rest.get(field) == "")
    url = part["image_url"]["url"]
    is_bare = shape.pictures[field] is not None
    return {**rest, field: url.rpartition(",")[2] if is_bare else url}


def restore_block_call(rest: Message, call: Message, shape: BlockShape) -> Message:
    """Return the block of a call; arguments that are no JSON any more are a text."""
    function, given = call["function"], rest.get(shape.arguments)
    block = {**rest, shape.call_id: call["id"], shape.name: function["name"]}
    if given is not None:
        block[shape.arguments] = function["arguments"]
    if isinstance(given, dict):
        try:
            block[shape.arguments] = json.loads(function["arguments"])
        except ValueError:
            return block
    return block
