"""Sessions of Claude Code, version 1.0 to 2.1.

Rows are read (`rows`), told apart by session (`sessions`) and put in order (`tree`); `reading`
makes messages of them. Each other module handles one matter: titles, prompts typed while the model
worked, subagents, compactions. The printed stream is read separately (`stream`).
"""

from . import stream
from .reading import foreign, looks, parse

__all__ = ["foreign", "looks", "parse", "stream"]
