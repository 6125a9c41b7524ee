"""Conversations of OpenHands, V0 and V1.

`program_events` translates an event, `conversation` collects them, `reading` reads the file.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
