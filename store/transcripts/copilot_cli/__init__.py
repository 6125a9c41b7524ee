"""Sessions of Copilot CLI.

`program_events` translates an event; `reading` makes a tree of them.
"""

from .reading import is_readable_copilot_event, parse_copilot_cli

__all__ = ["is_readable_copilot_event", "parse_copilot_cli"]
