"""The interface for hosts: a store, an awaited store, and several steps in one transaction.

An operation is a plain function whose first argument is a connection. A face opens the transaction,
reads the clock once, calls the function and commits. The operations are listed once (`Operations`);
each face says how they are carried out. All rooms above may call it. It is responsible for the
transactions, not for the work done in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from .async_store import AsyncScoped, AsyncStore
    from .async_streaming import AsyncStreaming
    from .atomic_steps import Snapshot, Steps
    from .store import Owned, Scoped, Store, Target
    from .streaming import Streaming

__all__ = [
    "AsyncScoped",
    "AsyncStore",
    "AsyncStreaming",
    "Owned",
    "Scoped",
    "Snapshot",
    "Steps",
    "Store",
    "Streaming",
    "Target",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = attach_modules(
        __package__,
        async_store="AsyncScoped AsyncStore",
        async_streaming="AsyncStreaming",
        atomic_steps="Snapshot Steps",
        store="Owned Scoped Store Target",
        streaming="Streaming",
    )
