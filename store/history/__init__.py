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
        branch_erasure,
        drafts,
        erasure,
        erasure_batches,
        facts,
        heads,
        lines,
        listing,
        message_lookup,
        message_notes,
        raw_messages,
        redaction,
        retention,
        search_entries,
        session_branches,
        sessions,
        token_counts,
        tool_use,
        usages,
    )
    from .ancestry import check_ancestors, write_missing_ancestors
    from .append import Batch, Dedupe, MessageInput, build_batch
    from .attachments import restore_call, restore_calls, restore_contents, restore_messages
    from .erasure import STALE_COPIES
    from .erasure_log import list_open_trees
    from .facts import (
        ANSWERED_PLACES,
        INSERT_FACTS,
        INSERT_PATHS,
        INSERT_RESULTS,
        IS_CALL,
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
        build_line_branches,
        build_segments,
        lock_trees,
        match_visible_counts,
        match_visible_records,
    )
    from .message_lookup import RequestTurn, find_request_turn, load_chat_message
    from .model_prices import DAY_MS, ModelPrice
    from .price_files import ModelPrices, load_prices
    from .raw_messages import CALLS_IN_RUN, load_calls, load_session_chat_messages
    from .redaction import list_redactions
    from .request_rows import (
        INPUT_TEXT,
        RequestRange,
        RequestRow,
        insert_request,
        link_usage,
        list_request_numbers,
        load_request_texts,
        load_session_requests,
        reserve_request,
    )
    from .retention import CONTENT_BYTES, delete_owned_rows
    from .sessions import derive_metadata_keys, load_newest_compaction
    from .tree_search_entries import write_missing_entries
    from .usages import (
        LastRequest,
        UsageInput,
        find_last_usage,
        list_numbered_usages,
        load_placed_usages,
    )
    from .view_cache import TreeState, Validity, ViewCache, load_pointer_and_state, load_tree_state

__all__ = [
    "ANSWERED_PLACES",
    "CALLS_IN_RUN",
    "CONTENT_BYTES",
    "DAY_MS",
    "INPUT_TEXT",
    "INSERT_FACTS",
    "INSERT_PATHS",
    "INSERT_RESULTS",
    "IS_CALL",
    "LINE_TOTALS",
    "NO_LIMIT",
    "PLACE",
    "STALE_COPIES",
    "Batch",
    "Dedupe",
    "LastRequest",
    "Line",
    "LineTotals",
    "MessageInput",
    "MessageTokens",
    "ModelPrice",
    "ModelPrices",
    "Pointer",
    "RequestRange",
    "RequestRow",
    "RequestTurn",
    "ResultRows",
    "Segment",
    "TreeState",
    "UsageInput",
    "Validity",
    "ViewCache",
    "append",
    "branch_erasure",
    "build_batch",
    "build_fact_rows",
    "build_line_branches",
    "build_segments",
    "check_ancestors",
    "delete_owned_rows",
    "derive_metadata_keys",
    "derive_results",
    "drafts",
    "erasure",
    "erasure_batches",
    "facts",
    "find_last_answer",
    "find_last_usage",
    "find_request_turn",
    "find_turn_start",
    "heads",
    "insert_request",
    "lines",
    "link_usage",
    "list_numbered_usages",
    "list_open_trees",
    "list_redactions",
    "list_request_numbers",
    "listing",
    "load_calls",
    "load_chat_message",
    "load_kinds_json",
    "load_message_time",
    "load_newest_compaction",
    "load_placed_usages",
    "load_pointer_and_state",
    "load_prices",
    "load_request_texts",
    "load_session_chat_messages",
    "load_session_requests",
    "load_tool_kinds",
    "load_totals",
    "load_tree_state",
    "lock_trees",
    "match_visible_counts",
    "match_visible_records",
    "message_lookup",
    "message_notes",
    "raw_messages",
    "redaction",
    "reserve_request",
    "restore_call",
    "restore_calls",
    "restore_contents",
    "restore_messages",
    "retention",
    "search_entries",
    "session_branches",
    "sessions",
    "sum_tokens",
    "token_counts",
    "tool_use",
    "usages",
    "write_missing_ancestors",
    "write_missing_entries",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = attach_modules(
        __package__,
        (
            "append branch_erasure drafts erasure erasure_batches facts heads lines listing "
            "message_lookup message_notes raw_messages redaction retention search_entries "
            "session_branches sessions token_counts tool_use usages"
        ),
        ancestry="check_ancestors write_missing_ancestors",
        append="Batch Dedupe MessageInput build_batch",
        attachments="restore_call restore_calls restore_contents restore_messages",
        erasure="STALE_COPIES",
        erasure_log="list_open_trees",
        facts=(
            "ANSWERED_PLACES INSERT_FACTS INSERT_PATHS INSERT_RESULTS IS_CALL LINE_TOTALS "
            "LineTotals MessageTokens ResultRows build_fact_rows derive_results find_last_answer "
            "find_turn_start load_kinds_json load_message_time load_tool_kinds load_totals "
            "sum_tokens"
        ),
        lines=(
            "NO_LIMIT PLACE Line Pointer Segment build_line_branches build_segments lock_trees "
            "match_visible_counts match_visible_records"
        ),
        message_lookup="RequestTurn find_request_turn load_chat_message",
        model_prices="DAY_MS ModelPrice",
        price_files="ModelPrices load_prices",
        raw_messages="CALLS_IN_RUN load_calls load_session_chat_messages",
        redaction="list_redactions",
        request_rows=(
            "INPUT_TEXT RequestRange RequestRow insert_request link_usage list_request_numbers "
            "load_request_texts load_session_requests reserve_request"
        ),
        retention="CONTENT_BYTES delete_owned_rows",
        sessions="derive_metadata_keys load_newest_compaction",
        tree_search_entries="write_missing_entries",
        usages="LastRequest UsageInput find_last_usage list_numbered_usages load_placed_usages",
        view_cache="TreeState Validity ViewCache load_pointer_and_state load_tree_state",
    )
