"""Conversations of OpenHands, V0 and V1.

`program_events` translates an event; `parser` collects them into conversations.
"""

from .parser import is_openhands_history, parse_openhands

__all__ = ["is_openhands_history", "parse_openhands"]
