"""Send a model's reasoning as text to another provider, which cannot use its signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..messages import WIRE_KEY, Message
from .openai import ANSWER_EXTENSIONS, OPENAI_NAME, is_own_answer, replace_surrogates
from .parts import list_parts
from .request_messages import PlacedMessage

REASONING_TEXT_KEYS = ("reasoning_content", "reasoning")
"""Keys of a chat that hold an answer's reasoning as a text."""
REASONING_LIST_FORMATS = {"thinking_blocks": "anthropic", "reasoning_items": "responses"}
"""Keys of a chat that hold reasoning unchanged, and the format that sends it so itself."""
REASONING_BLOCK_KEYS = ("thinking", "text")
REASONING_NESTED_KEYS = ("summary", "content")


def add_reasoning(
    placed: Iterable[PlacedMessage], name: str, *, extensions: bool = True
) -> Iterator[PlacedMessage]:
    """Yield a request in which answers begin with the reasoning that a format does not send.

    A chat sends its own, unless it is without ``extensions``.
    """
    for each in placed:
        is_sent = extensions and (
            name == OPENAI_NAME
            and is_own_answer(each.message)
            and any(map(each.message.get, ANSWER_EXTENSIONS))
        )
        is_answer = each.message["role"] == "assistant" and not is_sent
        text = find_reasoning(each.message, name) if is_answer else ""
        if not text:
            yield each
            continue
        part = {"type": "text", "text": f"<thinking>\n{replace_surrogates(text)}\n</thinking>"}
        rest = {
            key: held
            for key, held in each.message.items()
            if key not in (WIRE_KEY, *REASONING_LIST_FORMATS)
        }
        said = [part, *list_parts(rest.get("content"))]
        yield each._replace(message={**rest, "content": said})


def find_reasoning(message: Message, name: str) -> str:
    """Return the readable reasoning of an answer that a format does not send itself."""
    blocks: list[Any] = []
    held = message.get(WIRE_KEY)
    if isinstance(held, dict) and held.get("format") != name:
        blocks += [*held.get("plan", ()), held.get("block")]
    for key, own in REASONING_LIST_FORMATS.items():
        if own != name and isinstance(message.get(key), list):
            blocks += message[key]
    texts = [text for block in blocks for text in _list_reasoning_texts(block)]
    spoken = [message[key] for key in REASONING_TEXT_KEYS if isinstance(message.get(key), str)]
    return "\n\n".join(text for text in texts or spoken[:1] if text.strip())


def _list_reasoning_texts(block: Any) -> Iterator[str]:
    """Yield the texts of reasoning in one of the shapes in use."""
    if not isinstance(block, dict):
        return
    yield from (block[key] for key in REASONING_BLOCK_KEYS if isinstance(block.get(key), str))
    if block.get("type") == "reasoning":
        for key in REASONING_NESTED_KEYS:
            for part in list_parts(block.get(key)):
                yield from _list_reasoning_texts(part)
