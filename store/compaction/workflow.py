"""The workflow of a compaction, recorded clearings, and the operations of callers.

A compaction hides the old messages of a line behind a summary, and writing a summary takes minutes.
So it is not one transaction but three, with none open while a summarizer works:

    prepare   reads: the part to be hidden, and the input of a summarizer. Nothing is written, and
              if there is nothing to do the answer says so and is recorded nowhere.
    begin     writes a record ``running`` with a lease. The database itself refuses a second running
              record of a session, so one compaction of it runs at a time, in whatever process.
              The lease is the summarizer's time and a minute: a record that still runs after it
              belongs to a process that died, and the next compaction ends it as failed.
    finish    writes how it ended. *applied*: the summary replaces the range from now on.
              *rejected*: the line no longer runs through the range, or the view would not get small
              enough. *failed*: there is no summary, and the policy puts nothing in its place.

Whatever stops the workflow between begin and finish (a key, a cancelled task, a broken disk), the
record is ended as failed by `abandon_compaction` and the cause is raised. Messages that are
appended meanwhile come after the range and do not matter; a rewind into it, or an undone compaction
before it, makes finish reject it. An applied compaction is taken back by one more record, an
undoing: no record is ever deleted or rewritten once it has ended.

A record counts on a line if it was made on that line, at or before the line's head. That is why
`end_record` moves a record to the head of the moment when it ends: messages that came meanwhile
were seen without it. And that is why it gives it a new number if the tree got a branch since it
began. A branch remembers the newest record of the moment it was made, and knows the records of its
past up to that number; a record that was only running then must not count there as soon as it ends.

When too many attempts failed in a row, nothing is tried for some messages and some time. Whatever
prevents a summary, a policy that trims is kept to its hard limit without one.

Between clearings, a view stays the same. A provider's cache is of the beginning of a request; each
result that is replaced in it makes the rest expensive again. So the moment to clear is when the
cache is empty: then the whole request is written anew, and the tokens that it no longer has save
money on this request and on all that follow. In a warm cache a clearing has to free very much to
pay for itself.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import dropwhile
from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, require_moment
from ..database import Transactions
from ..errors import CompactionError, InvalidValue, check_choice, quote_value
from ..history import Pointer, Validity, lines, load_session_chat_messages
from ..messages import encode
from ..policy import Policy, check_policy
from ..records import REASONS, Check, Compaction, Outcome, Reason, StoredMessage
from ..summaries import Summarizer
from ..view import (
    Verdicts,
    ViewContext,
    describe_records,
    estimate_savings,
    load_cut_savings,
    load_records,
    load_verdicts,
    load_view_context,
    select_active_records,
)
from .asked_results import OldResult, find_asked_results
from .compaction_check import BELOW_TRIGGERS, check, check_cost, parse_next_request
from .job import CompactionRequest, answer_unchanged, prepare_job, summarize
from .lifecycle import abandon_compaction, begin_compaction, finish_compaction, keep_to_limit
from .log_messages import CompactionLog
from .plan import Plan, add_view_tokens, choose_plan, find_shortfall
from .record_rows import insert_record, load_record
from .running_bills import (
    RunningBill,
    build_billed_request,
    charge_summary,
    load_bill,
    save_bill,
)
from .triggers import (
    NextRequest,
    ViewCost,
    allow_any_saving,
    is_cache_cold,
    load_view_cost,
    set_policy_window,
)

EXPENSIVE_LIFETIME = 3_600_000
"""The lifetime (ms) from which on a cache is so expensive to write that a warm one is kept."""

FreedTokens = dict[tuple[int, str | None], int]
"""The tokens that a clearing frees, by the position of a result and the rule that replaces it."""


class Clearing(NamedTuple):
    """The positions that a clearing would replace, each with its rule; the tokens of the view."""

    cleared: tuple[tuple[int, str | None], ...]
    tokens_before: int
    tokens_after: int


class ClearingState(NamedTuple):
    """Everything that a clearing depends on besides the policy and the moment.

    ``bill`` is the running bill of a policy with bounded clearing, before the next request.
    """

    revision: str
    branch: int
    last: int
    validity: Validity
    cleared: dict[int, str]
    is_cold: bool
    bill: RunningBill | None


class ChosenClearing(NamedTuple):
    """The results to clear in a state of a line, of a view with ``messages`` and ``tokens``.

    ``bill`` is the running bill with the next request, if clearing is bounded.
    """

    state: ClearingState
    policy: Policy
    messages: int
    tokens: int
    freed: FreedTokens
    bill: RunningBill | None


def plan_clearing(
    connection: Connection, session_id: str, policy: Policy, *, now: Now = None
) -> Clearing | None:
    """Return the clearing that `compact_if_needed` would make now, changing nothing.

    None if too little would be freed, or the policy replaces results at any time. Raises
    SessionNotFound, InvalidPolicy.
    """
    policy = check_policy(policy)
    if policy.clearing == "always":
        return None
    request = CompactionRequest(session_id, policy)
    pointer = lines.load_pointer(connection, session_id)
    moment = require_moment(now)
    chosen = choose_clearing(load_stored_cost(connection, request, pointer, moment))
    if not chosen.freed:
        return None
    tokens_after = chosen.tokens - sum(chosen.freed.values())
    return Clearing(tuple(chosen.freed), chosen.tokens, tokens_after)


def load_stored_cost(
    connection: Connection, request: CompactionRequest, pointer: Pointer, now: int
) -> ViewCost:
    """Return the cost of a line's view before a request, without the input of the request."""
    stored = NextRequest(fixed_tokens=request.next_request.fixed_tokens)
    return load_view_cost(connection, pointer, request.policy, now, stored)


def choose_clearing(cost: ViewCost) -> ChosenClearing:
    """Choose the results to clear in a view by a policy that clears at recorded moments.

    A reader does it, with the cached verdicts and lines: a writer would keep others waiting while
    it judges every result anew.
    """
    state = _load_clearing_state(cost.context)
    bill = None
    if cost.context.policy.clearing == "bounded":
        freed, bill = _find_bounded(cost, state)
    else:
        freed = _find_worthwhile(cost, is_cold=state.is_cold)
    messages = cost.messages if freed else 0
    return ChosenClearing(state, cost.context.policy, messages, cost.tokens, freed, bill)


def _load_clearing_state(context: ViewContext) -> ClearingState:
    """Return the state of a line from which a clearing is chosen."""
    bill = None
    if context.policy.clearing == "bounded":
        bill = load_bill(context)
        lifetime = context.policy.prompt_cache.lifetime
        is_cold = bill is None or bill.is_cold(context.now, lifetime)
    else:
        is_cold = is_cache_cold(context)
    pointer, validity = context.pointer, context.load_validity()
    place = (pointer.revision, pointer.branch, context.last)
    return ClearingState(*place, validity, context.visible.cleared, is_cold, bill)


def record_clearing(
    connection: Connection, request: CompactionRequest, chosen: ChosenClearing, now: int
) -> Compaction | None:
    """Record a clearing that a reader has chosen; return the record, None if there is nothing.

    If the line is in another state by now, it is chosen anew. The running bill is written too, if
    clearing is bounded.
    """
    pointer = lines.lock_tree(connection, request.session_id)
    context = load_view_context(connection, pointer, request.policy, last=pointer.head, now=now)
    if _load_clearing_state(context) != chosen.state:
        chosen = choose_clearing(load_stored_cost(connection, request, pointer, now))
    if chosen.bill:
        save_bill(connection, pointer, request.policy, chosen.bill)
    if not chosen.freed:
        return None
    number = insert_record(
        connection,
        pointer,
        chosen.policy,
        kind="clear",
        outcome="applied",
        reason=request.reason,
        cleared=encode([[position, rule] for position, rule in chosen.freed]),
        messages_before=chosen.messages,
        messages_after=chosen.messages,
        tokens_before=chosen.tokens,
        tokens_after=chosen.tokens - sum(chosen.freed.values()),
        created_at=now,
    )
    return load_record(connection, pointer, number)


def _find_worthwhile(cost: ViewCost, *, is_cold: bool) -> FreedTokens:
    """Return the tokens that a clearing would free now; nothing if that does not pay.

    While the cache is warm and the policy does not clear in batches, more results are left, and
    those cleared have to be much of the view.
    """
    context, policy = cost.context, cost.context.policy
    least: float = 0
    if not is_cold:
        least = policy.clear_min_freed
        if policy.clearing != "batched":
            least = max(policy.clear_warm_freed, policy.clear_warm_share * cost.tokens)
            if policy.prompt_cache.lifetime >= EXPENSIVE_LIFETIME or cost.tokens < least:
                return {}
            context = _change_policy(context, clear_keep=policy.clear_warm_keep)
    freed, verdicts = _find_freed(context)
    asked = _find_asked(context, freed, verdicts)
    kept = [each for each in freed if each[0] in asked]
    for each in kept:
        freed.pop(each)
    return freed if sum(freed.values()) >= least else {}


def _find_bounded(cost: ViewCost, state: ClearingState) -> tuple[FreedTokens, RunningBill]:
    """Return the tokens that a bounded clearing would free now, and the bills after it.

    In a cold cache everything old is cleared; in a warm one what pays back soonest, if that keeps
    the bound. The results that are likely to be asked for stay.
    """
    context = cost.context
    request = build_billed_request(cost, state.bill, is_cold=state.is_cold)
    if not state.is_cold:
        context = _change_policy(context, clear_keep=context.policy.clear_warm_keep)
    freed, verdicts = _find_freed(context)
    saved = {each[0]: freed[each] for each in freed}  # each position has one rule
    chosen = request.choose(saved)
    if chosen:
        asked = _find_asked(context, freed, verdicts)
        chosen = request.choose({seq: saved[seq] for seq in saved if seq not in asked})
    return {each: freed[each] for each in freed if each[0] in chosen}, request.bill(chosen)


def _find_freed(context: ViewContext) -> tuple[FreedTokens, Verdicts]:
    """Return the tokens that would be freed if everything old were cleared, and the verdicts."""
    always = _change_policy(context, clearing="always", cut_arguments=False)
    cleared = context.visible.cleared
    verdicts = {
        position: verdict
        for position, verdict in load_verdicts(always).items()
        if verdict.rule and position not in cleared
    }
    saved = estimate_savings(always, verdicts)
    freed: FreedTokens = {
        (seq, verdicts[seq].rule): tokens  # of the estimate
        for seq, tokens in saved.items()
    }
    if context.policy.cut_arguments:
        cuts = load_cut_savings(context)
        freed |= {(seq, "arguments"): cuts[seq] for seq in cuts if seq not in cleared}
    return dict(sorted(freed.items())), verdicts


def _find_asked(context: ViewContext, freed: FreedTokens, verdicts: Verdicts) -> set[int]:
    """Return the positions of the results that a clearing leaves, as they may be asked for."""
    room = context.policy.keep_asked
    results = {seq: saved for (seq, rule), saved in freed.items() if rule == "any_tool"}
    tree_id = context.pointer.tree_id
    answers = (verdicts[seq].answer(tree_id) for seq in results)
    old = [*map(OldResult, answers, results.values())]
    return find_asked_results(context, old, room)


def _change_policy(context: ViewContext, **changes: object) -> ViewContext:
    """Return a context by the same policy with fields changed."""
    return context._replace(policy=context.policy.model_copy(update=changes))


def compactions(connection: Connection, session_id: str) -> list[Compaction]:
    """Return a line's compactions, oldest first, undone ones marked. Raises SessionNotFound."""
    pointer = lines.load_pointer(connection, session_id)
    return describe_records(connection, pointer, load_records(connection, pointer, pointer.head))


def plan_compaction(
    connection: Connection, session_id: str, policy: Policy, *, now: Now = None
) -> Plan:
    """Return what `compact` would do now, changing nothing.

    Raises SessionNotFound, InvalidPolicy.
    """
    pointer = lines.load_pointer(connection, session_id)
    cost = load_view_cost(connection, pointer, check_policy(policy), require_moment(now))
    plan, _ = choose_plan(cost)
    return add_view_tokens(cost, plan)


def compact(
    transactions: Transactions,
    session_id: str,
    policy: Policy,
    summarizer: Summarizer | None = None,
    reason: Reason = "manual",
    now: Now = None,
) -> Compaction:
    """Hide the messages that a policy does not keep, and summarize them.

    Return the record, or the answer that there is nothing to do.

    ``summarizer`` is any callable from a SummaryRequest to a text or Summary (the built-in
    extractive one); no transaction is open while it works, for at most the policy's
    ``summary_timeout``. Whatever it does, nothing is lost and nothing is raised: the outcome says
    so. Only KeyboardInterrupt and SystemExit pass, which end the compaction as failed. Raises
    SessionNotFound, InvalidPolicy for an invalid policy, InvalidValue for an unknown reason and an
    invalid summarizer.
    """
    request = CompactionRequest(session_id, policy, summarizer, reason)
    moment = transactions.clock(now)
    _check_request(request)
    if reason == "manual":
        request = request._replace(policy=allow_any_saving(policy))
    return _run_compaction(transactions, request, moment, now)


def compact_if_needed(
    transactions: Transactions,
    session_id: str,
    policy: Policy,
    summarizer: Summarizer | None = None,
    reason: Reason = "llm_call",
    *,
    max_tokens: int | None = None,
    last_usage: int | None = None,
    user_input: str = "",
    fixed_tokens: int = 0,
    now: Now = None,
) -> Compaction | None:
    """Compact if a trigger of the policy fires.

    By a policy that clears at recorded moments, clear first if it is worth it.

    A policy that trims is kept to its hard limit, whatever prevents a summary. Returns the last
    record that was made, None if nothing was needed. If nothing could be done the answer says why,
    without an id: ``rejected`` while another compaction runs, and for a view that is over the
    window ``nothing`` if nothing can be hidden or no trigger of the policy fires, ``rejected``
    while failures hold attempts back. Arguments as for `check` and `compact`.
    """
    next_request = parse_next_request(user_input, fixed_tokens)
    request = CompactionRequest(session_id, policy, summarizer, reason, next_request)
    moment = transactions.clock(now)
    _check_request(request)
    bounded = policy.clearing == "bounded"
    chosen = cleared = result = None
    if policy.clearing != "always":
        with transactions.reading() as connection:
            pointer = lines.load_pointer(connection, session_id)
            cost = load_stored_cost(connection, request, pointer, moment)
            chosen = choose_clearing(cost)
            if not chosen.freed and user_input == "":  # the next request is this view
                result = check_cost(cost, max_tokens, last_usage)
    if chosen and (bounded or chosen.freed):
        with transactions.writing() as connection:
            cleared = record_clearing(connection, request, chosen, moment)
    if result is None:
        with transactions.reading() as connection:
            result = check(
                connection,
                session_id,
                policy,
                max_tokens,
                last_usage,
                user_input,
                fixed_tokens,
                now=moment,
            )
    if result.reason == BELOW_TRIGGERS:
        return cleared
    request = request._replace(policy=set_policy_window(policy, max_tokens))
    done = _follow_check(transactions, request, result, moment, now)
    if bounded and done and done.outcome == "applied":
        with transactions.writing() as connection:
            charge_summary(connection, request, moment)
    return done or cleared


def undo_compaction(
    connection: Connection, session_id: str, compaction_id: int, *, now: Now = None
) -> Compaction:
    """Bring back the messages that a compaction hid or cleared, by a record of the undoing.

    Return the compaction. Later ones that depend on it have to be undone first: of compactions, and
    of clearings, the newest in force; of ranges hidden by name those that contain it. Raises
    SessionNotFound, CompactionError.
    """
    pointer = lines.lock_tree(connection, session_id)
    active = select_active_records(load_records(connection, pointer, pointer.head))
    since = [*dropwhile(lambda record: record.id != compaction_id, active)]
    if not since:
        problem = (
            f"compaction {quote_value(compaction_id)} is not in force on session {session_id!r}"
        )
        raise CompactionError(problem, session_id=session_id, reason="manual")
    undone, *later = since
    newest = [undone.id, *(each.id for each in later if _depends_on(each, undone))][-1]
    if newest != compaction_id:
        problem = (
            f"compaction {newest} was made upon compaction {compaction_id}; undo {newest} first"
        )
        raise CompactionError(problem, session_id=session_id, reason="manual", can_retry=True)
    insert_record(
        connection,
        pointer,
        None,
        kind="undo",
        outcome="applied",
        reason="manual",
        undoes=compaction_id,
        created_at=require_moment(now),
    )
    return load_record(connection, pointer, compaction_id)


def _depends_on(later: Compaction, earlier: Compaction) -> bool:
    """Tell whether a later compaction depends on the effect of an earlier one.

    One that hides a range by name is needed by those that hide all of the range.
    """
    if earlier.kind != "hide":
        return later.kind == earlier.kind
    if later.hidden is None or earlier.hidden is None:
        return False
    return later.hidden[0] <= earlier.hidden[0] and earlier.hidden[1] <= later.hidden[1]


def _check_request(request: CompactionRequest) -> None:
    """Raise InvalidPolicy or InvalidValue for a request that no compaction can follow."""
    check_policy(request.policy)
    summarizer: object = request.summarizer
    if summarizer is not None and not callable(summarizer):
        example = "store.summaries.extractive"
        raise InvalidValue(
            f"a summarizer must be a callable, such as {example}, not {quote_value(summarizer)}"
        )
    check_choice(REASONS, "reason", request.reason)


def _follow_check(
    transactions: Transactions, request: CompactionRequest, result: Check, moment: int, now: Now
) -> Compaction | None:
    """Compact if a check advises it; return the record or answer, None if nothing was needed.

    If the view is over the window, any saving will do. A policy that trims is kept to its hard
    limit if there is no summary.
    """
    if result.should_compact:
        any_saving = result.overflow or request.reason == "manual"
        policy = allow_any_saving(request.policy) if any_saving else request.policy
        done = _run_compaction(transactions, request._replace(policy=policy), moment, now)
    else:
        done = _answer_not_tried(transactions, request, result, moment)
    trims = request.policy.on_failure == "trim" and (result.should_compact or result.problem)
    if trims and done.outcome != "applied":
        with transactions.writing() as connection:
            trimmed = keep_to_limit(connection, request, done.error or "", moment)
        if trimmed:
            done = trimmed
            CompactionLog(done.session_id, request.policy).end(done)
    if done.outcome == "nothing":
        CompactionLog(done.session_id, request.policy).nothing(done)
    runs_elsewhere = result.should_compact and done.outcome == "rejected"
    if done.id is None and not result.overflow and not runs_elsewhere:
        return None
    return done


def _answer_not_tried(
    transactions: Transactions, request: CompactionRequest, result: Check, moment: int
) -> Compaction:
    """Return the reason why nothing is tried; log a warning if failures hold attempts back."""
    outcome: Outcome = "nothing"
    if result.problem:
        outcome = "rejected"
        log = CompactionLog(result.problem.session_id, request.policy)
        log.hold(result.problem)
    with transactions.reading() as connection:
        pointer = lines.load_pointer(connection, request.session_id)
        cost = load_view_cost(connection, pointer, request.policy, moment, request.next_request)
        return answer_unchanged(cost, request, result.reason, outcome)


def _run_compaction(
    transactions: Transactions, request: CompactionRequest, moment: int, now: Now
) -> Compaction:
    """Run a compaction from its plan to its end, if it can free as much as the policy asks for.

    The summarizer reads the line of the beginning, even if the session leaves it meanwhile.
    """
    with transactions.reading() as connection:
        job = prepare_job(connection, request, moment)
        if isinstance(job, Compaction):
            return job
        if job.cost.least_freed:
            shortfall = find_shortfall(job.cost, add_view_tokens(job.cost, job.part.plan))
            if shortfall:
                return answer_unchanged(job.cost, request, shortfall)
    branch = job.cost.context.pointer.branch

    def read_line(first: int, last: int) -> list[StoredMessage]:
        with transactions.reading() as connection:
            return load_session_chat_messages(
                connection, request.session_id, first, last, branch=branch
            )

    with transactions.writing() as connection:
        number = begin_compaction(connection, request, job, moment)
    if isinstance(number, Compaction):
        return number
    try:
        result = summarize(job, request, read_line)
        with transactions.writing() as connection:
            clock = transactions.clock(now)
            ended = finish_compaction(connection, request, job, number, result, clock)
    except BaseException as error:
        # The cause is raised, whatever else goes wrong.
        with suppress(Exception), transactions.writing() as connection:
            abandon_compaction(connection, request.session_id, number, error)
        raise
    CompactionLog(ended.session_id, request.policy).end(ended)
    return ended
