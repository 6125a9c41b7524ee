"""Recorded clearings: the results that the rules replace from then on.

Between clearings, a view stays the same. A provider's cache is of the beginning of a request; each
result that is replaced in it makes the rest expensive again. So the moment to clear is when the
cache is empty: then the whole request is written anew, and the tokens that it no longer has save
money on this request and on all that follow. In a warm cache a clearing has to free very much to
pay for itself.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, require_moment
from ..history import lines
from ..messages import encode
from ..policy import Policy, check_policy
from ..records import Compaction, Reason
from ..view import ViewContext, estimate_savings, load_verdicts
from .record_rows import insert_record, load_record
from .triggers import ViewCost, is_cache_cold, load_view_cost

EXPENSIVE_LIFETIME = 3_600_000
"""The lifetime (ms) from which on a cache is so expensive to write that a warm one is kept."""

FreedTokens = dict[tuple[int, str | None], int]
"""The tokens that a clearing frees, by the position of a result and the rule that replaces it."""


class Clearing(NamedTuple):
    """The positions that a clearing would replace, each with its rule; the tokens of the view."""

    cleared: tuple[tuple[int, str | None], ...]
    tokens_before: int
    tokens_after: int


def plan_clearing(
    connection: Connection, session_id: str, policy: Policy, *, now: Now = None
) -> Clearing | None:
    """Return the clearing that `compact_if_needed` would make now, changing nothing.

    None if too little would be freed, or the policy replaces results at any time. Raises
    SessionNotFound, InvalidPolicy.
    """
    pointer = lines.load_pointer(connection, session_id)
    if check_policy(policy).clearing == "always":
        return None
    cost = load_view_cost(connection, pointer, policy, require_moment(now))
    freed = _find_worthwhile(cost)
    if not freed:
        return None
    return Clearing(tuple(freed), cost.tokens, cost.tokens - sum(freed.values()))


def clear_results(
    connection: Connection,
    session_id: str,
    policy: Policy,
    *,
    reason: Reason = "llm_call",
    now: Now = None,
) -> Compaction | None:
    """Record a clearing by a policy that clears at recorded moments; return the record.

    None if too little would be freed, unless the cache is cold.
    """
    pointer = lines.lock_tree(connection, session_id)
    cost = load_view_cost(connection, pointer, policy, require_moment(now))
    freed = _find_worthwhile(cost)
    if not freed:
        return None
    number = insert_record(
        connection,
        pointer,
        cost.context.policy,
        kind="clear",
        outcome="applied",
        reason=reason,
        cleared=encode([[position, rule] for position, rule in freed]),
        messages_before=cost.messages,
        messages_after=cost.messages,
        tokens_before=cost.tokens,
        tokens_after=cost.tokens - sum(freed.values()),
        created_at=cost.context.now,
    )
    return load_record(connection, pointer, number)


def _find_worthwhile(cost: ViewCost) -> FreedTokens:
    """Return the tokens that a clearing would free now; nothing if that does not pay.

    While the cache is warm and the policy does not clear in batches, more results are left, and
    those cleared have to be much of the view.
    """
    context, policy = cost.context, cost.context.policy
    least: float = 0
    if not is_cache_cold(context):
        least = policy.clear_min_freed
        if policy.clearing != "batched":
            least = max(policy.clear_warm_freed, policy.clear_warm_share * cost.tokens)
            if policy.cache_lifetime >= EXPENSIVE_LIFETIME or cost.tokens < least:
                return {}
            context = _change_policy(context, clear_keep=policy.clear_warm_keep)
    always = _change_policy(context, clearing="always")
    verdicts = {
        position: verdict
        for position, verdict in load_verdicts(always).items()
        if verdict.rule and position not in context.visible.cleared
    }
    saved = estimate_savings(always, verdicts)
    freed: FreedTokens = {
        (position, verdicts[position].rule): saved[position] for position in sorted(saved)
    }
    return freed if sum(freed.values()) >= least else {}


def _change_policy(context: ViewContext, **changes: object) -> ViewContext:
    """Return a context by the same policy with fields changed."""
    return context._replace(policy=context.policy.model_copy(update=changes))
