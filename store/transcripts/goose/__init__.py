"""Sessions of goose: its database, its exports and its older files of lines.

`rows` gathers a session from the database; `messages` translates a message; `reading` makes
sessions of all three.
"""

from .reading import is_goose_value, parse_goose
from .rows import GOOSE_LAYOUT

__all__ = ["GOOSE_LAYOUT", "is_goose_value", "parse_goose"]
