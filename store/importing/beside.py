"""Notes on stored messages, made from the rows that a program kept beside its own messages.

A file that has grown may have more rows for a message. An unchanged note is not written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..errors import StoreError
from ..text import JsonFields
from ..transcripts import NoteEvent
from .names import AnySteps, ImportTarget


class ImportedNotes:
    """The notes of an imported session, by position, under one key."""

    def __init__(self, session_id: str) -> None:
        self._id = session_id
        self._key = ""
        self._told: dict[int, list[JsonFields]] = {}

    def add(self, place: int, key: str, rows: list[JsonFields]) -> None:
        """Keep the rows that belong to the message at a position."""
        self._key = key
        self._told.setdefault(place, []).extend(rows)

    def write(self, store: ImportTarget) -> Iterator[NoteEvent]:
        """Write the notes that the store does not have; yield a note for each refused one."""
        known = self._known(store) if self._told else {}
        for place, rows in self._told.items():
            if known.get(place) != rows:
                yield from self._write(store, place)

    def _known(self, store: ImportTarget) -> dict[int, object]:
        notes = store.annotations(self._id, key=self._key)
        return {note.seq: note.value for note in notes}

    def _write(self, store: ImportTarget, place: int) -> Iterator[NoteEvent]:
        try:
            store.atomically(partial(self._annotate, place))
        except StoreError as refused:
            text = f"what stands beside position {place} of {self._id!r} is left out: {refused}"
            yield NoteEvent(None, text, broken=True)

    def _annotate(self, place: int, steps: AnySteps) -> None:
        steps.annotate(self._id, place, self._key, self._told[place])
