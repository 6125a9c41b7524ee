"""The remaining work of erasures, done in slices between other writers.

A slice takes some milliseconds; then waiting writers take their turns (`WritePace`). Erasing begins
at the end of the newest branch of the erasure and goes backwards: the remaining rows are always
contiguous, and no branch is deleted before its child branches. The end of a branch and of its line
in the record are one transaction. So the record is correct even if a process is killed; the next
opening, deletion or purge continues the work.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    null,
    select,
    update,
)

from ..clock import Now, require_moment
from ..database import (
    BIG_INTEGER,
    Database,
    Statement,
    ancestors,
    branches,
    compaction_records,
    copies,
    message_attachments,
    message_facts,
    messages,
    notes,
    search_rows,
    summaries,
    token_counts,
    tool_calls,
    tool_result_paths,
    tool_results,
    usages,
)
from ..database import erasures as erasure_log
from ..errors import (
    InvalidValue,
    SessionNotFound,
    StoreBusy,
    StoreError,
    StoreFull,
    check_choice,
)
from ..records import Erasure
from . import erasure, lines
from .attachments import DELETE_UNUSED_ATTACHMENTS, delete_unused_attachments
from .erasure import NO_POSITION, OpenErasure
from .erasure_log import OPEN_ERASURE_JOIN, list_open_trees
from .lines import NO_LIMIT
from .sessions import check_owner
from .write_pace import WritePace

SLICE_SECONDS = 0.005
"""Seconds of erasing in the first slice of a session; its commit takes about as long."""
GROUP_SECONDS = 0.015
"""Seconds of erasing in the first transaction of a group of sessions, and the most in any."""
STEP_POSITIONS = 16
"""Positions that are erased between two looks at the clock."""
OPENING_SECONDS = 0.25
"""Seconds that an opening spends on the unfinished erasures of others."""

NO_ROOM_MESSAGE = (
    "the disk is full, and even erasing needs a little room for the write-ahead log; nothing was"
    " erased: make room and try again; copies that hold what was erased before are removed by"
    " `purge(backups=True)`"
)

MISSING = ("refuse", "ignore")
"""What becomes of ids that no session has."""
BeginErasure: TypeAlias = Callable[..., OpenErasure]
"""The function that begins the erasure of a session, as `erasure.begin_erasure` does."""
BeginGroupErasure: TypeAlias = Callable[[Connection], OpenErasure | None]
"""The function that begins the erasure of a session of a group, unless the session is to stay."""
TransactionT = TypeVar("TransactionT")
_batch_tree_id = bindparam("tree_id", type_=BIG_INTEGER)


class ErasurePart(NamedTuple):
    """An open line of the record: the position up to which the branch stays, and its last position.

    ``last`` is None if the branch has no message of its own.
    """

    erasure: int
    branch: int
    kept: int
    last: int | None
    is_needed: bool

    @property
    def has_more(self) -> bool:
        """Whether there are messages to erase."""
        return self.last is not None and self.last > self.kept

    @property
    def next_end(self) -> int:
        """Where the branch ends after the next step; after the last one nothing needless stays."""
        end = (self.last or 0) - STEP_POSITIONS
        if end > self.kept:
            return end
        return self.kept if self.is_needed else NO_POSITION


_child_branches = branches.alias("child")
OPEN_PART = Statement(
    select(
        erasure_log.c.erasure,
        erasure_log.c.branch,
        erasure_log.c.kept,
        select(func.max(messages.c.seq))
        .where(messages.c.tree_id == _batch_tree_id, messages.c.branch == erasure_log.c.branch)
        .scalar_subquery()
        .label("last"),
        exists()
        .where(
            _child_branches.c.tree_id == _batch_tree_id,
            _child_branches.c.parent_branch == erasure_log.c.branch,
        )
        .label("is_needed"),
    )
    .where(erasure_log.c.tree_id == _batch_tree_id, OPEN_ERASURE_JOIN)
    .order_by(erasure_log.c.erasure, erasure_log.c.branch.desc())
    .limit(literal_column("1")),
    row=ErasurePart,
)


def _match_erased_branch(table: Table) -> ColumnElement[bool]:
    return and_(table.c.tree_id == _batch_tree_id, table.c.branch == bindparam("branch"))


_batch_branch = bindparam("branch", type_=BIG_INTEGER)
_RAW_TABLES = {tool_calls, message_attachments, messages}
DELETE_ROWS_BEYOND = tuple(
    Statement(
        delete(table).where(_match_erased_branch(table), table.c.seq > bindparam("kept")),
        on_server=select(
            getattr(func, f"erase_{table.name}")(
                _batch_tree_id, _batch_branch, bindparam("kept", type_=BIG_INTEGER)
            ).label("erased")
        )
        if table in _RAW_TABLES
        else None,
    )
    for table in (
        notes,
        token_counts,
        message_facts,
        usages,
        tool_result_paths,
        tool_results,
        tool_calls,
        message_attachments,
        messages,
        search_rows,
    )
)
"""Everything that hangs on a branch beyond a position, children first."""
_referenced_summaries = select(compaction_records.c.summary).where(
    compaction_records.c.tree_id == _batch_tree_id,
    compaction_records.c.summary.is_not(null()),
)
_unreferenced_summaries = (
    select(summaries.c.summary)
    .where(_match_erased_branch(summaries), summaries.c.summary.not_in(_referenced_summaries))
    .order_by(summaries.c.summary.desc())
    .limit(literal_column(str(STEP_POSITIONS)))
)
DELETE_SUMMARIES = Statement(
    delete(summaries).where(
        summaries.c.tree_id == _batch_tree_id, summaries.c.summary.in_(_unreferenced_summaries)
    ),
    on_server=select(
        func.erase_summaries(_batch_tree_id, _batch_branch, literal_column(str(STEP_POSITIONS)))
    ),
)
"""A few summaries of a branch to which no record refers any more, newest first.

A summary refers to the older ones that it replaced.
"""
_no_summary_number: ColumnElement[int] = literal_column("0")
_remaining_summaries = select(summaries.c.summary).where(summaries.c.tree_id == _batch_tree_id)
DELETE_SUMMARY_SEARCH_ROWS = Statement(
    delete(search_rows).where(
        search_rows.c.tree_id == _batch_tree_id,
        search_rows.c.summary > _no_summary_number,
        search_rows.c.summary.not_in(_remaining_summaries),
    )
)
"""Removes erased summaries from the search index."""
DELETE_BRANCH = tuple(
    Statement(delete(table).where(_match_erased_branch(table))) for table in (ancestors, branches)
)
_newest_copy_number = select(
    func.coalesce(func.max(copies.c.copy), literal_column("0"))
).scalar_subquery()
_is_newer_copy = erasure_log.c.newest_copy > _newest_copy_number
CLOSE_PARTS = Statement(
    update(erasure_log)
    .where(
        erasure_log.c.tree_id == bindparam("tree"),
        erasure_log.c.branch == bindparam("of"),
        erasure_log.c.erasure <= bindparam("through"),
        erasure_log.c.finished_at.is_(null()),
    )
    .values(
        finished_at=bindparam("now"),
        newest_copy=case((_is_newer_copy, erasure_log.c.newest_copy), else_=_newest_copy_number),
    )
)
"""Closes the lines of a branch up to an erasure; several lines of one branch may be open."""


def delete_sessions(
    database: Database,
    session_ids: Iterable[str],
    *,
    moment: int,
    expected: str | None = None,
    owner: str | None = None,
    costs: str = "keep",
    missing: str = "refuse",
    begin: BeginErasure | None = None,
) -> list[Erasure]:
    """Erase sessions in short transactions, as many in one as it has time for.

    ``expected`` is the revision of a single session, ``owner`` the owner of all of them (None:
    any); ``begin`` may erase less of a session, or by conditions of its own; ``missing`` is one of
    `MISSING`. Raises SessionNotFound, and the exceptions of the first transaction; none once a
    session is erased.
    """
    check_choice(erasure.COSTS, "costs", costs)
    is_refused = check_choice(MISSING, "missing", missing) == "refuse"
    names = list(session_ids)
    found = database.read(partial(_find_sessions, names=names, owner=owner, is_refused=is_refused))
    begin = begin or erasure.begin_erasure
    begin = partial(begin, expected=expected, owner=owner, costs=costs, now=moment)
    begun: list[OpenErasure] = []

    def begin_session(connection: Connection, name: str) -> OpenErasure | None:
        try:
            return begin(connection, name)
        except SessionNotFound:  # others have erased it since it was found
            if is_refused and name == found[0]:
                raise
            return None

    waiting = [partial(begin_session, name=name) for name in dict.fromkeys(found)]
    pace = build_pace(database, of_group=len(waiting) > 1)
    while waiting:
        try:
            group = erase_group(database, waiting, moment, pace)
        except StoreError:
            if not begun:
                raise
            break
        begun += filter(None, group)
        del waiting[: len(group)]
    try:
        return database.read(partial(erasure.load_erasures, begun=begun))
    except StoreError:
        return [each.unfinished for each in begun]


def build_pace(database: Database, *, of_group: bool = False) -> WritePace:
    """Return the pace of an erasure, or of a group of them."""
    return WritePace(database, GROUP_SECONDS if of_group else SLICE_SECONDS, GROUP_SECONDS)


def erase_group(
    database: Database, waiting: Sequence[BeginGroupErasure], moment: int, pace: WritePace
) -> list[OpenErasure | None]:
    """Erase the first of some sessions in one transaction, as many as a short time is enough for.

    The rest of the last one goes in slices. Each function begins the erasure of a session, or
    returns None for one that stays. On a server a transaction erases one session, since it changes
    one tree. Raises StoreError.
    """
    group: list[OpenErasure | None] = []

    def transaction(seconds: float) -> bool:
        group.clear()
        ends, is_left = time.monotonic() + seconds, False
        with pace.writing() as connection:
            most = len(waiting) if connection.dialect.name == "sqlite" else 1
            for begin in waiting[:most]:
                opened = begin(connection)
                group.append(opened)
                if opened:
                    rest = ends - time.monotonic()
                    is_left = rest <= 0 or _erase_slice(connection, opened.tree_id, moment, rest)
                if time.monotonic() >= ends:
                    break
        return is_left

    seconds = pace.seconds if len(waiting) > 1 else 0
    last = group[-1] if _retry_when_full(database, transaction, seconds) else None
    if last:
        with suppress(StoreError):  # the next one goes on with it
            _erase_tree(database, last.tree_id, moment, pace)
    return group


def erase_sessions(
    connection: Connection,
    session_ids: list[str],
    *,
    missing: str = "refuse",
    expected: str | None = None,
    owner: str | None = None,
    costs: str = "keep",
    now: Now = None,
) -> list[Erasure]:
    """Erase sessions within a transaction; their rows are left to the erasing after its commit.

    The options are those of `delete_sessions`. Raises SessionNotFound, Conflict, InvalidValue.
    """
    check_choice(erasure.COSTS, "costs", costs)
    is_refused = check_choice(MISSING, "missing", missing) == "refuse"
    found = _find_sessions(connection, session_ids, owner, is_refused=is_refused)
    options = {"expected": expected, "owner": owner, "costs": costs, "now": now}
    begin: Any = erasure.begin_erasure
    begun = [begin(connection, name, **options) for name in dict.fromkeys(found)]
    return erasure.load_erasures(connection, begun)


def list_given_ids(given: Iterable[str | Sequence[str]], expected: str | None) -> list[str]:
    """Return ids that are given one by one or in lists. Raises InvalidValue.

    An ``expected`` revision is that of the only one.
    """
    ids: list[Any] = []
    for each in given:
        ids += each if isinstance(each, list | tuple) else [each]
    if expected is not None and len(ids) != 1:
        raise InvalidValue("a revision belongs to one session; with it, delete sessions one by one")
    return ids


def _find_sessions(
    connection: Connection, names: list[str], owner: str | None, *, is_refused: bool
) -> list[str]:
    """Return those sessions that are there. Raises SessionNotFound if a missing one is refused."""
    found = []
    for name in names:
        try:
            lines.load_pointer(connection, name)
            if owner is not None:
                check_owner(connection, name, owner)
        except SessionNotFound:
            if is_refused:
                raise
        else:
            found.append(name)
    return found


def _retry_when_full(
    database: Database, transaction: Callable[[float], TransactionT], most_seconds: float
) -> TransactionT:
    """Return what a transaction of so many seconds does; on a full disk it is to do its least."""
    try:
        return transaction(most_seconds)
    except StoreFull:
        try:
            database.empty_log()
            return transaction(0)
        except (StoreBusy, StoreFull) as error:
            raise StoreFull(NO_ROOM_MESSAGE) from error


def continue_erasures(
    database: Database,
    moment: int,
    *,
    seconds: float = math.inf,
    patience: float | None = None,
) -> None:
    """Continue all open erasures for at most ``seconds``.

    Waits for other writers as long as the store does, or for ``patience`` seconds a slice.
    """
    ends = time.monotonic() + seconds
    pace = build_pace(database)
    for tree_id in database.read(list_open_trees):
        _erase_tree(database, tree_id, moment, pace, ends, patience)


def continue_at_opening(database: Database, moment: int) -> None:
    """Continue the open erasures of others for a moment, without waiting for other writers."""
    continue_erasures(database, moment, seconds=OPENING_SECONDS, patience=0)


def _erase_tree(
    database: Database,
    tree_id: int,
    moment: int,
    pace: WritePace,
    ends: float = math.inf,
    patience: float | None = None,
) -> None:
    """Continue the erasures of a tree slice by slice; on a full disk by single steps."""
    is_left = True
    while is_left and time.monotonic() < ends:
        try:
            with pace.writing(patience) as connection:
                is_left = _erase_slice(connection, tree_id, moment, seconds=pace.seconds)
        except StoreFull:
            database.empty_log()
            with database.writing(patience) as connection:
                is_left = _erase_slice(connection, tree_id, moment, seconds=0)


def _erase_slice(connection: Connection, tree_id: int, moment: int, seconds: float) -> bool:
    """Erase a slice, of at least one step; return whether any work is left."""
    ends = time.monotonic() + seconds
    if connection.dialect.name != "sqlite":
        lines.TREE_LOCK.run(connection, tree_id=tree_id)
    part = OPEN_PART.row(connection, tree_id=tree_id)
    while part:
        _erase_step(connection, tree_id, part, moment)
        part = OPEN_PART.row(connection, tree_id=tree_id)
        if time.monotonic() >= ends:
            break
    return part is not None


def _erase_step(connection: Connection, tree_id: int, part: ErasurePart, moment: int) -> None:
    """Erase a few positions of a branch; after the last ones a few summaries or attachments.

    When none is left, close it.
    """
    of = {"tree_id": tree_id, "branch": part.branch}
    if part.has_more or not part.is_needed:
        _erase_rows_beyond(connection, of, part.next_end)
    if part.next_end > part.kept:
        return
    if DELETE_SUMMARIES.count_changed(connection, **of):
        DELETE_SUMMARY_SEARCH_ROWS.run(connection, tree_id=tree_id)
    elif not DELETE_UNUSED_ATTACHMENTS.count_changed(connection, tree_id=tree_id):
        # Deleting the branch closes all of its erasures. Copies begun up to now may hold the erased
        # rows, since the erasure of these was not finished.
        through = part.erasure
        if not part.is_needed:
            for statement in DELETE_BRANCH:
                statement.run(connection, **of)
            through = NO_LIMIT
        CLOSE_PARTS.run(
            connection,
            tree=of["tree_id"],
            of=part.branch,
            through=through,
            now=moment,
        )


def erase_branch_ends(
    connection: Connection, opened: OpenErasure, branches: Collection[int], *, now: Now = None
) -> None:
    """Erase what an erasure takes from the ends of branches that a session keeps, all at once.

    An open line of the record is only for branches that no session owns.
    """
    of = {"tree_id": opened.tree_id}
    moment = require_moment(now)
    for effect in opened.plan:
        branch = effect.branch
        if branch in branches:
            _erase_rows_beyond(connection, {**of, "branch": branch}, effect.kept)
            while DELETE_SUMMARIES.count_changed(connection, **of, branch=branch):
                DELETE_SUMMARY_SEARCH_ROWS.run(connection, **of)
            delete_unused_attachments(connection, opened.tree_id)
            close: dict[str, Any] = {"tree": opened.tree_id, "of": branch}
            CLOSE_PARTS.run(connection, **close, through=opened.number, now=moment)


def _erase_rows_beyond(connection: Connection, of: dict[str, int], kept: int) -> None:
    for statement in DELETE_ROWS_BEYOND:
        statement.run(connection, **of, kept=kept)
