"""The rows of compaction records and of their summaries.

A record is written when a compaction begins, and once more when it ends.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, literal_column, select, union_all, update

from ..database import (
    SEAL_COLUMN,
    Insertion,
    Statement,
    branches,
    compaction_records,
    compute_seal,
    head_moves,
    list_sealed_columns,
    messages,
    summaries,
)
from ..history import Pointer, lines, load_newest_compaction, search_entries
from ..messages import encode
from ..policy import Policy
from ..records import Compaction, Outcome, Reason
from ..summaries import Summary
from ..view import ActiveSummary, ViewContext, describe_records, load_records
from .plan import PINNED_ROLES, Plan

_records = compaction_records.c
INSERT_RECORD = Insertion(compaction_records)


class RunningRecord(NamedTuple):
    """A compaction that has not ended, and the time (ms) until which it is waited for."""

    compaction: int
    lease_until: int | None


RUNNING_RECORD = Statement(
    select(_records.compaction, _records.lease_until).where(
        _records.tree_id == bindparam("tree_id"),
        _records.session_id == bindparam("session_id"),
        _records.outcome == literal_column("'running'"),
    ),
    row=RunningRecord,
)
_END_COLUMNS = (
    "compaction",
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
    SEAL_COLUMN,
)
"""The columns that may change when a record ends."""
_SEALED_NAMES = list_sealed_columns(compaction_records)
RUNNING_VALUES = Statement(
    select(*(_records[name] for name in _SEALED_NAMES)).where(
        _records.tree_id == bindparam("tree_id"),
        _records.compaction == bindparam("number"),
    )
)
END_RECORD = Statement(
    update(compaction_records)
    .where(
        _records.tree_id == bindparam("tree"),
        _records.compaction == bindparam("number"),
        _records.outcome == literal_column("'running'"),
    )
    .values({name: bindparam(name, type_=_records[name].type) for name in _END_COLUMNS})
)
_branched_since = select(branches.c.branch).where(
    branches.c.tree_id == bindparam("tree_id"),
    branches.c.records_seen >= bindparam("number"),
)
_forked_since = select(head_moves.c.to_branch).where(
    head_moves.c.tree_id == bindparam("tree_id"),
    head_moves.c.source_record >= bindparam("number"),
)
BRANCHED_SINCE = Statement(union_all(_branched_since, _forked_since).limit(literal_column("1")))
INSERT_SUMMARY = Insertion(summaries)
NEWEST_SUMMARY = Statement(
    select(summaries.c.summary)
    .where(summaries.c.tree_id == bindparam("tree_id"))
    .order_by(summaries.c.summary.desc())
    .limit(literal_column("1"))
)
_message_time = func.coalesce(messages.c.created_at, messages.c.stored_at)
_message_in_run = lines.match_run(messages)
FIRST_TIME = Statement(
    select(_message_time)
    .where(_message_in_run)
    .where(messages.c.role.not_in(PINNED_ROLES))
    .order_by(messages.c.seq)
    .limit(literal_column("1"))
)
SUMMARY_SOURCES = Statement(
    select(messages.c.seq, messages.c.digest, _message_time.label("at"))
    .where(_message_in_run)
    .order_by(messages.c.seq)
)
"""The messages that a summary includes, with their own time or else that when they were stored."""


class SourceMessages(NamedTuple):
    """A SHA-256 of the digests of a summary's messages, and their first and last time (ms)."""

    digest: bytes
    times: tuple[int, int] | None


class PlannedPart(NamedTuple):
    """The part of a line that a plan hides, and the texts that are sent with its summary.

    ``previous`` are the summaries that the new one replaces, ``facts`` are sent with it, ``source``
    are the messages that it includes; ``names`` are those that the next index of names begins with.
    """

    plan: Plan
    previous: tuple[ActiveSummary, ...]
    facts: str
    source: SourceMessages
    names: str | None = None


def load_source(
    context: ViewContext, first: int, last: int, pinned: Collection[int]
) -> SourceMessages:
    """Return the source of a summary of a range, without the pinned messages.

    Messages that were hidden by name are not included.
    """
    runs = context.told(first, last)
    stored = chain.from_iterable(SUMMARY_SOURCES.scan(context.connection, **run) for run in runs)
    included = [(digest, at) for seq, digest, at in stored if seq not in pinned]
    digests = b"".join([digest for digest, _ in included])
    times = [at for _, at in included]
    return SourceMessages(sha256(digests).digest(), (min(times), max(times)) if times else None)


def find_first_time(context: ViewContext, first: int, last: int) -> int | None:
    """Return the time (ms) of the first message of a range that can be hidden; None for none."""
    for run in context.raw.ranges(first, last):
        time: int | None = FIRST_TIME.value(context.connection, **run)
        if time is not None:
            return time
    return None


def find_running_record(connection: Connection, pointer: Pointer) -> RunningRecord | None:
    """Return the compaction of a session that has not ended; the database allows only one."""
    place = {"tree_id": pointer.tree_id, "session_id": pointer.session_id}
    return RUNNING_RECORD.row(connection, **place)


def insert_record(
    connection: Connection, pointer: Pointer, policy: Policy | None, **values: Any
) -> int:
    """Write a record at the present head of a line; return its number."""
    number = load_newest_compaction(connection, pointer.tree_id) + 1
    columns = {
        "tree_id": pointer.tree_id,
        "compaction": number,
        "branch": pointer.branch,
        "head": pointer.head,
        "session_id": pointer.session_id,
        "policy": policy.name if policy else None,
        **values,
    }
    INSERT_RECORD.run(connection, **{**dict.fromkeys(INSERT_RECORD.columns), **columns})
    return number


def end_record(connection: Connection, pointer: Pointer, number: int, **values: Any) -> int:
    """End a running record at the present head of a line, where it counts; return its number.

    The number is a new one if the tree got branches since the compaction began: they know the
    records up to the newest of that time, and none that counted only later.
    """
    old = RUNNING_VALUES.one(connection, tree_id=pointer.tree_id, number=number)
    record = dict(zip(_SEALED_NAMES, old, strict=True))
    ended = number
    if BRANCHED_SINCE.row(connection, tree_id=pointer.tree_id, number=number):
        ended = load_newest_compaction(connection, pointer.tree_id) + 1
    record |= {"branch": pointer.branch, "head": pointer.head, **values, "compaction": ended}
    record[SEAL_COLUMN] = compute_seal(_SEALED_NAMES, (record[name] for name in _SEALED_NAMES))
    changed = {name: record[name] for name in _END_COLUMNS}
    END_RECORD.run(connection, tree=pointer.tree_id, number=number, **changed)
    return ended


def insert_summary(
    context: ViewContext,
    part: PlannedPart,
    summary: Summary,
    *,
    text: str,
    tokens: int,
    moment: int,
) -> int:
    """Write the summary of a hidden part; return its number.

    Its range includes those of the summaries that it replaces.
    """
    tree_id = context.pointer.tree_id
    number = int(NEWEST_SUMMARY.value(context.connection, tree_id=tree_id) or 0) + 1
    first, supersedes = part.plan.first, None
    if part.previous:
        first = min(first, part.previous[0].first)
        supersedes = part.previous[-1].number
    INSERT_SUMMARY.run(
        context.connection,
        tree_id=tree_id,
        summary=number,
        branch=context.pointer.branch,
        tokens=tokens,
        digest=part.source.digest,
        created_at=moment,
        body=text,
        facts=part.facts or None,
        names=part.names,
        first=first,
        last=part.plan.last,
        supersedes=supersedes,
        model=summary.model,
        prompt_version=summary.prompt_version,
        title=summary.title,
        notice=summary.notice,
        key_actions=encode([action._asdict() for action in summary.key_actions]),
        file_changes=encode([change._asdict() for change in summary.file_changes]),
    )
    branch = context.pointer.branch
    place = search_entries.EntryPlace(tree_id, branch, part.plan.last, number)
    search_entries.write_summary_entry(context.connection, place, summary.title, text)
    return number


def load_record(connection: Connection, pointer: Pointer, number: int) -> Compaction:
    """Return a record of the line as its callers get it."""
    records = load_records(connection, pointer, pointer.head)
    (record,) = describe_records(connection, pointer, records, number)
    return record


def build_unrecorded_answer(
    pointer: Pointer,
    policy: Policy,
    *,
    outcome: Outcome,
    reason: Reason,
    error: str,
    moment: int,
) -> Compaction:
    """Return an answer without a record: there is nothing to do, or it cannot be done now."""
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
