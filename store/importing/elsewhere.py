"""Messages of a file that the store has already, in another session of the same tree.

Where the present path of a conversation moves to what was a branch, the session of that branch has
what the file says now of another one. So the line goes on with that: no message is stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from operator import attrgetter

from ..errors import SessionNotFound
from ..messages import Message
from ..records import Session, StoredMessage
from .left import Kept, count_while
from .likeness import same_said
from .names import Face

PAGE = 100
"""Sessions listed at once."""


class Elsewhere:
    """Where a tree may have what its file says next: in sessions that the file has not told of yet.

    ``told`` are the ids of those that it has; of a session that a rewind left, ``left`` says where
    that is. ``coming`` gives the messages that the file has next of its present session.
    """

    def __init__(
        self,
        store: Face,
        tree: str,
        told: set[str],
        left: dict[str, Kept],
        coming: Callable[[], list[Message]],
    ) -> None:
        self._store, self._tree = store, tree
        self._told, self._left, self._coming = told, left, coming

    def find(self, home: str, place: int, *first: Message) -> Kept | None:
        """Return where most of what comes stands behind a position of a session's line.

        That is on another line which is the same up to there; None where none goes on so.
        """
        others = [*self._others(home)]
        said = [*first, *self._coming()] if others else []
        found = (self._kept(each, home, place, said) for each in others)
        return max(filter(None, found), key=attrgetter("end"), default=None)

    def _others(self, home: str) -> Iterator[Kept]:
        """Yield the lines that may go on as a session does, to their ends."""
        if home in self._left:
            yield self._left[home]
        for each in self._sessions:
            if each.id not in {home, *self._told}:
                yield Kept(each.id, None, each.head)

    @cached_property
    def _sessions(self) -> list[Session]:
        found: list[Session] = []
        with suppress(SessionNotFound):
            while page := self._page(found):
                found += page
        return found

    def _page(self, found: list[Session]) -> list[Session]:
        last = found[-1] if found else None
        return self._store.sessions(limit=PAGE, tree=self._tree, after=last)

    def _kept(self, other: Kept, home: str, place: int, said: list[Message]) -> Kept | None:
        """Return up to where another line has what is said; None where it has nothing of it."""
        end = min(place + len(said), other.end)
        stored = self._line(other, place + 1, end)
        same = count_while(same_said, zip((each.message for each in stored), said, strict=False))
        mine = self._line(Kept(home, None, place), 1, place) if same else []
        if not same or _digests(mine) != _digests(self._line(other, 1, place)):
            return None
        return other._replace(end=place + same)

    def _line(self, kept: Kept, first: int, last: int) -> list[StoredMessage]:
        """Return a stretch of a line, which may have no message."""
        read = partial(self._store.messages, kept.session_id, branch=kept.branch)
        return read(first, last) if first <= last else []


def _digests(line: list[StoredMessage]) -> list[bytes]:
    return [each.digest for each in line]
