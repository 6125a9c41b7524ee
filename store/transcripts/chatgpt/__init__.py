"""Exports of ChatGPT.

`nodes` translates a node; `reading` makes a tree of them.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
