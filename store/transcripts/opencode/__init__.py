"""Sessions of opencode and its kin.

`rows` gathers a session from their database, `messages` translates a message and its parts;
`reading` makes a tree of them.
"""

from .reading import looks, parse
from .rows import LAYOUT

__all__ = ["LAYOUT", "looks", "parse"]
