"""Histories of aider, which are Markdown.

`history` is the file as chats; `reading` makes sessions of them.
"""

from .history import History, is_history
from .reading import looks, parse

__all__ = ["History", "is_history", "looks", "parse"]
