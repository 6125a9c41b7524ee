"""The beginning and the end of a compaction: one writing transaction each.

It ends applied, rejected or failed. Between the two no transaction is open, so the line is read
anew: a plan is applied to the range that it was made for, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..clock import shift_moment
from ..history import Pointer, lines
from ..messages import encode
from ..records import Compaction
from ..summaries import Summary, render_summary
from ..view import list_range_summaries, load_visible_set
from .compaction_check import LIMIT_ERROR_KIND
from .job import (
    TURN_GOES_ON,
    CompactionRequest,
    Job,
    SummaryResult,
    build_fallback_result,
    build_hidden_part,
    find_holding_branch,
    strip_turn_end,
)
from .plan import Plan, count_summary_tokens, find_group_start, find_running_turn, plan_trim
from .record_rows import (
    PlannedPart,
    build_unrecorded_answer,
    end_record,
    find_running_record,
    insert_record,
    insert_summary,
    load_record,
)
from .triggers import (
    ViewCost,
    find_trigger,
    load_view_cost,
    mark_still_over,
    overflows_window,
)

RECORD_LEASE = 60_000
"""Ms beyond a summarizer's time after which a compaction that never ended is taken for dead."""


class ViewSize(NamedTuple):
    """The messages and tokens of a view after a compaction, and the tokens of its summary."""

    messages: int
    tokens: int
    summary_tokens: int = 0


class Candidate(NamedTuple):
    """A summary for a hidden part, its text with its additions, and the size of the view after it.

    ``result`` is the result of the summarizer from which it was made.
    """

    result: SummaryResult
    summary: Summary
    text: str
    size: ViewSize


class OpenRecord(NamedTuple):
    """A running record, the time at which it ends, and the present cost of the view."""

    cost: ViewCost
    number: int
    moment: int

    def end(self, **values: Any) -> int:
        """End the record; return its number."""
        context = self.cost.context
        return end_record(context.connection, context.pointer, self.number, **values)

    def apply(self, plan: Plan, size: ViewSize, result: SummaryResult, summary: int | None) -> int:
        """End the record as applied, with the error of the summarizer if it failed."""
        return self.end(
            outcome="applied",
            error=result.error,
            error_kind=result.error_kind,
            summary=summary,
            messages_before=self.cost.messages,
            messages_after=size.messages,
            tokens_before=self.cost.tokens,
            tokens_after=size.tokens,
            created_at=self.moment,
            first_kept=plan.last + 1,
            hidden_first=plan.hidden_first,
            hidden_last=plan.last,
            pinned=encode(plan.pinned_after(self.cost.context.visible)),
        )


def begin_compaction(
    connection: Connection, request: CompactionRequest, job: Job, moment: int
) -> int | Compaction:
    """Write a compaction's record and return its number, or the answer that another one runs.

    Only one compaction of a session runs at a time: the database itself refuses a second running
    record.
    """
    pointer, policy = lines.lock_tree(connection, request.session_id), request.policy
    running = find_running_record(connection, pointer)
    if running and (running.lease_until or 0) > moment:
        problem = f"compaction {running.compaction} is still running"
        return _record_rejection(pointer, request, problem, moment)
    if running:
        number = running.compaction
        end_record(connection, pointer, number, outcome="failed", error="it never ended")
    return insert_record(
        connection,
        pointer,
        policy,
        kind="summary",
        outcome="running",
        reason=request.reason,
        lease_until=shift_moment(moment, int(policy.summary_timeout * 1000) + RECORD_LEASE),
        created_at=moment,
        messages_before=job.cost.messages,
        tokens_before=job.cost.tokens,
    )


def finish_compaction(
    connection: Connection,
    request: CompactionRequest,
    job: Job,
    number: int,
    result: SummaryResult,
    moment: int,
) -> Compaction:
    """End a compaction: apply its summary if it fits the line and makes the view small enough.

    The cost of the view is read anew if the line has changed since the beginning. The summary fits
    if the line still runs through its range. Small enough is smaller, and below the
    policy's trigger, with the additions of the next request, if that is possible.
    """
    pointer = lines.lock_tree(connection, request.session_id)
    running = find_running_record(connection, pointer)
    same_tree = pointer.tree_id == job.cost.context.pointer.tree_id
    if running is None or running.compaction != number or not same_tree:
        problem = "another compaction took its place"
        return _record_rejection(pointer, request, problem, moment)
    context = job.cost.context._replace(connection=connection)
    cost = job.cost._replace(context=context)
    visible = load_visible_set(connection, pointer, pointer.head)
    if (context.pointer, context.visible) != (pointer, visible):
        policy, next_request = context.policy, job.cost.next_request
        cost = load_view_cost(connection, pointer, policy, moment, next_request)
    record = OpenRecord(cost, number, moment)
    mismatch = _find_mismatch(cost, job)
    if mismatch:
        ended = record.end(outcome="rejected", error=mismatch)
    elif result.summary is None:
        ended = _record_failure(record, result)
    else:
        candidate = _build_candidate(cost, job.part, result, result.summary)
        ended = _apply_candidate(record, job, candidate)
    return mark_still_over(
        load_record(connection, pointer, ended), request.policy, cost.added_tokens
    )


def keep_to_limit(
    connection: Connection, request: CompactionRequest, problem: str, moment: int
) -> Compaction | None:
    """Hide the messages beyond a policy's hard limit if a problem prevents a summary.

    None if there are none, and while another compaction of the session runs.
    """
    policy = request.policy
    pointer = lines.lock_tree(connection, request.session_id)
    cost = load_view_cost(connection, pointer, policy, moment, request.next_request)
    if find_running_record(connection, pointer) or plan_trim(cost).nothing:
        return None
    number = insert_record(
        connection,
        pointer,
        policy,
        kind="summary",
        outcome="running",
        reason=request.reason,
        created_at=moment,
    )
    failure = SummaryResult(None, problem, LIMIT_ERROR_KIND)
    ended = _record_failure(OpenRecord(cost, number, moment), failure)
    return mark_still_over(load_record(connection, pointer, ended), policy, cost.added_tokens)


def abandon_compaction(
    connection: Connection, session_id: str, number: int, error: BaseException
) -> None:
    """End a compaction that nobody will finish as failed, if it still runs.

    Raises SessionNotFound.
    """
    pointer = lines.lock_tree(connection, session_id)
    running = find_running_record(connection, pointer)
    if running and running.compaction == number:
        problem = f"stopped by {type(error).__name__}"
        end_record(connection, pointer, number, outcome="failed", error=problem)


def _record_rejection(
    pointer: Pointer, request: CompactionRequest, problem: str, moment: int
) -> Compaction:
    return build_unrecorded_answer(
        pointer,
        request.policy,
        outcome="rejected",
        reason=request.reason,
        error=problem,
        moment=moment,
    )


def _find_mismatch(cost: ViewCost, job: Job) -> str | None:
    """Return the reason why a plan no longer fits its line; None if it does."""
    context, plan = cost.context, job.part.plan
    before, now = job.cost.context.visible, context.visible
    if context.pointer.head < plan.last or find_holding_branch(context, plan.last) != job.holder:
        return "the session was rewound to before the end of the range"
    least = context.policy.least_groups
    kept = find_group_start(context, least) if plan.inside else find_running_turn(context)
    if kept <= plan.last:
        return "the session was rewound into the range, which would hide its current turn"
    if (now.first_kept, now.summaries) != (plan.first, before.summaries):
        return "the range begins elsewhere by now: a compaction was undone or made meanwhile"
    if tuple(each for each in now.holes if each.first <= plan.last) != plan.covered:
        return "something in the range was hidden by name, or brought back, meanwhile"
    return None


def _build_candidate(
    cost: ViewCost, part: PlannedPart, result: SummaryResult, summary: Summary
) -> Candidate:
    text = _add_turn_end(cost, part, render_summary(summary, cost.context.policy.language))
    return Candidate(result, summary, text, _measure_with_text(cost, part, text))


def _add_turn_end(cost: ViewCost, part: PlannedPart, text: str) -> str:
    """Return the text for a hidden part; if that ends within a turn, the text says so."""
    if not part.plan.inside:
        return text
    goes_on = TURN_GOES_ON[cost.context.policy.language]
    return f"{text}\n\n{goes_on}" if text else goes_on


def _measure_with_text(cost: ViewCost, part: PlannedPart, text: str) -> ViewSize:
    """Return the size of the view with a text for a hidden part."""
    visible = part.plan.visible_after(cost.context.visible)
    active = tuple(each for each in visible.summaries if each not in part.previous)
    tokens = count_summary_tokens(text, part.facts, cost.context.policy)
    visible = visible._replace(summaries=active)
    messages = cost.messages_with(visible) + 1
    return ViewSize(messages, cost.tokens_with(visible) + tokens, tokens)


def _apply_candidate(record: OpenRecord, job: Job, candidate: Candidate) -> int:
    """Apply a summary, unless the view does not get small enough by it.

    Then the policy's way without a summary is taken. If it has none, the smaller of two views over
    the window is sent all the same. Return the record's number.
    """
    cost, part, policy = record.cost, job.part, record.cost.context.policy
    problem = _find_size_problem(cost, part, candidate)
    if problem is None:
        return _insert_candidate(record, part, candidate)
    refused = SummaryResult(None, problem)
    if candidate.result.error is None and policy.on_failure == "trim":
        trimmed = _hide_oldest_turns(record, refused)
        if trimmed is not None:
            return trimmed
    elif candidate.result.error is None:
        notice = build_fallback_result(job, policy, refused)
        if notice.summary is not None:
            other = _build_candidate(cost, part, notice, notice.summary)
            if _find_size_problem(cost, part, other) is None:
                return _insert_candidate(record, part, other)
    if cost.overflows and _find_growth(cost, candidate.size) is None:
        return _insert_candidate(record, part, candidate)
    return record.end(outcome="rejected", error=problem, first_kept=job.ideal_last + 1)


def _insert_candidate(record: OpenRecord, part: PlannedPart, candidate: Candidate) -> int:
    """Write a summary for a hidden part; return the record's number."""
    number = insert_summary(
        record.cost.context,
        part,
        candidate.summary,
        text=candidate.text,
        tokens=candidate.size.summary_tokens,
        moment=record.moment,
    )
    return record.apply(part.plan, candidate.size, candidate.result, number)


def _find_size_problem(cost: ViewCost, part: PlannedPart, candidate: Candidate) -> str | None:
    """Return the reason why a view does not get small enough by a summary; None if it does.

    A summary is too long if the view still triggers or overflows only for its text; if an empty
    summary would not help either, the summary is progress. The text that replaces a failed
    summary is not tested for it: it cannot be shorter than it is.
    """
    policy, size = cost.context.policy, candidate.size
    growth = _find_growth(cost, size)
    if growth:
        return growth
    freed = cost.tokens - size.tokens
    if cost.least_freed and freed < cost.least_freed:
        return f"the view would get too little smaller: by {freed} of {cost.tokens} tokens"
    if candidate.result.error is not None:
        return None
    empty = count_summary_tokens("", part.facts, policy)
    bare = size.tokens - size.summary_tokens + empty
    trigger, bare_trigger = (
        find_trigger(policy, messages=size.messages, tokens=tokens + cost.added_tokens)
        for tokens in (size.tokens, bare)
    )
    overflow, bare_overflow = (
        overflows_window(policy, tokens + cost.added_tokens) for tokens in (size.tokens, bare)
    )
    if overflow == bare_overflow and (bare_trigger or not trigger):
        return None
    return (
        f"the summary is too long: the view would still trigger ({trigger or 'over the window'}),"
        f" without its text it would have {bare}"
    )


def _find_growth(cost: ViewCost, size: ViewSize) -> str | None:
    """Return the reason that a view does not get smaller; None if it does.

    If the trigger counts messages, their number is compared, and the tokens only if it is equal.
    """
    before, after = (0, cost.tokens), (0, size.tokens)
    if cost.goes_by_messages:
        before, after = (cost.messages, cost.tokens), (size.messages, size.tokens)
    if after < before:
        return None
    return (
        f"the view would not get smaller: it has {cost.tokens} tokens, it would have {size.tokens}"
    )


def _record_failure(record: OpenRecord, result: SummaryResult) -> int:
    """Record a failure; return the record's number.

    A policy with a hard limit hides its oldest turns all the same, and their facts stay.
    """
    trimmed = _hide_oldest_turns(record, result)
    if trimmed is not None:
        return trimmed
    return record.end(outcome="failed", error=result.error, error_kind=result.error_kind)


def _hide_oldest_turns(record: OpenRecord, result: SummaryResult) -> int | None:
    """Hide the oldest turns beyond a hard limit; None if none are.

    Their facts stay, with the texts of the summaries that they replace, unless these have more
    tokens than are freed. Return the record's number.
    """
    cost = record.cost
    plan = plan_trim(cost)
    if plan.nothing:
        return None
    for part in _list_trimmed_parts(cost):
        bodies = (strip_turn_end(each.body) for each in part.previous)
        text = _add_turn_end(cost, part, "\n\n".join(filter(None, bodies)))
        size = _measure_with_text(cost, part, text)
        if size.tokens < cost.tokens:
            notice = part.previous[-1].notice if part.previous else None
            return _insert_candidate(
                record, part, Candidate(result, Summary(text, notice=notice), text, size)
            )
    visible = plan.visible_after(cost.context.visible)
    size = ViewSize(cost.messages_with(visible), cost.tokens_with(visible))
    return record.apply(plan, size, result, None)


def _list_trimmed_parts(cost: ViewCost) -> Iterator[PlannedPart]:
    """Yield the parts that a trim may hide, the one with more text first; none without any text.

    The facts are sent with the summary before, else by themselves. By themselves they are one more
    message, for which the hard limit has to leave room. The text of a range that was hidden by
    name stays in any case.
    """
    context = cost.context
    folds = context.policy.previous_summary == "fold"
    newest = context.visible.summaries[-1:]
    previous = tuple(each for each in newest if folds or not each.body)
    part = build_hidden_part(context, plan_trim(cost), previous)
    if not part.previous and (part.facts or part.plan.inside):
        part = build_hidden_part(context, plan_trim(cost, spare=1), previous)
    covered = list_range_summaries(part.plan.covered)
    if part.facts or part.plan.inside or covered:
        yield part
    if covered:
        yield part._replace(facts="")
