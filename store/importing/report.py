"""The report of an import."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ..transcripts import NoteEvent


class ImportedSession(NamedTuple):
    """One session of a file: its messages and tool calls there, and its head in the store.

    ``appended`` counts the messages that were new to the store. ``differs_at`` is the first
    position at which the stored line differs, None if both agree as far as they go.
    """

    id: str
    messages: int
    appended: int
    head: int
    tool_calls: int
    differs_at: int | None


class ImportReport(NamedTuple):
    """The results of an import of one file.

    A ``broken`` note reports something that could not be read, was refused, or differs.
    ``lines`` is the number of lines read; a document counts as one.
    """

    path: Path
    kind: str
    sessions: list[ImportedSession]
    notes: list[NoteEvent]
    lines: int = 0

    @property
    def left_out(self) -> Counter[str]:
        """Return the number of things left out, by kind."""
        counts = Counter({note.thing: note.left_out for note in self.notes if note.thing})
        if broken := sum(note.broken for note in self.notes):
            counts["broken or refused part"] = broken
        return counts
