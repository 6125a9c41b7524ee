"""Where Codex compacted a session, and what the model read from then on.

Its own summary is encrypted, as a rule. What can be read of the context that took the place of the
old one is what the user had said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...messages import Message, content_text
from ...text import Fields
from ..events import Compacted, Event, Said, fields_of, list_of, text_of


def told_of(compacted: Fields) -> Fields:
    """Return what a row says of a compaction, without the messages that the file has already."""
    told = {key: held for key, held in compacted.items() if held and key != REPLACED}
    items = _replacing(compacted)
    told["replaced_by"] = len(items)
    kept = [item for item in items if item.get("type") != "message"]
    return told | {"items": kept} if kept else told


def readable(compacted: Fields) -> str | None:
    """Return what can be read of the context that took the place of the old one, if anything."""
    texts = [text_of(compacted.get("message"))]
    if not texts[0]:
        texts = [content_text(item.get("content")) for item in _replacing(compacted)]
    return "\n\n".join(text for text in texts if text and text.strip()) or None


def said(messages: Iterable[Message], compactions: Iterable[Compacted]) -> Iterator[Event]:
    """Yield the messages, each followed by the compaction of the context up to it, if any."""
    last_of_each = {each.through: each for each in compactions if each.through and each.summary}
    for number, message in enumerate(messages, 1):
        yield Said(message)
        yield from [last_of_each[number]] if number in last_of_each else []


REPLACED = "replacement_history"
"""Under which key a row has the context that took the place of the old one."""


def _replacing(compacted: Fields) -> list[Fields]:
    return [fields_of(item) for item in list_of(compacted.get(REPLACED)) if fields_of(item)]
