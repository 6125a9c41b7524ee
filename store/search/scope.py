"""Whose lines run through a message, or know a summary; and who had it and left it.

A search asks this of every row that has its words, so it is asked of a tree in memory: its sessions
and branches are read once, and each line is walked up once, with the same bounds that `line_cte`
carries. A message is on a line where one of the line's branches holds it, at or before the position
at which the line leaves that branch. A summary is on it where the record of its compaction is: its
branch is one of the line's, it was made at or before that position, and it is no newer than the
newest record that the branch above may know. So a summary that somebody makes after a fork is none
of the fork's, though all messages that it stands for are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from ..database import Statement, branches, positions, sessions
from ..history import NO_LIMIT


class Of(NamedTuple):
    """Whose messages are asked for: a session's, an owner's (None: anybody's); ``left`` ones too.

    ``tree`` is the session's.
    """

    session: str | None = None
    owner: str | None = None
    left: bool = False
    tree: int | None = None

    def has(self, session_id: str, owner: str | None) -> bool:
        """Tell whether a session is one of those."""
        return self.session in (None, session_id) and self.owner in (None, owner)

    @property
    def limits(self) -> dict[str, Any]:
        """The values that `within` binds."""
        known = {"tree": self.tree, "owner": self.owner}
        return {name: value for name, value in known.items() if value is not None}

    def within(self, alias: str) -> str:
        """Return the condition that a table's rows are of trees in which such sessions are."""
        return "".join(_WITHIN[name].format(alias) for name in self.limits)


_WITHIN = {
    "tree": " AND {}.tree_id = :tree",
    "owner": " AND {}.tree_id IN (SELECT tree_id FROM sessions WHERE owner = :owner)",
}


class Counted(NamedTuple):
    """What makes a row count on a line: where it was made, and the record that it came with.

    A message came with none, which is 0.
    """

    branch: int
    position: int
    record: int


class Bounds(NamedTuple):
    """Up to where a line has a branch, and the newest record of that branch that it may know."""

    last: int
    newest: int


Line = dict[int, Bounds]
"""The branches of a line."""


class Pointed(NamedTuple):
    """A session, and where its head is."""

    id: str
    owner: str | None
    branch: int
    head: int


class Holder(NamedTuple):
    """A session that has a message on its line, or had it."""

    session_id: str
    on_line: bool


class Hung(NamedTuple):
    """A branch, what it hangs on and where, whose it is, and the newest record of its past."""

    branch: int
    parent: int | None
    position: int
    session_id: str | None
    records_seen: int


SESSIONS = Statement(
    select(*(sessions.c[name] for name in ("tree_id", "id", "owner", "head_branch", "head")))
    .where(sessions.c.tree_id.in_(positions("trees")))
    .order_by(sessions.c.tree_id, sessions.c.id)
)
BRANCHES = Statement(
    select(
        branches.c.tree_id,
        branches.c.branch,
        branches.c.parent_branch,
        branches.c.parent_position,
        branches.c.session_id,
        branches.c.records_seen,
    ).where(branches.c.tree_id.in_(positions("trees")))
)


class Tree:
    """The sessions that are asked for of a tree, and their lines, as one transaction sees them."""

    def __init__(self, hung: list[Hung], known: list[Pointed], of: Of) -> None:
        self._branches = {each.branch: each for each in hung}
        theirs = [each for each in known if of.has(each.id, each.owner)]
        self._lines = {each.id: [self._line(each.branch, each.head)] for each in theirs}
        left = theirs if of.left else ()
        self._left: dict[str, list[Line]] = {each.id: [] for each in left}
        for branch, *_, session_id, _ in hung:
            if session_id in self._left:
                self._left[session_id].append(self._line(branch, NO_LIMIT))
        self._ends: dict[int, int] = {}
        for line in (each for lines in self._all() for each in lines):
            for branch, bounds in line.items():
                self._ends[branch] = max(bounds.last, self._ends.get(branch, 0))

    def _all(self) -> Iterable[list[Line]]:
        return (*self._lines.values(), *self._left.values())

    def _line(self, branch: int | None, last: int) -> Line:
        """Return a line, from the end of a branch up to the root."""
        line: Line = {}
        newest = NO_LIMIT
        while branch is not None:
            line[branch] = Bounds(last, newest)
            hung = self._branches[branch]
            branch, last, newest = hung.parent, min(last, hung.position), hung.records_seen
        return line

    def end(self, branch: int) -> int:
        """Return the last position of a branch that any of the lines has; 0 where none has any."""
        return self._ends.get(branch, 0)

    def holder(self, branch: int, counted: Counted) -> Holder | None:
        """Return a session that has a row, the one of its branch if possible; else None."""
        if counted.position > self.end(counted.branch):
            return None
        own = self._branches.get(branch)
        for lines in (self._lines, self._left):
            first = [own.session_id] if own and own.session_id in lines else []
            for session_id in (*first, *lines):
                if any(_has(line, counted) for line in lines[session_id]):
                    return Holder(session_id, on_line=lines is self._lines)
        return None


def _has(line: Line, counted: Counted) -> bool:
    bounds = line.get(counted.branch)
    return bounds is not None and (
        counted.position <= bounds.last and counted.record <= bounds.newest
    )


class Trees(dict[int, Tree]):
    """The trees that a search meets, each read once."""

    def __init__(self, connection: Connection, of: Of) -> None:
        super().__init__()
        self._connection, self._of = connection, of

    def read(self, tree_ids: Iterable[int]) -> None:
        """Read those of some trees that are not known yet, all at once."""
        new = {each for each in tree_ids if each not in self}
        if not new:
            return
        trees = json.dumps([*new])
        hung: dict[int, list[Hung]] = {each: [] for each in new}
        known: dict[int, list[Pointed]] = {each: [] for each in new}
        for tree_id, *row in BRANCHES.rows(self._connection, trees=trees):
            hung[tree_id].append(Hung(*row))
        for tree_id, *row in SESSIONS.rows(self._connection, trees=trees):
            known[tree_id].append(Pointed(*row))
        for each in new:
            self[each] = Tree(hung[each], known[each], self._of)

    def __missing__(self, tree_id: int) -> Tree:
        self.read([tree_id])
        return self[tree_id]
