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
        raw,
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
    from .model_prices import PriceList, price_list
    from .open_erasures import open_trees
    from .order import lock_in_order
    from .places import NEVER, PLACE, Pointer, Segment
    from .raw import CALLS, read_rows, stored_calls
    from .sessions import TEXT_LIMIT, newest_record
    from .turns import message_at, turn_of
    from .usages import LastRequest, Request, last_usage
    from .visibility import counts_seen, records_seen

__all__ = [
    "ANSWERS",
    "CALLS",
    "HOLDING",
    "INSERT_FACTS",
    "INSERT_PATHS",
    "INSERT_RESULTS",
    "IS_CALL",
    "MEASURE",
    "NEVER",
    "PLACE",
    "TEXT_LIMIT",
    "Changes",
    "LastRequest",
    "Line",
    "Measure",
    "Pointer",
    "PriceList",
    "Request",
    "ResultRows",
    "Segment",
    "Weight",
    "append",
    "changes_of",
    "counts_seen",
    "derive",
    "drafts",
    "erasure",
    "erasure_batches",
    "heads",
    "keys",
    "kinds_text",
    "last_answer",
    "last_usage",
    "line_cte",
    "lines",
    "listing",
    "lock_in_order",
    "lookup",
    "measure",
    "message_at",
    "message_notes",
    "message_rows",
    "moment_at",
    "moves",
    "newest_record",
    "open_trees",
    "price_list",
    "project_root",
    "raw",
    "read_rows",
    "records_seen",
    "redaction",
    "segments_cte",
    "session_branches",
    "sessions",
    "siblings",
    "stored_calls",
    "stored_kinds",
    "tails",
    "titles",
    "token_counts",
    "tokens_at",
    "turn_of",
    "turn_start",
    "usage_reports",
    "usages",
]

if not TYPE_CHECKING:  # or any name would do for whoever reads types
    __getattr__, __dir__ = door(
        __package__,
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
        order="lock_in_order",
        places="NEVER PLACE Pointer Segment",
        model_prices="PriceList price_list",
        raw="CALLS read_rows stored_calls",
        sessions="TEXT_LIMIT newest_record",
        visibility="counts_seen records_seen",
        turns="message_at turn_of",
        usages="LastRequest Request last_usage",
    )
