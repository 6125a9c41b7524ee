"""Histories of aider, which are Markdown.

`history` is the file as chats; `reading` makes sessions of them.
"""

from .history import NAME, History, is_history
from .reading import looks, parse

__all__ = ["NAME", "History", "is_history", "looks", "parse"]
