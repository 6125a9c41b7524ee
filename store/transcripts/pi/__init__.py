"""Sessions of pi.

`messages` translates an entry; `reading` builds a tree from them.
"""

from .reading import looks, parse

__all__ = ["looks", "parse"]
