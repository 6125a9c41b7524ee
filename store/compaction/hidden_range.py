"""Hiding a range that a caller names: a compaction without a policy and without a model.

**What goes together.** A range is never hidden in part. It grows, to both sides, until it cuts
nothing in two: a call takes its results with it and a result its call, wherever they stand, and a
range that was hidden before goes whole. Each step may bring in a group that reaches further, so it
is done again until nothing moves. What it comes to is recorded, not what was asked for.

**What cannot go.** Some messages no view may do without: the latest user message, which is what is
being answered; system messages, which say how; and calls that wait for their result, which would
come to a view without them. A range that would hide one of these is refused, as is one that reaches
into what a compaction hides already. So what is behind the prefix and no range hides is always in
whole groups, and every view of it can be sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from ..clock import Now, given
from ..errors import CompactionError, InvalidValue, quoted
from ..history import Pointer, lines
from ..policy import Policy
from ..records import Compaction
from ..summaries import Summary
from ..text import is_text, plain
from ..view import ActiveSummary, HiddenRange, PositionRange, ViewContext, load_view_context
from .budget import budget_of
from .cuts import spanning, system_messages
from .open_turn import turn_begins, waiting
from .plan import Plan, tokens_of_summary
from .record_rows import Hiding, insert_record, keep_summary, recorded
from .sources import sources

PLAIN = Policy.named("raw")
"""The policy by which a record says what the view has: one without rules."""
LONGEST = 2**20
"""Code points of what stands for a range."""
AROUND = "hide what is before and behind it"


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
    """Hide the positions ``first`` to ``last`` behind a text of your own, or behind nothing.

    The range grows to whole groups: a call goes with its results, and a range hidden before goes
    whole, with its text. Return the record, whose ``hidden`` is the range; ``undo_compaction``
    brings it back. Its ``messages`` and ``tokens`` are those of a view that no rule changes. No
    message is touched and the session's revision stays. ``expected`` is the revision that the
    session is to have (None: any). Raises SessionNotFound, Conflict, PositionOutOfRange,
    InvalidValue, and CompactionError for what no view may do without: the latest user message,
    system messages, calls without results, what a compaction hides already.
    """
    text, moment = _checked(summary), given(now)
    pointer = lines.lock_tree(connection, session_id, expected)
    context = load_view_context(connection, pointer, PLAIN, last=pointer.head, now=moment)
    hidden = _whole(context, _positions(pointer, first, last))
    _check_may_go(context, hidden)
    number = _record(context, hidden, text)
    return recorded(connection, pointer, number)


def _checked(summary: str | None) -> str | None:
    """Return a text that can stand in a view. Raises InvalidValue for any other."""
    if summary is None:
        return None
    if not is_text(summary) or not summary.strip() or len(summary) > LONGEST:
        problem = f"a summary is a text of 1 to {LONGEST:,} characters, or None for nothing"
        raise InvalidValue(f"{problem}, not {quoted(summary)}")
    return plain(summary)


def _positions(pointer: Pointer, first: int, last: int) -> PositionRange:
    """Return a range of a line. Raises PositionOutOfRange, InvalidValue."""
    for each in (first, last):
        pointer.check_message(each)
    if first > last:
        raise InvalidValue(f"a range ends where it begins or later, not {first} to {last}")
    return first, last


def _whole(context: ViewContext, span: PositionRange) -> PositionRange:
    """Return the smallest range around another one that cuts nothing in two."""
    wider = _wider(context, span)
    while wider != span:
        span, wider = wider, _wider(context, wider)
    return span


def _wider(context: ViewContext, span: PositionRange) -> PositionRange:
    """Return a range with what its messages go with: calls, results, what was hidden before."""
    first, last = span
    asked = spanning(context, 1, first, last).call
    answered = spanning(context, first, last + 1, context.last).answer
    touched = [each for each in context.visible.holes if each.first <= last and first <= each.last]
    return (
        min(first, asked or first, *(each.first for each in touched)),
        max(last, answered or last, *(each.last for each in touched)),
    )


def _check_may_go(context: ViewContext, span: PositionRange) -> None:
    """Raise CompactionError for what is hidden already, or has to stay."""
    first, last = span
    problem = next(_problems(context, first, last), None)
    if problem:
        told = f"positions {first} to {last} belong together and cannot be hidden: {problem}"
        session_id = context.pointer.session_id
        raise CompactionError(told, session_id=session_id, reason="manual")


def _problems(context: ViewContext, first: int, last: int) -> Iterator[str]:
    """Yield why a range cannot be hidden, and what to do instead."""
    kept = context.visible.first_kept
    if first < kept:
        yield f"a compaction hides what is before position {kept} already; begin there"
    for place in system_messages(context, first, last):
        yield f"position {place} is a system message, which always stays; {AROUND}"
    begins = turn_begins(context)
    if first <= begins <= last:
        yield f"position {begins} is the latest user message, which has to be answered; {AROUND}"
    for place in sorted(waiting(context, first, last, context.last + 1)):
        yield f"position {place} has calls that wait for a result; append it first, or {AROUND}"


def _record(context: ViewContext, span: PositionRange, text: str | None) -> int:
    """Write the record of what is hidden; return its number."""
    first, last = span
    before, after = budget_of(context), budget_of(_with(context, span, text))
    return insert_record(
        context.connection,
        context.pointer,
        None,
        kind="hide",
        outcome="applied",
        reason="manual",
        hidden_first=first,
        hidden_last=last,
        summary=_kept(context, span, text) if text else None,
        messages_before=before.messages,
        messages_after=after.messages,
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        created_at=context.now,
    )


def _with(context: ViewContext, span: PositionRange, text: str | None) -> ViewContext:
    """Return a look at the line as it is when a range is hidden."""
    standing = ActiveSummary(0, None, *span, text, None) if text else None
    return context._replace(visible=context.visible.hide_range(HiddenRange(*span, None, standing)))


def _kept(context: ViewContext, span: PositionRange, text: str) -> int:
    """Write the text that stands for a range; return its number."""
    first, last = span
    planned = Plan(first, last, (), 0, 0, 0)
    hiding = Hiding(planned, (), "", sources(context, first, last, ()))
    tokens = tokens_of_summary(text, None, context.policy)
    return keep_summary(
        context, hiding, Summary(text), text=text, tokens=tokens, moment=context.now
    )
