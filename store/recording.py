"""The rows of compactions and their summaries: written when one begins, and once more when it ends."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, insert, literal_column, select, update

from .budget import Budget
from .compactions import Standing, history, records
from .lines import Pointer
from .messages import Message, encode
from .planning import Plan
from .policy import Policy
from .records import Compaction
from .schema import branches, compaction_records, summaries
from .sessions import newest_record
from .statements import Statement
from .summaries import Summary

_c = compaction_records
_names = [column.name for column in compaction_records.columns]
INSERT_RECORD = Statement(insert(_c).values({name: bindparam(name, type_=_c.c[name].type) for name in _names}))
RUNNING = Statement(
    select(_c.c.compaction, _c.c.lease_until).where(
        _c.c.tree_id == bindparam("tree_id"),
        _c.c.session_id == bindparam("session_id"),
        _c.c.outcome == literal_column("'running'"),
    )
)
_ENDED = (
    *("branch", "head", "outcome", "first_kept", "hidden_first", "hidden_last", "summary", "messages_before"),
    *("messages_after", "tokens_before", "tokens_after", "error", "pinned", "created_at"),
)
RUNNING_VALUES = Statement(
    select(*(_c.c[name] for name in _ENDED)).where(
        _c.c.tree_id == bindparam("tree_id"), _c.c.compaction == bindparam("number")
    )
)
END_RECORD = Statement(
    update(_c)
    .where(
        and_(
            _c.c.tree_id == bindparam("tree"),
            _c.c.compaction == bindparam("number"),
            _c.c.outcome == literal_column("'running'"),
        )
    )
    .values({name: bindparam(name, type_=_c.c[name].type) for name in ("compaction", *_ENDED)})
)
BRANCHED_SINCE = Statement(
    select(branches.c.branch)
    .where(branches.c.tree_id == bindparam("tree_id"), branches.c.records_seen >= bindparam("number"))
    .limit(literal_column("1"))
)
INSERT_SUMMARY = Statement(
    insert(summaries).values({column.name: bindparam(column.name, type_=column.type) for column in summaries.columns})
)
NEWEST_SUMMARY = Statement(
    select(summaries.c.summary)
    .where(summaries.c.tree_id == bindparam("tree_id"))
    .order_by(summaries.c.summary.desc())
    .limit(literal_column("1"))
)


class Job(NamedTuple):
    """What a summarizer is to be given, and where it belongs: ``holder`` is the branch that holds the last position.

    ``cost`` is what the view cost before, ``digest`` tells what messages the summary will be of.
    ``messages`` are None for a summarizer that reads them itself, as it comes to them.
    ``sought`` is the last position that the policy would hide if a transcript had room for everything.
    ``previous`` are the summaries that the new one takes the place of, having been given them.
    ``times`` are the first and last moment (ms) of what the summary will stand for, theirs included.
    """

    cost: Budget
    plan: Plan
    sought: int
    holder: int
    messages: list[Message] | None
    transcript: str
    digest: bytes
    previous: tuple[Standing, ...]
    facts: str
    times: tuple[int, int] | None


class Result(NamedTuple):
    """What came of a summarizer: a summary, or what stands in its place, and what went wrong."""

    summary: Summary | None
    error: str | None = None


def keep_summary(
    connection: Connection, pointer: Pointer, job: Job, summary: Summary, text: str, tokens: int, moment: int
) -> int:
    """Write a job's summary; return its number."""
    newest = NEWEST_SUMMARY.row(connection, tree_id=pointer.tree_id)
    number = int(newest[0]) + 1 if newest else 1
    INSERT_SUMMARY.run(
        connection,
        tree_id=pointer.tree_id,
        summary=number,
        branch=pointer.branch,
        first=job.previous[0].first if job.previous else job.plan.first,
        last=job.plan.last,
        supersedes=job.previous[-1].number if job.previous else None,
        tokens=tokens,
        model=summary.model,
        prompt_version=summary.prompt_version,
        digest=job.digest,
        created_at=moment,
        title=summary.title,
        key_actions=encode([action._asdict() for action in summary.key_actions]),
        file_changes=encode([change._asdict() for change in summary.file_changes]),
        body=text,
        facts=job.facts or None,
    )
    return number


def insert_record(connection: Connection, pointer: Pointer, policy: Policy | None, **values: Any) -> int:
    """Write a record where the line is now; return its number."""
    number = newest_record(connection, pointer.tree_id) + 1
    given_values = {
        "tree_id": pointer.tree_id,
        "compaction": number,
        "branch": pointer.branch,
        "head": pointer.head,
        "session_id": pointer.session_id,
        "policy": policy.name if policy else None,
        **values,
    }
    INSERT_RECORD.run(connection, **{name: given_values.get(name) for name in _names})
    return number


def end_record(connection: Connection, pointer: Pointer, number: int, **values: Any) -> int:
    """End a running record where the line is now: from here on it counts; return its number.

    It is a new one if the tree got branches since it began: they know the records up to the newest of that time, and
    none that counted only later.
    """
    old = RUNNING_VALUES.row(connection, tree_id=pointer.tree_id, number=number)
    assert old is not None
    kept = dict(zip(_ENDED, old, strict=True))
    branched = BRANCHED_SINCE.row(connection, tree_id=pointer.tree_id, number=number)
    ended = newest_record(connection, pointer.tree_id) + 1 if branched else number
    END_RECORD.run(
        connection,
        tree=pointer.tree_id,
        number=number,
        compaction=ended,
        **{**kept, "branch": pointer.branch, "head": pointer.head, **values},
    )
    return ended


def recorded(connection: Connection, pointer: Pointer, number: int) -> Compaction:
    """Return a record of the line as it is given out."""
    (found,) = history(connection, pointer, records(connection, pointer, pointer.head), number)
    return found


def answer(pointer: Pointer, policy: Policy, outcome: str, error: str, moment: int) -> Compaction:
    """Return what is not recorded: that there is nothing to do, or that it cannot be done now."""
    return Compaction(
        None,
        "summary",
        outcome,
        "manual",
        policy.name,
        None,
        None,
        (),
        None,
        None,
        None,
        None,
        None,
        None,
        error,
        pointer.head,
        moment,
        session_id=pointer.session_id,
    )
