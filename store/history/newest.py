"""The newest rows of a branch, kept in memory as they were read.

A chat app asks for the newest messages of a line at each turn, and read nearly all of them a turn
ago. So their rows stay in memory, and only new rows are read. The cache holds rows, not messages: a
caller may change a message, but texts and numbers are immutable. Most lines of a large store are
read once in a while, so rows are kept from the second read on.

**Why the cached rows are valid.** A row never changes, and a branch only ever gets longer. So
reading the same positions again would give the same rows, wherever the heads of sessions are. Only
redactions and erasures take back stored rows. They are counted, and the count is read in the
transaction of each request: if it has changed, all rows are read anew.
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

MAX_NEWEST_ROWS = 100
"""The most positions of a branch that are kept."""
TAIL_OVERHEAD_BYTES = 1_000
"""Bytes that a line takes in addition to its rows."""


class StoredRows(NamedTuple):
    """Rows of messages and of their calls, in order, each with its position first."""

    messages: list[Row]
    calls: list[Row]

    @property
    def weight(self) -> int:
        """About how many bytes they take; one pass is enough, since rows are not nested."""
        rows = self.messages + self.calls
        return sum(map(getsizeof, chain(rows, *rows)))

    def part(self, first: int, last: int) -> StoredRows:
        """Return the rows of the positions ``first`` to ``last``."""
        return StoredRows(
            *(rows[bisect_left(rows, (first,)) : bisect_left(rows, (last + 1,))] for rows in self)
        )

    def followed_by(self, new: StoredRows) -> StoredRows:
        """Return these rows followed by new ones."""
        return StoredRows(self.messages + new.messages, self.calls + new.calls)


NO_STORED_ROWS = StoredRows([], [])
RunReader = Callable[[Connection, dict[str, int]], StoredRows]
"""Reads the rows of a run."""


class BranchTail(NamedTuple):
    """The rows of a branch's positions ``first`` to ``last``, valid as of a count of changes."""

    changes: ChangeCounts | None
    first: int
    last: int
    rows: StoredRows = NO_STORED_ROWS
    weight: int = 0

    def is_of_use(self, changes: ChangeCounts, first: int) -> bool:
        """Tell whether it is still valid, and holds or adjoins a run that starts at a position."""
        return self.changes == changes and self.first <= first <= self.last + 1

    def grown(self, first: int, last: int, new: StoredRows) -> BranchTail:
        """Return it with new rows; if these are too many, only the rows that are asked for."""
        rows = self.rows.followed_by(new)
        if last - self.first < MAX_NEWEST_ROWS:
            return BranchTail(self.changes, self.first, last, rows, self.weight + new.weight)
        rows = rows.part(first, last)
        return BranchTail(self.changes, first, last, rows, rows.weight)


EMPTY_TAIL = BranchTail(None, 0, 0)
"""The entry for rows that were asked for once."""


def load_newest_rows(read: RunReader, connection: Connection, run: dict[str, int]) -> StoredRows:
    """Return the rows of a run of at most `MAX_NEWEST_ROWS` positions; read those not kept."""
    kept = get_reader_cache(connection)
    if kept is None:
        return read(connection, run)
    key = (run["tree_id"], "newest", run["branch"])
    known: BranchTail | None = kept.get(key)
    if known is None:
        kept.count(hit=False)
        kept.put(key, EMPTY_TAIL, TAIL_OVERHEAD_BYTES, get_read_mark(connection))
        return read(connection, run)
    first, last = run["first"], run["last"]
    changes = count_changes(connection, run["tree_id"])
    is_of_use = known.is_of_use(changes, first)
    kept.count(hit=is_of_use)
    tail = known if is_of_use else BranchTail(changes, first, first - 1)
    if tail.last < last:
        tail = tail.grown(first, last, read(connection, {**run, "first": tail.last + 1}))
        kept.put(key, tail, TAIL_OVERHEAD_BYTES + tail.weight, get_read_mark(connection))
    return tail.rows.part(first, last)
