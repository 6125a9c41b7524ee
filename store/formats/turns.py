"""Requests in which the two sides take turns: what each says at a time is one message.

A request begins with the user, and no side speaks twice in a row, so the messages of a side are put
together. Results of tools are the user's, and as they stand right behind their calls they come
first in what the user says. System text has a place of its own in front; further on it stays where
it is, marked, because a text that moved to the front would cost the whole prompt cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..messages import Message, content_text
from ..ready import PHRASES
from .openai import sendable
from .placed import Placed

SYSTEM_ROLES = ("system", "developer")
BEGINNING = PHRASES["beginning"]["en"]
"""What the user says first where the assistant spoke first, or where nothing before it is sent."""


class Turn(NamedTuple):
    """What one side says at a time."""

    is_users: bool
    said: list[Message]


def apart(placed: Sequence[Placed]) -> tuple[Sequence[Placed], Sequence[Placed]]:
    """Return the system messages that a request begins with, and the rest."""
    for place, each in enumerate(placed):
        if each.message["role"] not in SYSTEM_ROLES:
            return placed[:place], placed[place:]
    return placed, ()


def system_text(placed: Placed) -> str:
    """Return what a system message says."""
    return sendable(content_text(placed.message.get("content")))


def marked_system(placed: Placed) -> str:
    """Return what a system message says that stands among the turns; "" where it says nothing."""
    return marked(system_text(placed))


def marked(text: str) -> str:
    """Return system text as it stands in what a user says; "" where it says nothing."""
    said = text.strip()
    return f"<system>\n{said}\n</system>" if said else ""


def alternating(spoken: Iterable[Turn], beginning: Message) -> list[Turn]:
    """Return turns so that the sides alternate; ``beginning`` is said where the user has not."""
    turns: list[Turn] = []
    for turn in spoken:
        if turns and turns[-1].is_users == turn.is_users:
            turns[-1].said.extend(turn.said)
        elif turn.said:
            turns.append(turn)
    if turns and not turns[0].is_users:
        turns.insert(0, Turn(True, [beginning]))
    return turns
