"""Search and recall of messages: an index of the messages, and the queries that use it.

Rooms above call `search` for hits, and `index` for the state of the index. Reading and writing
messages does not need this room: the index can be rebuilt from the messages, or switched off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from . import hidden_passages, hits, index

__all__ = [
    "hidden_passages",
    "hits",
    "index",
]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__, __dir__ = attach_modules(__package__, "hidden_passages hits index")
