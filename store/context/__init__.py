"""A whole request in its layers: prompts, project rules, history, input, steps, what is left.

The layers are put around a view, which is gathered in one read. Files that a user names with @ and
the project's rules are read only where the host says in which folder. Only the faces and the
command call it.
"""

from __future__ import annotations

from . import request
from .at_files import mentions, remind
from .freshness import Freshness
from .law import code_law
from .pieces import LAYERS, Piece
from .request import Context, Tools

__all__ = [
    "LAYERS",
    "Context",
    "Freshness",
    "Piece",
    "Tools",
    "code_law",
    "mentions",
    "remind",
    "request",
]
