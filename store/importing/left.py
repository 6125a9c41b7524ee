"""Read ahead in a file for turns that were taken back and that a stored line still has.

A prompt that is taken back after an import is still on the stored line, while the file has it as a
session of its own. The line is then rewound, as the conversation was, and that session continues
the messages that the rewind left, so that no message is stored twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from ..records import Message
from ..transcripts import Event, SessionEvent, SessionMessage


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
