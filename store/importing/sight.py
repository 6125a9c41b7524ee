"""Choose the messages of an imported line that a program's compaction hides.

A view needs every system message, the latest question, and the calls that wait for results. The
messages around these are hidden, in several ranges; the last range has the summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from ..records import Message

PositionSpan: TypeAlias = tuple[int, int]
"""The first and the last position of a range."""


class HidableRanges:
    """Follow a line message by message to find the messages that can be hidden.

    ``_callers`` are the positions of messages whose calls wait for results, by call id. ``_groups``
    holds each of these messages with its results, as long as one of its ``_waiting`` calls is left.
    """

    def __init__(self) -> None:
        self._system: set[int] = set()
        self._question = 0
        self._callers: dict[str, int] = {}
        self._groups: dict[int, list[int]] = {}
        self._waiting: Counter[int] = Counter()

    def take(self, message: Message, place: int) -> None:
        """Take the message at a position."""
        role = message.get("role")
        if role in ("system", "developer"):
            self._system.add(place)
        elif role == "user":
            self._question = place
        elif role == "tool":
            self._answer(message.get("tool_call_id"), place)
        else:
            self._call(message, place)

    def ranges(self, first: int, last: int) -> list[PositionSpan]:
        """Return the parts of a range that can be hidden."""
        return list(_list_gaps(first, last, sorted(self._staying())))

    def _call(self, message: Message, place: int) -> None:
        calls = message.get("tool_calls")
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            call_id = call.get("id") if isinstance(call, dict) else None
            self._callers[str(call_id) if call_id else f"{place}/{number}"] = place
            self._groups[place] = [place]
            self._waiting[place] += 1

    def _answer(self, call_id: object, place: int) -> None:
        caller = self._callers.pop(str(call_id), None)
        if caller is None:
            return
        self._groups[caller].append(place)
        self._waiting[caller] -= 1
        if not self._waiting[caller]:
            del self._groups[caller], self._waiting[caller]

    def _staying(self) -> set[int]:
        waiting = (place for caller in self._callers.values() for place in self._groups[caller])
        return {self._question, *self._system, *waiting}


def _list_gaps(first: int, last: int, staying: list[int]) -> Iterator[PositionSpan]:
    """Yield the parts of a range between the positions that stay."""
    for place in (*staying, last + 1):
        end = min(place - 1, last)
        if place >= first:
            if first <= end:
                yield first, end
            first = place + 1
