"""A session's line: its head, and the runs of branches that hold its positions.

A branch holds a run of positions, and hangs on another branch at the position before its first: a
fork at 22 makes a branch that begins at 23. So the line of a session is the end of its own branch,
before it a part of the parent, before that a part of the grandparent, down to the root of the tree.
Forks copy nothing; but nothing says either which branch holds position 17.

The branch is found by walking up from the head's branch; a server reads the rows of its ancestors
(`ancestry`) instead. Each step gives one segment: it begins where the branch begins, and ends
where the one above it, already seen, begins; the topmost ends at the last position asked for. The
walk stops as soon as a segment begins at or before the first position asked for, so the newest
messages of a line are found in one step, however deep its past.
Most reads only need the head's branch, and `Line.runs` answers those without any statement.

Each segment is then one scan of a range of a table's key (tree, branch, position), ancestors first.
Joining the segments with ``messages`` under an ORDER BY would sort every text instead.

`build_line_branches` is the same for the compaction records of a line: it goes up to the root, and
carries the last position and the newest record that count on each branch. The records that existed
when a branch began count on it, and no later ones of its ancestors (`match_visible_records`).

**The visibility of stored rows to a session** is a condition for each kind of row. Lines share
their past, but not the records about it. So rows are read for a session by one of these conditions,
which depend on three things: the line (its branches, and how far they go), the newest compaction
record visible to each of its branches, and the owner of the session.

- Messages, and the rows derived from them, are visible on the whole line.
- Compaction records, and with them their summaries, count up to the one that was the newest when
  the next branch of the line began: later compactions of a source are not visible to a fork.
- Usages are seen by the session that recorded them and, while that session exists, by forks of the
  same owner that were made later (query ``last_usage`` in ``session_branches.sql``). A fork that
  was handed over sees none of its source, and its tokens are estimated until it has its own.
- Notes are seen by all sessions of the owner who made them.
- Drafts are seen by the session that they answer in.
- Counted tokens are seen by all sessions of the owner in whose session the message was said.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Update,
    and_,
    bindparam,
    exists,
    literal_column,
    select,
    update,
)
from sqlalchemy.sql.selectable import CTE

from ..database import (
    BIG_INTEGER,
    IDENTIFIER,
    IsHeard,
    Queries,
    RowT,
    Statement,
    branches,
    compaction_records,
    drafts,
    get_lock_names,
    get_read_mark,
    get_session_trees,
    message_facts,
    notes,
    notify_at_commit,
    select_texts,
    session_ids,
    sessions,
)
from ..errors import (
    VERIFY_HINT,
    Conflict,
    Damaged,
    InvalidValue,
    PositionOutOfRange,
    SessionNotFound,
    quote_value,
)
from ..text import is_text

NO_LIMIT = 2**62
"""A number beyond all positions, moves and records."""


def generate_revision() -> str:
    """Return a revision that no session ever had.

    It is random: a store that was restored from a copy would repeat a count.
    """
    return os.urandom(8).hex()


class Pointer(NamedTuple):
    """A session's head and what hangs on it; ``parent_position`` is that of the head branch.

    The head branch begins after that position (0: at the root). ``head_turn`` and ``head_tokens``
    are the numbers of turns and of estimated tokens of the line, None where an ancestor holds the
    head. ``newest`` is the newest compaction record that may count on the head branch: `NO_LIMIT`,
    except on a branch that another session may continue. ``is_heard`` tells a writer on a server
    that somebody may wait for a change.
    """

    tree_id: int
    session_id: str
    branch: int
    head: int
    parent_position: int
    last_rewind: int | None
    project_root: str | None
    fold_case: int
    head_turn: int | None
    head_tokens: int | None
    revision: str
    owner: str | None = None
    newest: int = NO_LIMIT
    updated_second: int | None = None
    is_heard: int = 0

    @property
    def is_own(self) -> bool:
        """Whether the branch is the session's own, so that its head can be there."""
        return self.newest == NO_LIMIT

    @property
    def line(self) -> dict[str, int]:
        """The parameters of a line in statements: its tree and its head branch."""
        return {"tree_id": self.tree_id, "branch": self.branch}

    @property
    def whole(self) -> dict[str, int]:
        """The parameters of a line from its first position to its last."""
        return {**self.line, "start": 1, "last": self.head}

    @property
    def session(self) -> dict[str, Any]:
        """The parameters of a session in statements."""
        return {"tree_id": self.tree_id, "session_id": self.session_id}

    def at_end_of(self, branch: int, parent_position: int, head: int, newest: int) -> Pointer:
        """Return the pointer of the session at the end of another branch."""
        return self._replace(
            branch=branch,
            head=head,
            parent_position=parent_position,
            head_turn=None,
            head_tokens=None,
            newest=newest,
        )

    def changed(self) -> dict[str, Any]:
        """Return the parameters of an update of the session's row, with a new revision."""
        return {
            "tree": self.tree_id,
            "session_id": self.session_id,
            "revision": generate_revision(),
        }

    def holds(self, position: int) -> bool:
        """Return whether the line has a position (0: the one before its first message)."""
        return type(position) is int and 0 <= position <= self.head

    def check_message(self, position: int) -> None:
        """Raise PositionOutOfRange for a position without a message on the line."""
        if not self.holds(position) or position == 0:
            raise PositionOutOfRange(self.session_id, position, self.head)


PLACE = ("tree_id", "branch", "seq")
"""The key of a message's row; the first columns of each table that refers to messages."""


class Segment(NamedTuple):
    """A run of a line: the positions first to last, held by one branch."""

    branch: int
    first: int
    last: int

    def within(self, tree_id: int) -> dict[str, int]:
        """Return the parameters of the run in statements, given its tree."""
        branch, first, last = self
        return {"tree_id": tree_id, "branch": branch, "first": first, "last": last}

    def of(self, places: Sequence[int]) -> Sequence[int]:
        """Return the positions, of some in order, that the run holds."""
        return places[bisect_left(places, self.first) : bisect_right(places, self.last)]


def match_place(table: FromClause) -> ColumnElement[bool]:
    """Build the condition for one place: ``tree_id``, ``branch`` and ``seq``."""
    return and_(match_branch(table), table.c.seq == bindparam("seq"))


def match_run(table: FromClause) -> ColumnElement[bool]:
    """Build the condition for a run of a branch: ``tree_id``, ``branch``, ``first`` to ``last``."""
    positions = table.c.seq.between(bindparam("first"), bindparam("last"))
    return and_(match_branch(table), positions)


def match_segments(table: FromClause, segments: FromClause) -> ColumnElement[bool]:
    """Build the condition for the rows of the tree ``tree_id`` in any of a line's runs."""
    positions = table.c.seq.between(segments.c.first, segments.c.last)
    return match_branches(table, segments) & positions


def match_branches(table: FromClause, walk: FromClause) -> ColumnElement[bool]:
    """Build the condition for the rows of the tree ``tree_id`` on any branch of a walk."""
    return and_(_match_tree(table), table.c.branch == walk.c.branch)


def match_branch(table: FromClause) -> ColumnElement[bool]:
    """Build the condition for a branch: ``tree_id`` and ``branch``."""
    return and_(_match_tree(table), table.c.branch == bindparam("branch"))


def _match_tree(table: FromClause) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = table.c.tree_id == bindparam("tree_id")
    return condition


ACTIVITY: dict[str, Any] = {
    "updated_at": bindparam("now", type_=BIG_INTEGER),
    "updated_second": bindparam("now", type_=BIG_INTEGER) // literal_column("1000", BIG_INTEGER),
}
"""The changes of a session's row at an activity, at the moment ``now``."""


def update_session(**values: Any) -> Update:
    """Build an update of a session's row, which always gets a new revision.

    `Pointer.changed` returns the parameters of the row and the revision.
    """
    of_session = and_(
        sessions.c.tree_id == bindparam("tree"),
        sessions.c.id == bindparam("session_id"),
    )
    return update(sessions).where(of_session).values(**values, revision=bindparam("revision"))


TREE_OF_SESSION = Statement(
    select(session_ids.c.tree_id).where(session_ids.c.id == bindparam("session_id"))
)
"""The tree of a session, by itself: ids and trees may lie on different machines."""
TREES_OF_SESSIONS = Statement(
    select(session_ids.c.tree_id).where(session_ids.c.id.in_(select_texts("ids")))
)
match_session = and_(
    sessions.c.tree_id == bindparam("tree_id"),
    sessions.c.id == bindparam("session_id"),
)
"""The condition for a session's row."""
_head_branch_join = and_(
    branches.c.tree_id == sessions.c.tree_id,
    branches.c.branch == sessions.c.head_branch,
)
_head_facts_join = and_(
    message_facts.c.tree_id == sessions.c.tree_id,
    message_facts.c.branch == sessions.c.head_branch,
    message_facts.c.seq == sessions.c.head,
)
SELECT_POINTER = (
    select(
        sessions.c.tree_id,
        sessions.c.id,
        sessions.c.head_branch,
        sessions.c.head,
        branches.c.parent_position,
        sessions.c.last_rewind,
        sessions.c.project_root,
        sessions.c.fold_case,
        message_facts.c.turn,
        message_facts.c.tokens_through,
        sessions.c.revision,
        sessions.c.owner,
        literal_column(str(NO_LIMIT)).label("newest"),
        sessions.c.updated_second,
    )
    .select_from(sessions)
    .join(branches, _head_branch_join)
    .outerjoin(message_facts, _head_facts_join)
    .where(match_session)
)
POINTER = Statement(SELECT_POINTER.add_columns(literal_column("0").label("is_heard")), row=Pointer)
_HEARD_POINTER = SELECT_POINTER.add_columns(IsHeard(sessions.c.tree_id).label("is_heard"))
LOCKED_POINTER = Statement(_HEARD_POINTER, row=Pointer)
"""For a writer on a server that has locked the session's row."""
LOCKING_POINTER = Statement(_HEARD_POINTER.with_for_update(of=sessions), row=Pointer)
"""Locks the session's row, too.

Where it waits for another writer that moves the head, the row is the newer one, but joined with the
older rows of other tables: it comes without their numbers, or not at all.
"""
SESSION_LOCK = Statement(select(sessions.c.tree_id).where(match_session).with_for_update())

TREE_LOCK = Statement(
    select(branches.c.branch)
    .where(branches.c.tree_id == bindparam("tree_id"))
    .order_by(branches.c.branch)
    .limit(literal_column("1"))
    .with_for_update(key_share=True)
)


LINES_PATH = Path(__file__).with_name("lines.sql")
_line_queries = Queries(LINES_PATH, texts=("session_id",))
TREE_AND_SESSION_LOCK = _line_queries.statement("locked")
"""Locks the tree, then the session's row, in one statement."""


def build_segments() -> CTE:
    """Build the runs that hold the positions ``start`` to ``last``."""
    return _line_queries.table("segments", *Segment._fields)


def build_line_branches() -> CTE:
    """Build the branches of a line, how far it goes on each, and the newest record that counts.

    The values are ``last`` and ``newest`` on the head's branch.
    """
    return _line_queries.table("line", "branch", "last", "newest")


_all_segments = build_segments()
SEGMENTS = Statement(select(*_all_segments.c).order_by(_all_segments.c.first), row=Segment)


class Line(NamedTuple):
    """A session's raw line as one transaction sees it, and the way to its rows."""

    connection: Connection
    pointer: Pointer

    def runs(self, first: int, last: int) -> list[Segment]:
        """Return the runs that hold the positions ``first`` to ``last``, in order."""
        if first > last:
            return []
        connection, pointer = self
        if pointer.parent_position < first:
            return [Segment(pointer.branch, first, last)]
        return SEGMENTS.rows(connection, **pointer.line, start=first, last=last)

    def ranges(self, first: int, last: int) -> list[dict[str, int]]:
        """Return these runs as parameters of statements."""
        return [run.within(self.pointer.tree_id) for run in self.runs(first, last)]

    def place(self, position: int) -> dict[str, int]:
        """Return the place of a position's row, by the names of `PLACE`."""
        runs = self.runs(position, position)
        if len(runs) != 1:
            raise Damaged(
                f"no branch of {self.pointer.session_id!r} holds {position!r}; {VERIFY_HINT}"
            )
        return {"tree_id": self.pointer.tree_id, "branch": runs[0].branch, "seq": position}


def load_pointer(connection: Connection, session_id: str) -> Pointer:
    """Return the pointer of a session. Raises SessionNotFound."""
    pointer = find_session_row(connection, POINTER, session_id)
    if pointer is None:
        raise SessionNotFound(session_id)
    return pointer


def find_session_row(
    connection: Connection,
    statement: Statement[RowT],
    session_id: str,
    lock: Statement[Any] | None = None,
) -> RowT | None:
    """Return the row of a session that a statement finds in its tree, None if there is none.

    A session stays in its tree as long as it lives, so the tree is kept. Where the row is not
    there, the session was erased, and another one may have its id now. ``lock`` runs before the
    statement, which does not wait for its answer: it is run by the server after it.
    """
    if not is_text(session_id):
        return None
    kept, tree_id = get_session_trees(connection), None
    found = kept.get(session_id) or TREE_OF_SESSION.value(connection, session_id=session_id)
    while found not in (None, tree_id):
        tree_id = found
        if lock:
            lock.run(connection, tree_id=tree_id, session_id=session_id)
        row = statement.row(connection, tree_id=tree_id, session_id=session_id)
        if row:
            kept.put(session_id, tree_id, get_read_mark(connection))
            return row
        found = TREE_OF_SESSION.value(connection, session_id=session_id)
    return None


def lock_session(connection: Connection, session_id: str, expected: str | None = None) -> Pointer:
    """Return the pointer of a session, which no other writer moves until the transaction ends.

    Raises SessionNotFound, and Conflict where its revision is not the one that is expected.
    """
    return _lock_rows(connection, session_id, expected, SESSION_LOCK)


def _lock_rows(
    connection: Connection, session_id: str, expected: str | None, lock: Statement[Any]
) -> Pointer:
    """Return the pointer of a session, after rows were locked on a server.

    They are locked before it is read, since what is read with a lock may be older. The session's
    row alone is locked as it is read, and read again where that finds nothing.
    """
    if connection.dialect.name == "sqlite":
        pointer = find_session_row(connection, POINTER, session_id)
    else:
        get_lock_names(connection).append(session_id)
        pointer = None
        if lock is SESSION_LOCK:
            pointer = find_session_row(connection, LOCKING_POINTER, session_id)
        if pointer is None:
            pointer = find_session_row(connection, LOCKED_POINTER, session_id, lock)
    if pointer is None:
        raise SessionNotFound(session_id)
    if pointer.is_heard:
        notify_at_commit(connection, pointer.tree_id)
    if expected is not None:
        check_revision(pointer, expected)
    return pointer


def check_revision(pointer: Pointer, expected: str) -> None:
    """Raise Conflict where a session's revision is not the one that a caller expects."""
    if expected == pointer.revision:
        return
    if not isinstance(expected, str):
        raise InvalidValue(
            f"expected must be the revision of a session, not {quote_value(expected)}"
        )
    raise Conflict(pointer.session_id, expected, pointer.revision)


def lock_tree(connection: Connection, session_id: str, expected: str | None = None) -> Pointer:
    """Return the pointer of a session; no other writer moves it, or adds branches to its tree.

    Raises SessionNotFound and Conflict as `lock_session` does.
    """
    return _lock_rows(connection, session_id, expected, TREE_AND_SESSION_LOCK)


def lock_trees(connection: Connection, session_ids: Iterable[str]) -> None:
    """Lock the trees of existing sessions, in the order of their numbers.

    Everybody who locks several trees does it in this order, so that no two wait for each other.
    """
    trees = {}
    for session_id in session_ids:
        with suppress(SessionNotFound):
            trees[session_id] = load_pointer(connection, session_id).tree_id
    for session_id in sorted(trees, key=lambda each: (trees[each], each)):
        with suppress(SessionNotFound):
            lock_tree(connection, session_id)


def resolve_range(
    start: int,
    stop: int | None,
    last: int,
) -> tuple[int, int]:
    """Return the first and last position of a range of a line of ``last`` messages.

    A start of -20 is the 20th message from the end. Raises InvalidValue for other values than
    positions, and for a negative ``stop``: only the start may be counted from the end.
    """
    if type(start) is not int or (stop is not None and type(stop) is not int):
        raise InvalidValue(
            f"a range must be two positions, not {quote_value(start)} to {quote_value(stop)}"
        )
    if stop is not None and stop < 0:
        problem = f"a range ends with a position, not {stop}"
        raise InvalidValue(f"{problem}; only its start may be negative, to count from the end")
    first = start if start >= 0 else last + 1 + start
    return max(1, first), last if stop is None else min(stop, last)


def resolve_position(pointer: Pointer, given: int | None) -> int:
    """Return a position of the line (None: its head; 0: before the first).

    Raises PositionOutOfRange.
    """
    if given is None:
        return pointer.head
    if not pointer.holds(given):
        raise PositionOutOfRange(pointer.session_id, given, pointer.head)
    return given


def match_visible_records(line: FromClause) -> ColumnElement[bool]:
    """Build the condition for the records that count on a line (`build_line_branches`)."""
    records = compaction_records.c
    reached = and_(records.head <= line.c.last, records.compaction <= line.c.newest)
    return and_(match_branches(compaction_records, line), reached)


def match_visible_notes(segments: FromClause) -> ColumnElement[bool]:
    """Build the condition for the notes on a line (`build_segments`): its ``owner``'s."""
    is_theirs = notes.c.owner.is_not_distinct_from(bindparam("owner", type_=IDENTIFIER))
    return and_(match_segments(notes, segments), is_theirs)


def match_visible_drafts() -> ColumnElement[bool]:
    """Build the condition for the drafts of a session: ``tree_id``, ``session_id``."""
    return and_(
        drafts.c.tree_id == bindparam("tree_id"),
        drafts.c.session_id == bindparam("session_id"),
    )


def match_visible_counts(walk: FromClause) -> ColumnElement[bool]:
    """Build the condition for the branches of a walk on which counts are of an ``owner``."""
    theirs = branches.alias("theirs")
    return exists().where(
        theirs.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        theirs.c.branch == walk.c.branch,
        sessions.c.tree_id == theirs.c.tree_id,
        sessions.c.id == theirs.c.session_id,
        sessions.c.owner.is_not_distinct_from(bindparam("owner", type_=IDENTIFIER)),
    )
