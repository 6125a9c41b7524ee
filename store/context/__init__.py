"""A whole request in its layers: prompts, project rules, history, input, steps, open todos.

The layers are put around a view, which is gathered in one read. The project's rules, and files that
a user names with @, are looked up only if the host gives the folder. Only the faces and the command
call this room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "LAYERS",
    "Context",
    "Freshness",
    "Piece",
    "Tools",
    "check_requests",
    "mentions",
    "recall_tool",
    "remind",
]

if TYPE_CHECKING:
    from . import request
    from .file_mentions import mentions, remind
    from .freshness import Freshness
    from .layers import LAYERS, Piece
    from .project_rules import code_law
    from .recall_definition import recall_tool
    from .request import Context, Tools
    from .request_cache import Requests
    from .request_log import (
        check_requests,
        draft_context,
        draft_view,
        list_requests,
        load_request,
        record_request,
    )

if not TYPE_CHECKING:  # a type checker would accept any name from it
    __getattr__, __dir__ = attach_modules(
        __package__,
        "request",
        file_mentions="mentions remind",
        freshness="Freshness",
        project_rules="code_law",
        layers="LAYERS Piece",
        recall_definition="recall_tool",
        request="Context Tools",
        request_cache="Requests",
        request_log=(
            "check_requests draft_context draft_view list_requests load_request record_request"
        ),
    )
