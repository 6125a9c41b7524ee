"""Copies of messages for the caller: changing one changes nothing in the store."""

from __future__ import annotations

from typing import Any

from .columns import Message


def copy_message(message: Message) -> Message:
    """Return a copy of a message that shares no mutable value with the original."""
    for value in message.values():
        if isinstance(value, list | dict):
            return {key: copy_value(each) for key, each in message.items()}
    return message.copy()


def copy_value(value: Any) -> Any:
    """Return a copy of a JSON value that shares no mutable value with the original."""
    if isinstance(value, dict):
        return copy_message(value)
    if isinstance(value, list):
        return [copy_value(each) for each in value]
    return value
