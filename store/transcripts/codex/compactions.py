"""Where Codex compacted a session, and what the model read from then on.

Its own summary is encrypted, as a rule. What can be read of the context that took the place of the
old one is what the user had said.
"""

from __future__ import annotations

from ...messages import extract_content_text
from ...text import JsonFields
from ..events import get_fields, get_list, get_text


def pick_compaction_fields(compacted: JsonFields) -> JsonFields:
    """Return what a row says of a compaction, without the messages that the file has already."""
    told = {key: held for key, held in compacted.items() if held and key != REPLACEMENT_KEY}
    items = _list_replacement_items(compacted)
    told["replaced_by"] = len(items)
    kept = [item for item in items if item.get("type") != "message"]
    return told | {"items": kept} if kept else told


def render_replacement(compacted: JsonFields) -> str | None:
    """Return what can be read of the context that took the place of the old one, if anything."""
    texts = [get_text(compacted.get("message"))]
    if not texts[0]:
        texts = [
            extract_content_text(item.get("content")) for item in _list_replacement_items(compacted)
        ]
    return "\n\n".join(text for text in texts if text and text.strip()) or None


REPLACEMENT_KEY = "replacement_history"
"""Under which key a row has the context that took the place of the old one."""


def _list_replacement_items(compacted: JsonFields) -> list[JsonFields]:
    return [
        get_fields(item) for item in get_list(compacted.get(REPLACEMENT_KEY)) if get_fields(item)
    ]
