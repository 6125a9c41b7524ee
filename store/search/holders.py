"""Whose lines run through a message, and who had it and left it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from ..database import Statement, branches, sessions
from ..history import NEVER


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
    """A branch, what it hangs on and where, and whose it is."""

    branch: int
    parent: int | None
    position: int
    session_id: str | None


SESSIONS = Statement(
    select(sessions.c.id, sessions.c.owner, sessions.c.head_branch, sessions.c.head)
    .where(sessions.c.tree_id == bindparam("tree_id"))
    .order_by(sessions.c.id),
    row=Pointed,
)
BRANCHES = Statement(
    select(
        branches.c.branch,
        branches.c.parent_branch,
        branches.c.parent_position,
        branches.c.session_id,
    ).where(branches.c.tree_id == bindparam("tree_id")),
    row=Hung,
)


class Tree:
    """The sessions and the branches of a tree, as one transaction sees them."""

    def __init__(self, connection: Connection, tree_id: int, of: Of) -> None:
        hung = BRANCHES.rows(connection, tree_id=tree_id)
        self._branches = {each.branch: each for each in hung}
        known = SESSIONS.rows(connection, tree_id=tree_id)
        theirs = (each for each in known if of.has(each.id, each.owner))
        self._sessions = {each.id: each for each in theirs}
        self._left = of.left

    def holder(self, branch: int, seq: int) -> Holder | None:
        """Return a session that has a message, the one of its branch if possible; else None."""
        own = self._branches.get(branch)
        first = self._sessions.get(own.session_id or "") if own else None
        known = [*([first] if first else []), *self._sessions.values()]
        for session in known:
            if self._runs(session.branch, session.head, branch, seq):
                return Holder(session.id, on_line=True)
        return self._leaver(known, branch, seq) if self._left else None

    def _leaver(self, known: Iterable[Pointed], branch: int, seq: int) -> Holder | None:
        """Return a session one of whose branches leads through a message."""
        for session in known:
            for each in self._owned(session.id):
                if self._runs(each, NEVER, branch, seq):
                    return Holder(session.id, on_line=False)
        return None

    def _owned(self, session_id: str) -> Iterator[int]:
        for each in self._branches.values():
            if each.session_id == session_id:
                yield each.branch

    def _runs(self, at: int | None, last: int, branch: int, seq: int) -> bool:
        """Tell whether a line up to a position of a branch runs through a message."""
        while at is not None and last >= seq:
            if at == branch:
                return True
            hung = self._branches[at]
            at, last = hung.parent, min(last, hung.position)
        return False


class Trees(dict[int, Tree]):
    """The trees that a search meets, each read once."""

    def __init__(self, connection: Connection, of: Of) -> None:
        super().__init__()
        self._connection, self._of = connection, of

    def __missing__(self, tree_id: int) -> Tree:
        self[tree_id] = Tree(self._connection, tree_id, self._of)
        return self[tree_id]
