"""convostore: keep every message unchanged, and compute what is sent to the model.

A *session* is a named pointer to a *head*, a position on a *line* of *messages*. Messages are only
ever added; the database refuses to change them. A line is made of runs of *branches*, so a *fork*
is a new pointer and a *rewind* an older position: neither copies or deletes anything, and both are
recorded. What a model is sent is a *view*, computed from the line by a *policy*: old output and
repeated reads replaced, calls and results in pairs, everything before the last *compaction* behind
its *summary*. The same line, with its compactions, policy and moment give
the same view for ever.

Read the rooms in this order and nothing is used before it is met: ``errors``, ``text``,
``callers``, ``clock``, ``policy``, ``messages``, ``tokens``, ``records``; ``database``, ``tools``,
``formats``, ``history``, ``summaries``, ``view``, ``compaction``, ``context``, ``inspection``,
``search``, ``face``; ``transcripts``, ``importing``, ``simulation``, ``recall``, ``cli``.
"""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .context import Context
    from .errors import (
        CompactionError,
        Conflict,
        ConnectionLost,
        DraftNotFound,
        HeadMoved,
        InvalidMessage,
        InvalidPolicy,
        InvalidValue,
        MessageNotFound,
        NotAStore,
        NothingToUndo,
        PositionOutOfRange,
        QueryRefused,
        SchemaTooNew,
        SessionExists,
        SessionNotFound,
        StoreBusy,
        StoreClosed,
        StoreError,
        StoreForked,
        StoreFull,
        StoreMoved,
        UnknownTranscript,
    )
    from .face import (
        AsyncScoped,
        AsyncStore,
        AsyncStreaming,
        Owned,
        Scoped,
        Steps,
        Store,
        Streaming,
    )
    from .policy import Policy
    from .records import (
        Branch,
        Check,
        Compaction,
        Copy,
        Draft,
        Entry,
        Erasure,
        Finding,
        Found,
        HeadMove,
        Hidden,
        Hit,
        Hits,
        Index,
        Passage,
        Redaction,
        Removal,
        Restored,
        Session,
        Sibling,
        StoredMessage,
        TokenTotal,
        Turn,
        Usage,
        View,
        ViewStats,
    )
    from .summaries import Summary, SummaryRequest

logging.getLogger(__package__).addHandler(
    logging.NullHandler()
)  # what is logged is shown where the host asks for it

__all__ = [
    "AsyncScoped",
    "AsyncStore",
    "AsyncStreaming",
    "Branch",
    "Check",
    "Compaction",
    "CompactionError",
    "Conflict",
    "ConnectionLost",
    "Context",
    "Copy",
    "Draft",
    "DraftNotFound",
    "Entry",
    "Erasure",
    "Finding",
    "Found",
    "HeadMove",
    "HeadMoved",
    "Hidden",
    "Hit",
    "Hits",
    "Index",
    "InvalidMessage",
    "InvalidPolicy",
    "InvalidValue",
    "MessageNotFound",
    "NotAStore",
    "NothingToUndo",
    "Owned",
    "Passage",
    "Policy",
    "PositionOutOfRange",
    "QueryRefused",
    "Redaction",
    "Removal",
    "Restored",
    "SchemaTooNew",
    "Scoped",
    "Session",
    "SessionExists",
    "SessionNotFound",
    "Sibling",
    "Steps",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreError",
    "StoreForked",
    "StoreFull",
    "StoreMoved",
    "StoredMessage",
    "Streaming",
    "Summary",
    "SummaryRequest",
    "TokenTotal",
    "Turn",
    "UnknownTranscript",
    "Usage",
    "View",
    "ViewStats",
]

_HOLDING = ("errors", "records", "policy", "summaries", "context", "face")
"""The rooms whose names are public, those first that are imported soonest."""

if not TYPE_CHECKING:  # or any name would do for whoever reads types

    def __getattr__(name: str) -> Any:
        """Import a public name, or a room, where it is asked for first.

        Who handles errors or writes a policy waits for no table of a database.
        """
        if name in __all__:
            globals()[name] = _found(name)
            return globals()[name]
        if find_spec(f"{__package__}.{name}"):
            return import_module(f"{__package__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def _found(name: str) -> Any:
    rooms = (import_module(f"{__package__}.{room}") for room in _HOLDING)
    return next(getattr(room, name) for room in rooms if hasattr(room, name))
