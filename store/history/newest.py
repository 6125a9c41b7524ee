"""The newest rows of a branch, kept in memory as they were read.

A chat app asks for the newest messages of a line at each turn, and had nearly all of them a turn
ago. So their rows stay in memory, and only what is new is read. They are rows and no messages: of
these a caller may change what he likes, and nobody can change texts and numbers. Most lines of a
large store are asked for once in a while, so rows are kept from the second time on.

**How it is known that what is kept is true.** A row never changes, and a branch only ever gets
longer. So what was read of its positions is what would be read of them again, wherever the heads of
sessions are. Redactions and erasures alone take back what was stored. They are counted, and the
count is read in the transaction that asks: where it is another one, all is read anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import chain
from sys import getsizeof
from typing import NamedTuple

from sqlalchemy import Connection

from ..database import Row, get_read_mark, get_reader_cache
from .changed import ChangeCounts, count_changes

MOST = 100
"""Positions of a branch that are kept, at most."""
FRAME = 1_000
"""Bytes that a line takes beside its rows."""


class Stored(NamedTuple):
    """Rows of messages and of their calls, in order, each with its position first."""

    messages: list[Row]
    calls: list[Row]

    @property
    def weight(self) -> int:
        """About how many bytes they take; in one pass, since rows hold nothing that nests."""
        rows = self.messages + self.calls
        return sum(map(getsizeof, chain(rows, *rows)))

    def part(self, first: int, last: int) -> Stored:
        """Return those of the positions ``first`` to ``last``."""
        return Stored(*(_part(rows, first, last) for rows in self))

    def followed_by(self, new: Stored) -> Stored:
        """Return these and new ones."""
        return Stored(self.messages + new.messages, self.calls + new.calls)


def _part(rows: list[Row], first: int, last: int) -> list[Row]:
    return rows[bisect_left(rows, (first,)) : bisect_left(rows, (last + 1,))]


NONE = Stored([], [])
Read = Callable[[Connection, dict[str, int]], Stored]
"""Reads the rows of a run."""


class Tail(NamedTuple):
    """The rows of a branch's positions ``first`` to ``last``, as they were behind some changes."""

    changes: ChangeCounts | None
    first: int
    last: int
    rows: Stored = NONE
    weight: int = 0

    def is_of_use(self, changes: ChangeCounts, first: int) -> bool:
        """Tell whether it is still true, and what is asked for from a position on goes on in it."""
        return self.changes == changes and self.first <= first <= self.last + 1

    def grown(self, first: int, last: int, new: Stored) -> Tail:
        """Return it with what is new; where that is too much, only what is asked for."""
        rows = self.rows.followed_by(new)
        if last - self.first < MOST:
            return Tail(self.changes, self.first, last, rows, self.weight + new.weight)
        rows = rows.part(first, last)
        return Tail(self.changes, first, last, rows, rows.weight)


ASKED_FOR = Tail(None, 0, 0)
"""Kept of what was asked for once."""


def newest_rows(read: Read, connection: Connection, run: dict[str, int]) -> Stored:
    """Return the rows of a run of at most `MOST` positions; what is not kept of them is read."""
    kept = get_reader_cache(connection)
    if kept is None:
        return read(connection, run)
    key = (run["tree_id"], "newest", run["branch"])
    known: Tail | None = kept.get(key)
    if known is None:
        kept.count(hit=False)
        kept.put(key, ASKED_FOR, FRAME, get_read_mark(connection))
        return read(connection, run)
    first, last = run["first"], run["last"]
    changes = count_changes(connection, run["tree_id"])
    is_of_use = known.is_of_use(changes, first)
    kept.count(hit=is_of_use)
    tail = known if is_of_use else Tail(changes, first, first - 1)
    if tail.last < last:
        tail = tail.grown(first, last, read(connection, {**run, "first": tail.last + 1}))
        kept.put(key, tail, FRAME + tail.weight, get_read_mark(connection))
    return tail.rows.part(first, last)
