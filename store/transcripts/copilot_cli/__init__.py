"""Sessions of Copilot CLI.

`program_events` translates an event; `reading` makes a tree of them.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
