"""Sessions of opencode and its forks.

`rows` gathers a session from their database, `storage` from the folder used before it; `messages`
translates a message and its parts; `reading` builds a tree from them.
"""

from .reading import looks, parse
from .rows import LAYOUT
from .storage import Stored, is_stored

__all__ = ["LAYOUT", "Stored", "is_stored", "looks", "parse"]
