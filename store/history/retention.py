"""Which sessions a prune erases: those idle for long, oldest first, until enough room is free.

A prune is planned in one read, which tells exactly what the erasure of all its sessions frees: a
message stays as long as the line of any other session runs through it. Then the sessions are erased
in short transactions, each if it still has the revision that it had in the plan. So a session that
was used, or marked to be kept, after the plan was made stays.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, cast, func, literal_column, select

from ..clock import Now, require_moment
from ..database import (
    BIG_INTEGER,
    IDENTIFIER,
    Database,
    Statement,
    attachments,
    compaction_records,
    json_sql,
    load_page_bytes,
    message_attachments,
    messages,
    tool_calls,
)
from ..errors import Conflict, InvalidValue, SessionNotFound, check_choice, quote_value
from ..records import ProgressCallback, Pruned, Session
from . import lines
from .drafts import list_drafts
from .erasure import COSTS, OpenErasure, begin_erasure, plan_erasures
from .erasure_batches import build_pace, erase_group
from .kept_usages import delete_kept_usages
from .listing import list_sessions
from .model_prices import DAY_MS
from .price_rows import DELETE_OWNED_PRICES
from .sessions import validate_text

_run = {name: bindparam(name, type_=BIG_INTEGER) for name in ("tree_id", "branch", "kept", "end")}


def _sum_shares(tree_id: Any) -> Any:
    """Build the sum of the bytes of pictures and files, each divided by the places that have it."""
    same = message_attachments.alias("same")
    places, held = message_attachments.c, attachments.c
    size = select(func.length(held.data, type_=BIG_INTEGER)).where(
        held.tree_id == tree_id, held.digest == places.digest
    )
    uses = select(func.count()).where(
        same.c.tree_id == tree_id,
        same.c.digest == places.digest,
    )
    share = size.scalar_subquery() // uses.scalar_subquery()
    return cast(func.coalesce(func.sum(share), literal_column("0")), BIG_INTEGER)


def _sum_bytes(*columns: Any) -> Any:
    """Build the sum of the bytes of columns over rows."""
    stored = (func.coalesce(json_sql.TextBytes(each), literal_column("0")) for each in columns)
    return func.coalesce(func.sum(sum(stored, literal_column("0"))), literal_column("0"))


CONTENT_BYTES: dict[Table, Any] = {
    messages: _sum_bytes(messages.c.content, messages.c.extra),
    tool_calls: _sum_bytes(tool_calls.c.arguments, tool_calls.c.extra),
    message_attachments: _sum_shares(message_attachments.c.tree_id),
}
"""The bytes of the words, pictures and files of a conversation, by the tables of their places."""
_RUN_CONTENT_BYTES = {**CONTENT_BYTES, message_attachments: _sum_shares(_run["tree_id"])}
ALL_BYTES = tuple(
    Statement(select(size).select_from(table)) for table, size in CONTENT_BYTES.items()
)
RUN_BYTES = tuple(
    Statement(
        select(size).where(
            table.c.tree_id == _run["tree_id"],
            table.c.branch == _run["branch"],
            table.c.seq > _run["kept"],
            table.c.seq <= _run["end"],
        )
    )
    for table, size in _RUN_CONTENT_BYTES.items()
)
"""The bytes of the words of a branch after a position, up to another."""
_compacted_sessions = select(compaction_records.c.session_id).where(
    compaction_records.c.outcome == literal_column("'running'"),
    compaction_records.c.lease_until > bindparam("now", type_=BIG_INTEGER),
)
COMPACTED_SESSIONS = Statement(_compacted_sessions)
"""The sessions with a compaction under way."""
IS_COMPACTED = Statement(
    _compacted_sessions.where(
        compaction_records.c.tree_id == _run["tree_id"],
        compaction_records.c.session_id == bindparam("session_id", type_=IDENTIFIER),
    )
)


LARGEST_GROUP = 1_000
"""Sessions that are erased together, as many as a short transaction has time for."""


class PruneRequest(NamedTuple):
    """The sessions that a prune may erase: last active before a moment (ms; None: at any time)."""

    before: int | None
    keep: Mapping[str, Any]
    owner: str | None
    source: str | None
    archived: bool | None
    costs: str
    now: int


class PrunePlan(NamedTuple):
    """The sessions that a prune erases, oldest first, and the effect of all these erasures.

    ``sessions`` are their ids with their revisions.
    """

    request: PruneRequest
    sessions: dict[str, str]
    effect: Pruned


class FreedRows(NamedTuple):
    """The messages that erasures in a tree free, the bytes of these, and the messages they keep."""

    messages: int
    bytes: int
    kept: int


def plan_prune(
    connection: Connection,
    idle: timedelta | float | None = None,
    *,
    keep: Mapping[str, Any] | None = None,
    owner: str | None = None,
    source: str | None = None,
    archived: bool | None = None,
    max_bytes: int | None = None,
    costs: str = "keep",
    now: Now = None,
) -> PrunePlan:
    """Return the sessions that a prune would erase, and what that frees. Raises InvalidValue."""
    moment = require_moment(now)
    check_choice(COSTS, "costs", costs)
    if idle is None and max_bytes is None:
        raise InvalidValue("give idle=, the days without activity, or max_bytes=, or both")
    before = None if idle is None else moment - _validate_idle(idle)
    request = PruneRequest(
        before, _validate_keep(keep), validate_text("owner", owner), source, archived, costs, moment
    )
    found = find_idle_sessions(connection, request)
    if max_bytes is not None:
        found = _choose_oldest(connection, found, _measure_excess(connection, max_bytes))
    trees = _group_by_tree(connection, found)
    freed = [measure_erasures(connection, tree, ids) for tree, ids in trees.items()]
    totals = [sum(column) for column in zip(*freed, strict=True)] or [0, 0, 0]
    oldest, newest = (found[0].updated_at, found[-1].updated_at) if found else (None, None)
    effect = Pruned(len(found), totals[0], totals[1], oldest, newest, totals[2])
    return PrunePlan(request, {each.id: each.revision for each in found}, effect)


def _group_by_tree(connection: Connection, found: Iterable[Session]) -> dict[int, list[str]]:
    trees: dict[int, list[str]] = {}
    for session in found:
        tree_id = lines.load_pointer(connection, session.id).tree_id
        trees.setdefault(tree_id, []).append(session.id)
    return trees


def _choose_oldest(connection: Connection, found: list[Session], enough: float) -> list[Session]:
    """Return as many sessions from the beginning as free enough bytes of words.

    Of a tree they are measured together, since a message goes with the last session that shows it.
    """
    total, freed = 0, Counter[int]()
    trees: dict[int, list[str]] = {}
    for number, session in enumerate(found):
        if total >= enough:
            return found[:number]
        for tree_id, ids in _group_by_tree(connection, [session]).items():
            trees.setdefault(tree_id, []).extend(ids)
            total -= freed[tree_id]
            freed[tree_id] = measure_erasures(connection, tree_id, trees[tree_id]).bytes
            total += freed[tree_id]
    return found


def _validate_idle(idle: timedelta | float) -> int:
    """Return a time in ms, given as such or in days. Raises InvalidValue."""
    is_number = isinstance(idle, int | float) and not isinstance(idle, bool)
    days = idle / timedelta(days=1) if isinstance(idle, timedelta) else idle if is_number else -1
    if not 0 <= days <= MOST_DAYS:
        raise InvalidValue(
            f"idle must be a timedelta or a number of days from 0, not {quote_value(idle)}"
        )
    return int(days * DAY_MS)


MOST_DAYS = 100_000


def _validate_keep(keep: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if keep is not None and not isinstance(keep, Mapping):
        raise InvalidValue(f"keep must be a dict of metadata, not {quote_value(keep)}")
    return keep or {}


def _measure_excess(connection: Connection, max_bytes: int) -> float:
    """Return the bytes of words to erase, so that the store has no more bytes than a limit.

    What else a store holds for them, such as keys and indexes, counts in proportion.
    """
    if type(max_bytes) is not int or max_bytes < 0:
        raise InvalidValue(f"max_bytes must be a number from 0, not {quote_value(max_bytes)}")
    used = load_page_bytes(connection).used
    words: int = sum(each.value(connection) for each in ALL_BYTES)
    return words * max(0, used - max_bytes) / used


def find_idle_sessions(connection: Connection, request: PruneRequest) -> list[Session]:
    """Return the sessions that a prune may erase, those active last at the end.

    Left out are sessions to which an answer is streamed, and those that are being compacted.
    """
    busy = {each.session_id for each in list_drafts(connection) if each.live}
    busy.update(COMPACTED_SESSIONS.values(connection, now=request.now))
    wanted = (False, True) if request.archived is None else (request.archived,)
    found = [
        session
        for archived in wanted
        for session in list_sessions(
            connection,
            limit=lines.NO_LIMIT,
            owner=request.owner,
            source=request.source,
            until=request.before,
            archived=archived,
        )
        if session.id not in busy
        and not (request.keep and request.keep.items() <= session.metadata.items())
    ]
    return sorted(found, key=lambda each: (each.updated_at, each.id))


def measure_erasures(connection: Connection, tree_id: int, session_ids: list[str]) -> FreedRows:
    """Return what the erasure of sessions of a tree frees."""
    removed, words, kept = 0, 0, 0
    for effect, gone in plan_erasures(connection, tree_id, session_ids):
        kept += effect.kept_messages
        removed += gone
        if gone:
            run = {"tree_id": tree_id, "branch": effect.branch, "kept": effect.kept}
            run["end"] = effect.kept + gone
            words += sum(each.value(connection, **run) for each in RUN_BYTES)
    return FreedRows(removed, words, kept)


def delete_owned_rows(connection: Connection, owner: str, *, anonymous: bool = False) -> None:
    """Delete what an owner has beside sessions: prices, and kept usages or only their owner."""
    DELETE_OWNED_PRICES.run(connection, owner=owner)
    delete_kept_usages(connection, owner, anonymous=anonymous)


def prune_sessions(
    database: Database,
    plan: PrunePlan,
    max_seconds: float | None,
    progress: ProgressCallback | None = None,
) -> Pruned:
    """Erase the remaining sessions of a plan within a time; return the progress.

    The next prune goes on with the others. ``progress`` gets the number of sessions done, and of
    all. Raises StoreError.
    """
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    begins = [partial(_begin_prune, session_id=each, plan=plan) for each in plan.sessions]
    pace = build_pace(database, of_group=True)
    seen, done = 0, list[OpenErasure]()
    while seen < len(begins) and time.monotonic() < end:
        group = erase_group(database, begins[seen : seen + LARGEST_GROUP], plan.request.now, pace)
        seen += len(group)
        done += filter(None, group)
        if progress is not None:
            progress(seen, len(begins))
    if len(done) == len(begins):
        return plan.effect
    erased = sum(sum(each.removed) for each in done)
    share = erased / plan.effect.messages if plan.effect.messages else 0
    return plan.effect._replace(
        sessions=len(done), messages=erased, bytes=int(plan.effect.bytes * share)
    )


def _begin_prune(connection: Connection, session_id: str, plan: PrunePlan) -> OpenErasure | None:
    """Begin to erase a session, unless it was changed since the plan or is busy."""
    now, costs = plan.request.now, plan.request.costs
    try:
        pointer = lines.lock_tree(connection, session_id, plan.sessions[session_id])
        is_streamed = any(each.live for each in list_drafts(connection, session_id))
        if is_streamed or IS_COMPACTED.value(connection, **pointer.session, now=now):
            return None
        return begin_erasure(connection, session_id, costs=costs, now=now)
    except (SessionNotFound, Conflict):
        return None
