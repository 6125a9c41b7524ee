"""Sessions of Claude Code, version 1.0 to 2.1.

Rows are read (`rows`), told apart by session (`sessions`) and put in order (`tree`); `reading`
makes messages of them. Each other module handles one matter: titles, prompts typed while the model
worked, subagents, compactions. The printed stream is read separately (`stream`).
"""

from . import stream
from .reading import find_claude_code_lookalike, is_claude_code_row, parse_claude_code

__all__ = ["find_claude_code_lookalike", "is_claude_code_row", "parse_claude_code", "stream"]
