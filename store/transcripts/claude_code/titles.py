"""What a Claude Code session is called where no one gave it a title."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from ...messages import Message
from ..blocks import parse_blocks
from ..events import render_title

CLAUDE_CODE_INJECTIONS = ("<", "Caveat:", "[Request interrupted")
"""How user texts begin that no user typed."""

_MARKUP_TAG = re.compile(r"<[^<>]*>")


def list_prompt_titles(messages: Iterable[Message]) -> list[str]:
    """Return the first text that a user typed, then the first command, cut for a title."""
    users = (message for message in messages if message["role"] == "user")
    texts = (text for message in users for text in _list_user_texts(message))
    first = next(texts, "")
    typed = next(filter(_is_typed_text, chain([first], texts)), "")
    lines = map(render_title, (typed, _MARKUP_TAG.sub(" ", first[:1000])))
    return [line for line in lines if line]


def _is_typed_text(text: str) -> bool:
    return not text.lstrip().startswith(CLAUDE_CODE_INJECTIONS)


def _list_user_texts(message: Message) -> list[str]:
    """Return the texts of a user message; none where Claude Code wrote it."""
    extra = message["claude_code"]
    if extra.get("isMeta") or extra.get("isCompactSummary"):
        return []
    texts = (block.get("text") for block in parse_blocks(message["content"]) or [])
    return [text for text in texts if isinstance(text, str) and text.strip()]
