"""Messages of Anthropic's API, in any of the ways in which chat messages are kept.

Cline and related programs use this format. Each message is kept unchanged; its blocks tell its
format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..other_programs import ANTHROPIC_PROGRAM
from ..parser_events import Event, SessionMessage
from ..source import TranscriptSource
from . import openai

__all__ = ["find_anthropic_lookalike", "has_anthropic_messages", "parse_anthropic"]


def has_anthropic_messages(value: Any) -> bool:
    """Tell whether a JSON value holds messages with blocks that no chat has."""
    return openai.find_openai_lookalike(value) == ANTHROPIC_PROGRAM


def find_anthropic_lookalike(value: Any) -> str | None:
    """Return the program whose messages only look like these, None where they can be read."""
    program = openai.find_openai_lookalike(value)
    return None if program == ANTHROPIC_PROGRAM else program


def parse_anthropic(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions and messages of a file, and a note for each thing that is no message."""
    for event in openai.add_unread_notes(openai.parse_chat_file(source), ANTHROPIC_PROGRAM):
        yield event._replace(format=None) if isinstance(event, SessionMessage) else event
