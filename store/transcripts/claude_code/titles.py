"""What a Claude Code session is called where no one gave it a title."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from ...messages import Message
from ..blocks import blocks_of
from ..events import title_line

INJECTED = ("<", "Caveat:", "[Request interrupted")
"""How user texts begin that no user typed."""

_TAG = re.compile(r"<[^<>]*>")


def prompt_titles(messages: Iterable[Message]) -> list[str]:
    """Return the first text that a user typed, then the first command, cut for a title."""
    users = (message for message in messages if message["role"] == "user")
    texts = (text for message in users for text in _said_texts(message))
    first = next(texts, "")
    typed = next(filter(_is_typed, chain([first], texts)), "")
    lines = map(title_line, (typed, _TAG.sub(" ", first[:1000])))
    return [line for line in lines if line]


def _is_typed(text: str) -> bool:
    return not text.lstrip().startswith(INJECTED)


def _said_texts(message: Message) -> list[str]:
    """Return the texts of a user message; none where Claude Code wrote it."""
    extra = message["claude_code"]
    if extra.get("isMeta") or extra.get("isCompactSummary"):
        return []
    texts = (block.get("text") for block in blocks_of(message["content"]) or [])
    return [text for text in texts if isinstance(text, str) and text.strip()]
