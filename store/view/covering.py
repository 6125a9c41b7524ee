"""The lines of files in kept reads, and whether they cover the lines of other reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..database import Row
from ..history import NO_LIMIT

FileLineRange = tuple[int, int]
"""Lines of a file, from the first to the last."""


class FileRead(NamedTuple):
    """Lines of a file that were read; ``contiguous``: in one piece."""

    path: str | None
    lines: FileLineRange
    contiguous: int


class KeptReads:
    """The lines of each file that are kept, in the reads seen so far."""

    def __init__(self) -> None:
        self._spans: dict[str | None, list[FileLineRange]] = {}

    def add(self, reads: Iterable[FileRead]) -> None:
        """Keep reads, except those that are not in one piece, which cover nothing."""
        for read in reads:
            if read.contiguous:
                self._spans.setdefault(read.path, []).append(read.lines)

    def cover(self, reads: Iterable[FileRead]) -> bool:
        """Tell whether the kept lines include every line of other reads."""
        return all(map(self._covers, reads))

    def _covers(self, read: FileRead) -> bool:
        kept = self._spans.get(read.path, [])
        first, last = read.lines
        for low, high in sorted(kept):
            if low > first:
                return False
            first = max(first, high + 1)
            if first > last:
                return True
        return first > last


def parse_file_read(row: Row) -> FileRead:
    """Return the read in a row of the query ``covered``."""
    _, path, first, last, contiguous = row
    return FileRead(path, (first or 1, last or NO_LIMIT), contiguous)
