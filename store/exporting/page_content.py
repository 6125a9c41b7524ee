"""The messages on a page for people: all, or only the conversation; with masks or without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..errors import InvalidValue, quote_value
from ..records import Message
from ..summaries import extract_user_words
from .masks import mask_value


class Only(StrEnum):
    """The parts of a session that a page may be limited to."""

    said = "said"


SPOKEN_ROLES = ("user", "assistant", "model")
SPOKEN_KEYS = ("role", "timestamp", "created_at", "time", "id")
UNSPOKEN_TYPES = ("thinking", "redacted_thinking", "reasoning", "tool_use", "tool_result")


@dataclass
class PageContent:
    """The choice of what a page has, which counts ``homes``, ``keys`` and messages ``said``."""

    only: Only | None = None
    mask: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def select(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Yield the messages that the page has, as it has them."""
        return filter(None, map(self.edit, messages))

    def edit(self, message: Message) -> Message | None:
        """Return a message as the page has it; None if it does not have it."""
        shown = select_said(message) if self.only else message
        if shown and self.only:
            self.counts["said"] += 1
        return self.cover(shown) if shown else None

    def cover(self, value: Any) -> Any:
        """Return a value with masks, if the page has masks."""
        return mask_value(value, self.counts) if self.mask else value


def choose_content(only: str | None, *, mask: bool, is_page: bool) -> PageContent:
    """Return the choice that a caller made. Raises InvalidValue for one that there is not."""
    if not is_page and (only or mask):
        raise InvalidValue("only= and mask= are for pages: the shapes html and markdown")
    if only is not None and only not in [*Only]:
        known = ", ".join(Only)
        raise InvalidValue(f"a page cannot have only {quote_value(only)}; there is {known}")
    return PageContent(None if only is None else Only(only), bool(mask))


def select_said(message: Message) -> Message | None:
    """Return what a person or a model said in a message; None if they said nothing.

    Prompts, thoughts, calls and results are left out, and so is what a program wrote for its user.
    """
    role = message.get("role")
    if role not in SPOKEN_ROLES:
        return None
    key = "parts" if "parts" in message and "content" not in message else "content"
    content = message.get(key)
    given = content if isinstance(content, list) else [content]
    parts = [part for part in (_select_part(each, role == "user") for each in given) if part]
    if not parts:
        return None
    kept = {name: message[name] for name in SPOKEN_KEYS if name in message}
    return {**kept, key: parts if isinstance(content, list) else parts[0]}


def _select_part(part: Any, is_user: bool) -> Any:
    """Return a part of a content without its unsaid parts; None if nothing is left."""
    if isinstance(part, str):
        return (extract_user_words(part) if is_user else part.strip()) or None
    if not isinstance(part, dict) or part.get("type") in UNSPOKEN_TYPES:
        return None
    if part.get("thought") is True or "functionCall" in part or "functionResponse" in part:
        return None
    text = part.get("text")
    if not isinstance(text, str):
        return part
    said = _select_part(text, is_user)
    return said and {**part, "text": said}
