"""When nothing is tried though a trigger fires: what was tried before says so.

A model that is down is not asked again before some more messages or some time have passed, in
whatever turn. Then it is asked once: one more failure, and all begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from ..errors import CompactionError, MaxCompactionReachedError
from ..history import find_turn_start
from ..policy import Policy
from ..records import Compaction
from ..view import ViewContext
from .budget import Budget
from .plan import Plan
from .triggers import stayed_above

HELD = "CompactionError"
"""What a record names as its error that only kept to the hard limit: nobody was asked for it."""


def holds_back(cost: Budget) -> CompactionError | None:
    """Return why nothing is tried now: too many failures, or too little success in this turn.

    Of those applied the last ones in a row count that did not get below the trigger, with what is
    to come added; one that did begins anew.
    """
    return backs_off(cost.context) or _reached_limit(cost)


def backs_off(context: ViewContext) -> CompactionError | None:
    """Return that too many attempts failed in a row for another one so soon, if they did."""
    failures = _failures(context)
    if len(failures) < context.policy.back_off_after or _has_waited(context, failures[0]):
        return None
    return _waiting(context, failures)


def _failures(context: ViewContext) -> list[Compaction]:
    """Return the last attempts that failed in a row, the newest first."""
    attempts = [record for record in _ended(context) if record.error_kind != HELD]
    return _last_in_a_row(attempts, lambda record: _failed(record, context.policy))


def _has_waited(context: ViewContext, last: Compaction) -> bool:
    """Tell whether the last attempt is long enough ago for another one."""
    messages = context.pointer.head - last.head
    if messages >= context.policy.back_off_messages:
        return True
    return context.now - last.created_at >= context.policy.back_off_time


def _waiting(context: ViewContext, failures: list[Compaction]) -> CompactionError:
    """Return that failures hold back what is to come."""
    policy = context.policy
    seconds = policy.back_off_time // 1000
    problem = (
        f"{len(failures)} attempts failed, waiting for {policy.back_off_messages} more messages"
        f" or {seconds} seconds"
    )
    return _held(context, problem)


def _held(context: ViewContext, problem: str) -> CompactionError:
    return CompactionError(problem, session_id=context.pointer.session_id, can_retry=True)


def tried_in_vain(context: ViewContext, planned: Plan) -> CompactionError | None:
    """Return why a plan is not tried, None where it is.

    One that was rejected as too large is not retried in the same turn until more can be hidden.
    """
    rejected = _rejected_before(context, planned)
    if not rejected or rejected.head < _turn_began(context):
        return None
    return _held(context, _no_more_than(rejected))


def _rejected_before(context: ViewContext, planned: Plan) -> Compaction | None:
    """Return the last attempt that was rejected for the size of the same plan."""
    for record in reversed(context.records):
        if _was_rejected(record, context.policy, planned):
            return record
    return None


def _no_more_than(rejected: Compaction) -> str:
    what = f"compaction {rejected.id}, which was rejected for its size"
    return f"no more could be hidden than by {what}; waiting for more messages or the next turn"


def _reached_limit(cost: Budget) -> CompactionError | None:
    """Return that as many compactions in a row as a policy allows did not get below the trigger."""
    vain = _in_vain(cost)
    if vain < cost.context.policy.max_iterations:
        return None
    problem = (
        f"compacted {vain} times in this turn without getting below the trigger, which is the limit"
    )
    session_id = cost.context.pointer.session_id
    return MaxCompactionReachedError(problem, session_id=session_id, can_retry=True)


def _in_vain(cost: Budget) -> int:
    """Return how many compactions of this turn, the last ones in a row, did not help."""
    policy = cost.context.policy
    applied = _applied(cost.context)
    vain = _last_in_a_row(applied, lambda record: stayed_above(record, policy, cost.added))
    return len(vain)


def _applied(context: ViewContext) -> list[Compaction]:
    """Return the attempts that did not fail: of the turn of the next request, or of them all."""
    attempts = _ended(context) if context.policy.scope == "session" else _tried(context)
    return [record for record in attempts if not _failed(record, context.policy)]


Test = Callable[[Compaction], bool]


def _last_in_a_row(records: Sequence[Compaction], test: Test) -> list[Compaction]:
    """Return the last records that pass a test, back to the first that does not."""
    return list(takewhile(test, reversed(records)))


def _turn_began(context: ViewContext) -> int:
    """Return from where on a line's records are of the turn of the next request."""
    if context.turn_over:
        return context.pointer.head
    return find_turn_start(context.raw, context.pointer.head)


def _ended(context: ViewContext) -> list[Compaction]:
    """Return the attempts that have ended, oldest first."""
    summaries = [record for record in context.records if record.kind == "summary"]
    return [record for record in summaries if record.outcome != "running"]


def _tried(context: ViewContext) -> list[Compaction]:
    """Return the attempts of the turn of the next request that have ended."""
    ended = _ended(context)
    if not ended:
        return []
    began = _turn_began(context)
    return [record for record in ended if record.head >= began]


def _failed(record: Compaction, policy: Policy) -> bool:
    """Tell an attempt that failed.

    One that kept to the hard limit all the same is no better for it.
    """
    if record.outcome != "applied":
        return True
    return policy.on_failure == "trim" and record.error is not None


def _was_rejected(record: Compaction, policy: Policy, planned: Plan) -> bool:
    """Tell a compaction of the same positions that was rejected for its size.

    No other rejected one has a first kept.
    """
    at = (record.outcome, record.policy, record.first_kept)
    return at == ("rejected", policy.name, planned.last + 1)
