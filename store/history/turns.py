"""Which turn a request is about: the one that runs on a line, or a new one behind it."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..formats import asks_for_tool
from ..messages import Message, content_text
from .facts import measure, turn_start
from .lines import Pointer
from .raw import read


class Turn(NamedTuple):
    """The turn of a request: ``begins`` is where it does (None: its input is not stored yet).

    ``answered``: the last stored turn has its answer. ``over``: that turn is finished, because a
    new one begins.
    """

    begins: int | None
    answered: bool
    over: bool


def turn_of(connection: Connection, pointer: Pointer, last: int, user_input: str | None) -> Turn:
    """Return the turn of a request about a line up to a position, with an input or without (None).

    An input that the open turn begins with is stored already, so that turn goes on.
    """
    spoken = measure(connection, pointer, last).turn > 0
    begins: int | None = turn_start(connection, pointer, last) if spoken else None
    answered = begins is not None and _answers(message_at(connection, pointer, last))
    if user_input is not None and (
        begins is None or answered or not _says(connection, pointer, begins, user_input)
    ):
        begins = None
    return Turn(begins, answered, begins is None and user_input is not None)


def message_at(connection: Connection, pointer: Pointer, position: int) -> Message:
    """Return the message at a position of a line."""
    (stored,) = read(connection, pointer.session_id, position, position, branch=pointer.branch)
    return stored.message


def _answers(message: Message) -> bool:
    """Tell whether a message ends its turn: the assistant speaks, and does not ask for a tool.

    It neither calls one nor writes that it would.
    """
    if message["role"] != "assistant" or message.get("tool_calls"):
        return False
    return not asks_for_tool(content_text(message.get("content")))


def _says(connection: Connection, pointer: Pointer, position: int, text: str) -> bool:
    """Tell whether a message says just this: the input of an open turn must not be sent twice."""
    return content_text(message_at(connection, pointer, position).get("content")) == text
