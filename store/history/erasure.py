"""The only deletion of messages: the recorded erasure of a session, or of branches that it left.

An erasure begins in one short transaction. It records how much of each branch stays, deletes the
session and everything recorded about it, and disowns its branches; from then on nobody can reach
its messages. These are erased afterwards, slice by slice (`erasure_batches`). The open lines of the
record say how much is left to do, and make the database allow it.

Messages on the lines of other sessions stay: the plan of an erasure says, for each branch, which of
its positions they still need (`plan_branch_erasures`). `branch_erasure` erases what a session's own
line has left, by the same plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import (
    Connection,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)

from ..clock import Now, require_moment
from ..database import (
    BIG_INTEGER,
    COPIES,
    CopyRow,
    Insertion,
    Statement,
    branches,
    compaction_records,
    copies,
    draft_pieces,
    drafts,
    head_moves,
    invalidate_at_end,
    messages,
    redactions,
    running_bills,
    session_ids,
    session_keys,
    sessions,
)
from ..database import erasures as erasure_log
from ..records import Erasure
from . import lines
from .imported_files import FILE_OF_SESSION, forget_file_states
from .kept_usages import SESSION_SUMS, keep_usages
from .lines import Pointer
from .message_notes import DELETE_UNREACHABLE_NOTES
from .request_rows import delete_session_requests
from .sessions import check_owner

BRANCH_OWNERS = Statement(
    select(
        branches.c.branch,
        branches.c.parent_branch,
        branches.c.parent_position,
        branches.c.session_id,
    )
    .where(branches.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER))
    .order_by(branches.c.branch.desc())
)
COSTS = ("keep", "erase")
"""Whether the sums of a session's usages outlive it."""
NO_POSITION = -1
"""A position before all others, including that of an empty line."""


class BranchErasure(NamedTuple):
    """The effect of an erasure on a branch that no session owns any more.

    Its positions from ``first`` up to ``kept`` stay for other lines. The branch itself ``stays`` if
    another branch is attached to it, even without any position.
    """

    branch: int
    first: int
    kept: int
    stays: bool

    @property
    def kept_messages(self) -> int:
        """The number of its messages that stay."""
        return self.kept - self.first + 1

    @property
    def records_kept(self) -> int:
        """The last position whose records stay."""
        return self.kept if self.stays else NO_POSITION


def plan_branch_erasures(
    connection: Connection,
    tree_id: int,
    session_ids: Collection[str],
    line: Mapping[int, int] = MappingProxyType({}),
) -> list[BranchErasure]:
    """Return the plan for the branches of sessions and for those left by earlier erasures.

    The newest branch comes first. A position stays if a branch of another session continues from it
    or from a later one; children have higher numbers than their parents, so a single pass from the
    newest branch knows all needs of a branch before it reaches it. ``line`` has the last position
    on each branch of a line that stays too.
    """
    needed = dict(line)
    found = []
    for branch, parent, parent_position, owner in BRANCH_OWNERS.rows(connection, tree_id=tree_id):
        lost = owner is None or owner in session_ids
        stays = branch in needed
        if lost:
            kept = needed.setdefault(branch, parent_position)
            first = line.get(branch, parent_position) + 1
            found.append(BranchErasure(branch, first, kept, stays))
        if parent is not None and (stays or not lost):
            needed[parent] = max(needed.get(parent, 0), parent_position)
    return found


_erasure_tree_id = bindparam("tree_id", type_=BIG_INTEGER)
_open_erasure_condition = erasure_log.c.finished_at.is_(null())
_erasure_tree_condition = erasure_log.c.tree_id == _erasure_tree_id

NEXT_ERASURE = Statement(
    select(func.coalesce(func.max(erasure_log.c.erasure), 0) + literal_column("1")).where(
        _erasure_tree_condition
    )
)
NEWEST_COPY = Statement(select(func.coalesce(func.max(copies.c.copy), 0)))
"""The number of the last copy begun: copies up to it may hold rows that are erased now."""
_last_position_query = select(func.max(messages.c.seq)).where(
    messages.c.tree_id == _erasure_tree_id,
    messages.c.branch == bindparam("branch"),
)
_kept_position_query = select(func.min(erasure_log.c.kept)).where(
    _erasure_tree_condition,
    erasure_log.c.branch == bindparam("branch"),
    _open_erasure_condition,
)
ERASABLE_END = Statement(
    select(_last_position_query.scalar_subquery(), _kept_position_query.scalar_subquery())
)
"""The last position of a branch, and the position up to which open erasures leave it."""
_known_copies = select(*(copies.c[name] for name in CopyRow._fields))
_stale_copy_condition = or_(
    *(
        copies.c.copy <= select(func.max(log.c.newest_copy)).scalar_subquery()
        for log in (erasure_log, redactions)
    )
)
STALE_COPIES = Statement(
    _known_copies.where(_stale_copy_condition).order_by(copies.c.copy),
    CopyRow,
)
"""The copies begun before the end of some erasure or redaction, which may hold removed text."""
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
_SESSION_ID_COLUMNS = (
    (drafts, drafts.c.session_id),
    (head_moves, head_moves.c.session_id),
    (running_bills, running_bills.c.session_id),
    (session_keys, session_keys.c.session_id),
    (sessions, sessions.c.id),
    (session_ids, session_ids.c.id),
)
_drafts_of_session = select(drafts.c.draft).where(
    drafts.c.tree_id == _erasure_tree_id,
    drafts.c.session_id == bindparam("session_id"),
)
_pieces_of_session = delete(draft_pieces).where(
    draft_pieces.c.tree_id == _erasure_tree_id,
    draft_pieces.c.draft.in_(_drafts_of_session),
)
DELETE_SESSION = (
    Statement(_pieces_of_session),
    *(
        Statement(
            delete(table).where(
                table.c.tree_id == _erasure_tree_id, name == bindparam("session_id")
            )
        )
        for table, name in _SESSION_ID_COLUMNS
    ),
)
DELETE_RECORDS = Statement(
    delete(compaction_records).where(
        compaction_records.c.tree_id == _erasure_tree_id,
        compaction_records.c.branch == bindparam("branch"),
        compaction_records.c.head > bindparam("kept"),
    ),
    on_server=select(
        func.erase_compaction_records(
            _erasure_tree_id,
            bindparam("branch", type_=BIG_INTEGER),
            bindparam("kept", type_=BIG_INTEGER),
        )
    ),
)
DELETE_REDACTIONS = Statement(
    delete(redactions).where(
        redactions.c.tree_id == _erasure_tree_id,
        redactions.c.branch == bindparam("branch"),
        redactions.c.seq > bindparam("kept"),
    )
)
"""Deleted when the erasure is numbered, not later with their messages: see `ChangeCounts`."""
_branches_of_tree = update(branches).where(branches.c.tree_id == bindparam("tree"))
DISOWN_BRANCHES = Statement(
    _branches_of_tree.where(branches.c.session_id == bindparam("owner")).values(session_id=None)
)
_newest_record_number = (
    select(func.coalesce(func.max(compaction_records.c.compaction), literal_column("0")))
    .where(compaction_records.c.tree_id == bindparam("tree"))
    .scalar_subquery()
)
LOWER_SEEN_RECORDS = Statement(
    _branches_of_tree.where(branches.c.records_seen > _newest_record_number).values(
        records_seen=_newest_record_number
    )
)
"""Branches refer to no missing records, since the next records get those numbers again."""
_moves_of_tree = update(head_moves).where(head_moves.c.tree_id == bindparam("tree"))
LOWER_SOURCE_RECORDS = Statement(
    _moves_of_tree.where(head_moves.c.source_record > _newest_record_number).values(
        source_record=_newest_record_number
    )
)
"""The same for the records of its source that a fork may see."""
_unpurged_erasures = update(erasure_log).where(
    erasure_log.c.purged_at.is_(null()),
    erasure_log.c.finished_at.is_not(null()),
)
MARK_ERASURES_PURGED = Statement(_unpurged_erasures.values(purged_at=bindparam("now")))
"""One purge is enough for all erasures of a file, whatever their trees."""


class ErasureRow(NamedTuple):
    """An erasure as it is recorded, all its branches together."""

    session_id: str
    removed: int
    kept: int
    newest_copy: int
    unfinished: int
    unpurged: int


_erasure_columns = erasure_log.c
_branch_count = func.count()
_ERASURE_ROWS = (
    select(
        _erasure_columns.session_id,
        cast(func.sum(_erasure_columns.messages), BIG_INTEGER).label("removed"),
        cast(func.sum(_erasure_columns.kept_messages), BIG_INTEGER).label("kept"),
        func.max(_erasure_columns.newest_copy).label("newest_copy"),
        (_branch_count - func.count(_erasure_columns.finished_at)).label("unfinished"),
        (_branch_count - func.count(_erasure_columns.purged_at)).label("unpurged"),
    )
    .group_by(_erasure_columns.tree_id, _erasure_columns.erasure, _erasure_columns.session_id)
    .order_by(func.min(_erasure_columns.started_at), _erasure_columns.session_id)
)
ERASURES = Statement(_ERASURE_ROWS, row=ErasureRow)
ERASURE = Statement(
    _ERASURE_ROWS.where(_erasure_tree_condition, _erasure_columns.erasure == bindparam("erasure")),
    row=ErasureRow,
)


class OpenErasure(NamedTuple):
    """An erasure that is recorded as begun, with its effect on each branch.

    ``removed`` has the number of erased messages of each branch.
    """

    tree_id: int
    number: int
    session_id: str
    plan: list[BranchErasure]
    removed: list[int]

    @property
    def unfinished(self) -> Erasure:
        """The erasure as reported when its progress is not known."""
        kept = sum(effect.kept_messages for effect in self.plan)
        return Erasure(self.session_id, sum(self.removed), kept, purged=False, finished=False)


def begin_erasure(
    connection: Connection,
    session_id: str,
    *,
    expected: str | None = None,
    owner: str | None = None,
    costs: str = "keep",
    now: Now = None,
) -> OpenErasure:
    """Delete a session, and record which of its messages will be erased.

    Returns the erasure as begun. Raises SessionNotFound, and Conflict if the session's revision is
    not the expected one. With an ``owner``, the sessions of others are not found. ``costs`` is one
    of `COSTS`.
    """
    pointer = lock_for_erasure(connection, session_id, expected, owner)
    tree_id = pointer.tree_id
    NEXT_ERASURE.send(connection, tree_id=tree_id)
    NEWEST_COPY.send(connection)
    for statement in (SESSION_SUMS, FILE_OF_SESSION):
        statement.send(connection, tree_id=tree_id, session_id=session_id)
    planned = plan_erasures(connection, tree_id, [session_id])
    opened = record_erasure(connection, pointer, planned, now)
    if costs == "keep":
        keep_usages(connection, tree_id, opened.number, session_id)
    _delete_session(connection, opened)
    delete_erased_records(connection, opened)
    return opened


def lock_for_erasure(
    connection: Connection, session_id: str, expected: str | None, owner: str | None
) -> Pointer:
    """Return the pointer of a session whose tree is locked for an erasure.

    Raises SessionNotFound, also for one of another than the ``owner`` (None: any), and Conflict.
    """
    if owner is not None:
        lines.lock_tree(connection, session_id)
        check_owner(connection, session_id, owner)
    return lines.lock_tree(connection, session_id, expected)


def record_erasure(
    connection: Connection,
    pointer: Pointer,
    planned: list[tuple[BranchErasure, int]],
    now: Now = None,
) -> OpenErasure:
    """Record an erasure by its plan, so that the database allows it."""
    tree_id, session_id = pointer.tree_id, pointer.session_id
    found, removed = [effect for effect, _ in planned], [gone for _, gone in planned]
    number = NEXT_ERASURE.value(connection, tree_id=tree_id)
    moment = require_moment(now)
    newest = NEWEST_COPY.value(connection)
    rows = [
        (
            *(tree_id, number, effect.branch, session_id),
            *(effect.kept, gone, effect.kept_messages, moment, newest),
        )
        for effect, gone in planned
    ]
    OPEN_ERASURE.insert_many(connection, rows)
    return OpenErasure(tree_id, number, session_id, found, removed)


def delete_erased_records(connection: Connection, opened: OpenErasure) -> None:
    """Delete the records of an erasure's messages, also from what branches have seen of them."""
    tree_id = opened.tree_id
    for effect in opened.plan:
        of = {"tree_id": tree_id, "branch": effect.branch}
        DELETE_RECORDS.run(connection, **of, kept=effect.records_kept)
        DELETE_REDACTIONS.run(connection, **of, kept=effect.kept)
    for statement in (LOWER_SEEN_RECORDS, LOWER_SOURCE_RECORDS):
        statement.run(connection, tree=tree_id)
    invalidate_at_end(connection, tree_id)


def plan_erasures(
    connection: Connection,
    tree_id: int,
    session_ids: Collection[str],
    line: Mapping[int, int] = MappingProxyType({}),
) -> list[tuple[BranchErasure, int]]:
    """Return the plan of branches as above, each with the number of messages that it erases."""
    found = plan_branch_erasures(connection, tree_id, session_ids, line)
    for effect in found:
        ERASABLE_END.send(connection, tree_id=tree_id, branch=effect.branch)
    return [(effect, _count_removed(connection, tree_id, effect)) for effect in found]


def _count_removed(connection: Connection, tree_id: int, effect: BranchErasure) -> int:
    """Return the number of erased messages of a branch, without those of earlier erasures."""
    last, cut = ERASABLE_END.one(connection, tree_id=tree_id, branch=effect.branch)
    ends = [each for each in (last, cut) if each is not None]
    return max(0, min(ends) - effect.kept) if last else 0


def _delete_session(connection: Connection, opened: OpenErasure) -> None:
    """Delete all rows that name the session."""
    tree_id, session_id = opened.tree_id, opened.session_id
    forget_file_states(connection, tree_id, session_id)
    delete_session_requests(connection, tree_id, session_id)
    for statement in (*DELETE_SESSION, DELETE_UNREACHABLE_NOTES):
        statement.run(connection, tree_id=tree_id, session_id=session_id)
    DISOWN_BRANCHES.run(connection, tree=tree_id, owner=session_id)


def list_erasures(connection: Connection) -> list[Erasure]:
    """Return every erasure of the store, oldest first."""
    known = COPIES.rows(connection)
    return [_decode_erasure(row, known) for row in ERASURES.rows(connection)]


def load_erasures(connection: Connection, begun: list[OpenErasure]) -> list[Erasure]:
    """Return erasures as they are recorded now."""
    named = [{"tree_id": each.tree_id, "erasure": each.number} for each in begun]
    for each in named:
        ERASURE.send(connection, **each)
    known = COPIES.rows(connection)
    return [_decode_erasure(ERASURE.one(connection, **each), known) for each in named]


def _decode_erasure(row: ErasureRow, known: list[CopyRow]) -> Erasure:
    """Return a recorded erasure, with the copies that were begun before its end."""
    copies = tuple(copy.path for copy in known if copy.copy <= row.newest_copy)
    finished = row.unfinished == 0
    purged = row.unpurged == 0
    return Erasure(row.session_id, row.removed, row.kept, purged, copies, finished)


def mark_erasures_purged(connection: Connection, *, now: Now = None) -> None:
    """Record that the files hold no bytes any more of the rows erased until now."""
    MARK_ERASURES_PURGED.run(connection, now=require_moment(now))
