"""Messages that are the caller's own: changing one changes nothing of the store's."""

from __future__ import annotations

from typing import Any

from .columns import Message


def owned(message: Message) -> Message:
    """Return a message that shares nothing with another that can be changed."""
    for value in message.values():
        if isinstance(value, list | dict):
            return {key: owned_value(each) for key, each in message.items()}
    return message.copy()


def owned_value(value: Any) -> Any:
    """Return a value of JSON that shares nothing with another that can be changed."""
    if isinstance(value, dict):
        return owned(value)
    if isinstance(value, list):
        return [owned_value(each) for each in value]
    return value
