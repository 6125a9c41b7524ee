"""Chats of Cursor: those in its database, and the transcripts of its agents.

`rows` gathers a chat from the rows of a database; `bubbles` translates the contents of a bubble,
`transcripts` those of an agent's file; `reading` makes sessions of both.
"""

from .reading import looks, parse
from .rows import LAYOUT

__all__ = ["LAYOUT", "looks", "parse"]
