"""Send a model's reasoning as text to another provider, which cannot use its signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..messages import WIRE, Message
from .openai import EXTENSIONS, NAME, is_extended, sendable
from .parts import parts_of
from .placed import Placed

SPOKEN = ("reasoning_content", "reasoning")
"""Keys of a chat that hold an answer's reasoning as a text."""
LISTED = {"thinking_blocks": "anthropic", "reasoning_items": "responses"}
"""Keys of a chat that hold reasoning unchanged, and the format that sends it so itself."""
TEXTS = ("thinking", "text")
NESTED = ("summary", "content")


def with_reasoning(
    placed: Iterable[Placed], name: str, *, extensions: bool = True
) -> Iterator[Placed]:
    """Yield a request in which answers begin with the reasoning that a format does not send.

    A chat sends its own, unless it is without ``extensions``.
    """
    for each in placed:
        is_sent = extensions and (
            name == NAME and is_extended(each.message) and any(map(each.message.get, EXTENSIONS))
        )
        is_answer = each.message["role"] == "assistant" and not is_sent
        text = reasoning_of(each.message, name) if is_answer else ""
        yield _thinking(each, text) if text else each


def _thinking(placed: Placed, text: str) -> Placed:
    message = placed.message
    part = {"type": "text", "text": f"<thinking>\n{sendable(text)}\n</thinking>"}
    said = [part, *parts_of(message.get("content"))]
    return placed._replace(
        message={
            **{key: held for key, held in message.items() if key not in (WIRE, *LISTED)},
            "content": said,
        }
    )


def reasoning_of(message: Message, name: str) -> str:
    """Return the readable reasoning of an answer that a format does not send itself."""
    texts = [text for block in _blocks(message, name) for text in _texts(block)]
    spoken = [message[key] for key in SPOKEN if isinstance(message.get(key), str)]
    return "\n\n".join(text for text in texts or spoken[:1] if text.strip())


def _blocks(message: Message, name: str) -> Iterator[Any]:
    held = message.get(WIRE)
    if isinstance(held, dict) and held.get("format") != name:
        yield from held.get("plan", ())
        yield held.get("block")
    for key, own in LISTED.items():
        if own != name and isinstance(message.get(key), list):
            yield from message[key]


def _texts(block: Any) -> Iterator[str]:
    """Yield the texts of reasoning in one of the shapes in use."""
    if not isinstance(block, dict):
        return
    yield from (block[key] for key in TEXTS if isinstance(block.get(key), str))
    if block.get("type") == "reasoning":
        for key in NESTED:
            for part in parts_of(block.get(key)):
                yield from _texts(part)
