"""What a line shows, as values: what is kept of it, and the summaries that stand for the rest.

**A prefix, and ranges in what follows it.** A compaction hides a prefix: from one position on
everything is kept, and of what is before it only pinned messages stay. A range that somebody hid by
name lies anywhere behind that. It is a hole in what is kept, with a text in its place or nothing.

A later prefix may grow over a range. Then the range shows nothing more of its own: its text went
into the summary of the prefix, its messages are told nowhere. So all ranges are kept in mind here,
and `holes` are those that still show.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from ..messages import Message
from ..policy import Policy

T = TypeVar("T")
R = TypeVar("R", bound=tuple[Any, ...])
Span = tuple[int, int]
"""Positions, from the first to the last."""


class Standing(NamedTuple):
    """A summary that stands in a view for ``first`` to ``last``, with the facts sent with it."""

    number: int
    compaction: int | None
    first: int
    last: int
    body: str
    facts: str | None
    notice: str | None = None

    def message(self, policy: Policy) -> Message:
        """Return the message that a view sends."""
        return as_message(self.body, self.facts, policy)

    @property
    def why(self) -> str:
        """What a view says of it."""
        return f"stands for positions {self.first} to {self.last}, compaction {self.compaction}"


class Range(NamedTuple):
    """Positions that somebody hid by name, and the summary in their place, if any."""

    first: int
    last: int
    compaction: int | None
    summary: Standing | None = None

    @property
    def size(self) -> int:
        """How many messages are hidden."""
        return self.last - self.first + 1

    def holds(self, position: int) -> bool:
        """Tell whether a position is hidden."""
        return self.first <= position <= self.last

    def covers(self, other: Range) -> bool:
        """Tell whether all that another range hides is hidden."""
        return self.first <= other.first and other.last <= self.last


class Visible(NamedTuple):
    """What a line shows: pinned positions, summaries, then everything from ``first_kept`` on.

    But for ``ranges`` that were hidden by name: in order, none within another. ``cleared`` names
    the rule of each result that a recorded clearing replaces, by its position.
    """

    first_kept: int
    pinned: tuple[int, ...]
    summaries: tuple[Standing, ...]
    cleared: dict[int, str]
    ranges: tuple[Range, ...] = ()

    @property
    def holes(self) -> tuple[Range, ...]:
        """The ranges in what is kept."""
        if not self.ranges:
            return ()
        return tuple(each for each in self.ranges if each.last >= self.first_kept)

    @property
    def standing(self) -> tuple[Standing, ...]:
        """All summaries that stand: those of the prefix, then those of the holes."""
        if not self.ranges:
            return self.summaries
        return (*self.summaries, *summaries_of(self.holes))

    def without(
        self, first_kept: int, pinned: Iterable[int], released: Iterable[int] = ()
    ) -> Visible:
        """Return what stays when all before a position is hidden too, but the pinned ones.

        Of those that were pinned until now the released ones go with it.
        """
        places = {*self.pinned, *pinned} - {*released}
        return self._replace(first_kept=first_kept, pinned=tuple(sorted(places)))

    def hiding(self, later: Range) -> Visible:
        """Return what is left when a range is hidden, too; it takes the place of those in it."""
        beside = (each for each in self.ranges if not later.covers(each))
        return self._replace(ranges=tuple(sorted((*beside, later))))

    def shows(self, position: int) -> bool:
        """Tell whether no range hides a position."""
        return not any(each.holds(position) for each in self.ranges)

    def of_shown(self, found: dict[int, T]) -> dict[int, T]:
        """Return what is said of positions that no range hides."""
        if not self.ranges:
            return found
        return {position: said for position, said in found.items() if self.shows(position)}

    def rows_shown(self, rows: list[R]) -> list[R]:
        """Return the rows that no range hides; each begins with its position, and so they come."""
        if not self.ranges or not rows:
            return rows
        found = (
            rows[bisect_left(rows, (first,)) : bisect_left(rows, (last + 1,))]
            for first, last in self.spans(rows[0][0], rows[-1][0])
        )
        return [*chain.from_iterable(found)]

    def spans(self, first: int, last: int) -> Iterable[Span]:
        """Return the stretches of positions that are left between the ranges, in order."""
        if not self.ranges:
            return ((first, last),) if first <= last else ()
        return self._between(first, last)

    def _between(self, first: int, last: int) -> Iterator[Span]:
        for each in self.ranges:
            if each.first > last:
                break
            if first < each.first:
                yield first, each.first - 1
            first = max(first, each.last + 1)
        if first <= last:
            yield first, last

    def hole_around(self, place: int) -> Range | None:
        """Return the hole that a cut before a position would fall into."""
        around = (each for each in self.holes if each.first < place <= each.last)
        return next(around, None)


def summaries_of(ranges: Iterable[Range]) -> tuple[Standing, ...]:
    """Return the summaries that stand for ranges."""
    return tuple(each.summary for each in ranges if each.summary)


def as_message(text: str, facts: str | None, policy: Policy) -> Message:
    """Return a summary and its facts as the message that a view sends."""
    said = _joined("\n\n", text, facts, policy.recall_notice if policy.recall else None)
    whole = _joined("\n", policy.summary_heading, said)
    return {"role": _role(policy), "content": whole}


def _joined(separator: str, *texts: str | None) -> str:
    """Return the texts that there are as one."""
    return separator.join(filter(None, texts))


def _role(policy: Policy) -> str:
    """Return the role of a summary; one to be merged goes into a system message."""
    return "system" if policy.summary_role == "merge" else policy.summary_role
