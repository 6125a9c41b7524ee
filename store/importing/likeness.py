"""Whether a stored message is what a file says, or what it said before it was whole."""

from __future__ import annotations

from typing import Any

from ..messages import Message, content_text, is_redacted
from ..transcripts import EXTRA_KEYS, fields_of, list_of


def same_said(stored: Message, message: Message) -> bool:
    """Tell whether a stored message is what a file says; what was redacted may have been."""
    return is_redacted(stored) or spoken(stored) == spoken(message)


def spoken(message: Message) -> Message:
    """Return what was said, without its extra keys: of those a longer file may know more.

    Where two files tell a message, one may have as a part what the other has as a text.
    """
    said = {key: value for key, value in message.items() if key not in EXTRA_KEYS}
    content = said.get("content")
    words = content_text(content)
    if content == [{"type": "text", "text": words}]:
        said["content"] = words
    return said


def is_result(message: Message) -> bool:
    """Tell whether a message is nothing but results of tools."""
    if message.get("role") == "tool":
        return True
    if str(message.get("type")).endswith("_output"):
        return True
    parts = map(fields_of, list_of(message.get("content")))
    return {part.get("type") for part in parts} == {"tool_result"}


def begins(stored: Message, message: Message) -> bool:
    """Tell whether a stored answer is the beginning of the file's.

    A parser makes one answer of all rows that the file has of it.
    """
    if not stored.get("role") == message.get("role") == "assistant":
        return False
    if any(key in stored for key in EXTRA_KEYS):
        return _text_begins(stored, message) and _lists_begin(stored, message)
    blocks = list_of(stored.get("content"))
    is_one = stored.get("id") == message.get("id") is not None
    return is_one and _continues(message.get("content"), blocks)


def _text_begins(stored: Message, message: Message) -> bool:
    whole = content_text(message.get("content"))
    return whole.startswith(content_text(stored.get("content")))


def _lists_begin(stored: Message, message: Message) -> bool:
    """Tell whether each list of a stored answer, such as its calls, is continued."""
    return all(
        _continues(message.get(key), value)
        for key, value in stored.items()
        if isinstance(value, list) and key != "content"
    )


def _continues(longer: Any, stored: list[Any]) -> bool:
    return list_of(longer)[: len(stored)] == stored


def answers(stored: Message, message: Message) -> bool:
    """Tell whether a stored result is one of the file's calls: it was written before its call."""
    calls = map(fields_of, list_of(message.get("tool_calls")))
    return stored.get("role") == "tool" and stored.get("tool_call_id") in [
        call.get("id") for call in calls
    ]
