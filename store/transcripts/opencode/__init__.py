"""Sessions of opencode and its kin.

`messages` translates a message and its parts; `reading` makes a tree of them.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
