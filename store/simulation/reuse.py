"""How much of what a session needs again is in sight: names that its model says again.

A model can only say a name that somebody told. Of the names that it says within the next messages
and that were told before a request, and by nobody since, the request had better have each: in a
message as it was said, or in what stands for others. Names are strings; of words and of meaning
they say nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ..messages import Message
from ..records import Entry, View
from ..tokens import message_text
from ..tools import Name, names_in

AHEAD = 60
"""Messages of what comes that count as what a request needs."""


class _Again(NamedTuple):
    """That the model says a name at one position which others told last at another."""

    said: int
    told: int
    name: Name


class Needs:
    """What each request of a session needs, and how much of it was seen in those looked at."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._told: dict[Name, list[int]] = defaultdict(list)
        self._again: list[_Again] = []
        self._by_others: dict[Name, int] = {}
        self.needed = self.seen = 0
        for position, message in enumerate(messages, 1):
            self._take(position, message)

    @property
    def share(self) -> float | None:
        """The share of what was needed that was in sight; None where nothing was."""
        return self.seen / self.needed if self.needed else None

    def look(self, view: View) -> None:
        """Count what the next request needs, and what a view has of it."""
        needed = self._needed(view.at)
        whole = {entry.seq for entry in view.entries if _is_whole(entry)}
        others = _names_of(entry for entry in view.entries if not _is_whole(entry))
        self.needed += len(needed)
        self.seen += sum(name in others or self._is_told(name, whole) for name in needed)

    def _take(self, position: int, message: Message) -> None:
        found = _names(message_text(message))
        if message.get("role") == "assistant":
            self._again += self._said_again(position, found)
        else:
            self._by_others |= dict.fromkeys(found, position)
        for name in found:
            self._told[name].append(position)

    def _said_again(self, position: int, found: Iterable[Name]) -> list[_Again]:
        known = sorted(name for name in found if name in self._told)
        return [_Again(position, self._last_told(name), name) for name in known]

    def _last_told(self, name: Name) -> int:
        """Return where a name was told last; what the model found by itself is told once."""
        return self._by_others.get(name, self._told[name][0])

    def _needed(self, at: int) -> set[Name]:
        """Return the names that a request behind a position needs."""
        first = bisect_right(self._again, at, key=_said)
        behind = bisect_left(self._again, at + AHEAD, key=_said)
        return {each.name for each in self._again[first:behind] if each.told <= at}

    def _is_told(self, name: Name, whole: set[int | None]) -> bool:
        return any(position in whole for position in self._told[name])


def _said(again: _Again) -> int:
    return again.said


def _is_whole(entry: Entry) -> bool:
    """Tell whether an entry is a message as it was said."""
    return entry.seq is not None and entry.rule in (None, "repair")


def _names_of(entries: Iterable[Entry]) -> set[Name]:
    texts = (message_text(entry.message) for entry in entries)
    return set[Name]().union(*map(_names, texts))


@lru_cache(maxsize=4_096)
def _names(text: str) -> frozenset[Name]:
    return frozenset(names_in(text))
