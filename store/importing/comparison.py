"""Compare a stored message with the message of a file, whole or from an earlier state."""

from __future__ import annotations

from typing import Any

from ..records import Message, extract_content_text, is_redacted
from ..transcripts import EXTRA_KEYS, get_fields, get_list


def is_same_as_stored(stored: Message, message: Message) -> bool:
    """Tell whether a stored message equals a file's message; a redacted one may equal any."""
    return is_redacted(stored) or remove_extra_keys(stored) == remove_extra_keys(message)


def remove_extra_keys(message: Message) -> Message:
    """Return a message without its extra keys: a longer file may have more of those.

    If two files have a message, one may have a part where the other has a text.
    """
    said = {key: value for key, value in message.items() if key not in EXTRA_KEYS}
    content = said.get("content")
    words = extract_content_text(content)
    if content == [{"type": "text", "text": words}]:
        said["content"] = words
    return said


def has_only_tool_results(message: Message) -> bool:
    """Tell whether a message consists only of tool results."""
    if message.get("role") == "tool":
        return True
    if str(message.get("type")).endswith("_output"):
        return True
    parts = map(get_fields, get_list(message.get("content")))
    return {part.get("type") for part in parts} == {"tool_result"}


def is_answer_beginning(stored: Message, message: Message) -> bool:
    """Tell whether a stored answer is the beginning of the file's.

    A parser joins all rows of an answer in the file to one answer. aider's joins what a user typed,
    too, line by line.
    """
    grows = stored.get("role") if "aider" in stored else "assistant"
    if not stored.get("role") == message.get("role") == grows:
        return False
    if any(key in stored for key in EXTRA_KEYS):
        whole = extract_content_text(message.get("content"))
        return whole.startswith(extract_content_text(stored.get("content"))) and all(
            _is_list_beginning(message.get(key), value)
            for key, value in stored.items()
            if isinstance(value, list) and key != "content"
        )
    blocks = get_list(stored.get("content"))
    is_one = stored.get("id") == message.get("id") is not None
    return is_one and _is_list_beginning(message.get("content"), blocks)


def _is_list_beginning(longer: Any, stored: list[Any]) -> bool:
    return get_list(longer)[: len(stored)] == stored


def is_result_of_call(stored: Message, message: Message) -> bool:
    """Tell whether a stored result answers a call of the file: it was written before its call."""
    calls = map(get_fields, get_list(message.get("tool_calls")))
    return stored.get("role") == "tool" and stored.get("tool_call_id") in [
        call.get("id") for call in calls
    ]
