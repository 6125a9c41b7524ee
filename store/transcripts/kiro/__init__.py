"""Sessions of Kiro CLI, and of Amazon Q before it.

`messages` translates a line, `turns` a turn of the database; `reading` makes sessions of both.
"""

from .reading import looks, parse
from .turns import LAYOUT

__all__ = ["LAYOUT", "looks", "parse"]
