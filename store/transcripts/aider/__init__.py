"""Histories of aider, which are Markdown.

`history` is the file as chats; `reading` makes sessions of them.
"""

from .history import AIDER_HISTORY_NAME, AiderHistory, is_aider_history
from .reading import is_aider_chat, parse_aider

__all__ = ["AIDER_HISTORY_NAME", "AiderHistory", "is_aider_chat", "is_aider_history", "parse_aider"]
