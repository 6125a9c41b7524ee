"""The messages of forks that stand beside those of a session: answers that were made anew.

A program that keeps alternatives is imported as a session and its forks. They share a beginning;
where a fork leaves the line of a session, its next message is a sibling of the session's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple

from .. import Scoped, Store
from ..records import Session

MOST_FORKS = 300
"""Sessions of a tree that are looked at, archived ones apart."""
ParentBranches = Mapping[int, tuple[int | None, int]]
"""The branch that each branch continues, and the position from which it does."""
LineBranches = Iterator[tuple[int, int]]
"""The branches of a line from its end, each with the last position that it holds."""


class ForkSibling(NamedTuple):
    """The first message of a fork that is not on the line of a session.

    It is at the position ``seq``, and held by ``branch``; ``is_older`` tells whether that branch
    was made before the one that holds the session's own message there.
    """

    session: Session
    seq: int
    branch: int
    is_older: bool


def find_fork_siblings(store: Store | Scoped, session: Session) -> dict[int, list[ForkSibling]]:
    """Return the siblings on other sessions of a session's tree, by position, the oldest first.

    Of forks that share the sibling one stands for all. What the session itself has left, and
    `siblings` lists, is not among them.
    """
    sessions = list_sessions_of_tree(store, session.id)
    if len(sessions) < 2:
        return {}
    branches = {one.id: store.branches(one.id) for one in sessions}
    held = [each for some in branches.values() for each in some]
    parents = {each.branch: (each.parent, each.forked_at) for each in held}
    own = dict(_climb(parents, session.branch, session.head))
    known = {
        _find_departure(own, _climb(parents, each.branch, each.head))
        for each in branches.get(session.id, ())
    }
    found: dict[int, list[ForkSibling]] = defaultdict(list)
    for other in sorted(sessions, key=lambda each: each.branch):
        departure = _find_departure(own, _climb(parents, other.branch, other.head))
        if departure and departure not in known and departure[0] <= session.head:
            known.add(departure)
            seq, branch = departure
            holders = [each for each in own if own[each] >= seq]
            beside = min(holders, key=own.__getitem__)
            found[seq].append(ForkSibling(other, seq, branch, branch < beside))
    for some in found.values():
        some.sort(key=attrgetter("branch"))
    return dict(found)


def list_sessions_of_tree(store: Store | Scoped, session_id: str) -> list[Session]:
    """Return a session with the forks of its tree, archived ones last."""
    return [
        each
        for archived in (False, True)
        for each in store.sessions(tree=session_id, limit=MOST_FORKS, archived=archived)
    ]


def _climb(parents: ParentBranches, branch: int | None, last: int) -> LineBranches:
    """Yield the branches of a line from its end, each with the last position that it holds."""
    while branch is not None:
        yield branch, last
        branch, forked_at = parents.get(branch, (None, 0))
        last = min(last, forked_at)


def _find_departure(own: Mapping[int, int], line: LineBranches) -> tuple[int, int] | None:
    """Return the first position of a line that is not on another, and the branch that holds it."""
    child: int | None = None
    for branch, last in line:
        if branch in own:
            shared = min(last, own[branch])
            holder = branch if last > shared else child
            return None if holder is None else (shared + 1, holder)
        child = branch
    return None
