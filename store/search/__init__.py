"""Searching what was said, and calling it back: an index beside the messages, and what asks it.

Rooms above ask `search` for hits, and `index` for what there is of the index. Nothing here is
needed to read or to write a message: the index can be made anew from them, or switched off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from . import backlog, hits, index, passages

__all__ = [
    "backlog",
    "hits",
    "index",
    "passages",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = attach_modules(__package__, "backlog hits index passages")
