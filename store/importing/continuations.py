"""Find the messages of a file that the store already has, on the same line or on another.

A prompt that is taken back after an import is still on the stored line, while the file has it as a
session of its own. The line is then rewound, as the conversation was, and that session continues
the messages that the rewind left. When the current path of a conversation moves to a former branch,
the session of that branch already holds the messages that the file now has in another session. The
line then continues with the stored messages. So no message is stored twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice, takewhile
from operator import attrgetter
from typing import NamedTuple

from ..errors import SessionNotFound
from ..records import Message, Session, StoredMessage
from ..transcripts import Event, SessionEvent, SessionMessage
from .comparison import is_same_as_stored
from .session_ids import ImportTarget

SESSION_PAGE_SIZE = 100
"""Sessions listed at once."""


class TakenBackMessages(NamedTuple):
    """The messages that were taken back from a line after its position ``after``."""

    after: int
    messages: list[Message]


class StoredBeginning(NamedTuple):
    """The stored beginning of a session: the branch of another session, up to a position.

    ``branch`` None is the current branch of the other session.
    """

    session_id: str
    branch: int | None
    end: int


class EventLookahead:
    """The events of a file, which can be looked at before they are taken."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._held: deque[Event] = deque()

    def __iter__(self) -> Iterator[Event]:
        """Yield every event once; an event that was only looked at is still ahead."""
        while self._held or self._hold_next():
            yield self._held[0]
            self._held.popleft()

    def _hold_next(self) -> bool:
        self._held.extend(islice(self._events, 1))
        return bool(self._held)

    def rest(self) -> list[Message]:
        """Return the messages of the current session after the event that is looked at."""
        events = takewhile(lambda event: not isinstance(event, SessionEvent), self._all())
        return [
            event.message for event in islice(events, 1, None) if isinstance(event, SessionMessage)
        ]

    def _all(self) -> Iterator[Event]:
        """Yield the events from the one that is looked at; all of them stay ahead."""
        yield from self._held
        for event in self._events:
            self._held.append(event)
            yield event

    def stretches(self, session_id: str) -> dict[str, TakenBackMessages]:
        """Return the messages taken back from a session's line, by their sessions in the file.

        A session that continues such a session is returned with its share of those messages.
        """
        self._held.extend(self._events)
        found = {session_id: TakenBackMessages(0, [])}
        for opened, messages in _group_session_messages(self._held):
            if opened.stem and opened.stem.session_id in found:
                base = found[opened.stem.session_id]
                if not base.messages:
                    found[opened.session_id] = TakenBackMessages(opened.stem.after, messages)
                else:
                    found[opened.session_id] = TakenBackMessages(
                        base.after, [*base.messages[: opened.stem.after - base.after], *messages]
                    )
        del found[session_id]
        return found


def _group_session_messages(events: Iterable[Event]) -> list[tuple[SessionEvent, list[Message]]]:
    found: list[tuple[SessionEvent, list[Message]]] = []
    for event in events:
        if isinstance(event, SessionEvent):
            found.append((event, []))
        elif isinstance(event, SessionMessage) and found:
            found[-1][1].append(event.message)
    return found


def count_equal_pairs(
    same: Callable[[Message, Message], bool], pairs: Iterable[tuple[Message, Message]]
) -> int:
    """Return the number of pairs before the first pair that differs."""
    count = 0
    for stored, told in pairs:
        if not same(stored, told):
            break
        count += 1
    return count


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
