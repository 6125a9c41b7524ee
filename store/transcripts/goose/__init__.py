"""Sessions of goose: its database, its exports and its older files of lines.

`rows` gathers a session from the database; `messages` translates a message; `reading` makes
sessions of all three.
"""

from .reading import looks, parse
from .rows import LAYOUT

__all__ = ["LAYOUT", "looks", "parse"]
