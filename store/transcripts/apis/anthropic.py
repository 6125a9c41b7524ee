"""Messages of Anthropic's API, in any of the ways in which chat messages are kept.

Cline and its kin keep them so. Each becomes the messages of a chat that it amounts to, as those of
Claude Code do; then they are read as a chat's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...messages import Message
from ...text import Fields
from ..blocks import assistant_message, blocks_of, user_messages
from ..events import Event, Noted, fields_of, without
from ..foreign import ANTHROPIC
from ..source import Source, Value
from . import openai

EXTRA = "anthropic"
"""The key of a message for what its blocks say beyond it."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value holds messages with blocks that no chat has."""
    return openai.foreign(value) == ANTHROPIC


def foreign(value: Any) -> str | None:
    """Return the program whose messages only look like these, None where they can be read."""
    program = openai.foreign(value)
    return None if program == ANTHROPIC else program


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions and messages of a file, and a note for each thing that is no message."""
    return openai.parse(_AsChat(source))


class _AsChat(Source):
    """A file whose messages are told as those of a chat."""

    def __init__(self, source: Source) -> None:
        self.path, self.problem = source.path, source.problem
        self._told = source

    def values(self) -> Iterator[Value | Noted]:
        """Yield the values of the file; a message that is several is as many values."""
        for item in self._told.values():
            if isinstance(item, Noted):
                yield item
            elif "role" in fields_of(item.value):
                yield from (Value(item.row, each) for each in _messages(item.value))
            else:
                yield Value(item.row, _conversation(item.value))


def _conversation(value: Any) -> Any:
    """Return a conversation, or a list of them, with the messages of a chat."""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return {**value, "messages": _listed(value["messages"])}
    return _listed(value) if isinstance(value, list) else value


def _listed(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in values:
        found += _messages(each) if "role" in fields_of(each) else [_conversation(each)]
    return found


def _messages(message: Fields) -> list[Message]:
    """Return the messages of a chat that one amounts to; the first has its own keys."""
    blocks = blocks_of(message.get("content"))
    if blocks is None or message["role"] not in ("user", "assistant"):
        return [message]
    made = _answer(blocks) if message["role"] == "assistant" else _said(message, blocks)
    made[0] |= without(message, "role", "content")
    return made


def _answer(blocks: list[Fields]) -> list[Message]:
    answer, order = assistant_message(blocks)
    return [{**answer, EXTRA: {"block_order": order}} if order else answer]


def _said(message: Fields, blocks: list[Fields]) -> list[Message]:
    made = user_messages(message.get("content"), blocks)
    return [_renamed(each) for each in made]


def _renamed(message: Message) -> Message:
    """Return a message in which what a result says beyond it is under this kind's key."""
    beyond = message.pop("claude_code", None)
    return {**message, EXTRA: beyond} if beyond else message
