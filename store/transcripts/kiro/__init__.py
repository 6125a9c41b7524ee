"""Sessions of Kiro, its CLI and its IDE, and of Amazon Q before it.

`messages` translates a line, `records` the records of newer sessions, `turns` a turn of the
database; `reading` builds sessions from them.
"""

from .reading import looks, parse
from .turns import LAYOUT

__all__ = ["LAYOUT", "looks", "parse"]
