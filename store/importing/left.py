"""What a file tells of turns that were taken back, read ahead where a stored line still has them.

A prompt that is taken back after an import stands on the stored line, and in the file as a session
of its own. The line is rewound then, as the conversation was, and that session continues what the
rewind left: no message is stored twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from ..messages import Message
from ..transcripts import Event, Opened, Said, Stem


class Stretch(NamedTuple):
    """What was taken back of a line, behind its position ``after``."""

    after: int
    messages: list[Message]


class Kept(NamedTuple):
    """Where the beginning of a session stands already: on another one's branch, up to a position.

    ``branch`` None is the one that the other session is on.
    """

    session_id: str
    branch: int | None
    end: int


class Ahead:
    """A file's events, which can be looked at before they are taken."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._held: deque[Event] = deque()

    def __iter__(self) -> Iterator[Event]:
        """Yield every event once; the one that is looked at is still ahead."""
        while self._held or self._hold_next():
            yield self._held[0]
            self._held.popleft()

    def _hold_next(self) -> bool:
        self._held.extend(islice(self._events, 1))
        return bool(self._held)

    def rest(self) -> list[Message]:
        """Return the messages of the present session behind the event that is looked at."""
        events = takewhile(lambda event: not isinstance(event, Opened), self._all())
        return [event.message for event in islice(events, 1, None) if isinstance(event, Said)]

    def _all(self) -> Iterator[Event]:
        """Yield the events from the one on that is looked at; all of them stay ahead."""
        yield from self._held
        for event in self._events:
            self._held.append(event)
            yield event

    def stretches(self, session_id: str) -> dict[str, Stretch]:
        """Return what was taken back of a session's line, by the sessions that it is in the file.

        What continues such a session is told with what it has of that.
        """
        self._held.extend(self._events)
        found = {session_id: Stretch(0, [])}
        for opened, messages in _sessions(self._held):
            if opened.stem and opened.stem.session_id in found:
                base = found[opened.stem.session_id]
                found[opened.session_id] = _continued(base, opened.stem, messages)
        del found[session_id]
        return found


def _sessions(events: Iterable[Event]) -> list[tuple[Opened, list[Message]]]:
    found: list[tuple[Opened, list[Message]]] = []
    for event in events:
        if isinstance(event, Opened):
            found.append((event, []))
        elif isinstance(event, Said) and found:
            found[-1][1].append(event.message)
    return found


def _continued(base: Stretch, stem: Stem, messages: list[Message]) -> Stretch:
    """Return a stretch behind the line itself, or behind a part of another stretch."""
    if not base.messages:
        return Stretch(stem.after, messages)
    return Stretch(base.after, [*base.messages[: stem.after - base.after], *messages])


def count_while(
    same: Callable[[Message, Message], bool], pairs: Iterable[tuple[Message, Message]]
) -> int:
    """Return how many pairs there are before the first that is not the same."""
    count = 0
    for stored, told in pairs:
        if not same(stored, told):
            break
        count += 1
    return count
