"""Where tool results stand among others, kept so that newer ones can be added.

What ``rules.sql`` finds by windows over all results is here found of the new ones alone. A result
is one of the newest or not; of each file it reads, enough newer reads are kept or not. Both only
ever turn one way, so of all others nothing is kept: of the newest those that have a slot, of each
file the reads up to the first that is stale.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

At = tuple[int, int]
"""The moment of a result and its position, by which results are ranked."""
Read = tuple[int, int, int]
"""The same of a read of a file, and how often it names the file."""
NONE, FRESH, STALE = 0, 2, 4
"""How a result stands among the reads of its files; the query ``rejudged`` knows these numbers."""


class Ranked(NamedTuple):
    """A result and one of the files it read, as far as ranks ask; a row of the query ``ranked``."""

    seq: int
    at: int | None
    takes_slot: int
    path: str | None
    mentions: int


class Files(NamedTuple):
    """How many files a result read, and of how many of them it is stale."""

    all: int = 0
    stale: int = 0


class Ranks:
    """The ranks of the results of a line, by what the rules' queries are given."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._slots, self._reads = values["terminal_keep"], values["file_read_keep"]
        self._any = bool(values["batch_any"])
        self._newest: list[At] = []
        self._fresh: dict[str, tuple[Read, ...]] = {}
        self._files: dict[int, Files] = {}
        self._moments: list[At] = []
        self._waiting: list[Ranked] = []

    def copy(self) -> Ranks:
        """Return the same ranks, to be added to."""
        other = object.__new__(Ranks)
        for name, value in vars(self).items():
            setattr(other, name, _copied(value))
        return other

    def meet(self, rows: Iterable[Ranked]) -> None:
        """Take in results that have no rank yet."""
        before = None
        for row in rows:
            self._waiting.append(row)
            if row.at is not None and row.seq != before:
                insort(self._moments, (row.at, row.seq))
            before = row.seq

    def rank(self, before: int) -> set[int]:
        """Rank what came before a position; return what that changes of any."""
        due = [row for row in self._waiting if row.seq < before]
        self._waiting = [row for row in self._waiting if row.seq >= before]
        touched: set[int] = set()
        seen = None
        for row in due:
            if row.takes_slot and row.seq != seen:
                touched.update(self._take_slot(row))
            if row.path is not None:
                touched.update(self._add_read(row, row.path))
            seen = row.seq
        return touched

    def aged(self, begin: int, end: int) -> Iterator[int]:
        """Yield the results of the moments from one up to another."""
        first = bisect_left(self._moments, (begin,))
        last = bisect_left(self._moments, (end,))
        return (seq for _, seq in self._moments[first:last])

    def of(self, places: Iterable[int]) -> dict[int, int]:
        """Return how results stand: among the reads, and 1 more for one of the newest."""
        newest = {seq for _, seq in self._newest}
        return {seq: self._among_reads(seq) + (seq in newest) for seq in places}

    def _among_reads(self, seq: int) -> int:
        files = self._files.get(seq)
        if files is None:
            return NONE
        enough = 1 if self._any else files.all
        return STALE if files.stale >= enough else FRESH

    def _take_slot(self, row: Ranked) -> Iterator[int]:
        insort(self._newest, (row.at or 0, row.seq))
        yield row.seq
        if len(self._newest) > self._slots:
            _, oldest = self._newest.pop(0)
            yield oldest

    def _add_read(self, row: Ranked, path: str) -> Iterator[int]:
        known = self._fresh.get(path, ())
        new = (row.at or 0, row.seq, row.mentions)
        reads = sorted((*known, new), reverse=True)
        fresh = self._count_fresh(reads)
        was_fresh = self._count_fresh(known)
        self._count(row.seq, Files(1, 0))
        stale = {*known[:was_fresh], new}.difference(reads[:fresh])
        for _, seq, _ in stale:
            self._count(seq, Files(0, 1))
            yield seq
        self._fresh[path] = tuple(reads[: fresh + 1])
        yield row.seq

    def _count_fresh(self, reads: Iterable[Read]) -> int:
        """Return how many of a file's reads, the newest first, are not stale."""
        through = accumulate(mentions for _, _, mentions in reads)
        return sum(count <= self._reads for count in through)

    def _count(self, seq: int, more: Files) -> None:
        known = self._files.get(seq, Files())
        self._files[seq] = Files(*map(add, known, more))


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict) else value
