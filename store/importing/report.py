"""What became of a file that was imported."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ..transcripts import Noted


class ImportedSession(NamedTuple):
    """One session of a file: how many messages and tool calls it has there, and its head now.

    ``appended`` messages were new to the store. ``differs_at`` is the first position at which the
    stored line says something else, None where both agree as far as they go.
    """

    id: str
    messages: int
    appended: int
    head: int
    tool_calls: int
    differs_at: int | None


class ImportReport(NamedTuple):
    """What became of a file.

    A note that is ``broken`` tells of something that could not be read, was refused, or differs.
    ``lines`` are how many were read; a document is one.
    """

    path: Path
    kind: str
    sessions: list[ImportedSession]
    notes: list[Noted]
    lines: int = 0

    @property
    def left_out(self) -> Counter[str]:
        """Return how many there are of each thing that was left out."""
        counts = Counter({note.thing: note.left_out for note in self.notes if note.thing})
        if broken := sum(note.broken for note in self.notes):
            counts["broken or refused part"] = broken
        return counts
