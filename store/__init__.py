"""convostore: keep every message unchanged, and compute the messages sent to the model.

A *session* is a named pointer to a *head*, a position on a *line* of *messages*. Messages are only
ever added; the database refuses to change them. A line is made of runs of *branches*, so a *fork*
is a new pointer and a *rewind* an older position: neither copies or deletes anything, and both are
recorded. A model is sent a *view*, computed from the line by a *policy*: old output and repeated
reads are replaced, calls and results are paired, and the *summary* of the last *compaction*
replaces everything before it. The same line, with its compactions, policy and moment give the same
view for ever.

Read the rooms in this order and nothing is used before it is met: ``errors``, ``text``,
``cancellation``, ``clock``, ``policy``, ``messages``, ``html``, ``tokens``, ``records``;
``database``, ``tools``, ``formats``, ``history``, ``summaries``, ``view``, ``compaction``,
``context``, ``inspection``, ``search``, ``face``; ``transcripts``, ``importing``, ``exporting``,
``simulation``, ``recall``, ``mcp``, ``cli``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .lazy_imports import attach_modules

if TYPE_CHECKING:
    from .compaction import Clearing, Plan
    from .context import Context
    from .errors import (
        CompactionError,
        Conflict,
        ConnectionLost,
        Damaged,
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
        ReadOnly,
        SchemaTooNew,
        SessionExists,
        SessionNotFound,
        StoreBusy,
        StoreClosed,
        StoreError,
        StoreForked,
        StoreFull,
        StoreMoved,
        Unavailable,
        UnknownTranscript,
    )
    from .face import (
        AsyncScoped,
        AsyncStore,
        AsyncStreaming,
        Owned,
        Scoped,
        Snapshot,
        Steps,
        Store,
        Streaming,
    )
    from .history import Batch, ModelPrice, ModelPrices, UsageInput, build_batch, load_prices
    from .policy import Policy
    from .records import (
        Branch,
        CallRecord,
        Check,
        Compaction,
        Copy,
        Draft,
        Entry,
        Erasure,
        FileUse,
        Finding,
        Found,
        HeadMove,
        Hidden,
        Hit,
        Hits,
        Index,
        LeftOut,
        OpenCall,
        Passage,
        Redaction,
        Removal,
        Restored,
        Session,
        SessionHit,
        Sibling,
        StoredMessage,
        TokenTotal,
        Turn,
        Usage,
        View,
        ViewStats,
    )
    from .summaries import Summary, SummaryRequest

__all__ = [
    "AsyncScoped",
    "AsyncStore",
    "AsyncStreaming",
    "Batch",
    "Branch",
    "CallRecord",
    "Check",
    "Clearing",
    "Compaction",
    "CompactionError",
    "Conflict",
    "ConnectionLost",
    "Context",
    "Copy",
    "Damaged",
    "Draft",
    "DraftNotFound",
    "Entry",
    "Erasure",
    "FileUse",
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
    "LeftOut",
    "MessageNotFound",
    "ModelPrice",
    "ModelPrices",
    "NotAStore",
    "NothingToUndo",
    "OpenCall",
    "Owned",
    "Passage",
    "Plan",
    "Policy",
    "PositionOutOfRange",
    "QueryRefused",
    "ReadOnly",
    "Redaction",
    "Removal",
    "Restored",
    "SchemaTooNew",
    "Scoped",
    "Session",
    "SessionExists",
    "SessionHit",
    "SessionNotFound",
    "Sibling",
    "Snapshot",
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
    "Unavailable",
    "UnknownTranscript",
    "Usage",
    "UsageInput",
    "View",
    "ViewStats",
    "build_batch",
    "load_prices",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = attach_modules(
        __package__,
        compaction="Clearing Plan",
        context="Context",
        errors=(
            "CompactionError Conflict ConnectionLost Damaged DraftNotFound HeadMoved "
            "InvalidMessage InvalidPolicy InvalidValue MessageNotFound NotAStore NothingToUndo "
            "PositionOutOfRange QueryRefused ReadOnly SchemaTooNew SessionExists "
            "SessionNotFound StoreBusy StoreClosed StoreError StoreForked StoreFull StoreMoved "
            "Unavailable UnknownTranscript"
        ),
        face=("AsyncScoped AsyncStore AsyncStreaming Owned Scoped Snapshot Steps Store Streaming"),
        history="Batch ModelPrice ModelPrices UsageInput build_batch load_prices",
        policy="Policy",
        records=(
            "Branch CallRecord Check Compaction Copy Draft Entry Erasure FileUse Finding Found "
            "HeadMove Hidden Hit Hits Index LeftOut OpenCall Passage Redaction Removal Restored "
            "Session SessionHit Sibling StoredMessage TokenTotal Turn Usage View ViewStats"
        ),
        summaries="Summary SummaryRequest",
    )

# Log records are shown only if the host configures logging.
logging.getLogger(__package__).addHandler(logging.NullHandler())
