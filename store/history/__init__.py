"""Raw history: sessions, branches and the lines through them, messages, what is derived at append.

Operations here are functions of a connection and change only the narrow end of a line: they append,
move heads, fork and erase. Rooms that build views or compact read lines through this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..doors import door

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
        moves,
        project_root,
        raw_messages,
        redaction,
        session_branches,
        sessions,
        siblings,
        tails,
        titles,
        token_counts,
        usage_reports,
        usages,
    )
    from .append import Dedupe, MessageInput
    from .changed import Changes, changes_of
    from .erasure import HOLDING
    from .facts import (
        INSERT_FACTS,
        INSERT_PATHS,
        INSERT_RESULTS,
        MEASURE,
        Measure,
        ResultRows,
        Weight,
        derive,
        kinds_text,
        last_answer,
        measure,
        message_rows,
        moment_at,
        stored_kinds,
        tokens_at,
        turn_start,
    )
    from .lines import Line, line_cte, segments_cte
    from .links import ANSWERS, IS_CALL
    from .model_prices import FilePath, PriceList, price_list
    from .open_erasures import open_trees
    from .order import lock_trees
    from .places import NO_LIMIT, PLACE, Pointer, Segment
    from .raw_messages import CALLS_IN_RUN, load_calls, read_chat_messages
    from .sessions import TEXT_LIMIT, newest_compaction
    from .turns import find_request_turn, load_chat_message
    from .usages import LastRequest, Request, last_usage
    from .visibility import visible_counts, visible_records

__all__ = [
    "ANSWERS",
    "CALLS_IN_RUN",
    "HOLDING",
    "INSERT_FACTS",
    "INSERT_PATHS",
    "INSERT_RESULTS",
    "IS_CALL",
    "MEASURE",
    "NO_LIMIT",
    "PLACE",
    "TEXT_LIMIT",
    "Changes",
    "Dedupe",
    "FilePath",
    "LastRequest",
    "Line",
    "Measure",
    "MessageInput",
    "Pointer",
    "PriceList",
    "Request",
    "ResultRows",
    "Segment",
    "Weight",
    "append",
    "changes_of",
    "derive",
    "drafts",
    "erasure",
    "erasure_batches",
    "find_request_turn",
    "heads",
    "keys",
    "kinds_text",
    "last_answer",
    "last_usage",
    "line_cte",
    "lines",
    "listing",
    "load_calls",
    "load_chat_message",
    "lock_trees",
    "lookup",
    "measure",
    "message_notes",
    "message_rows",
    "moment_at",
    "moves",
    "newest_compaction",
    "open_trees",
    "price_list",
    "project_root",
    "raw_messages",
    "read_chat_messages",
    "redaction",
    "segments_cte",
    "session_branches",
    "sessions",
    "siblings",
    "stored_kinds",
    "tails",
    "titles",
    "token_counts",
    "tokens_at",
    "turn_start",
    "usage_reports",
    "usages",
    "visible_counts",
    "visible_records",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = door(
        __package__,
        append="Dedupe MessageInput",
        changed="Changes changes_of",
        erasure="HOLDING",
        facts=(
            "INSERT_FACTS INSERT_PATHS INSERT_RESULTS MEASURE Measure ResultRows Weight "
            "derive kinds_text last_answer measure message_rows moment_at stored_kinds tokens_at "
            "turn_start"
        ),
        lines="Line line_cte segments_cte",
        links="ANSWERS IS_CALL",
        open_erasures="open_trees",
        order="lock_trees",
        places="NO_LIMIT PLACE Pointer Segment",
        model_prices="FilePath PriceList price_list",
        raw_messages="CALLS_IN_RUN load_calls read_chat_messages",
        sessions="TEXT_LIMIT newest_compaction",
        visibility="visible_counts visible_records",
        turns="find_request_turn load_chat_message",
        usages="LastRequest Request last_usage",
    )
