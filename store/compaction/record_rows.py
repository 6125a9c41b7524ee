"""The rows of compactions and their summaries.

Written when one begins, and once more when it ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, literal_column, select, union_all, update

from ..database import (
    SEALED,
    Insertion,
    Statement,
    branches,
    compaction_records,
    head_moves,
    seal,
    sealed_names,
    summaries,
)
from ..history import Pointer, newest_compaction
from ..messages import encode
from ..policy import Policy
from ..records import Compaction, Outcome, Reason
from ..summaries import Summary
from ..view import ViewContext, describe_records, load_records
from .plan import Plan, Previous
from .sources import Sources

_c, _s = compaction_records, summaries
INSERT_RECORD = Insertion(compaction_records)


class Running(NamedTuple):
    """A compaction that has not ended, and until when (ms) it is waited for."""

    compaction: int
    lease_until: int | None


RUNNING = Statement(
    select(_c.c.compaction, _c.c.lease_until).where(
        _c.c.tree_id == bindparam("tree_id"),
        _c.c.session_id == bindparam("session_id"),
        _c.c.outcome == literal_column("'running'"),
    ),
    row=Running,
)
_ENDED = (
    "branch",
    "head",
    "outcome",
    "first_kept",
    "hidden_first",
    "hidden_last",
    "summary",
    "messages_before",
    "messages_after",
    "tokens_before",
    "tokens_after",
    "error",
    "error_kind",
    "pinned",
    "created_at",
)
"""The columns that may be other ones when a record ends."""
_SEALED = sealed_names(_c)
_at_end = select(*(_c.c[name] for name in _SEALED))
RUNNING_VALUES = Statement(
    _at_end.where(
        _c.c.tree_id == bindparam("tree_id"),
        _c.c.compaction == bindparam("number"),
    )
)
_changing = [_c.c[name] for name in ("compaction", *_ENDED, SEALED)]
_changed = {column.name: bindparam(column.name, type_=column.type) for column in _changing}
END_RECORD = Statement(
    update(_c)
    .where(
        _c.c.tree_id == bindparam("tree"),
        _c.c.compaction == bindparam("number"),
        _c.c.outcome == literal_column("'running'"),
    )
    .values(_changed)
)
_branched = select(branches.c.branch).where(
    branches.c.tree_id == bindparam("tree_id"),
    branches.c.records_seen >= bindparam("number"),
)
_forked = select(head_moves.c.to_branch).where(
    head_moves.c.tree_id == bindparam("tree_id"),
    head_moves.c.source_record >= bindparam("number"),
)
BRANCHED_SINCE = Statement(union_all(_branched, _forked).limit(literal_column("1")))
INSERT_SUMMARY = Insertion(summaries)
NEWEST_SUMMARY = Statement(
    select(_s.c.summary)
    .where(_s.c.tree_id == bindparam("tree_id"))
    .order_by(_s.c.summary.desc())
    .limit(literal_column("1"))
)


class Hiding(NamedTuple):
    """What goes by a plan, and what is told of it.

    ``previous`` are the summaries that the new one replaces, ``facts`` are sent with it, ``source``
    tells what messages it is of; ``names`` are those that the next index of names begins with.
    """

    plan: Plan
    previous: Previous
    facts: str
    source: Sources
    names: str | None = None


def running_record(connection: Connection, pointer: Pointer) -> Running | None:
    """Return the compaction of a session that has not ended; the database allows only one."""
    place = {"tree_id": pointer.tree_id, "session_id": pointer.session_id}
    return RUNNING.row(connection, **place)


def insert_record(
    connection: Connection, pointer: Pointer, policy: Policy | None, **values: Any
) -> int:
    """Write a record where the line is now; return its number."""
    number = _next_number(connection, pointer)
    given = {
        "tree_id": pointer.tree_id,
        "compaction": number,
        "branch": pointer.branch,
        "head": pointer.head,
        "session_id": pointer.session_id,
        "policy": policy.name if policy else None,
        **values,
    }
    INSERT_RECORD.run(connection, **{**dict.fromkeys(INSERT_RECORD.columns), **given})
    return number


def _next_number(connection: Connection, pointer: Pointer) -> int:
    """Return the number that the next record of a tree gets."""
    return newest_compaction(connection, pointer.tree_id) + 1


def end_record(connection: Connection, pointer: Pointer, number: int, **values: Any) -> int:
    """End a running record where the line is now: from here on it counts; return its number.

    It is a new one if the tree got branches since it began: they know the records up to the newest
    of that time, and none that counted only later.
    """
    old = RUNNING_VALUES.one(connection, tree_id=pointer.tree_id, number=number)
    record = dict(zip(_SEALED, old, strict=True))
    record |= {"branch": pointer.branch, "head": pointer.head, **values}
    record["compaction"] = ended = _number_at_end(connection, pointer, number)
    record[SEALED] = seal(_SEALED, (record[name] for name in _SEALED))
    changed = {name: record[name] for name in _changed}
    END_RECORD.run(connection, tree=pointer.tree_id, number=number, **changed)
    return ended


def _number_at_end(connection: Connection, pointer: Pointer, number: int) -> int:
    """Return the number under which a record ends.

    It is a new one if the tree got branches since it began.
    """
    if BRANCHED_SINCE.row(connection, tree_id=pointer.tree_id, number=number):
        return _next_number(connection, pointer)
    return number


def keep_summary(
    context: ViewContext,
    hiding: Hiding,
    summary: Summary,
    *,
    text: str,
    tokens: int,
    moment: int,
) -> int:
    """Write the summary of what goes; return its number."""
    number = _next_summary(context)
    INSERT_SUMMARY.run(
        context.connection,
        tree_id=context.pointer.tree_id,
        summary=number,
        branch=context.pointer.branch,
        tokens=tokens,
        digest=hiding.source.digest,
        created_at=moment,
        body=text,
        facts=hiding.facts or None,
        names=hiding.names,
        **_range_of(hiding),
        **_columns_of(summary),
    )
    return number


def _next_summary(context: ViewContext) -> int:
    newest = NEWEST_SUMMARY.value(context.connection, tree_id=context.pointer.tree_id)
    return int(newest or 0) + 1


def _range_of(hiding: Hiding) -> dict[str, int | None]:
    """Return what a summary stands for as columns: its range, with those that it replaces."""
    first, supersedes = hiding.plan.first, None
    if hiding.previous:
        first = min(first, hiding.previous[0].first)
        supersedes = hiding.previous[-1].number
    return {"first": first, "last": hiding.plan.last, "supersedes": supersedes}


def _columns_of(summary: Summary) -> dict[str, Any]:
    """Return what a summary says of itself as columns."""
    return {
        "model": summary.model,
        "prompt_version": summary.prompt_version,
        "title": summary.title,
        "notice": summary.notice,
        "key_actions": encode([action._asdict() for action in summary.key_actions]),
        "file_changes": encode([change._asdict() for change in summary.file_changes]),
    }


def recorded(connection: Connection, pointer: Pointer, number: int) -> Compaction:
    """Return a record of the line as it is given out."""
    records = load_records(connection, pointer, pointer.head)
    (found,) = describe_records(connection, pointer, records, number)
    return found


def not_recorded(
    pointer: Pointer,
    policy: Policy,
    *,
    outcome: Outcome,
    reason: Reason,
    error: str,
    moment: int,
) -> Compaction:
    """Return an answer that is kept nowhere: there is nothing to do, or it cannot be done now."""
    return Compaction(
        id=None,
        kind="summary",
        outcome=outcome,
        reason=reason,
        policy=policy.name,
        error=error,
        head=pointer.head,
        created_at=moment,
        session_id=pointer.session_id,
    )
