"""Raw history: sessions, branches, the lines through them, messages, and facts derived at append.

Operations here are functions of a connection and change only the narrow end of a line: they append,
move heads, fork and erase. Rooms that build views or compact read lines through this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import attach_modules

if TYPE_CHECKING:
    from . import (
        append,
        drafts,
        erasure,
        erasure_batches,
        heads,
        keys,
        lines,
        listing,
        lookup,
        message_notes,
        project_root,
        raw_messages,
        redaction,
        session_branches,
        sessions,
        siblings,
        titles,
        token_counts,
        usage_reports,
        usages,
    )
    from .append import Dedupe, MessageInput
    from .changed import ChangeCounts, count_changes
    from .erasure import STALE_COPIES
    from .facts import (
        INSERT_FACTS,
        INSERT_PATHS,
        INSERT_RESULTS,
        LINE_TOTALS,
        LineTotals,
        MessageTokens,
        ResultRows,
        build_fact_rows,
        derive_results,
        find_last_answer,
        find_turn_start,
        load_kinds_json,
        load_message_time,
        load_tool_kinds,
        load_totals,
        sum_tokens,
    )
    from .lines import (
        NO_LIMIT,
        PLACE,
        Line,
        Pointer,
        Segment,
        build_line_walk,
        build_segments,
        lock_trees,
    )
    from .links import ANSWERED_PLACES, IS_CALL
    from .model_prices import FilePath, ModelPrices, load_prices
    from .open_erasures import list_open_trees
    from .raw_messages import CALLS_IN_RUN, load_calls, load_session_chat_messages
    from .sessions import TEXT_LIMIT, load_newest_compaction
    from .turns import find_request_turn, load_chat_message
    from .usages import LastRequest, UsageInput, find_last_usage
    from .visibility import match_visible_counts, match_visible_records

__all__ = [
    "ANSWERED_PLACES",
    "CALLS_IN_RUN",
    "INSERT_FACTS",
    "INSERT_PATHS",
    "INSERT_RESULTS",
    "IS_CALL",
    "LINE_TOTALS",
    "NO_LIMIT",
    "PLACE",
    "STALE_COPIES",
    "TEXT_LIMIT",
    "ChangeCounts",
    "Dedupe",
    "FilePath",
    "LastRequest",
    "Line",
    "LineTotals",
    "MessageInput",
    "MessageTokens",
    "ModelPrices",
    "Pointer",
    "ResultRows",
    "Segment",
    "UsageInput",
    "append",
    "build_fact_rows",
    "build_line_walk",
    "build_segments",
    "count_changes",
    "derive_results",
    "drafts",
    "erasure",
    "erasure_batches",
    "find_last_answer",
    "find_last_usage",
    "find_request_turn",
    "find_turn_start",
    "heads",
    "keys",
    "lines",
    "list_open_trees",
    "listing",
    "load_calls",
    "load_chat_message",
    "load_kinds_json",
    "load_message_time",
    "load_newest_compaction",
    "load_prices",
    "load_session_chat_messages",
    "load_tool_kinds",
    "load_totals",
    "lock_trees",
    "lookup",
    "match_visible_counts",
    "match_visible_records",
    "message_notes",
    "project_root",
    "raw_messages",
    "redaction",
    "session_branches",
    "sessions",
    "siblings",
    "sum_tokens",
    "titles",
    "token_counts",
    "usage_reports",
    "usages",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = attach_modules(
        __package__,
        (
            "append drafts erasure erasure_batches heads keys lines listing lookup message_notes "
            "project_root raw_messages redaction session_branches sessions siblings "
            "titles token_counts usage_reports usages"
        ),
        append="Dedupe MessageInput",
        changed="ChangeCounts count_changes",
        erasure="STALE_COPIES",
        facts=(
            "INSERT_FACTS INSERT_PATHS INSERT_RESULTS LINE_TOTALS LineTotals MessageTokens "
            "ResultRows build_fact_rows derive_results find_last_answer find_turn_start "
            "load_kinds_json load_message_time load_tool_kinds load_totals sum_tokens"
        ),
        lines="NO_LIMIT PLACE Line Pointer Segment build_line_walk build_segments lock_trees",
        links="ANSWERED_PLACES IS_CALL",
        model_prices="FilePath ModelPrices load_prices",
        open_erasures="list_open_trees",
        raw_messages="CALLS_IN_RUN load_calls load_session_chat_messages",
        sessions="TEXT_LIMIT load_newest_compaction",
        turns="find_request_turn load_chat_message",
        usages="LastRequest UsageInput find_last_usage",
        visibility="match_visible_counts match_visible_records",
    )
