"""The turn of a request: the open turn of a line, or a new one after it."""

from __future__ import annotations

from typing import NamedTuple

from ..formats import asks_for_tool
from ..messages import Message, extract_content_text
from .facts import find_turn_start, load_totals
from .lines import Line
from .raw_messages import load_chat_messages


class RequestTurn(NamedTuple):
    """The turn of a request: ``begins`` is its first position (None: its input is not stored yet).

    ``answered``: the last stored turn has its answer. ``over``: that turn is finished, because a
    new one begins.
    """

    begins: int | None
    answered: bool
    over: bool


def find_request_turn(line: Line, last: int, user_input: str | None) -> RequestTurn:
    """Return the turn of a request about a line up to a position, with an input or without (None).

    An input that the open turn begins with is stored already, so that turn goes on.
    """
    begins = None if load_totals(line, last).turn == 0 else find_turn_start(line, last)
    answered = begins is not None and _is_turn_answer(load_chat_message(line, last))
    if user_input is None:
        return RequestTurn(begins, answered, over=False)
    if (
        begins is None
        or answered
        or extract_content_text(load_chat_message(line, begins).get("content")) != user_input
    ):
        begins = None
    return RequestTurn(begins, answered, over=begins is None)


def load_chat_message(line: Line, position: int) -> Message:
    """Return the message at a position of a line."""
    (stored,) = load_chat_messages(line, position, position)
    return stored.message


def _is_turn_answer(message: Message) -> bool:
    """Tell whether a message ends its turn: the assistant speaks, and does not ask for a tool.

    The message neither calls a tool nor announces a call in words.
    """
    if message["role"] != "assistant" or message.get("tool_calls"):
        return False
    return not asks_for_tool(extract_content_text(message.get("content")))
