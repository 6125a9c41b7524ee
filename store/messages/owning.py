"""Messages that are the caller's own: changing one changes nothing of the store's."""

from __future__ import annotations

from typing import Any

from .columns import Message


def owned(message: Message) -> Message:
    """Return a message that shares nothing with another that can be changed."""
    for value in message.values():
        if isinstance(value, list | dict):
            return {key: _owned(each) for key, each in message.items()}
    return message.copy()


def _owned(value: Any) -> Any:
    if isinstance(value, dict):
        return owned(value)
    if isinstance(value, list):
        return [_owned(each) for each in value]
    return value
