"""Compactions as recorded events: planned, begun, and then applied, rejected or failed; undone by another record.

No transaction is open while a summary is being written. Appends go on meanwhile: what was planned is applied to the
range that it was planned for, if the line still runs through it, or rejected.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from . import lines
from .budget import Budget, as_viewed, backs_off, budget, folded, laddered, told, too_much, view_tokens
from .clock import Now, given
from .collector import paused
from .compactions import Standing, Visible, active, history, records, sent
from .errors import CompactionError, InvalidValue
from .facts import turn_start
from .fitting import hidden
from .ledger import Sources, began, hidden_facts, sources
from .lines import Pointer
from .messages import encode
from .planning import Plan, trim
from .policy import Policy, checked
from .prompts import load
from .recording import RUNNING, Job, Result, answer, end_record, insert_record, keep_summary, recorded
from .records import Compaction
from .summaries import Summarizer, Summary, ledger, rendered
from .tokens import estimate, message_tokens

REASONS = ("llm_call", "tool_execution", "manual")
"""Why a compaction is made (S3.12)."""
LEASE = 60_000
"""Ms beyond a summarizer's time after which a compaction that never ended is taken for dead."""


def compactions(connection: Connection, session_id: str) -> list[Compaction]:
    """Return a line's compactions, oldest first, undone ones marked. Raises SessionNotFound."""
    pointer = lines.find(connection, session_id)
    return history(connection, pointer, records(connection, pointer, pointer.head))


def planned(connection: Connection, session_id: str, policy: Policy, *, now: Now = None) -> Plan:
    """Return what `compact` would do now, changing nothing. Raises SessionNotFound, InvalidPolicy."""
    moment, policy = given(now), checked(policy)
    pointer = lines.find(connection, session_id)
    cost = budget(connection, pointer, policy, moment)
    policy, todo = laddered(connection, policy, cost)
    return as_viewed(connection, policy, cost, todo)


def prepare(
    connection: Connection,
    session_id: str,
    policy: Policy,
    *,
    whole: bool = False,
    user_input: str = "",
    now: Now = None,
) -> Job | Compaction:
    """Return what a summarizer is to be given, or the answer that there is nothing to compact.

    Everything that will be hidden is in the transcript: where it is too long, the cut moves back (A2.7). A summarizer
    that reads the messages themselves needs none: ``whole``. Raises SessionNotFound, InvalidValue for an unknown
    prompt.
    """
    load(policy.prompt)
    moment = given(now)
    pointer = lines.find(connection, session_id)
    cost = budget(connection, pointer, policy, moment, user_input)
    policy, todo = laddered(connection, policy, cost)
    if todo.nothing:
        return _nothing(pointer, policy, cost, todo.nothing, moment)
    with paused(todo.messages):
        sought = todo.last
        todo, messages, transcript = (todo, None, "") if whole else hidden(connection, policy, cost, todo)
        if transcript is None:
            too_long = "its first messages are longer than a transcript may be"
            return _nothing(pointer, policy, cost, too_long, moment)
        previous = folded(policy, cost.shown.summaries)
        source = sources(connection, pointer, todo.first, todo.last, todo.pinned)
        return Job(
            cost=cost,
            plan=todo,
            sought=sought,
            holder=_holder(connection, pointer, todo.last),
            messages=messages,
            transcript=transcript,
            digest=source.digest,
            previous=previous,
            facts=_facts(connection, pointer, policy, cost, previous, todo),
            times=_times(connection, pointer, source, previous),
        )


def check_asked(policy: Policy, summarizer: Summarizer | None, reason: str) -> None:
    """Raise InvalidPolicy or InvalidValue for what no compaction can be made by."""
    checked(policy)
    if summarizer is not None and not callable(summarizer):
        raise InvalidValue(f"a summarizer is a callable, such as store.summarizers.extractive, not {summarizer!r:.80}")
    if reason not in REASONS:
        raise InvalidValue(f"a reason is one of {', '.join(REASONS)}, not {reason!r}")


def begin(
    connection: Connection, session_id: str, policy: Policy, job: Job, *, reason: str = "manual", now: Now = None
) -> int | Compaction:
    """Open a compaction's record and return its number, or the answer that another one is running.

    Only one compaction of a session runs at a time: the database itself refuses a second running record.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id)
    running = RUNNING.row(connection, tree_id=pointer.tree_id, session_id=session_id)
    if running and (running[1] or 0) > moment:
        return answer(pointer, policy, "rejected", f"compaction {running[0]} is still running", moment)
    if running:
        end_record(connection, pointer, running[0], outcome="failed", error="it never ended")
    return insert_record(
        connection,
        pointer,
        policy,
        kind="summary",
        outcome="running",
        reason=reason,
        lease_until=moment + int(policy.summary_timeout * 1000) + LEASE,
        created_at=moment,
        messages_before=job.plan.messages_before,
        tokens_before=job.plan.tokens_before,
    )


def finish(
    connection: Connection,
    session_id: str,
    policy: Policy,
    job: Job,
    number: int,
    result: Result,
    *,
    now: Now = None,
) -> Compaction:
    """End a compaction: apply its summary if the line still runs through its range and the view gets small enough.

    That is smaller, and below the policy's trigger, with the input that is to come, where it could be.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id)
    running = RUNNING.row(connection, tree_id=pointer.tree_id, session_id=session_id)
    if not running or running[0] != number or pointer.tree_id != job.cost.pointer.tree_id:
        return answer(pointer, policy, "rejected", "another compaction took its place", moment)
    cost = budget(connection, pointer, policy, moment, job.cost.user_input, before=job.cost)
    problem = _moved(connection, pointer, job, cost.shown)
    if problem:
        ended = end_record(connection, pointer, number, outcome="rejected", error=problem)
    elif result.summary is None:
        ended = _fail(connection, policy, number, result.error, cost, moment)
    else:
        ended = _apply(connection, pointer, policy, job, number, result, cost, moment)
    return told(recorded(connection, pointer, ended), policy, cost.added)


def keep_to_limit(
    connection: Connection,
    session_id: str,
    policy: Policy,
    *,
    reason: str = "llm_call",
    user_input: str = "",
    now: Now = None,
) -> Compaction | None:
    """Hide what is beyond a policy's hard limit while failures hold every attempt back (A2.8); None where not."""
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id)
    cost = budget(connection, pointer, policy, moment, user_input)
    held = backs_off(connection, policy, cost) if policy.on_failure == "trim" else None
    if held is None or RUNNING.row(connection, tree_id=pointer.tree_id, session_id=session_id):
        return None
    if trim(connection, pointer, policy, cost.shown, tokens=cost.tokens).nothing:
        return None
    number = insert_record(
        connection, pointer, policy, kind="summary", outcome="running", reason=reason, created_at=moment
    )
    ended = _fail(connection, policy, number, str(held), cost, moment)
    return told(recorded(connection, pointer, ended), policy, cost.added)


def abandon(connection: Connection, session_id: str, number: int, stopped_by: BaseException) -> None:
    """End a compaction as failed that nobody will finish, if it still runs. Raises SessionNotFound."""
    pointer = lines.lock_tree(connection, session_id)
    running = RUNNING.row(connection, tree_id=pointer.tree_id, session_id=session_id)
    if running and running[0] == number:
        end_record(connection, pointer, number, outcome="failed", error=f"stopped by {type(stopped_by).__name__}")


def undo_compaction(connection: Connection, session_id: str, compaction_id: int, *, now: Now = None) -> Compaction:
    """Bring back what a compaction hid or cleared, by a record of the undoing; return the compaction.

    The newest in force goes first, because later ones were made upon it. Raises SessionNotFound, CompactionError.
    """
    pointer = lines.lock_tree(connection, session_id)
    in_force = active(records(connection, pointer, pointer.head))
    numbers = [record.compaction for record in in_force]
    if compaction_id not in numbers:
        problem = f"compaction {compaction_id!r} is not in force on session {session_id!r}"
        raise CompactionError(problem, session_id=session_id, reason="manual")
    newest = next(
        record.compaction for record in reversed(in_force) if record.kind == in_force[numbers.index(compaction_id)].kind
    )
    if compaction_id != newest:
        problem = f"compaction {newest} was made upon compaction {compaction_id}; undo {newest} first"
        raise CompactionError(problem, session_id=session_id, reason="manual", can_retry=True)
    insert_record(
        connection,
        pointer,
        None,
        kind="undo",
        outcome="applied",
        reason="manual",
        undoes=compaction_id,
        created_at=given(now),
    )
    return recorded(connection, pointer, compaction_id)


def _facts(
    connection: Connection, pointer: Pointer, policy: Policy, cost: Budget, previous: tuple[Standing, ...], todo: Plan
) -> str:
    """Return the ledger of what is hidden in the end and told by no summary that goes on standing beside."""
    untold = max((each.last for each in cost.shown.summaries if each not in previous), default=0) + 1
    return ledger(hidden_facts(connection, pointer, policy, untold, todo.last), policy.facts_chars)


def _times(
    connection: Connection, pointer: Pointer, source: Sources, previous: tuple[Standing, ...]
) -> tuple[int, int] | None:
    """Return the first and last moment that a summary of messages and an earlier summary stands for."""
    if source.times is None or not previous:
        return source.times
    first, last = source.times
    earlier = began(connection, pointer, previous[0].first, previous[-1].last)
    return (first if earlier is None else min(earlier, first)), last


def _holder(connection: Connection, pointer: Pointer, position: int) -> int:
    return lines.segments(connection, pointer, position, position)[0].branch


def _moved(connection: Connection, pointer: Pointer, job: Job, shown: Visible) -> str | None:
    """Say why a plan no longer fits its line; None where it does."""
    if pointer.head < job.plan.last or _holder(connection, pointer, job.plan.last) != job.holder:
        return "the session was rewound to before the end of the range"
    if turn_start(connection, pointer, pointer.head) <= job.plan.last:
        return "the session was rewound into the range, which would hide its current turn"
    if (shown.first_kept, shown.summaries) != (job.plan.first, job.cost.shown.summaries):
        return "the range begins elsewhere by now: a compaction was undone or made meanwhile"
    return None


def _apply(
    connection: Connection,
    pointer: Pointer,
    policy: Policy,
    job: Job,
    number: int,
    result: Result,
    cost: Budget,
    moment: int,
) -> int:
    """Apply a summary, unless the view would not get small enough by it; return the record's number."""
    assert result.summary is not None
    text = rendered(result.summary)
    after, tokens = _with(connection, policy, job, text, cost)
    messages = _messages(job, cost)
    bare = after - tokens + message_tokens(sent("", job.facts, policy), estimate)
    problem = too_much(policy, cost, messages=messages, after=after, bare=bare, given=bool(result.error))
    if problem:
        kept = job.sought + 1
        return end_record(connection, pointer, number, outcome="rejected", error=problem, first_kept=kept)
    summary = keep_summary(connection, pointer, job, result.summary, text, tokens, moment)
    change = _change(job.plan, cost, moment) | {"summary": summary, "messages_after": messages, "tokens_after": after}
    return end_record(connection, pointer, number, outcome="applied", error=result.error, **change)


def _with(connection: Connection, policy: Policy, job: Job, text: str, cost: Budget) -> tuple[int, int]:
    """Return the tokens of the view with a text in the place of what a job hides, and those of the text itself."""
    tokens = message_tokens(sent(text, job.facts, policy), estimate)
    left = cost.shown.without(job.plan.last + 1, job.plan.pinned)
    left = left._replace(summaries=tuple(each for each in left.summaries if each not in job.previous))
    tokens_left = view_tokens(connection, cost.pointer, policy, left, cost.moment, turn_over=cost.turn_over)
    return tokens_left + tokens, tokens


def _messages(job: Job, cost: Budget) -> int:
    return cost.messages - job.plan.messages - len(job.previous) + 1


def _fail(connection: Connection, policy: Policy, number: int, error: str | None, cost: Budget, moment: int) -> int:
    """Record a failure; a policy with a hard limit hides its oldest turns all the same (S2.27), their facts stay."""
    pointer, trims = cost.pointer, policy.on_failure == "trim"
    whole = trim(connection, pointer, policy, cost.shown, tokens=cost.tokens) if trims else None
    if whole is None or whole.nothing:
        return end_record(connection, pointer, number, outcome="failed", error=error)
    noticed = _noticed(connection, policy, cost)
    text = "".join(each.body for each in noticed.previous)
    after, tokens = _with(connection, policy, noticed, text, cost)
    if noticed.facts and after < cost.tokens:
        summary = keep_summary(connection, pointer, noticed, Summary(text), text, tokens, moment)
        hidden, messages = noticed.plan, _messages(noticed, cost)
    else:
        summary, hidden, messages = None, whole, cost.messages - whole.messages
        after = cost.tokens - as_viewed(connection, policy, cost, whole).tokens_hidden
    change = _change(hidden, cost, moment) | {"summary": summary, "messages_after": messages, "tokens_after": after}
    return end_record(connection, pointer, number, outcome="applied", error=error, **change)


def _noticed(connection: Connection, policy: Policy, cost: Budget) -> Job:
    """Return the job of a trim: the facts of what goes are told with the summary before, else by themselves.

    By themselves they are one more message, for which the hard limit has to leave room.
    """
    pointer, last = cost.pointer, cost.shown.summaries[-1:]
    previous = tuple(each for each in last if policy.previous_summary == "fold" or not each.body)
    for spare in (0, 1):
        todo = trim(connection, pointer, policy, cost.shown, tokens=cost.tokens, spare=spare)
        facts = _facts(connection, pointer, policy, cost, previous, todo)
        if previous or not facts:
            break
    source = sources(connection, pointer, todo.first, todo.last, todo.pinned)
    return Job(
        cost=cost,
        plan=todo,
        sought=todo.last,
        holder=pointer.branch,
        messages=None,
        transcript="",
        digest=source.digest,
        previous=previous,
        facts=facts,
        times=None,
    )


def _change(todo: Plan, cost: Budget, moment: int) -> dict[str, Any]:
    """Return what a plan hides, of which view and when, as columns of its record."""
    return {
        "messages_before": cost.messages,
        "tokens_before": cost.tokens,
        "created_at": moment,
        "first_kept": todo.last + 1,
        "hidden_first": todo.first,
        "hidden_last": todo.last,
        "pinned": encode(list(todo.pinned)),
    }


def _nothing(pointer: Pointer, policy: Policy, cost: Budget, why: str, moment: int) -> Compaction:
    """Return that there is nothing to hide, with what the view has, which stays as it is."""
    nothing = answer(pointer, policy, "nothing", why, moment)
    return told(nothing._replace(messages_before=cost.messages, tokens_before=cost.tokens), policy)
