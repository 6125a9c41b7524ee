"""Find messages of a file that the store already has in another session of the same tree.

When the current path of a conversation moves to a former branch, the session of that branch already
holds the messages that the file now has in another session. The line then continues with the stored
messages, so that no message is stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from operator import attrgetter

from ..errors import SessionNotFound
from ..records import Message, Session, StoredMessage
from .left import StoredBeginning, count_equal_pairs
from .likeness import is_same_as_stored
from .names import ImportTarget

SESSION_PAGE_SIZE = 100
"""Sessions listed at once."""


class ContinuationSearch:
    """The sessions of a tree that may have the next messages of a file, unread in the file so far.

    ``told`` are the ids of the sessions already read from the file. ``left`` gives the place of
    each session that a rewind left. ``coming`` returns the next messages of the current session.
    """

    def __init__(
        self,
        store: ImportTarget,
        tree: str,
        told: set[str],
        left: dict[str, StoredBeginning],
        coming: Callable[[], list[Message]],
    ) -> None:
        self._store, self._tree = store, tree
        self._told, self._left, self._coming = told, left, coming

    def find(self, home: str, place: int, *first: Message) -> StoredBeginning | None:
        """Return the place of the longest run of the next messages after a position of a line.

        It is on another line that is equal up to the position; None if no line continues so.
        """
        others = [*self._others(home)]
        said = [*first, *self._coming()] if others else []
        found = (self._kept(each, home, place, said) for each in others)
        return max(filter(None, found), key=attrgetter("end"), default=None)

    def _others(self, home: str) -> Iterator[StoredBeginning]:
        """Yield the lines that may continue as a session does, each up to its end."""
        if home in self._left:
            yield self._left[home]
        for each in self._sessions:
            if each.id not in {home, *self._told}:
                yield StoredBeginning(each.id, None, each.head)

    @cached_property
    def _sessions(self) -> list[Session]:
        found: list[Session] = []
        with suppress(SessionNotFound):
            while page := self._page(found):
                found += page
        return found

    def _page(self, found: list[Session]) -> list[Session]:
        last = found[-1] if found else None
        return self._store.sessions(limit=SESSION_PAGE_SIZE, tree=self._tree, after=last)

    def _kept(
        self, other: StoredBeginning, home: str, place: int, said: list[Message]
    ) -> StoredBeginning | None:
        """Return the part of another line that has the messages; None if it has none of them."""
        end = min(place + len(said), other.end)
        stored = self._line(other, place + 1, end)
        same = count_equal_pairs(
            is_same_as_stored, zip((each.message for each in stored), said, strict=False)
        )
        mine = self._line(StoredBeginning(home, None, place), 1, place) if same else []
        if not same or _list_digests(mine) != _list_digests(self._line(other, 1, place)):
            return None
        return other._replace(end=place + same)

    def _line(self, kept: StoredBeginning, first: int, last: int) -> list[StoredMessage]:
        """Return the messages of a range of a line, which may be empty."""
        read = partial(self._store.messages, kept.session_id, branch=kept.branch)
        return read(first, last) if first <= last else []


def _list_digests(line: list[StoredMessage]) -> list[bytes]:
    return [each.digest for each in line]
