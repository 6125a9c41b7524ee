"""Chats of Cursor: those in its database, and the transcripts of its agents.

`rows` gathers a chat from the rows of a database; `bubbles` translates the contents of a bubble,
`transcripts` those of an agent's file; `reading` makes sessions of both.
"""

from .reading import is_cursor_chat, parse_cursor
from .rows import CURSOR_LAYOUT

__all__ = ["CURSOR_LAYOUT", "is_cursor_chat", "parse_cursor"]
