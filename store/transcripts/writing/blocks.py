"""Blocks of Anthropic's API, as programs that name their providers divide them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from ...records import Message
from ...text import wrap_in_list

MODEL_PROVIDERS = {
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "codex": "openai",
    "gemini": "google",
}
"""How the name of a model begins → the provider that programs name with it."""
OTHER_PROVIDER = "anthropic"
"""The provider of every other model, in whose shape the messages are."""
MEDIA_BLOCK_TYPES = ("image", "document")


class EmbeddedFile(NamedTuple):
    """A picture or a file of a block: its type, and its address or its data in base64."""

    type: str
    url: str
    data: str | None


def find_model_provider(model: str) -> str:
    """Return the provider of a model, as far as its name tells."""
    beginnings = (each for each in MODEL_PROVIDERS if model.startswith(each))
    return MODEL_PROVIDERS.get(next(beginnings, ""), OTHER_PROVIDER)


def parse_media_block(block: Message) -> EmbeddedFile | None:
    """Return what a block embeds; None for a text, and for a file that is at the provider."""
    source = block.get("source") if block.get("type") in MEDIA_BLOCK_TYPES else None
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return EmbeddedFile(kind, f"data:{kind};base64,{data}", data)
        case {"type": "url", "url": str(url)}:
            return EmbeddedFile(
                "image/png" if block["type"] == "image" else "application/pdf", url, None
            )
    return None


def extract_block_text(block: Message) -> str:
    """Return the text of a block; one that a program has no part for is written as JSON."""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    match block.get("source"):
        case {"type": "text", "data": str(text)}:
            return text
    return json.dumps(block, ensure_ascii=False)


def split_result_blocks(result: Message) -> tuple[str, list[Message]]:
    """Return the text of a result, and its pictures and files."""
    content = result.get("content") or []
    if isinstance(content, str):
        return content, []
    media: list[Message] = []
    texts: list[str] = []
    for block in wrap_in_list(content):
        if parse_media_block(block):
            media.append(block)
        else:
            texts.append(extract_block_text(block))
    return "\n\n".join(texts), media


def split_user_blocks(blocks: Iterable[Message]) -> tuple[list[Message], list[Message]]:
    """Return the results of a message, and what the user said in it."""
    given = [*blocks]
    results = [block for block in given if block["type"] == "tool_result"]
    return results, [block for block in given if block["type"] != "tool_result"]
