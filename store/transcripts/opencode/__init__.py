"""Sessions of opencode and its kin.

`rows` gathers a session from their database, `storage` from the folder before it; `messages`
translates a message and its parts; `reading` makes a tree of them.
"""

from .reading import looks, parse
from .rows import LAYOUT
from .storage import Stored, is_stored

__all__ = ["LAYOUT", "Stored", "is_stored", "looks", "parse"]
