"""Batched clearing as recorded events: what the rules replace from then on, so that a view is the same in between.

A provider's cache is of the beginning of a request; each result that is replaced in it makes the rest dear again.
"""

from __future__ import annotations

from sqlalchemy import Connection

from . import lines
from .budget import budget, last_usage
from .clock import Now, given
from .messages import encode
from .policy import Policy
from .recording import insert_record, recorded
from .records import Compaction
from .verdicts import savings, verdicts


def clear(
    connection: Connection, session_id: str, policy: Policy, *, reason: str = "llm_call", now: Now = None
) -> Compaction | None:
    """Record a clearing under batched clearing, if enough would be freed or the cache is cold; None where not."""
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id)
    cost = budget(connection, pointer, policy, moment)
    always = policy.model_copy(update={"clearing": "always"})
    found = verdicts(connection, pointer, always, cost.shown, last=pointer.head, now=moment)
    saved = savings(connection, pointer, policy, found)
    fresh = [found[seq] for seq in sorted(saved) if seq not in cost.shown.cleared]
    freed = sum(saved[verdict.seq] for verdict in fresh)
    usage = last_usage(connection, pointer, pointer.head)
    cold = usage is not None and moment - usage.at >= policy.clear_cold_after
    if not fresh or (freed < policy.clear_min_freed and not cold):
        return None
    number = insert_record(
        connection,
        pointer,
        policy,
        kind="clear",
        outcome="applied",
        reason=reason,
        cleared=encode([[verdict.seq, verdict.rule] for verdict in fresh]),
        messages_before=cost.messages,
        messages_after=cost.messages,
        tokens_before=cost.tokens,
        tokens_after=cost.tokens - freed,
        created_at=moment,
    )
    return recorded(connection, pointer, number)
