"""Batched clearing as recorded events: what the rules replace from then on.

In between, a view stays the same. A provider's cache is of the beginning of a request; each result
that is replaced in it makes the rest dear again.
"""

from __future__ import annotations

from sqlalchemy import Connection

from ..clock import Now, given
from ..history import last_usage, lines
from ..messages import encode
from ..policy import Policy
from ..records import Compaction, Reason
from ..view import Look, savings, verdicts
from .budget import Budget, budget
from .records import insert_record, recorded


def clear(
    connection: Connection,
    session_id: str,
    policy: Policy,
    *,
    reason: Reason = "llm_call",
    now: Now = None,
) -> Compaction | None:
    """Record a clearing under batched clearing; return the record.

    None where too little would be freed, unless the cache is cold.
    """
    pointer = lines.lock_tree(connection, session_id)
    cost = budget(connection, pointer, policy, given(now))
    freed = _freed(cost.look)
    if not _is_worth_it(cost.look, freed):
        return None
    number = _record(cost, freed, reason)
    return recorded(connection, pointer, number)


Freed = dict[tuple[int, str | None], int]
"""The tokens that a clearing frees, by the position of a result and the rule that replaces it."""


def _is_worth_it(look: Look, freed: Freed) -> bool:
    """Tell whether a clearing frees enough for what a warm cache loses by it."""
    if not freed:
        return False
    return sum(freed.values()) >= look.policy.clear_min_freed or _is_cold(look)


def _record(cost: Budget, freed: Freed, reason: Reason) -> int:
    """Write the record of a clearing; return its number."""
    look = cost.look
    return insert_record(
        look.connection,
        look.pointer,
        look.policy,
        kind="clear",
        outcome="applied",
        reason=reason,
        cleared=encode([[seq, rule] for seq, rule in freed]),
        messages_before=cost.messages,
        messages_after=cost.messages,
        tokens_before=cost.tokens,
        tokens_after=cost.tokens - sum(freed.values()),
        created_at=look.now,
    )


def _clearing_always(look: Look) -> Look:
    """Return a look for which the rules replace at once what they say, recorded or not."""
    policy = look.policy.model_copy(update={"clearing": "always"})
    return look._replace(policy=policy)


def _freed(look: Look) -> Freed:
    """Return what the rules would replace now and no clearing has yet, and what each would free."""
    always = _clearing_always(look)
    found = verdicts(always)
    saved = savings(always, found)
    fresh = [found[seq] for seq in sorted(saved) if seq not in look.visible.cleared]
    return {(verdict.seq, verdict.rule): saved[verdict.seq] for verdict in fresh}


def _is_cold(look: Look) -> bool:
    """Tell whether the last request is so long ago that no cache has it."""
    usage = last_usage(look.raw, look.pointer.head)
    return usage is not None and look.now - usage.at >= look.policy.clear_cold_after
