"""The one way out: the recorded erasure of a whole session.

An erasure begins in one short transaction. It records for each branch what stays of it, deletes the
session with all that was recorded about it, and takes its branches from it; from then on nobody can
reach its messages. These are erased behind it, slice by slice (`slices`). The lines of the record
that are still open say what is left to do, and let the database itself allow it.

What other sessions' lines run through stays.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
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
    messages,
    session_ids,
    sessions,
)
from ..database import erasures as erasure_log
from ..records import Erasure
from . import lines
from .fates import Fate, fates
from .sessions import newest_record

_tree = bindparam("tree_id", type_=BIG)

NEXT_ERASURE = Statement(
    select(func.coalesce(func.max(erasure_log.c.erasure), 0) + literal_column("1")).where(
        erasure_log.c.tree_id == _tree
    )
)
NEWEST_COPY = Statement(select(func.coalesce(func.max(copies.c.copy), 0)))
"""The number of the last copy that was begun: up to it, copies may hold what is erased now."""
END = Statement(
    select(
        select(func.max(messages.c.seq))
        .where(messages.c.tree_id == _tree, messages.c.branch == bindparam("branch"))
        .scalar_subquery(),
        select(func.min(erasure_log.c.kept))
        .where(
            erasure_log.c.tree_id == _tree,
            erasure_log.c.branch == bindparam("branch"),
            erasure_log.c.finished_at.is_(null()),
        )
        .scalar_subquery(),
    )
)
"""The last position of a branch, and up to where an erasure that has not ended leaves it."""
HOLDING = Statement(
    select(copies)
    .where(copies.c.copy <= select(func.max(erasure_log.c.newest_copy)).scalar_subquery())
    .order_by(copies.c.copy),
    CopyRow,
)
"""The copies that were begun before some erasure had ended, and so may hold what it erased."""
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
DELETE_SESSION = tuple(
    Statement(delete(table).where(table.c.tree_id == _tree, column == bindparam("session_id")))
    for table, column in (
        (head_moves, head_moves.c.session_id),
        (sessions, sessions.c.id),
        (session_ids, session_ids.c.id),
    )
)
DELETE_RECORDS = Statement(
    delete(compaction_records).where(
        compaction_records.c.tree_id == _tree,
        compaction_records.c.branch == bindparam("branch"),
        compaction_records.c.head > bindparam("kept"),
    )
)
DISOWN_BRANCHES = Statement(
    update(branches)
    .where(branches.c.tree_id == bindparam("tree"), branches.c.session_id == bindparam("owner"))
    .values(session_id=None)
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
    newest_copy: int
    unfinished: int
    unpurged: int


def _recorded(*of: ColumnElement[bool]) -> Select[Recorded]:
    each = erasure_log.c
    lines = func.count()
    return (
        select(
            each.session_id,
            cast(func.sum(each.messages), BIG).label("removed"),
            cast(func.sum(each.kept_messages), BIG).label("kept"),
            func.max(each.newest_copy).label("newest_copy"),
            (lines - func.count(each.finished_at)).label("unfinished"),
            (lines - func.count(each.purged_at)).label("unpurged"),
        )
        .where(*of)
        .group_by(each.tree_id, each.erasure, each.session_id)
        .order_by(func.min(each.started_at), each.session_id)
    )


ERASURES = Statement(_recorded(), row=Recorded)
ERASURE = Statement(
    _recorded(erasure_log.c.tree_id == _tree, erasure_log.c.erasure == bindparam("erasure")),
    row=Recorded,
)


class Opened(NamedTuple):
    """An erasure that is recorded as begun, and what it does to each branch.

    ``removed`` says how many messages of each branch go.
    """

    tree_id: int
    number: int
    session_id: str
    fates: list[Fate]
    removed: list[int]

    @property
    def unfinished(self) -> Erasure:
        """What is told of it where nobody knows how far it has come."""
        kept = sum(fate.kept_messages for fate in self.fates)
        return Erasure(self.session_id, sum(self.removed), kept, purged=False, finished=False)


def begin(connection: Connection, session_id: str, *, now: Now = None) -> Opened:
    """Delete a session, and record what of its messages is to be erased.

    Returns the erasure as begun. Raises SessionNotFound.
    """
    tree_id = lines.lock_tree(connection, session_id).tree_id
    found = fates(connection, tree_id, session_id)
    removed = [_removed(connection, tree_id, fate) for fate in found]
    number = NEXT_ERASURE.value(connection, tree_id=tree_id)
    opened = Opened(tree_id, number, session_id, found, removed)
    _record(connection, opened, given(now))
    _delete_session(connection, opened)
    return opened


def _removed(connection: Connection, tree_id: int, fate: Fate) -> int:
    """Return how many messages of a branch go, but for those that an earlier erasure counts."""
    end, cut = END.one(connection, tree_id=tree_id, branch=fate.branch)
    last: int = min(end or 0, end or 0 if cut is None else cut)
    return max(0, last - fate.kept)


def _record(connection: Connection, opened: Opened, moment: int) -> None:
    """Write down that an erasure has begun, a row for each branch."""
    newest = NEWEST_COPY.value(connection)
    rows: list[Row] = []
    for fate, gone in zip(opened.fates, opened.removed, strict=True):
        place = (opened.tree_id, opened.number, fate.branch, opened.session_id)
        rows.append((*place, fate.kept, gone, fate.kept_messages, moment, newest))
    OPEN_ERASURE.insert_many(connection, rows)


def _delete_session(connection: Connection, opened: Opened) -> None:
    """Delete all that names the session, and what was recorded beyond what stays of its line."""
    tree_id, session_id = opened.tree_id, opened.session_id
    for statement in DELETE_SESSION:
        statement.run(connection, tree_id=tree_id, session_id=session_id)
    DISOWN_BRANCHES.run(connection, tree=tree_id, owner=session_id)
    for fate in opened.fates:
        DELETE_RECORDS.run(connection, tree_id=tree_id, branch=fate.branch, kept=fate.told_to)
    LOWER_SEEN.run(connection, tree=tree_id, newest=newest_record(connection, tree_id))


def erasures(connection: Connection) -> list[Erasure]:
    """Return every erasure of the store, oldest first."""
    known = COPIES.rows(connection)
    return [_erasure(row, known) for row in ERASURES.rows(connection)]


def told(connection: Connection, opened: Opened) -> Erasure:
    """Return an erasure as it is recorded now."""
    row = ERASURE.one(connection, tree_id=opened.tree_id, erasure=opened.number)
    return _erasure(row, COPIES.rows(connection))


def _erasure(row: Recorded, known: list[CopyRow]) -> Erasure:
    """Return a recorded erasure, with the copies that were begun before it had ended."""
    copies = tuple(copy.path for copy in known if copy.copy <= row.newest_copy)
    finished, purged = not row.unfinished, not row.unpurged
    counts = (row.removed, row.kept)
    return Erasure(row.session_id, *counts, purged=purged, copies=copies, finished=finished)


def note_purged(connection: Connection, *, now: Now = None) -> None:
    """Note that the files hold no byte any more of what was erased until now."""
    NOTE_PURGED.run(connection, now=given(now))
