"""The one way out: the recorded erasure of a whole session. What other sessions' lines run through stays."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, Table, bindparam, cast, delete, func, insert, literal_column, null, select, update

from . import lines
from .clock import Now, given
from .records import Erasure
from .schema import (
    BIG,
    branches,
    compaction_records,
    head_moves,
    message_facts,
    messages,
    session_ids,
    sessions,
    summaries,
    token_counts,
    tool_calls,
    tool_result_paths,
    tool_results,
    usages,
)
from .schema import (
    erasures as erasure_log,
)
from .sessions import newest_record
from .statements import Statement

_tree = bindparam("tree_id", type_=BIG)
BRANCHES = Statement(
    select(branches.c.branch, branches.c.parent_branch, branches.c.parent_position, branches.c.session_id)
    .where(branches.c.tree_id == _tree)
    .order_by(branches.c.branch.desc())
)
NEXT_ERASURE = Statement(
    select(func.coalesce(func.max(erasure_log.c.erasure), 0) + literal_column("1")).where(
        erasure_log.c.tree_id == bindparam("tree_id", type_=BIG)
    )
)
BEYOND = Statement(
    select(func.count()).where(
        messages.c.tree_id == _tree, messages.c.branch == bindparam("branch"), messages.c.seq > bindparam("kept")
    )
)
OPEN_ERASURE = Statement(insert(erasure_log))
CLOSE_ERASURE = Statement(
    update(erasure_log)
    .where(erasure_log.c.tree_id == bindparam("tree"), erasure_log.c.erasure == bindparam("number"))
    .values(finished_at=bindparam("now"))
)


def _delete_beyond(table: Table, position: str = "seq") -> Statement:
    column = table.c[position]
    return Statement(
        delete(table).where(table.c.tree_id == _tree, table.c.branch == bindparam("branch"), column > bindparam("kept"))
    )


DELETE_BEYOND = (
    _delete_beyond(token_counts),
    _delete_beyond(message_facts),
    _delete_beyond(usages),
    _delete_beyond(tool_result_paths),
    _delete_beyond(tool_results),
    _delete_beyond(tool_calls),
    _delete_beyond(messages),
    _delete_beyond(compaction_records, "head"),
)
"""Everything that hangs on a branch beyond a position, children first."""
DELETE_SUMMARIES = Statement(
    delete(summaries).where(
        summaries.c.tree_id == _tree,
        summaries.c.branch == bindparam("branch"),
        summaries.c.summary.not_in(
            select(compaction_records.c.summary).where(
                compaction_records.c.tree_id == _tree, compaction_records.c.summary.is_not(null())
            )
        ),
    )
)
"""The summaries of a branch that no record tells of any more, whatever positions they stand for."""
DELETE_SESSION = tuple(
    Statement(delete(table).where(table.c.tree_id == _tree, column == bindparam("session_id")))
    for table, column in (
        (head_moves, head_moves.c.session_id),
        (sessions, sessions.c.id),
        (session_ids, session_ids.c.id),
    )
)
DELETE_BRANCH = Statement(delete(branches).where(branches.c.tree_id == _tree, branches.c.branch == bindparam("branch")))
DISOWN_BRANCH = Statement(
    update(branches)
    .where(branches.c.tree_id == bindparam("tree"), branches.c.branch == bindparam("number"))
    .values(session_id=None)
)
LOWER_SEEN = Statement(
    update(branches)
    .where(branches.c.tree_id == bindparam("tree"), branches.c.records_seen > bindparam("newest"))
    .values(records_seen=bindparam("newest"))
)
"""No branch knows a record that there is not: the next ones get those numbers again."""
ERASURES = Statement(
    select(
        erasure_log.c.session_id,
        cast(func.sum(erasure_log.c.messages), BIG),
        cast(func.sum(erasure_log.c.kept_messages), BIG),
        func.min(erasure_log.c.finished_at),
    )
    .group_by(erasure_log.c.tree_id, erasure_log.c.erasure, erasure_log.c.session_id)
    .order_by(func.min(erasure_log.c.finished_at), erasure_log.c.session_id)
)
NOTHING = -1
"""A position before all, that of an empty line included."""


class Fate(NamedTuple):
    """What becomes of a branch that no session owns any more: its positions up to ``kept`` stay for other lines.

    It ``stays`` itself where another branch hangs on it, be it without any position.
    """

    branch: int
    first: int
    kept: int
    stays: bool


def erase(connection: Connection, session_id: str, *, now: Now = None) -> Erasure:
    """Delete a session, the messages that only it has, and all that was derived from them; record it.

    Raises SessionNotFound.
    """
    moment = given(now)
    pointer = lines.lock_tree(connection, session_id)
    fates = _fates(connection, pointer.tree_id, session_id)
    row = NEXT_ERASURE.row(connection, tree_id=pointer.tree_id)
    assert row is not None
    counts = [_count(connection, pointer.tree_id, fate) for fate in fates]
    OPEN_ERASURE.run_many(
        connection,
        [
            (pointer.tree_id, row[0], fate.branch, session_id, fate.kept, beyond, kept, moment, None)
            for fate, (beyond, kept) in zip(fates, counts, strict=True)
        ],
    )
    for statement in DELETE_SESSION:
        statement.run(connection, tree_id=pointer.tree_id, session_id=session_id)
    for fate in fates:
        _erase_branch(connection, pointer.tree_id, fate)
    LOWER_SEEN.run(connection, tree=pointer.tree_id, newest=newest_record(connection, pointer.tree_id))
    CLOSE_ERASURE.run(connection, tree=pointer.tree_id, number=row[0], now=moment)
    return Erasure(session_id, sum(beyond for beyond, _ in counts), sum(kept for _, kept in counts), purged=False)


def erasures(connection: Connection) -> list[Erasure]:
    """Return every erasure of the store, oldest first; whether its bytes were purged is no longer known: False."""
    return [
        Erasure(session_id, removed, kept, purged=False) for session_id, removed, kept, _ in ERASURES.rows(connection)
    ]


def _fates(connection: Connection, tree_id: int, session_id: str) -> list[Fate]:
    """Return what becomes of the session's branches and of those that earlier erasures left, newest first.

    A position stays if a branch of another session continues from it or from beyond it; children have higher numbers
    than their parents, so one pass from the newest sees every need before the branch that has to meet it.
    """
    needed: dict[int, int] = {}
    fates = []
    for branch, parent, parent_position, owner in BRANCHES.rows(connection, tree_id=tree_id):
        lost = owner is None or owner == session_id
        stays = branch in needed
        if lost:
            fates.append(Fate(branch, parent_position + 1, needed.setdefault(branch, parent_position), stays))
        if parent is not None and (stays or not lost):
            needed[parent] = max(needed.get(parent, 0), parent_position)
    return fates


def _count(connection: Connection, tree_id: int, fate: Fate) -> tuple[int, int]:
    """Return how many messages of a branch go and how many stay."""
    row = BEYOND.row(connection, tree_id=tree_id, branch=fate.branch, kept=fate.kept)
    assert row is not None
    return row[0], fate.kept - fate.first + 1


def _erase_branch(connection: Connection, tree_id: int, fate: Fate) -> None:
    kept = fate.kept if fate.stays else NOTHING  # what was recorded where the branch began goes with it
    for statement in DELETE_BEYOND:
        statement.run(connection, tree_id=tree_id, branch=fate.branch, kept=kept)
    DELETE_SUMMARIES.run(connection, tree_id=tree_id, branch=fate.branch)
    if fate.stays:
        DISOWN_BRANCH.run(connection, tree=tree_id, number=fate.branch)
    else:
        DELETE_BRANCH.run(connection, tree_id=tree_id, branch=fate.branch)
