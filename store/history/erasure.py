"""The one way out: the recorded erasure of a whole session.

What other sessions' lines run through stays.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    null,
    select,
    update,
)

from ..clock import Now, given
from ..database import (
    BIG,
    COPIES,
    CopyRow,
    Insertion,
    Row,
    Statement,
    branches,
    compaction_records,
    copies,
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
from ..database import erasures as erasure_log
from ..records import Erasure
from . import lines
from .sessions import newest_record

_tree = bindparam("tree_id", type_=BIG)


def _of_branch(table: Table) -> ColumnElement[bool]:
    return and_(table.c.tree_id == _tree, table.c.branch == bindparam("branch"))


def _of_number(table: Table, column: ColumnElement[int]) -> ColumnElement[bool]:
    """Build the condition for the row of a tree that has a number, for what changes rows."""
    return and_(table.c.tree_id == bindparam("tree"), column == bindparam("number"))


BRANCHES = Statement(
    select(
        branches.c.branch,
        branches.c.parent_branch,
        branches.c.parent_position,
        branches.c.session_id,
    )
    .where(branches.c.tree_id == _tree)
    .order_by(branches.c.branch.desc())
)
NEXT_ERASURE = Statement(
    select(func.coalesce(func.max(erasure_log.c.erasure), 0) + literal_column("1")).where(
        erasure_log.c.tree_id == bindparam("tree_id", type_=BIG)
    )
)
NEWEST_COPY = Statement(select(func.coalesce(func.max(copies.c.copy), 0)))
"""The number of the last copy that was begun: up to it, copies may hold what is erased now."""
BEYOND = Statement(
    select(func.count()).where(_of_branch(messages), messages.c.seq > bindparam("kept"))
)
HOLDING = Statement(
    select(copies)
    .where(copies.c.copy <= select(func.max(erasure_log.c.newest_copy)).scalar_subquery())
    .order_by(copies.c.copy),
    CopyRow,
)
"""The copies that were begun before some erasure, and so may hold what it erased."""
OPEN_ERASURE = Insertion(
    erasure_log,
    "tree_id",
    "erasure",
    "branch",
    "session_id",
    "kept",
    "messages",
    "kept_messages",
    "started_at",
    "newest_copy",
)
CLOSE_ERASURE = Statement(
    update(erasure_log)
    .where(_of_number(erasure_log, erasure_log.c.erasure))
    .values(finished_at=bindparam("now"))
)


def _delete_beyond(table: Table, position: str = "seq") -> Statement[Row]:
    beyond = table.c[position] > bindparam("kept")
    return Statement(delete(table).where(_of_branch(table), beyond))


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
_still_told = select(compaction_records.c.summary).where(
    compaction_records.c.tree_id == _tree, compaction_records.c.summary.is_not(null())
)
DELETE_SUMMARIES = Statement(
    delete(summaries).where(_of_branch(summaries), summaries.c.summary.not_in(_still_told))
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
DELETE_BRANCH = Statement(delete(branches).where(_of_branch(branches)))
DISOWN_BRANCH = Statement(
    update(branches).where(_of_number(branches, branches.c.branch)).values(session_id=None)
)
LOWER_SEEN = Statement(
    update(branches)
    .where(branches.c.tree_id == bindparam("tree"), branches.c.records_seen > bindparam("newest"))
    .values(records_seen=bindparam("newest"))
)
"""No branch knows a record that there is not: the next ones get those numbers again."""
NOTE_PURGED = Statement(
    update(erasure_log)
    .where(erasure_log.c.purged_at.is_(null()), erasure_log.c.finished_at.is_not(null()))
    .values(purged_at=bindparam("now"))
)
"""One purge is enough for all erasures of a file, whatever their trees."""


class Recorded(NamedTuple):
    """An erasure as it is recorded, all its branches together."""

    session_id: str
    removed: int
    kept: int
    purged_at: int | None
    newest_copy: int


ERASURES = Statement(
    select(
        erasure_log.c.session_id,
        cast(func.sum(erasure_log.c.messages), BIG).label("removed"),
        cast(func.sum(erasure_log.c.kept_messages), BIG).label("kept"),
        func.min(erasure_log.c.purged_at).label("purged_at"),
        func.max(erasure_log.c.newest_copy).label("newest_copy"),
    )
    .group_by(erasure_log.c.tree_id, erasure_log.c.erasure, erasure_log.c.session_id)
    .order_by(func.min(erasure_log.c.finished_at), erasure_log.c.session_id),
    row=Recorded,
)
NOTHING = -1
"""A position before all, that of an empty line included."""


class Fate(NamedTuple):
    """What becomes of a branch that no session owns any more.

    Its positions up to ``kept`` stay for other lines. It ``stays`` itself where another branch
    hangs on it, be it without any position.
    """

    branch: int
    first: int
    kept: int
    stays: bool

    @property
    def kept_messages(self) -> int:
        """How many of its messages stay."""
        return self.kept - self.first + 1


class Opened(NamedTuple):
    """An erasure that is recorded as begun, and what it does to each branch.

    ``removed`` says how many messages of each branch go.
    """

    tree_id: int
    number: int
    session_id: str
    moment: int
    fates: list[Fate]
    removed: list[int]


def erase(connection: Connection, session_id: str, *, now: Now = None) -> Erasure:
    """Delete a session, the messages that only it has, and all that was derived from them.

    Returns the erasure as it is recorded. Raises SessionNotFound.
    """
    opened = _opened(connection, session_id, given(now))
    _record(connection, opened)
    for statement in DELETE_SESSION:
        statement.run(connection, tree_id=opened.tree_id, session_id=session_id)
    for fate in opened.fates:
        _erase_branch(connection, opened.tree_id, fate)
    _lower_seen(connection, opened.tree_id)
    CLOSE_ERASURE.run(connection, tree=opened.tree_id, number=opened.number, now=opened.moment)
    return _told(connection, opened)


def _opened(connection: Connection, session_id: str, moment: int) -> Opened:
    """Return what an erasure of a session is about to do."""
    tree_id = lines.lock_tree(connection, session_id).tree_id
    fates = _fates(connection, tree_id, session_id)
    number = NEXT_ERASURE.value(connection, tree_id=tree_id)
    removed = [_removed(connection, tree_id, fate) for fate in fates]
    return Opened(tree_id, number, session_id, moment, fates, removed)


def _record(connection: Connection, opened: Opened) -> None:
    """Write down that an erasure has begun, a row for each branch."""
    tree_id, number, session_id, moment, fates, removed = opened
    newest = NEWEST_COPY.value(connection)
    rows: list[Row] = []
    for fate, gone in zip(fates, removed, strict=True):
        counts = (fate.kept, gone, fate.kept_messages)
        rows.append((tree_id, number, fate.branch, session_id, *counts, moment, newest))
    OPEN_ERASURE.insert_many(connection, rows)


def _lower_seen(connection: Connection, tree_id: int) -> None:
    newest = newest_record(connection, tree_id)
    LOWER_SEEN.run(connection, tree=tree_id, newest=newest)


def _told(connection: Connection, opened: Opened) -> Erasure:
    """Return an erasure as it is told to who asked for it."""
    kept = sum(fate.kept_messages for fate in opened.fates)
    copies = tuple(row.path for row in COPIES.rows(connection))
    removed = sum(opened.removed)
    return Erasure(opened.session_id, removed, kept, purged=False, copies=copies)


def erasures(connection: Connection) -> list[Erasure]:
    """Return every erasure of the store, oldest first."""
    known = COPIES.rows(connection)
    return [_erasure(row, known) for row in ERASURES.rows(connection)]


def _erasure(row: Recorded, known: list[CopyRow]) -> Erasure:
    """Return a recorded erasure, with the copies that were begun before it."""
    copies = tuple(copy.path for copy in known if copy.copy <= row.newest_copy)
    purged = row.purged_at is not None
    return Erasure(row.session_id, row.removed, row.kept, purged=purged, copies=copies)


def note_purged(connection: Connection, *, now: Now = None) -> None:
    """Note that the files hold no byte any more of what was erased until now."""
    NOTE_PURGED.run(connection, now=given(now))


def _fates(connection: Connection, tree_id: int, session_id: str) -> list[Fate]:
    """Return what becomes of the session's branches and of those that earlier erasures left.

    The newest branch comes first. A position stays if a branch of another session continues from it
    or from beyond it; children have higher numbers than their parents, so one pass from the newest
    sees every need before the branch that has to meet it.
    """
    needed: dict[int, int] = {}
    fates = []
    for branch, parent, parent_position, owner in BRANCHES.rows(connection, tree_id=tree_id):
        lost = owner is None or owner == session_id
        stays = branch in needed
        if lost:
            fates.append(
                Fate(branch, parent_position + 1, needed.setdefault(branch, parent_position), stays)
            )
        if parent is not None and (stays or not lost):
            needed[parent] = max(needed.get(parent, 0), parent_position)
    return fates


def _removed(connection: Connection, tree_id: int, fate: Fate) -> int:
    """Return how many messages of a branch go."""
    gone: int = BEYOND.value(connection, tree_id=tree_id, branch=fate.branch, kept=fate.kept)
    return gone


def _erase_branch(connection: Connection, tree_id: int, fate: Fate) -> None:
    """Erase a branch beyond what stays of it.

    Where nothing does, what was recorded where it began goes with it.
    """
    kept = fate.kept if fate.stays else NOTHING
    for statement in DELETE_BEYOND:
        statement.run(connection, tree_id=tree_id, branch=fate.branch, kept=kept)
    DELETE_SUMMARIES.run(connection, tree_id=tree_id, branch=fate.branch)
    if fate.stays:
        DISOWN_BRANCH.run(connection, tree=tree_id, number=fate.branch)
    else:
        DELETE_BRANCH.run(connection, tree_id=tree_id, branch=fate.branch)
