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
from .budget import budget
from .records import insert_record, recorded


def clear(
    connection: Connection,
    session_id: str,
    policy: Policy,
    *,
    reason: Reason = "llm_call",
    now: Now = None,
) -> Compaction | None:
    """Record a clearing under batched clearing, if enough would be freed or the cache is cold.

    None where not.
    """
    pointer = lines.lock_tree(connection, session_id)
    cost = budget(connection, pointer, policy, given(now))
    look = cost.look
    freed = _freed(look)
    tokens = sum(freed.values())
    if not freed or (tokens < policy.clear_min_freed and not _is_cold(look)):
        return None
    number = insert_record(
        connection,
        pointer,
        policy,
        kind="clear",
        outcome="applied",
        reason=reason,
        cleared=encode([[seq, rule] for seq, rule in freed]),
        messages_before=cost.messages,
        messages_after=cost.messages,
        tokens_before=cost.tokens,
        tokens_after=cost.tokens - tokens,
        created_at=look.now,
    )
    return recorded(connection, pointer, number)


def _freed(look: Look) -> dict[tuple[int, str | None], int]:
    """Return what the rules would replace now and no clearing has yet, and what each would free.

    Each is a position and a rule, with tokens.
    """
    always = look._replace(policy=look.policy.model_copy(update={"clearing": "always"}))
    found = verdicts(always)
    saved = savings(always, found)
    fresh = [found[seq] for seq in sorted(saved) if seq not in look.visible.cleared]
    return {(verdict.seq, verdict.rule): saved[verdict.seq] for verdict in fresh}


def _is_cold(look: Look) -> bool:
    """Tell whether the last request is so long ago that no cache has it."""
    usage = last_usage(look.raw, look.pointer.head)
    return usage is not None and look.now - usage.at >= look.policy.clear_cold_after
