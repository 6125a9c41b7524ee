"""A whole request in its layers: prompts, project rules, history, input, steps, what is left.

The layers are put around a view, which is gathered in one read. Files that a user names with @ and
the project's rules are read only where the host says in which folder. Only the faces and the
command call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from . import request
    from .file_mentions import mentions, remind
    from .freshness import Freshness
    from .law import code_law
    from .layers import LAYERS, Piece
    from .request import Context, Tools
    from .request_cache import Requests

__all__ = [
    "LAYERS",
    "Context",
    "Freshness",
    "Piece",
    "Requests",
    "Tools",
    "code_law",
    "mentions",
    "remind",
    "request",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = attach_modules(
        __package__,
        "request",
        file_mentions="mentions remind",
        freshness="Freshness",
        law="code_law",
        layers="LAYERS Piece",
        request="Context Tools",
        request_cache="Requests",
    )
