"""Exports of claude.ai.

`messages` translates a message; `reading` makes a tree of them.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
