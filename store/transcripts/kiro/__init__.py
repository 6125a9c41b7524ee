"""Sessions of Kiro, its CLI and its IDE, and of Amazon Q before it.

`messages` translates a line, `records` the records of newer sessions, `turns` a turn of the
database; `reading` builds sessions from them.
"""

from .reading import is_kiro_value, parse_kiro
from .turns import KIRO_LAYOUT

__all__ = ["KIRO_LAYOUT", "is_kiro_value", "parse_kiro"]
