"""Hiding a range that a caller names: a compaction without a policy and without a model.

**Whole groups.** A range is never hidden in part. It grows, to both sides, until it cuts nothing in
two: a call takes its results with it and a result its call, wherever they are, and a range that was
hidden before goes whole. Each step may bring in a group that reaches further, so it is repeated
until nothing changes. The range that results is recorded, not the one of the caller.

**What cannot be hidden.** Some messages no view may do without: the latest user message, which is
being answered; system messages, which say how; and calls that wait for their result, which would
come to a view without them. A range that would hide one of these is refused, as is one that reaches
into the prefix that a compaction hides already. So the messages after the prefix and outside of
hidden ranges are always in whole groups, and every view of them can be sent.
"""

from __future__ import annotations

from sqlalchemy import Connection

from ..clock import Now, require_moment
from ..errors import CompactionError, InvalidValue, quote_value
from ..history import lines
from ..policy import Policy
from ..records import Compaction
from ..summaries import Summary
from ..text import as_plain_str, is_text
from ..view import (
    ActiveSummary,
    HiddenRange,
    PositionRange,
    ViewContext,
    count_view_messages,
    estimate_view_tokens,
    load_view_context,
)
from .plan import (
    Plan,
    count_summary_tokens,
    find_running_turn,
    find_spanning_call,
    find_unanswered_messages,
    list_pinned_positions,
)
from .record_rows import PlannedPart, insert_record, insert_summary, load_record, load_source

RAW_POLICY = Policy.named("raw")
"""The policy by which a record counts the messages and tokens of the view: one without rules."""
LONGEST_HIDDEN_TEXT = 2**20
"""Code points of the text that replaces a range."""
HIDE_AROUND = "hide what is before and behind it"


def hide(
    connection: Connection,
    session_id: str,
    first: int,
    last: int,
    summary: str | None = None,
    *,
    expected: str | None = None,
    now: Now = None,
) -> Compaction:
    """Hide the positions ``first`` to ``last``, replacing them by your own text or by nothing.

    The range grows to whole groups: a call goes with its results, and a range hidden before goes
    whole, with its text. Return the record, whose ``hidden`` is the range; ``undo_compaction``
    brings it back. Its ``messages`` and ``tokens`` are those of a view that no rule changes. No
    message is changed and the session's revision stays. ``expected`` is the revision that the
    session is to have (None: any). Raises SessionNotFound, Conflict, PositionOutOfRange,
    InvalidValue, and CompactionError for messages that no view may do without: the latest user
    message, system messages, calls without results, and for a range hidden by a compaction already.
    """
    if summary is not None:
        if not is_text(summary) or not summary.strip() or len(summary) > LONGEST_HIDDEN_TEXT:
            wanted = f"a text of 1 to {LONGEST_HIDDEN_TEXT:,} characters, or None for nothing"
            raise InvalidValue(f"a summary must be {wanted}, not {quote_value(summary)}")
        summary = as_plain_str(summary)
    moment = require_moment(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    context = load_view_context(connection, pointer, RAW_POLICY, last=pointer.head, now=moment)
    for position in (first, last):
        pointer.check_message(position)
    if first > last:
        raise InvalidValue(
            f"a range must end at its first position or later, not {first} to {last}"
        )
    first, last = _grow_to_groups(context, (first, last))
    obstacle = _find_obstacle(context, first, last)
    if obstacle:
        problem = f"positions {first} to {last} belong together and cannot be hidden: {obstacle}"
        raise CompactionError(problem, session_id=pointer.session_id, reason="manual")
    return load_record(connection, pointer, _insert_hidden(context, first, last, summary))


def _grow_to_groups(context: ViewContext, hidden: PositionRange) -> PositionRange:
    """Return the smallest range around another one that cuts nothing in two.

    Calls with their results, and ranges hidden before, are whole groups.
    """
    while True:
        first, last = hidden
        call = find_spanning_call(context, 1, first, last).call
        answer = find_spanning_call(context, first, last + 1, context.last).answer
        holes = context.visible.holes
        touched = [each for each in holes if each.first <= last and first <= each.last]
        wider = (
            min(first, call or first, *(each.first for each in touched)),
            max(last, answer or last, *(each.last for each in touched)),
        )
        if wider == hidden:
            return hidden
        hidden = wider


def _find_obstacle(context: ViewContext, first: int, last: int) -> str | None:
    """Return why a range cannot be hidden, and what to do instead; None if it can."""
    kept = context.visible.first_kept
    if first < kept:
        return f"a compaction hides what is before position {kept} already; begin there"
    for position in list_pinned_positions(context, first, last):
        return f"position {position} is a system message, which always stays; {HIDE_AROUND}"
    turn = find_running_turn(context)
    if first <= turn <= last:
        return (
            f"position {turn} is the latest user message, which has to be answered; {HIDE_AROUND}"
        )
    for position in sorted(find_unanswered_messages(context, first, last, context.last + 1)):
        waits = f"position {position} has calls that wait for a result"
        return f"{waits}; append it first, or {HIDE_AROUND}"
    return None


def _insert_hidden(context: ViewContext, first: int, last: int, text: str | None) -> int:
    """Write the record of a hidden range, and the text in its place; return its number."""
    summary = ActiveSummary(0, None, first, last, text, None) if text else None
    visible = context.visible.hide_range(HiddenRange(first, last, None, summary))
    after = context._replace(visible=visible)
    values = {
        "messages_before": count_view_messages(context),
        "messages_after": count_view_messages(after),
        "tokens_before": estimate_view_tokens(context),
        "tokens_after": estimate_view_tokens(after),
    }
    number = None
    if text:
        source = load_source(context, first, last, ())
        number = insert_summary(
            context,
            PlannedPart(Plan(first, last, (), 0, 0, 0), (), "", source),
            Summary(text),
            text=text,
            tokens=count_summary_tokens(text, None, context.policy),
            moment=context.now,
        )
    return insert_record(
        context.connection,
        context.pointer,
        None,
        kind="hide",
        outcome="applied",
        reason="manual",
        hidden_first=first,
        hidden_last=last,
        summary=number,
        created_at=context.now,
        **values,
    )
