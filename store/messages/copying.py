"""Messages that are the caller's own: changing one changes nothing of the store's."""

from __future__ import annotations

from typing import Any

from .columns import Message


def copy_message(message: Message) -> Message:
    """Return a message that shares nothing with another that can be changed."""
    for value in message.values():
        if isinstance(value, list | dict):
            return {key: copy_value(each) for key, each in message.items()}
    return message.copy()


def copy_value(value: Any) -> Any:
    """Return a value of JSON that shares nothing with another that can be changed."""
    if isinstance(value, dict):
        return copy_message(value)
    if isinstance(value, list):
        return [copy_value(each) for each in value]
    return value
