"""Clearing as recorded events: what the rules replace from then on.

In between, a view stays the same. A provider's cache is of the beginning of a request; each result
that is replaced in it makes the rest dear again. So the moment to clear is when nothing is in the
cache any more: then the whole request is written anew, and what it has no more saves on this one
and on all that follow. In a warm cache a clearing has to free very much to pay for itself.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, given
from ..history import lines
from ..messages import encode
from ..policy import Policy, checked
from ..records import Compaction, Reason
from ..view import ViewContext, estimate_savings, load_verdicts
from .budget import Budget, budget
from .caches import is_cold, lives_long
from .record_rows import insert_record, recorded

Freed = dict[tuple[int, str | None], int]
"""The tokens that a clearing frees, by the position of a result and the rule that replaces it."""


class Clearing(NamedTuple):
    """What a clearing would replace: positions, each with its rule; and the tokens of the view."""

    cleared: tuple[tuple[int, str | None], ...]
    tokens_before: int
    tokens_after: int


def plan_clearing(
    connection: Connection, session_id: str, policy: Policy, *, now: Now = None
) -> Clearing | None:
    """Return what `compact_if_needed` would clear now, before its check, changing nothing.

    None where too little would be freed, or the policy replaces results at any time. Raises
    SessionNotFound, InvalidPolicy.
    """
    pointer = lines.load_pointer(connection, session_id)
    if checked(policy).clearing == "always":
        return None
    cost = budget(connection, pointer, policy, given(now))
    freed = _worth_clearing(cost)
    return Clearing(tuple(freed), cost.tokens, _left(cost, freed)) if freed else None


def clear(
    connection: Connection,
    session_id: str,
    policy: Policy,
    *,
    reason: Reason = "llm_call",
    now: Now = None,
) -> Compaction | None:
    """Record a clearing by a policy that clears at recorded moments; return the record.

    None where too little would be freed, unless the cache is cold.
    """
    pointer = lines.lock_tree(connection, session_id)
    cost = budget(connection, pointer, policy, given(now))
    freed = _worth_clearing(cost)
    if not freed:
        return None
    number = _record(cost, freed, reason)
    return recorded(connection, pointer, number)


def _worth_clearing(cost: Budget) -> Freed:
    """Return what a clearing would free now, nothing where that does not pay."""
    if is_cold(cost.context):
        return _enough(_freed(cost.context), 0)
    if cost.context.policy.clearing == "batched":
        return _enough(_freed(cost.context), cost.context.policy.clear_min_freed)
    return _freed_of_warm(cost)


def _freed_of_warm(cost: Budget) -> Freed:
    """Return what a clearing would free that leaves more, if it is much of the view."""
    policy = cost.context.policy
    wanted = max(policy.clear_warm_freed, policy.clear_warm_share * cost.tokens)
    if lives_long(policy) or cost.tokens < wanted:
        return {}
    warm = _by(cost.context, clear_keep=policy.clear_warm_keep)
    return _enough(_freed(warm), wanted)


def _enough(freed: Freed, wanted: float) -> Freed:
    return freed if sum(freed.values()) >= wanted else {}


def _by(context: ViewContext, **changes: object) -> ViewContext:
    """Return a look by the same policy with fields changed."""
    return context._replace(policy=context.policy.model_copy(update=changes))


def _freed(context: ViewContext) -> Freed:
    """Return what the rules would replace now and no clearing has yet, and what each would free."""
    always, cleared = _by(context, clearing="always"), context.visible.cleared
    found = load_verdicts(always)
    fresh = {seq: each for seq, each in found.items() if each.rule and seq not in cleared}
    saved = estimate_savings(always, fresh)
    return {(seq, fresh[seq].rule): saved[seq] for seq in sorted(saved)}


def _left(cost: Budget, freed: Freed) -> int:
    return cost.tokens - sum(freed.values())


def _record(cost: Budget, freed: Freed, reason: Reason) -> int:
    """Write the record of a clearing; return its number."""
    context = cost.context
    return insert_record(
        context.connection,
        context.pointer,
        context.policy,
        kind="clear",
        outcome="applied",
        reason=reason,
        cleared=encode([[seq, rule] for seq, rule in freed]),
        messages_before=cost.messages,
        messages_after=cost.messages,
        tokens_before=cost.tokens,
        tokens_after=_left(cost, freed),
        created_at=context.now,
    )
