"""Write requests in which the two sides take turns, each turn as one message.

A request begins with the user, and no side speaks twice in a row, so consecutive messages of a side
are joined. Results of tools belong to the user. They must directly follow their calls, so they come
first in the user's turn. System text at the beginning is sent separately; later system text stays
in its place, marked, because a text that moved to the front would cost the whole prompt cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..messages import Message, extract_content_text
from ..phrases import PHRASES
from .openai import replace_surrogates
from .request_messages import PlacedMessage

TURN_SYSTEM_ROLES = ("system", "developer")
FIRST_USER_TEXT = PHRASES["beginning"]["en"]
"""The first text of the user if the assistant spoke first, or if nothing before it is sent."""


class SideTurn(NamedTuple):
    """The turn of one side."""

    is_users: bool
    said: list[Message]


def render_system_text(placed: PlacedMessage) -> str:
    """Return the text of a system message."""
    return replace_surrogates(extract_content_text(placed.message.get("content")))


def render_marked_system(placed: PlacedMessage) -> str:
    """Return the marked text of a system message among the turns; "" if it is empty."""
    return mark_system_text(render_system_text(placed))


def mark_system_text(text: str) -> str:
    """Return system text marked for a user's turn; "" if it is empty."""
    said = text.strip()
    return f"<system>\n{said}\n</system>" if said else ""


def join_turns(spoken: Iterable[SideTurn], beginning: Message) -> list[SideTurn]:
    """Return turns with alternating sides; ``beginning`` is added if the user is not first."""
    turns: list[SideTurn] = []
    for turn in spoken:
        if turns and turns[-1].is_users == turn.is_users:
            turns[-1].said.extend(turn.said)
        elif turn.said:
            turns.append(turn)
    if turns and not turns[0].is_users:
        turns.insert(0, SideTurn(True, [beginning]))
    return turns
