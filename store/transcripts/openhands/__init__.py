"""Conversations of OpenHands, V0 and V1.

`program_events` translates an event, `conversation` collects them, `reading` reads the file.
"""

from .reading import is_openhands_history, parse_openhands

__all__ = ["is_openhands_history", "parse_openhands"]
