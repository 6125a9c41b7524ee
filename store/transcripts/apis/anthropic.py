"""Messages of Anthropic's API, in any of the ways in which chat messages are kept.

Cline and related programs use this format. Each message is kept unchanged; its blocks tell its
format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..events import Event, Said
from ..foreign import ANTHROPIC
from ..source import Source
from . import openai


def looks(value: Any) -> bool:
    """Tell whether a JSON value holds messages with blocks that no chat has."""
    return openai.foreign(value) == ANTHROPIC


def foreign(value: Any) -> str | None:
    """Return the program whose messages only look like these, None where they can be read."""
    program = openai.foreign(value)
    return None if program == ANTHROPIC else program


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions and messages of a file, and a note for each thing that is no message."""
    for event in openai.with_unread(openai.told(source), ANTHROPIC):
        yield event._replace(format=None) if isinstance(event, Said) else event
