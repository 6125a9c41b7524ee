"""Stored rows of messages and calls, and what builds the messages of formats among them again.

A row of a chat becomes its message in one step. A message of a format is built by the template of
its shape, which has to be found in its rows. Rows that stay in memory need that once: who reads the
newest messages again is given them from the templates and values that were found before.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain
from operator import is_
from sys import getsizeof
from typing import NamedTuple

from ..database import Row
from ..formats import KeptMessage, ShapedRow, keep_message
from ..records import StoredMessage, make_stored_message

KEPT_BYTES = 1_000
"""Bytes of the parts that build a message of a format, without its texts and call arguments."""


class KeptRows(NamedTuple):
    """The rows of a whole message of a format that stay in memory, and what builds it of them."""

    rows: list[Row]
    message: KeptMessage

    def begins(self, rows: list[Row], place: int) -> bool:
        """Tell whether its own rows are at a place among rows."""
        there = rows[place : place + len(self.rows)]
        return len(there) == len(self.rows) and all(map(is_, there, self.rows))


class StoredRows(NamedTuple):
    """Rows of messages and of their calls, in order, each with its position first.

    ``kept`` has messages of formats that were read before, by their first positions; None where the
    rows do not stay in memory.
    """

    messages: list[Row]
    calls: list[Row]
    kept: dict[int, KeptRows] | None = None

    @property
    def weight(self) -> int:
        """About how many bytes they take; one pass is enough, since rows are not nested.

        What builds a message of a format has its texts in common with its row.
        """
        rows = self.messages + self.calls
        size = sum(map(getsizeof, chain(rows, *rows)))
        formatted = sum(row[3] is not None for row in self.messages)
        if formatted:
            size += KEPT_BYTES * formatted + sum(map(getsizeof, chain(*self.calls)))
        return size

    def part(self, first: int, last: int) -> StoredRows:
        """Return the rows of the positions ``first`` to ``last``."""
        messages, calls = (
            rows[bisect_left(rows, (first,)) : bisect_left(rows, (last + 1,))] for rows in self[:2]
        )
        return StoredRows(messages, calls, self.kept)

    def followed_by(self, new: StoredRows) -> StoredRows:
        """Return these rows followed by new ones."""
        kept = new.kept if self.kept is None else self.kept
        return StoredRows(self.messages + new.messages, self.calls + new.calls, kept)

    def keep(self, rows: list[Row], shaped: list[ShapedRow], *, is_alone: bool = False) -> None:
        """Keep what builds a message of its rows, if they stay in memory."""
        if self.kept is None:
            return
        if made := keep_message(shaped, is_alone=is_alone):
            self.kept[rows[0][0]] = KeptRows(rows, made)

    def count_leading(self, most: int) -> int | None:
        """Return how many rows before these belong to the same message, None if it is not kept."""
        first = self.messages[0]
        for before in range(most + 1) if self.kept else ():
            kept = self.kept.get(first[0] - before) if self.kept else None
            if kept and before < len(kept.rows) and kept.rows[before] is first:
                return before
        return None

    def restore_kept(self) -> list[StoredMessage] | None:
        """Return the messages of these rows, if all are kept, as most are that are read again."""
        rows, known = self.messages, self.kept or {}
        restored: list[StoredMessage] = []
        place = 0
        while place < len(rows):
            row = rows[place]
            kept = known.get(row[0])
            if kept is None or kept.rows[0] is not row:
                return None
            count = len(kept.rows)
            if count > 1:
                if not kept.begins(rows, place):
                    return None
                row = kept.rows[-1]
            place += count
            restored.append(make_stored_message((row[0], kept.message.restore(), row[1], row[2])))
        return restored

    def find_kept(self, place: int) -> KeptRows | None:
        """Return the kept message whose rows begin at an index."""
        kept = self.kept.get(self.messages[place][0]) if self.kept else None
        return kept if kept and kept.begins(self.messages, place) else None


NO_STORED_ROWS = StoredRows([], [])
NO_CALL_ROWS: list[Row] = []
