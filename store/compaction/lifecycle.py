"""How a compaction begins and ends: one writing transaction each.

It ends applied, rejected or failed. Between the two no transaction is open, so the line is looked
at anew: what was planned is applied to the range that it was planned for, or not at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..clock import later
from ..history import Pointer, lines
from ..messages import encode
from ..records import Compaction
from ..summaries import Summary, render_summary
from .back_off import HELD
from .budget import Budget, budget, budget_by_now
from .job import Asked, Job, holder_of
from .open_turn import newest_groups, turn_begins
from .plan import Plan, tokens_of_summary, trim
from .record_rows import (
    Hiding,
    end_record,
    insert_record,
    keep_summary,
    not_recorded,
    recorded,
    running_record,
)
from .summarization import GOES_ON, Result, in_its_place
from .triggers import overflows, triggered, with_still_over
from .trimming import earlier, tellings

LEASE = 60_000
"""Ms beyond a summarizer's time after which a compaction that never ended is taken for dead."""


class _End(NamedTuple):
    """A running record that is ended, at a moment, and what the view costs by now."""

    cost: Budget
    number: int
    moment: int

    def write(self, **values: Any) -> int:
        """End the record; return its number."""
        context = self.cost.context
        return end_record(context.connection, context.pointer, self.number, **values)

    def applied(self, result: Result, change: dict[str, Any]) -> int:
        """End the record with a change, and with what the summarizer failed of, if it did."""
        return self.write(error=result.error, error_kind=result.error_kind, **change)


class _After(NamedTuple):
    """What the view will have, and how much of it is the summary."""

    messages: int
    tokens: int
    of_summary: int = 0


def begin(connection: Connection, asked: Asked, job: Job, moment: int) -> int | Compaction:
    """Open a compaction's record and return its number, or the answer that another one is running.

    Only one compaction of a session runs at a time: the database itself refuses a second running
    record.
    """
    pointer, policy = lines.lock_tree(connection, asked.session_id), asked.policy
    running = running_record(connection, pointer)
    if running and (running.lease_until or 0) > moment:
        problem = f"compaction {running.compaction} is still running"
        return _rejected(pointer, asked, problem, moment)
    if running:
        number = running.compaction
        end_record(connection, pointer, number, outcome="failed", error="it never ended")
    return insert_record(
        connection,
        pointer,
        policy,
        kind="summary",
        outcome="running",
        reason=asked.reason,
        lease_until=later(moment, int(policy.summary_timeout * 1000) + LEASE),
        created_at=moment,
        messages_before=job.cost.messages,
        tokens_before=job.cost.tokens,
    )


def finish(
    connection: Connection, asked: Asked, job: Job, number: int, result: Result, moment: int
) -> Compaction:
    """End a compaction: apply its summary if it fits the line and makes the view small enough.

    It fits where the line still runs through its range. Small enough is smaller, and below the
    policy's trigger, with the input that is to come, where it could be.
    """
    pointer = lines.lock_tree(connection, asked.session_id)
    running = running_record(connection, pointer)
    same_tree = pointer.tree_id == job.cost.context.pointer.tree_id
    if running is None or running.compaction != number or not same_tree:
        return _rejected(pointer, asked, "another compaction took its place", moment)
    end = _End(budget_by_now(job.cost, connection, pointer, moment), number, moment)
    problem = _moved(end.cost, job)
    if problem:
        ended = end.write(outcome="rejected", error=problem)
    elif result.summary is None:
        ended = _fail(end, result)
    else:
        ended = _apply(end, job, _offer(end, job, result, result.summary))
    return with_still_over(recorded(connection, pointer, ended), asked.policy, end.cost.added)


def keep_to_limit(
    connection: Connection, asked: Asked, problem: str, moment: int
) -> Compaction | None:
    """Hide what is beyond a policy's hard limit where a problem keeps a summary from being made.

    None where nothing is, and where another compaction of the session runs.
    """
    policy = asked.policy
    pointer = lines.lock_tree(connection, asked.session_id)
    cost = budget(connection, pointer, policy, moment, asked.coming)
    if running_record(connection, pointer) or trim(cost).nothing:
        return None
    number = insert_record(
        connection,
        pointer,
        policy,
        kind="summary",
        outcome="running",
        reason=asked.reason,
        created_at=moment,
    )
    ended = _fail(_End(cost, number, moment), Result(None, problem, HELD))
    return with_still_over(recorded(connection, pointer, ended), policy, cost.added)


def abandon(
    connection: Connection, session_id: str, number: int, stopped_by: BaseException
) -> None:
    """End a compaction as failed that nobody will finish, if it still runs.

    Raises SessionNotFound.
    """
    pointer = lines.lock_tree(connection, session_id)
    running = running_record(connection, pointer)
    if running and running.compaction == number:
        problem = f"stopped by {type(stopped_by).__name__}"
        end_record(connection, pointer, number, outcome="failed", error=problem)


def _rejected(pointer: Pointer, asked: Asked, problem: str, moment: int) -> Compaction:
    return not_recorded(
        pointer,
        asked.policy,
        outcome="rejected",
        reason=asked.reason,
        error=problem,
        moment=moment,
    )


def _moved(cost: Budget, job: Job) -> str | None:
    """Say why a plan no longer fits its line; None where it does."""
    context, planned = cost.context, job.hiding.plan
    before, by_now = job.cost.context.visible, context.visible
    if context.pointer.head < planned.last or holder_of(context, planned.last) != job.holder:
        return "the session was rewound to before the end of the range"
    least = context.policy.least_groups
    kept = newest_groups(context, least) if planned.inside else turn_begins(context)
    if kept <= planned.last:
        return "the session was rewound into the range, which would hide its current turn"
    if (by_now.first_kept, by_now.summaries) != (planned.first, before.summaries):
        return "the range begins elsewhere by now: a compaction was undone or made meanwhile"
    hidden = tuple(each for each in by_now.holes if each.first <= planned.last)
    if hidden != planned.covered:
        return "something in the range was hidden by name, or brought back, meanwhile"
    return None


class _Offer(NamedTuple):
    """A summary that may stand for what goes, as it is written, and what the view has with it.

    ``result`` is what it came of.
    """

    result: Result
    summary: Summary
    text: str
    after: _After


def _offer(end: _End, job: Job, result: Result, summary: Summary) -> _Offer:
    text = _with_end(end, job.hiding, render_summary(summary, end.cost.context.policy.language))
    return _Offer(result, summary, text, _with_text(end.cost, job.hiding, text))


def _with_end(end: _End, hiding: Hiding, text: str) -> str:
    """Return a text that stands for what goes; where that is within a turn, it says so."""
    if not hiding.plan.inside:
        return text
    goes_on = GOES_ON[end.cost.context.policy.language]
    return f"{text}\n\n{goes_on}" if text else goes_on


def _apply(end: _End, job: Job, offer: _Offer) -> int:
    """Apply a summary, unless the view does not get small enough by it.

    Then what happens is what the policy does without a summary. Where that is nothing, the smaller
    of two views over the window is sent all the same. Return the record's number.
    """
    problem = _problem(end.cost, job.hiding, offer)
    if problem is None:
        return _put(end, job, offer)
    ended = None if offer.result.error else _instead(end, job, problem)
    if ended is None and end.cost.over and _not_smaller(end.cost, offer.after) is None:
        ended = _put(end, job, offer)
    if ended is None:
        ended = end.write(outcome="rejected", error=problem, first_kept=job.sought + 1)
    return ended


def _instead(end: _End, job: Job, problem: str) -> int | None:
    """Do what a policy does without a summary, where one was refused; None where that is nothing.

    Return the record's number.
    """
    refused = Result(None, problem)
    policy = end.cost.context.policy
    if policy.on_failure == "trim":
        return _trim(end, refused)
    notice = in_its_place(job, policy, refused)
    if notice.summary is None:
        return None
    offer = _offer(end, job, notice, notice.summary)
    if _problem(end.cost, job.hiding, offer):
        return None
    return _put(end, job, offer)


def _put(end: _End, job: Job, offer: _Offer) -> int:
    """Let a summary stand for what goes; return the record's number."""
    hiding, after = job.hiding, offer.after
    number = _keep(end, hiding, offer.summary, offer.text, after)
    return end.applied(offer.result, _change(end, hiding.plan, after, number))


def _problem(cost: Budget, hiding: Hiding, offer: _Offer) -> str | None:
    """Say why a view does not get small enough by a summary; None where it does."""
    problem = _not_smaller(cost, offer.after) or _too_little(cost, offer.after)
    if problem is None and offer.result.error is None:
        problem = _too_long(cost, hiding, offer.after)
    return problem


def _too_little(cost: Budget, after: _After) -> str | None:
    """Say that less is freed than the policy asks for."""
    freed = cost.tokens - after.tokens
    if freed >= cost.to_free or not cost.to_free:
        return None
    return f"the view would get too little smaller: by {freed} of {cost.tokens} tokens"


def _not_smaller(cost: Budget, after: _After) -> str | None:
    """Say that a view does not get smaller by a summary.

    Where the trigger counts messages, that is their number, and their tokens only where it stays.
    """
    before, left = (0, cost.tokens), (0, after.tokens)
    if cost.goes_by_messages:
        before, left = (cost.messages, cost.tokens), (after.messages, after.tokens)
    if left < before:
        return None
    return (
        f"the view would not get smaller: it has {cost.tokens} tokens, it would have {after.tokens}"
    )


def _too_long(cost: Budget, hiding: Hiding, after: _After) -> str | None:
    """Say that a view stays at the trigger, or over the window, only for its summary's text.

    Where an empty summary would not bring it below either, the summary is progress. What is given
    in the place of a summary that failed is not asked: it cannot be shorter than it is.
    """
    empty = tokens_of_summary("", hiding.facts, cost.context.policy)
    bare = after._replace(tokens=after.tokens - after.of_summary + empty)
    above = _trigger_after(cost, after)
    fits = _overflows_after(cost, after) == _overflows_after(cost, bare)
    if fits and (_trigger_after(cost, bare) or not above):
        return None
    return (
        f"the summary is too long: the view would still trigger ({above or 'over the window'}),"
        f" without its text it would have {bare.tokens}"
    )


def _trigger_after(cost: Budget, after: _After) -> str | None:
    """Return which trigger the next request would fire after a compaction."""
    tokens = after.tokens + cost.added
    return triggered(cost.context.policy, messages=after.messages, tokens=tokens)


def _overflows_after(cost: Budget, after: _After) -> bool:
    """Tell whether the next request would be over the window after a compaction."""
    return overflows(cost.context.policy, after.tokens + cost.added)


def _with_text(cost: Budget, hiding: Hiding, text: str) -> _After:
    """Return what the view has with a text in the place of what goes."""
    planned, previous = hiding.plan, hiding.previous
    left = planned.left_of(cost.context.visible)
    beside = tuple(each for each in left.summaries if each not in previous)
    of_summary = tokens_of_summary(text, hiding.facts, cost.context.policy)
    left = left._replace(summaries=beside)
    messages = cost.messages_with(left) + 1
    return _After(messages, cost.tokens_with(left) + of_summary, of_summary)


def _with_nothing(cost: Budget, planned: Plan) -> _After:
    """Return what the view has with nothing in the place of what goes."""
    left = planned.left_of(cost.context.visible)
    return _After(cost.messages_with(left), cost.tokens_with(left))


def _fail(end: _End, result: Result) -> int:
    """Record a failure; return the record's number.

    A policy with a hard limit hides its oldest turns all the same, and their facts stay.
    """
    trimmed = _trim(end, result)
    if trimmed is not None:
        return trimmed
    return end.write(outcome="failed", error=result.error, error_kind=result.error_kind)


def _trim(end: _End, result: Result) -> int | None:
    """Hide the oldest turns beyond a hard limit; None for a policy or a view where none go.

    Their facts stay, unless these would take more than is freed. Return the record's number.
    """
    whole = trim(end.cost)
    if whole.nothing:
        return None
    for hiding in tellings(end.cost):
        text = _with_end(end, hiding, earlier(hiding))
        after = _with_text(end.cost, hiding, text)
        if after.tokens < end.cost.tokens:
            notice = hiding.previous[-1].notice if hiding.previous else None
            number = _keep(end, hiding, Summary(text, notice=notice), text, after)
            return end.applied(result, _change(end, hiding.plan, after, number))
    after = _with_nothing(end.cost, whole)
    return end.applied(result, _change(end, whole, after, None))


def _keep(
    end: _End,
    hiding: Hiding,
    summary: Summary,
    text: str,
    after: _After,
) -> int:
    return keep_summary(
        end.cost.context,
        hiding,
        summary,
        text=text,
        tokens=after.of_summary,
        moment=end.moment,
    )


def _change(
    end: _End,
    planned: Plan,
    after: _After,
    summary: int | None,
) -> dict[str, Any]:
    """Return what a plan does to which view, and when, as columns of its record."""
    return {
        "outcome": "applied",
        "summary": summary,
        "messages_before": end.cost.messages,
        "messages_after": after.messages,
        "tokens_before": end.cost.tokens,
        "tokens_after": after.tokens,
        "created_at": end.moment,
        "first_kept": planned.last + 1,
        "hidden_first": planned.hidden_first,
        "hidden_last": planned.last,
        "pinned": encode(planned.pins(end.cost.context.visible)),
    }
