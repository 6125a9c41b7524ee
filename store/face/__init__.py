"""What a host calls: a store, the same awaited, and several steps as one.

An operation is a plain function whose first argument is a connection. A face opens the transaction,
reads the clock once, calls, commits. The operations are listed once (`Operations`); what carries
them out is said by each face. All rooms above may call it; it answers for transactions, not for
what is done in them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .binding import reads
from .scoped import Owned, Scoped
from .steps import Steps
from .store import Store, Target
from .streaming import Streaming

if TYPE_CHECKING:
    from .async_scoped import AsyncScoped
    from .async_store import AsyncStore
    from .async_streaming import AsyncStreaming

__all__ = [
    "AsyncScoped",
    "AsyncStore",
    "AsyncStreaming",
    "Owned",
    "Scoped",
    "Steps",
    "Store",
    "Streaming",
    "Target",
    "reads",
]

_AWAITED = {
    "AsyncScoped": "async_scoped",
    "AsyncStore": "async_store",
    "AsyncStreaming": "async_streaming",
}
"""The awaited faces, by the modules they are in."""

if not TYPE_CHECKING:  # or any name would do for whoever reads types

    def __getattr__(name: str) -> Any:
        """Import an awaited face where it is asked for: who awaits nothing needs none."""
        if name not in _AWAITED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        return getattr(import_module(f"{__package__}.{_AWAITED[name]}"), name)
