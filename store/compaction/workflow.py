"""Compactions as recorded events: the workflow, and what a caller may ask of it.

A compaction hides the old messages of a line behind a summary, and writing a summary takes minutes.
So it is not one transaction but three, with none open while somebody else works:

    prepare   reads: what would go, and what a summarizer is to be given. Nothing is written, and
              where nothing is to do the answer says so and is recorded nowhere.
    begin     writes a record ``running`` with a lease. The database itself refuses a second running
              record of a session, so one compaction of it runs at a time, in whatever process.
              The lease is the summarizer's time and a minute: a record that still runs behind it
              belongs to a process that died, and whoever comes next ends it as failed.
    finish    writes how it ended. *applied*: the summary stands for the range from now on.
              *rejected*: the line no longer runs through the range, or the view would not get small
              enough. *failed*: there is no summary, and the policy puts nothing in its place.

Whatever stops the workflow between begin and finish (a key, a cancelled task, a broken disk), the
record is ended as failed by `abandon` and the cause goes on its way. Messages that are appended
meanwhile lie behind the range and are none of its business; a rewind into it, or an undone
compaction before it, makes finish reject it. An applied compaction is taken back by one more
record, an undoing: no record is ever deleted or rewritten once it has ended.

A record counts on a line if it was made on that line, at or before the line's head. That is why
`end_record` moves a record to where the head is when it ends: messages that came meanwhile were
seen without it. And that is why it gives it a new number where the tree got a branch since it
began. A branch remembers the newest record of the moment it was made, and knows the records of its
past up to that number; a record that was only running then must not count there as soon as it ends.

When too many attempts failed in a row, nothing is tried for some messages and some time. Whatever
keeps a summary from being made, a policy that trims is kept to its hard limit without one.
"""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import Connection

from ..clock import Now, given
from ..database import Transactions
from ..errors import InvalidValue, one_of, quoted
from ..history import lines, read_chat_messages
from ..policy import Policy, checked
from ..records import REASONS, Check, Compaction, Outcome, Reason, StoredMessage
from ..summaries import Summarizer
from ..view import describe_records, load_records
from . import log_messages
from .budget import budget
from .checks import BELOW, added, check
from .clearing import clear, plan_clearing
from .job import Asked, Job, left_as_it_is, prepare
from .lifecycle import abandon, begin, finish, keep_to_limit
from .plan import Plan, frees_too_little, plan_with_fewer_turns, with_view_tokens
from .summarization import Result, summarised
from .triggers import any_saving, with_window


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
    cost = budget(connection, pointer, checked(policy), given(now))
    planned, _ = plan_with_fewer_turns(cost)
    return with_view_tokens(cost, planned)


def compact(
    transactions: Transactions,
    session_id: str,
    policy: Policy,
    summarizer: Summarizer | None = None,
    reason: Reason = "manual",
    now: Now = None,
) -> Compaction:
    """Hide what a policy does not keep behind a summary.

    Return the record, or the answer that nothing is to do.

    ``summarizer`` is any callable from a SummaryRequest to a text or Summary (the built-in
    extractive one); no transaction is open while it works, for at most the policy's
    ``summary_timeout``. Whatever it does, nothing is lost and nothing is raised: the outcome says
    so. Only KeyboardInterrupt and SystemExit pass, which end the compaction as failed. Raises
    SessionNotFound, InvalidPolicy for what is no policy, InvalidValue for an unknown reason and
    what is no summarizer.
    """
    asked = Asked(session_id, policy, summarizer, reason)
    moment = transactions.clock(now)
    _check_asked(asked)
    if reason == "manual":
        asked = asked._replace(policy=any_saving(policy))
    return _run(transactions, asked, moment, now)


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

    A policy that trims is kept to its hard limit, whatever keeps a summary from being made. Returns
    the record of what was done last, None where nothing was needed. Where nothing could be done
    the answer says why, without an id: ``rejected`` while another compaction runs, and of a view
    that is over the window ``nothing`` where nothing can be hidden or no trigger of the policy
    fires, ``rejected`` while failures hold attempts back. Arguments as for `check` and `compact`.
    """
    coming = added(user_input, fixed_tokens)
    asked = Asked(session_id, policy, summarizer, reason, coming)
    moment = transactions.clock(now)
    _check_asked(asked)
    done = _cleared(transactions, asked, moment)
    with transactions.reading() as connection:
        found = check(
            connection,
            session_id,
            policy,
            max_tokens,
            last_usage,
            user_input,
            fixed_tokens,
            now=moment,
        )
    asked = asked._replace(policy=with_window(policy, max_tokens))
    return _as_found(transactions, asked, found, moment, now) or done


def _cleared(transactions: Transactions, asked: Asked, moment: int) -> Compaction | None:
    """Clear if it is worth it; only then is there something to write."""
    session_id, policy = asked.session_id, asked.policy
    with transactions.reading() as connection:
        if plan_clearing(connection, session_id, policy, now=moment) is None:
            return None
    with transactions.writing() as connection:
        return clear(connection, session_id, policy, reason=asked.reason, now=moment)


def parse_reason(reason: str) -> Reason:
    """Return a reason that a record may give. Raises InvalidValue for any other text."""
    return one_of(REASONS, "reason", reason)


def _check_asked(asked: Asked) -> None:
    """Raise InvalidPolicy or InvalidValue for what no compaction can be made by."""
    checked(asked.policy)
    summarizer: object = asked.summarizer
    if summarizer is not None and not callable(summarizer):
        example = "store.summaries.extractive"
        raise InvalidValue(
            f"a summarizer is a callable, such as {example}, not {quoted(summarizer)}"
        )
    parse_reason(asked.reason)


def _as_found(
    transactions: Transactions, asked: Asked, found: Check, moment: int, now: Now
) -> Compaction | None:
    """Do what a check asks for; return what came of it, None where nothing had to."""
    if found.reason == BELOW:
        return None
    if found.should_compact:
        done = _tried(transactions, asked, found, moment, now)
    else:
        done = _not_tried(transactions, asked, found, moment)
    if found.should_compact or found.problem:
        done = _kept_to_limit(transactions, asked, done, moment) or done
    if done.outcome == "nothing":
        log_messages.nothing(done)
    runs_elsewhere = found.should_compact and done.outcome == "rejected"
    if done.id is None and not found.overflow and not runs_elsewhere:
        return None
    return done


def _tried(
    transactions: Transactions, asked: Asked, found: Check, moment: int, now: Now
) -> Compaction:
    """Compact; where the view is over the window, however little it frees."""
    if found.overflow or asked.reason == "manual":
        asked = asked._replace(policy=any_saving(asked.policy))
    return _run(transactions, asked, moment, now)


def _not_tried(transactions: Transactions, asked: Asked, found: Check, moment: int) -> Compaction:
    """Return why nothing is tried; warn where failures hold it back."""
    if found.problem:
        log_messages.held(asked.policy, found.problem)
    outcome: Outcome = "rejected" if found.problem else "nothing"
    with transactions.reading() as connection:
        pointer = lines.load_pointer(connection, asked.session_id)
        cost = budget(connection, pointer, asked.policy, moment, asked.coming)
        return left_as_it_is(cost, asked, found.reason, outcome)


def _run(transactions: Transactions, asked: Asked, moment: int, now: Now) -> Compaction:
    """Run a compaction from its plan to its end."""
    with transactions.reading() as connection:
        job = _worth_it(prepare(connection, asked, moment), asked)
    if isinstance(job, Compaction):
        return job
    with transactions.writing() as connection:
        number = begin(connection, asked, job, moment)
    if isinstance(number, Compaction):
        return number
    try:
        result = _summarised(transactions, asked, job)
        with transactions.writing() as connection:
            ended = finish(connection, asked, job, number, result, transactions.clock(now))
    except BaseException as error:
        # What stopped it is told, whatever else goes wrong.
        with suppress(Exception), transactions.writing() as connection:
            abandon(connection, asked.session_id, number, error)
        raise
    log_messages.ended(ended)
    return ended


def _worth_it(job: Job | Compaction, asked: Asked) -> Job | Compaction:
    """Return a job, or the answer that it cannot free what the policy asks for."""
    if isinstance(job, Compaction) or not job.cost.to_free:
        return job
    little = frees_too_little(job.cost, with_view_tokens(job.cost, job.hiding.plan))
    return left_as_it_is(job.cost, asked, little) if little else job


def _summarised(transactions: Transactions, asked: Asked, job: Job) -> Result:
    """Return a summary of a job, whose line is read even if the session leaves it."""
    branch = job.cost.context.pointer.branch

    def read_line(first: int, last: int) -> list[StoredMessage]:
        with transactions.reading() as connection:
            return read_chat_messages(connection, asked.session_id, first, last, branch=branch)

    return summarised(job, asked, read_line)


def _kept_to_limit(
    transactions: Transactions, asked: Asked, tried: Compaction, moment: int
) -> Compaction | None:
    """Keep a view to the hard limit of a policy that trims; None where nothing had to go."""
    if tried.outcome == "applied" or asked.policy.on_failure != "trim":
        return None
    with transactions.writing() as connection:
        kept = keep_to_limit(connection, asked, tried.error or "", moment)
    if kept:
        log_messages.ended(kept)
    return kept
