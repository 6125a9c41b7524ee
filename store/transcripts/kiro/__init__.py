"""Sessions of Kiro, its CLI and its IDE, and of Amazon Q before it.

`records` translates the records of newer sessions; `parser` translates lines and the turns of the
database, and builds sessions from all three.
"""

from .parser import KIRO_LAYOUT, is_kiro_value, parse_kiro

__all__ = ["KIRO_LAYOUT", "is_kiro_value", "parse_kiro"]
