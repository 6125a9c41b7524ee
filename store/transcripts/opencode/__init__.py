"""Sessions of opencode and its forks.

`rows` gathers a session from their database, `storage` from the folder used before it; `messages`
translates a message and its parts; `reading` builds a tree from them.
"""

from .reading import is_opencode_export, parse_opencode
from .rows import OPENCODE_LAYOUT
from .storage import OpencodeFolderSource, is_opencode_session_file

__all__ = [
    "OPENCODE_LAYOUT",
    "OpencodeFolderSource",
    "is_opencode_export",
    "is_opencode_session_file",
    "parse_opencode",
]
