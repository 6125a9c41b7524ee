"""What reached a Claude Code session while its model was working.

A prompt that is typed then, or the notice that a task has ended beside it, waits in a queue. It
leaves the queue as a line of a user (`dequeue`), back into the input field (`popAll`), or into the
turn that is running (`remove`, or an attachment): only then is there no line of a user, and the one
that is made here stands for it.
"""

from __future__ import annotations

from typing import Any

from ...messages import extract_content_text
from ...text import JsonFields
from ..events import drop_keys, get_fields, get_text

ABSORBED_REASON = "absorbed_mid_turn"
"""Why an entry was removed that the model was given; newer programs say it, for other reasons too.
"""

_TASK_NOTICE_START = '{"task_id":'
"""How an entry begins that tells other programs of a task, not the model."""


class PromptQueue:
    """Follow a session's queue; ``_waiting`` are the rows of the entries that wait there."""

    def __init__(self) -> None:
        self._waiting: list[JsonFields] = []

    @property
    def waiting(self) -> int:
        """Return how many prompts and notices were never given to the model."""
        return len(self._waiting)

    def take(self, value: JsonFields) -> JsonFields | None:
        """Take a row of the queue; return the user's line that it stands for, if it does."""
        operation = value.get("operation")
        if operation == "enqueue":
            self._enter(value)
        elif operation == "popAll" and not get_text(value.get("content")):
            self._waiting.clear()
        elif operation in ("dequeue", "popAll", "remove"):
            return self._leave(value)
        return None

    def said(self, words: str) -> bool:
        """Take out what a line or an attachment says; return whether it was waiting."""
        return self._find(words) is not None

    def _enter(self, value: JsonFields) -> None:
        text = get_text(value.get("content"))
        if text and not text.startswith(_TASK_NOTICE_START):
            self._waiting.append(value)

    def _leave(self, value: JsonFields) -> JsonFields | None:
        text = get_text(value.get("content"))
        entry = self._find(text.strip()) if text else self._first()
        if entry is None or not _is_absorbed_entry(value):
            return None
        queued = drop_keys(value, "type", "content", "sessionId", "timestamp")
        queued["enqueued"] = entry.get("timestamp")
        envelope = drop_keys(value, "operation", "content", "reason")
        return envelope | _build_user_fields(entry["content"], queued)

    def _first(self) -> JsonFields | None:
        return self._waiting.pop(0) if self._waiting else None

    def _find(self, words: str) -> JsonFields | None:
        for place, entry in enumerate(self._waiting):
            if render_words(entry["content"]) == words:
                return self._waiting.pop(place)
        return None


def build_attachment_line(value: JsonFields) -> JsonFields | None:
    """Return the user's line that an attachment stands for, None for any other attachment."""
    attachment = get_fields(value.get("attachment"))
    if attachment.get("type") != "queued_command" or not attachment.get("prompt"):
        return None
    line = _build_user_fields(attachment["prompt"], drop_keys(attachment, "type", "prompt"))
    return drop_keys(value, "attachment") | line


def render_words(content: object) -> str:
    """Return what a content says as one text, to find the same again."""
    return extract_content_text(content).strip()


def _is_absorbed_entry(value: JsonFields) -> bool:
    reason = value.get("reason", ABSORBED_REASON)
    return (value["operation"], reason) == ("remove", ABSORBED_REASON)


def _build_user_fields(content: Any, queued: JsonFields) -> JsonFields:
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "queued": queued}
