"""Sessions of pi.

`messages` translates an entry; `reading` makes a tree of them.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
