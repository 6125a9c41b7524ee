"""An MCP server: coding agents ask their own past, and each answer says where it is from.

The tools are methods of one class, on a store or on the sessions of one owner; the server lists
them with their limits; it alone needs the package ``mcp``, which is slow to import. Only the
command uses this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "History",
    "build_server",
    "describe_last_sessions",
    "load_guidance",
]

if TYPE_CHECKING:
    from .digests import describe_last_sessions, load_guidance
    from .server import build_server
    from .tools import History

if not TYPE_CHECKING:  # a type checker would accept any name from it
    __getattr__, __dir__ = attach_modules(
        __package__,
        digests="describe_last_sessions load_guidance",
        server="build_server",
        tools="History",
    )
