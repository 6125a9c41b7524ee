"""The scope of a search: its sessions, and the session that has a message or a summary.

A search needs this for every row with its words, so the answer comes from memory: the sessions and
branches of a tree are read once, and each line is walked up once, with the same bounds as in
`build_line_branches`. A message is on a line if one of the line's branches holds it, at or before
the position at which the line leaves that branch. A summary is on it if the record of its
compaction is: the record's branch is one of the line's, it was made at or before that position, and
it is no newer than the newest record that the branch above may know. So a summary that is made
after a fork does not belong to the fork, although all messages that it replaces do.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from functools import cache, cached_property
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection, select, text

from ..database import Row, Statement, branches, select_positions, sessions
from ..history import NO_LIMIT


@cache
def cache_statement(sql: str) -> Statement[Row]:
    """Return a text as a statement, compiled once."""
    return Statement(text(sql.replace("::", r"\:\:")))


class TreeList(NamedTuple):
    """Trees as JSON; the first and the last number of their messages in a file, and how many."""

    trees: str
    first: int = 0
    last: int = NO_LIMIT
    messages: int = 0


class Scope(NamedTuple):
    """The sessions whose messages are searched: one session, an owner's (None: anybody's).

    ``tree`` is the tree of the session, ``trees`` are the only ones. With ``left``, messages that
    the lines have left are found too.
    """

    session: str | None = None
    owner: str | None = None
    left: bool = False
    tree: int | None = None
    trees: TreeList | None = None
    is_wide: bool = False

    def has_session(self, session_id: str, owner: str | None) -> bool:
        """Tell whether a session is in the scope."""
        return self.session in (None, session_id) and self.owner in (None, owner)

    @property
    def tree_ids(self) -> list[int]:
        """The only trees, if they are known."""
        ids: list[int] = [] if self.trees is None else json.loads(self.trees.trees)
        return ids

    @property
    def parameters(self) -> dict[str, Any]:
        """The values that `tree_condition` binds; none where the scope is the whole store."""
        known = {"tree": self.tree, "owner": self.owner}
        return {name: value for name, value in known.items() if value is not None}

    def index_parameters(self, first: int, last: int) -> dict[str, Any]:
        """Return the values that queries of the index bind for documents from first to last."""
        if self.trees is None:
            return self.parameters | {"first": first, "last": last}
        if first > 0:
            first, last = max(first, self.trees.first), min(last, self.trees.last)
        return self.parameters | {"trees": self.trees.trees, "first": first, "last": last}

    def tree_condition(self, alias: str) -> str:
        """Return the condition that a table's rows belong to trees with sessions in the scope."""
        return "".join(_TREE_CONDITIONS[name].format(alias) for name in self.parameters)


_TREE_CONDITIONS = {
    "tree": " AND {}.tree_id = :tree",
    "owner": " AND {}.tree_id IN (SELECT tree_id FROM sessions WHERE owner = :owner)",
}


class Origin(NamedTuple):
    """The place that decides which lines have a message or a summary, and the summary's record.

    That of a message is its own, with record 0; that of a summary is the one of its compaction.
    """

    branch: int
    position: int
    record: int


class BranchBounds(NamedTuple):
    """The last position of a branch on a line, and the newest record of the branch on it."""

    last: int
    newest_record: int


LineBounds = dict[int, BranchBounds]
"""The branches of a line, and the bounds of each."""


class SessionHead(NamedTuple):
    """A session and its head."""

    id: str
    owner: str | None
    branch: int
    head: int


class Holder(NamedTuple):
    """A session that has or had a message on its line."""

    session_id: str
    on_line: bool


class BranchLink(NamedTuple):
    """A branch, its parent and position there, its session, and the newest record of its past."""

    branch: int
    parent: int | None
    position: int
    session_id: str | None
    records_seen: int


TREE_SESSIONS = Statement(
    select(*(sessions.c[name] for name in ("tree_id", "id", "owner", "head_branch", "head")))
    .where(sessions.c.tree_id.in_(select_positions("trees")))
    .order_by(sessions.c.tree_id, sessions.c.id)
)
TREE_BRANCHES = Statement(
    select(
        branches.c.tree_id,
        branches.c.branch,
        branches.c.parent_branch,
        branches.c.parent_position,
        branches.c.session_id,
        branches.c.records_seen,
    ).where(branches.c.tree_id.in_(select_positions("trees")))
)


def _holds_row(line: LineBounds, origin: Origin) -> bool:
    """Tell whether a line has a row."""
    bounds = line.get(origin.branch)
    return (
        bounds is not None
        and origin.position <= bounds.last
        and origin.record <= bounds.newest_record
    )


class TreeLines:
    """The lines of a tree's sessions that are in a scope, as one transaction sees them."""

    def __init__(self, links: list[BranchLink], heads: list[SessionHead], scope: Scope) -> None:
        self._branches = {link.branch: link for link in links}
        in_scope = [head for head in heads if scope.has_session(head.id, head.owner)]
        self._lines = {head.id: [self._line_bounds(head.branch, head.head)] for head in in_scope}
        self._left_lines: dict[str, list[LineBounds]] = {
            head.id: [] for head in (in_scope if scope.left else ())
        }
        for branch, *_, session_id, _ in links if scope.left else ():
            if session_id in self._left_lines:
                self._left_lines[session_id].append(self._line_bounds(branch, NO_LIMIT))
        self._only: tuple[Holder, LineBounds] | None = None
        if len(in_scope) == 1 and not scope.left:
            session_id = in_scope[0].id
            self._only = Holder(session_id, on_line=True), self._lines[session_id][0]

    @cached_property
    def _last_positions(self) -> dict[int, int]:
        """The last position of each branch on any of the lines."""
        last: dict[int, int] = {}
        for line in chain(*self._lines.values(), *self._left_lines.values()):
            for branch, bounds in line.items():
                last[branch] = max(bounds.last, last.get(branch, 0))
        return last

    def _line_bounds(self, branch: int | None, last: int) -> LineBounds:
        """Return a line, from the end of a branch up to the root."""
        line: LineBounds = {}
        newest_record = NO_LIMIT
        while branch is not None:
            line[branch] = BranchBounds(last, newest_record)
            link = self._branches[branch]
            branch, last, newest_record = link.parent, min(last, link.position), link.records_seen
        return line

    def last_position(self, branch: int) -> int:
        """Return the last position of a branch on any of the lines; 0 if no line has any."""
        return self._last_positions.get(branch, 0)

    @property
    def session_ids(self) -> Collection[str]:
        """The sessions of the tree that are in the scope."""
        return self._lines.keys()

    def held_ranges(self) -> Iterator[tuple[int, int, int, str]]:
        """Yield ranges of positions, each with its branch and the session of its messages.

        That is the session that `find_holder` returns for each message of a range.
        """
        lines = [line for each in (self._lines, self._left_lines) for line in chain(*each.values())]
        for branch in self._last_positions:
            first = 1
            for last in sorted({line[branch].last for line in lines if branch in line}):
                holder = self.find_holder(branch, Origin(branch, last, 0))
                if holder is not None:
                    yield branch, first, last, holder.session_id
                first = last + 1

    def find_holder(self, branch: int, origin: Origin) -> Holder | None:
        """Return a session that has a row, preferably the one of its branch; otherwise None."""
        if self._only is not None:
            holder, line = self._only
            return holder if _holds_row(line, origin) else None
        return next(self.iterate_holders(branch, origin), None)

    def iterate_holders(self, branch: int, origin: Origin) -> Iterator[Holder]:
        """Yield the sessions that have a row, first the one of its branch; some may come twice."""
        if origin.position > self.last_position(origin.branch):
            return
        own = self._branches.get(branch)
        for lines in (self._lines, self._left_lines):
            first = [own.session_id] if own and own.session_id in lines else []
            for session_id in (*first, *lines):
                for line in lines[session_id]:
                    if _holds_row(line, origin):
                        yield Holder(session_id, on_line=lines is self._lines)


class SearchedTrees(dict[int, TreeLines]):
    """The trees that a search meets, each read once."""

    def __init__(self, connection: Connection, scope: Scope) -> None:
        super().__init__()
        self._connection, self._scope = connection, scope

    def load(self, tree_ids: Iterable[int]) -> None:
        """Read the trees that are not in the cache yet, all at once."""
        new = {each for each in tree_ids if each not in self}
        if not new:
            return
        trees = json.dumps([*new])
        links: dict[int, list[BranchLink]] = {each: [] for each in new}
        heads: dict[int, list[SessionHead]] = {each: [] for each in new}
        for tree_id, *row in TREE_BRANCHES.rows(self._connection, trees=trees):
            links[tree_id].append(BranchLink(*row))
        for tree_id, *row in TREE_SESSIONS.rows(self._connection, trees=trees):
            heads[tree_id].append(SessionHead(*row))
        for each in new:
            self[each] = TreeLines(links[each], heads[each], self._scope)

    def __missing__(self, tree_id: int) -> TreeLines:
        self.load([tree_id])
        return self[tree_id]
