"""Sessions of Claude Code, version 1.0 to 2.1.

Rows are read (`rows`), collected by session (`sessions`) and put in order (`tree`); `parser` makes
messages of them. The printed stream is read separately (`stream`); what the web gives becomes
rows of a file (`web`).
"""

from . import stream
from .parser import find_claude_code_lookalike, is_claude_code_row, parse_claude_code

__all__ = ["find_claude_code_lookalike", "is_claude_code_row", "parse_claude_code", "stream"]
