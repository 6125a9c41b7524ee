"""A session's line: where its head is, and which runs of which branches hold its positions.

A branch holds a run of positions, and hangs on another branch at the position before its first: a
fork at 22 makes a branch that begins at 23. So the line of a session is the end of its own branch,
before it a part of the parent, before that a part of the grandparent, down to the root of the tree.
Nothing is copied, however often one forks; but nothing says either which branch holds position 17.

That is found by walking up from the head's branch. Each step gives one segment: it begins where the
branch begins, and ends where the one above it, already seen, begins; the topmost ends at the last
position asked for. The walk stops as soon as a segment begins at or before the first position asked
for, so the newest messages of a line are found in one step, however deep its past. Most reads ask
for what the head's branch holds itself, and `segments` answers those without any statement.

Each segment is then one scan of a range of a table's key (tree, branch, position), ancestors first.
Joining the segments with ``messages`` under an ORDER BY would sort every text instead.

`line_cte` is the same walk for what is recorded about a line: it goes up to the root, and carries
how far each branch counts, and the newest compaction record that each may know of. A branch knows
the records that there were when it began, and no later ones of its ancestors (`sight`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Update,
    and_,
    bindparam,
    case,
    literal_column,
    select,
    update,
)
from sqlalchemy.sql.selectable import CTE

from ..database import (
    BIG,
    Statement,
    branches,
    locks,
    message_facts,
    session_ids,
    sessions,
)
from ..errors import (
    VERIFY,
    Conflict,
    Damaged,
    InvalidValue,
    PositionOutOfRange,
    SessionNotFound,
    quoted,
)
from ..text import is_text
from .places import NO_LIMIT, Pointer, Segment


def at_place(table: FromClause) -> ColumnElement[bool]:
    """Build the condition for one place: ``tree_id``, ``branch`` and ``seq``."""
    return and_(of_branch(table), table.c.seq == bindparam("seq"))


def in_run(table: FromClause) -> ColumnElement[bool]:
    """Build the condition for a run of a branch: ``tree_id``, ``branch``, ``first`` to ``last``."""
    positions = table.c.seq.between(bindparam("first"), bindparam("last"))
    return and_(of_branch(table), positions)


def in_segments(table: FromClause, segments: FromClause) -> ColumnElement[bool]:
    """Build the condition for the rows of the tree ``tree_id`` that lie in any of a line's runs."""
    positions = table.c.seq.between(segments.c.first, segments.c.last)
    return on_branches(table, segments) & positions


def on_branches(table: FromClause, walk: FromClause) -> ColumnElement[bool]:
    """Build the condition for the rows of the tree ``tree_id`` on any branch of a walk."""
    return and_(_of_tree(table), table.c.branch == walk.c.branch)


def of_branch(table: FromClause) -> ColumnElement[bool]:
    """Build the condition for a branch: ``tree_id`` and ``branch``."""
    return and_(_of_tree(table), table.c.branch == bindparam("branch"))


def _of_tree(table: FromClause) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = table.c.tree_id == bindparam("tree_id")
    return condition


def update_session(**values: Any) -> Update:
    """Build an update of a session's row; whatever changes there, its revision does.

    `Pointer.changed` names the row, and gives the new revision.
    """
    of_session = and_(
        sessions.c.tree_id == bindparam("tree"),
        sessions.c.id == bindparam("session_id"),
    )
    return update(sessions).where(of_session).values(**values, revision=bindparam("revision"))


SESSION_OF_ID = and_(
    sessions.c.tree_id == session_ids.c.tree_id,
    sessions.c.id == session_ids.c.id,
)
"""Joins a session to its name in the look-up of ids."""
_of_head = and_(
    branches.c.tree_id == sessions.c.tree_id,
    branches.c.branch == sessions.c.head_branch,
)
_at_head = and_(
    message_facts.c.tree_id == sessions.c.tree_id,
    message_facts.c.branch == sessions.c.head_branch,
    message_facts.c.seq == sessions.c.head,
)
POINTER = Statement(
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
    )
    .select_from(session_ids)
    .join(sessions, SESSION_OF_ID)
    .join(branches, _of_head)
    .outerjoin(message_facts, _at_head)
    .where(session_ids.c.id == bindparam("session_id")),
    row=Pointer,
)
SESSION_LOCK = Statement(
    select(sessions.c.tree_id)
    .select_from(session_ids)
    .join(sessions, SESSION_OF_ID)
    .where(session_ids.c.id == bindparam("session_id"))
    .with_for_update(of=sessions)
)

TREE_LOCK = Statement(
    select(branches.c.branch)
    .where(branches.c.tree_id == bindparam("tree_id"))
    .order_by(branches.c.branch)
    .limit(literal_column("1"))
    .with_for_update(key_share=True)
)


def segments_cte() -> CTE:
    """Build the runs that hold the positions ``start`` to ``last``."""
    start = bindparam("start", type_=BIG)
    walk = _walk_up(start, bindparam("last", type_=BIG))
    first = case((walk.c.first < start, start), else_=walk.c.first)
    return (
        select(walk.c.branch, first.label("first"), walk.c.last)
        .where(first <= walk.c.last)
        .cte("segments")
    )


def _walk_up(start: BindParameter[int], last: BindParameter[int]) -> CTE:
    """Build the walk from a head's branch up to the one that holds the first position."""
    *hangs, first = _begun(branches)
    top = _from_head("walk", *hangs, first.label("first"), last.label("last"))
    is_held = top.c.first <= last
    before = case((is_held, top.c.first - literal_column("1")), else_=last)
    above = _step_up(top, *_begun(_parents), before)
    return top.union_all(above.where(top.c.first > start))


_parents = branches.alias("parents")


def _from_head(name: str, *columns: ColumnElement[Any]) -> CTE:
    """Build the first step of a walk: what is asked of the head's branch."""
    at_head = select(*columns).where(of_branch(branches))
    return at_head.cte(name, recursive=True)


def _step_up(top: CTE, *columns: ColumnElement[Any]) -> Select[Any]:
    """Build each further step: what is asked of the branch that the one before hangs on."""
    hangs_on = _parents.c.branch == top.c.parent_branch
    return select(*columns).join(top, hangs_on).where(_of_tree(_parents))


def _begun(table: FromClause) -> tuple[ColumnElement[Any], ...]:
    """Build what the walk knows of a branch: what it hangs on, and its first position."""
    first = table.c.parent_position + literal_column("1")
    return table.c.branch, table.c.parent_branch, first


_walk = segments_cte()
SEGMENTS = Statement(
    select(*_walk.c).order_by(_walk.c.first),
    row=Segment,
)


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
        """Return these runs as the values by which statements name them."""
        return [run.within(self.pointer.tree_id) for run in self.runs(first, last)]

    def place(self, position: int) -> dict[str, int]:
        """Return where a position is stored, by the names of `PLACE`."""
        runs = self.runs(position, position)
        if len(runs) != 1:
            raise Damaged(f"no branch of {self.pointer.session_id!r} holds {position!r}; {VERIFY}")
        return {"tree_id": self.pointer.tree_id, "branch": runs[0].branch, "seq": position}


def load_pointer(connection: Connection, session_id: str) -> Pointer:
    """Return where a session stands. Raises SessionNotFound."""
    if is_text(session_id):
        pointer = POINTER.row(connection, session_id=session_id)
        if pointer:
            return pointer
    raise SessionNotFound(session_id)


def lock_session(connection: Connection, session_id: str, expected: str | None = None) -> Pointer:
    """Return where a session stands; no other writer moves it until the transaction ends.

    Raises SessionNotFound, and Conflict where its revision is not the one that is expected.
    """
    if connection.dialect.name == "sqlite":
        pointer = load_pointer(connection, session_id)
    else:
        pointer = _locked_on_server(connection, session_id)
    check_revision(pointer, expected)
    return pointer


def check_revision(pointer: Pointer, expected: str | None) -> None:
    """Refuse to go on where a session's revision is not the one that a caller knows."""
    if expected is None or expected == pointer.revision:
        return
    if not isinstance(expected, str):
        raise InvalidValue(f"expected is a session's revision, not {quoted(expected)}")
    raise Conflict(pointer.session_id, expected, pointer.revision)


def _locked_on_server(connection: Connection, session_id: str) -> Pointer:
    """Lock a session's row and return where it stands.

    The lock is taken apart, since what is read with it may be older; and again where it waited for
    a session that was erased in the end, while there is another one of that id by now.
    """
    locks(connection).append(session_id)
    while True:
        locked = _lock_row(connection, session_id)
        pointer = load_pointer(connection, session_id)
        if locked == pointer.tree_id:
            return pointer


def _lock_row(connection: Connection, session_id: str) -> int | None:
    """Lock the row of a session, and return its tree; None where there is none."""
    tree_id: int | None = None
    if is_text(session_id):
        tree_id = SESSION_LOCK.value(connection, session_id=session_id)
    return tree_id


def lock_tree(connection: Connection, session_id: str, expected: str | None = None) -> Pointer:
    """Return where a session stands; no other writer moves it, or adds branches to its tree.

    Raises what `lock_session` does.
    """
    if connection.dialect.name != "sqlite":
        _lock_branches(connection, session_id)
    return lock_session(connection, session_id, expected)


def _lock_branches(connection: Connection, session_id: str) -> None:
    """Lock a session's tree on a server; once it is locked, the session stays in it."""
    locked = None
    while locked != (tree_id := load_pointer(connection, session_id).tree_id):
        TREE_LOCK.row(connection, tree_id=tree_id)
        locked = tree_id


def resolve_range(
    start: int,
    stop: int | None,
    last: int,
) -> tuple[int, int]:
    """Return the first and last position of a range of a line of ``last`` messages.

    A start of -20 is the 20th message from the end. Raises InvalidValue for what are no positions:
    only where a range begins may be counted from the end.
    """
    _check_range(start, stop)
    first = start if start >= 0 else last + 1 + start
    return max(1, first), last if stop is None else min(stop, last)


def _check_range(start: int, stop: int | None) -> None:
    if type(start) is not int or (stop is not None and type(stop) is not int):
        raise InvalidValue(f"a range is two positions, not {quoted(start)} to {quoted(stop)}")
    if stop is not None and stop < 0:
        told = f"a range ends with a position, not {stop}"
        raise InvalidValue(f"{told}; only its start counts from the end if negative")


def resolve_position(pointer: Pointer, given: int | None) -> int:
    """Return a position of the line (None: its head; 0: before the first).

    Raises PositionOutOfRange.
    """
    if given is None:
        return pointer.head
    if not pointer.holds(given):
        raise PositionOutOfRange(pointer.session_id, given, pointer.head)
    return given


_WALKED = ("branch", "parent_branch", "parent_position", "records_seen")


def line_cte() -> CTE:
    """Build the walk up a line's branches with the newest record that each part of it may know."""
    last, newest = bindparam("last", type_=BIG), bindparam("newest", type_=BIG)
    bounds = (last.label("last"), newest.label("newest"))
    top = _from_head("line", *_walked(branches), *bounds)
    above = _step_up(top, *_walked(_parents), _end_above(top), top.c.records_seen)
    return top.union_all(above)


def _walked(table: FromClause) -> Iterator[ColumnElement[Any]]:
    return (table.c[name] for name in _WALKED)


def _end_above(top: CTE) -> ColumnElement[int]:
    """Build how far a branch counts that another one hangs on."""
    ends, last = top.c.parent_position, top.c.last
    return case((ends < last, ends), else_=last)
