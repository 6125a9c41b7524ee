"""What reached a Claude Code session while its model was working.

A prompt that is typed then, or the notice that a task has ended beside it, waits in a queue. It
leaves the queue as a line of a user (`dequeue`), back into the input field (`popAll`), or into the
turn that is running (`remove`, or an attachment): only then is there no line of a user, and the one
that is made here stands for it.
"""

from __future__ import annotations

from typing import Any

from ...messages import content_text
from ...text import Fields
from ..events import fields_of, text_of, without

ABSORBED = "absorbed_mid_turn"
"""Why an entry was removed that the model was given; newer programs say it, for other reasons too.
"""

_NOT_SAID = '{"task_id":'
"""How an entry begins that tells other programs of a task, not the model."""


class Queue:
    """Follow a session's queue; ``_waiting`` are the rows of the entries that wait there."""

    def __init__(self) -> None:
        self._waiting: list[Fields] = []

    @property
    def waiting(self) -> int:
        """Return how many prompts and notices were never given to the model."""
        return len(self._waiting)

    def take(self, value: Fields) -> Fields | None:
        """Take a row of the queue; return the user's line that it stands for, if it does."""
        operation = value.get("operation")
        if operation == "enqueue":
            self._enter(value)
        elif operation == "popAll" and not text_of(value.get("content")):
            self._waiting.clear()
        elif operation in ("dequeue", "popAll", "remove"):
            return self._leave(value)
        return None

    def said(self, words: str) -> bool:
        """Take out what a line or an attachment says; return whether it was waiting."""
        return self._find(words) is not None

    def _enter(self, value: Fields) -> None:
        text = text_of(value.get("content"))
        if text and not text.startswith(_NOT_SAID):
            self._waiting.append(value)

    def _leave(self, value: Fields) -> Fields | None:
        text = text_of(value.get("content"))
        entry = self._find(text.strip()) if text else self._first()
        if entry is None or not _is_absorbed(value):
            return None
        queued = without(value, "type", "content", "sessionId", "timestamp")
        queued["enqueued"] = entry.get("timestamp")
        envelope = without(value, "operation", "content", "reason")
        return envelope | _spoken(entry["content"], queued)

    def _first(self) -> Fields | None:
        return self._waiting.pop(0) if self._waiting else None

    def _find(self, words: str) -> Fields | None:
        for place, entry in enumerate(self._waiting):
            if words_of(entry["content"]) == words:
                return self._waiting.pop(place)
        return None


def line_of_attachment(value: Fields) -> Fields | None:
    """Return the user's line that an attachment stands for, None for any other attachment."""
    attachment = fields_of(value.get("attachment"))
    if attachment.get("type") != "queued_command" or not attachment.get("prompt"):
        return None
    line = _spoken(attachment["prompt"], without(attachment, "type", "prompt"))
    return without(value, "attachment") | line


def words_of(content: object) -> str:
    """Return what a content says as one text, to find the same again."""
    return content_text(content).strip()


def _is_absorbed(value: Fields) -> bool:
    reason = value.get("reason", ABSORBED)
    return (value["operation"], reason) == ("remove", ABSORBED)


def _spoken(content: Any, queued: Fields) -> Fields:
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "queued": queued}
