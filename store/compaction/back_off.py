"""When nothing is tried though a trigger fires: what was tried before says so.

A model that is down is not asked again before some more messages or some time have passed, in
whatever turn. Then it is asked once: one more failure, and all begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from ..errors import CompactionError, MaxCompactionReachedError
from ..history import turn_start
from ..policy import Policy
from ..records import Compaction
from ..view import Look
from .budget import Budget
from .planning import Plan
from .triggers import stayed_above

HELD = "CompactionError"
"""What a record names as its error that only kept to the hard limit: nobody was asked for it."""


def holds_back(cost: Budget) -> CompactionError | None:
    """Return why nothing is tried now: too many failures, or too little success in this turn.

    Of those applied the last ones in a row count that did not get below the trigger, with what is
    to come added; one that did begins anew.
    """
    return backs_off(cost) or _reached_limit(cost)


def backs_off(cost: Budget) -> CompactionError | None:
    """Return that too many attempts failed in a row for another one so soon, if they did."""
    look, policy = cost.look, cost.look.policy
    attempts = [record for record in _ended(look) if record.error_kind != HELD]
    failures = _last_in_a_row(attempts, lambda record: _failed(record, policy))
    if failures < policy.back_off_after or _has_waited(look, attempts[-1]):
        return None
    seconds = policy.back_off_time // 1000
    problem = (
        f"{failures} attempts failed, waiting for {policy.back_off_messages} more messages"
        f" or {seconds} seconds"
    )
    return CompactionError(problem, session_id=look.pointer.session_id, can_retry=True)


def _has_waited(look: Look, last: Compaction) -> bool:
    """Tell whether the last attempt is long enough ago for another one."""
    messages, passed = look.pointer.head - last.head, look.now - last.created_at
    policy = look.policy
    return messages >= policy.back_off_messages or passed >= policy.back_off_time


def tried_in_vain(cost: Budget, planned: Plan) -> CompactionError | None:
    """Return why a plan is not tried, None where it is.

    One that was rejected as too large is not retried in the same turn until more can be hidden.
    """
    look = cost.look
    same = [record for record in look.known if _was_rejected(record, look.policy, planned)]
    if not same or same[-1].head < _turn_began(look):
        return None
    what = f"compaction {same[-1].id}, which was rejected for its size"
    problem = f"no more could be hidden than by {what}; waiting for more messages or the next turn"
    return CompactionError(problem, session_id=look.pointer.session_id, can_retry=True)


def _reached_limit(cost: Budget) -> CompactionError | None:
    """Return that as many compactions in a row as a policy allows did not get below the trigger."""
    policy = cost.look.policy
    applied = [record for record in _tried(cost.look) if not _failed(record, policy)]
    vain = _last_in_a_row(applied, lambda record: stayed_above(record, policy, cost.added))
    if vain < policy.max_iterations:
        return None
    problem = (
        f"compacted {vain} times in this turn without getting below the trigger, which is the limit"
    )
    session_id = cost.look.pointer.session_id
    return MaxCompactionReachedError(problem, session_id=session_id, can_retry=True)


def _last_in_a_row(records: Sequence[Compaction], test: Callable[[Compaction], bool]) -> int:
    return len(list(takewhile(test, reversed(records))))


def _turn_began(look: Look) -> int:
    """Return from where on a line's records are of the turn of the next request."""
    if look.turn_over:
        return look.pointer.head
    return turn_start(look.connection, look.pointer, look.pointer.head)


def _ended(look: Look) -> list[Compaction]:
    """Return the attempts that have ended, oldest first."""
    summaries = [record for record in look.known if record.kind == "summary"]
    return [record for record in summaries if record.outcome != "running"]


def _tried(look: Look) -> list[Compaction]:
    """Return the attempts of the turn of the next request that have ended."""
    ended = _ended(look)
    if not ended:
        return []
    began = _turn_began(look)
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
