"""Sessions of Claude Code, version 1.0 to 2.1.

Rows are read (`rows`), told apart by session (`sessions`) and put in order (`tree`); `reading`
makes messages of them. The others know one matter each: titles, what was typed while the model
worked, subagents, compactions. What it prints as a stream is read apart (`stream`).
"""

from . import stream
from .reading import foreign, looks, parse

__all__ = ["foreign", "looks", "parse", "stream"]
