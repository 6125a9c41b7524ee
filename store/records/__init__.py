"""The values that the store returns: frozen, cheap to make by the ten thousand.

Times are ms since the epoch, positions count from 1. All higher rooms may use this one; it imports
only messages and errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

__all__ = [
    "ERROR_KINDS",
    "REASONS",
    "TEXT_LIMIT",
    "Branch",
    "CacheInfo",
    "CallRecord",
    "Check",
    "Compaction",
    "Copy",
    "Draft",
    "Entry",
    "Erasure",
    "FilePath",
    "FileUse",
    "Finding",
    "Found",
    "GivenMessage",
    "HeadMove",
    "Health",
    "Hidden",
    "Hit",
    "Hits",
    "Index",
    "Kind",
    "LeftOut",
    "Message",
    "Metrics",
    "ModelMetric",
    "Note",
    "Observation",
    "ObserverCallback",
    "OpenCall",
    "OperationMetric",
    "Outcome",
    "Passage",
    "PolicyMetric",
    "ProgressCallback",
    "Pruned",
    "Purge",
    "Reason",
    "Redaction",
    "Removal",
    "Replaced",
    "Request",
    "RequestSummary",
    "Restored",
    "Session",
    "SessionHit",
    "Sibling",
    "Size",
    "SizePart",
    "StoredMessage",
    "TokenTotal",
    "Turn",
    "Usage",
    "UsageTotal",
    "View",
    "ViewStats",
    "extract_content_text",
    "extract_part_text",
    "find_message_time",
    "is_redacted",
    "select_opaque_fields",
]

if TYPE_CHECKING:
    from .compactions import ERROR_KINDS, REASONS, Check, Compaction, Hidden, Kind, Outcome, Reason
    from .maintenance import (
        CacheInfo,
        Copy,
        Erasure,
        FilePath,
        Finding,
        Health,
        ProgressCallback,
        Pruned,
        Purge,
        Redaction,
        Removal,
        Restored,
        Size,
        SizePart,
    )
    from .messages import (
        GivenMessage,
        Message,
        extract_content_text,
        extract_part_text,
        find_message_time,
        is_redacted,
        select_opaque_fields,
    )
    from .metrics import (
        Metrics,
        ModelMetric,
        Observation,
        ObserverCallback,
        OperationMetric,
        PolicyMetric,
    )
    from .requests import Request, RequestSummary
    from .search_results import Hit, Hits, Index, Passage, SessionHit
    from .sessions import (
        TEXT_LIMIT,
        Branch,
        CallRecord,
        Draft,
        FileUse,
        Found,
        HeadMove,
        Note,
        OpenCall,
        Session,
        Sibling,
        StoredMessage,
        TokenTotal,
        Turn,
        Usage,
        UsageTotal,
        make_call_record,
        make_stored_message,
    )
    from .views import Entry, LeftOut, Replaced, View, ViewStats, make_entry

if not TYPE_CHECKING:  # otherwise type checkers would accept any name
    __getattr__, __dir__ = attach_modules(
        __package__,
        compactions="ERROR_KINDS REASONS Check Compaction Hidden Kind Outcome Reason",
        messages=(
            "GivenMessage Message extract_content_text extract_part_text find_message_time "
            "is_redacted select_opaque_fields"
        ),
        maintenance=(
            "CacheInfo Copy Erasure FilePath Finding Health ProgressCallback Pruned Purge Redaction"
            " Removal Restored Size SizePart"
        ),
        metrics="Metrics ModelMetric Observation ObserverCallback OperationMetric PolicyMetric",
        requests="Request RequestSummary",
        search_results="Hit Hits Index Passage SessionHit",
        sessions=(
            "TEXT_LIMIT Branch CallRecord Draft FileUse Found HeadMove Note OpenCall Session "
            "Sibling StoredMessage TokenTotal Turn Usage UsageTotal make_call_record "
            "make_stored_message"
        ),
        views="Entry LeftOut Replaced View ViewStats make_entry",
    )
