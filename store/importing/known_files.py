"""Know a file again that has not changed since its import, by a look at its end.

After an import that leaves nothing to do, the store remembers the file and the revisions of its
sessions. The next import of the same file then reports the same result without reading it.
Anything else that could make it find something else makes it read the file: another release,
another option, a session that was changed, moved, compacted otherwise or erased.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ..errors import SessionNotFound, StoreError
from ..records import FilePath
from ..release import find_release
from ..text import JsonFields
from ..transcripts import NoteEvent, is_whole_file
from .session import ImportedSession, ImportReport
from .session_ids import AnySteps, ImportTarget

TAIL_SIZE = 16 * 1024
"""Bytes at the end of a file that are looked at."""

SessionEnds: TypeAlias = list[tuple[str, bool]]
"""Of each session the revision after its import, and whether it has compactions or notes."""
FileMark = list[list[Any]]
"""The size, the times, the number and the digest of the end of a file, and of its log if any."""


class FileLook(NamedTuple):
    """A file as it is before it is read: its path, its mark, and the options of its import."""

    file: str
    mark: FileMark
    asked: str

    def ask(self, *options: object) -> FileLook:
        """Return the look of an import with more options."""
        return self._replace(asked=f"{self.asked} {options!r}")


class KnownSession(NamedTuple):
    """A session of a known file: its report, and the revision after it.

    ``beside`` is a digest of its compactions and notes, None if the file has neither.
    """

    report: list[Any]
    revision: str
    beside: str | None


def look_at_file(path: FilePath, *options: object) -> FileLook | None:
    """Return a file as it is now, with options of its import; None if it cannot be known again."""
    place = Path(path).absolute()
    try:
        if not place.is_file() or not is_whole_file(place):  # a pipe would be waited for
            return None
        files = (place, place.with_name(f"{place.name}-wal"))
        mark = [_read_mark(file) for file in files if file.is_file()]
    except OSError:
        return None  # reading it will report the problem
    return FileLook(str(place), mark, find_release()).ask(*options)


def _read_mark(path: Path) -> list[Any]:
    with path.open("rb") as file:
        told = os.fstat(file.fileno())
        file.seek(max(0, told.st_size - TAIL_SIZE))
        tail = blake2b(file.read(TAIL_SIZE), digest_size=16).hexdigest()
    return [told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino, tail]


def find_known_report(store: ImportTarget, path: FilePath, look: FileLook) -> ImportReport | None:
    """Return the report of importing a file again that is known and unchanged, otherwise None."""
    try:
        known = json.loads(store.file_state(look.file) or "{}")
        sessions = [KnownSession(*each) for each in known["sessions"]]
        is_same = (known["mark"], known["asked"]) == look[1:]
    except (ValueError, LookupError, TypeError):
        return None  # nothing is remembered, or another text
    if not is_same or not store.reading(partial(_are_unchanged, sessions=sessions)):
        return None
    found = [ImportedSession(*each.report) for each in sessions]
    notes = [NoteEvent(*each) for each in known["notes"]]
    return ImportReport(Path(path), known["kind"], found, notes, known["lines"])


def _are_unchanged(steps: AnySteps, sessions: list[KnownSession]) -> bool:
    with suppress(SessionNotFound):
        return all(
            steps.session(each.report[0]).revision == each.revision
            and (each.beside is None or _digest_beside(steps, each.report[0]) == each.beside)
            for each in sessions
        )
    return False


def _digest_beside(steps: AnySteps, session_id: str) -> str:
    """Return a digest of a session's compactions and notes, which an import may add again."""
    told = [steps.compactions(session_id), steps.annotations(session_id)]
    return blake2b(repr(told).encode("utf-8", "replace"), digest_size=16).hexdigest()


def remember_file(
    store: ImportTarget, look: FileLook, report: ImportReport, ends: SessionEnds
) -> None:
    """Remember an imported file with the ends of its sessions, unless it has changed since."""
    now = look_at_file(look.file)
    if now is None or now.mark != look.mark:
        return
    sessions = store.reading(partial(_describe_sessions, report=report, ends=ends))
    state: JsonFields = {**look._asdict(), "kind": report.kind, "lines": report.lines}
    state |= {"sessions": sessions, "notes": report.notes}
    with suppress(StoreError):  # the file is imported; another import may have remembered it
        store.set_file_state(look.file, json.dumps(state))


def _describe_sessions(
    steps: AnySteps, report: ImportReport, ends: SessionEnds
) -> list[KnownSession]:
    return [
        KnownSession(
            [*each._replace(appended=0)],
            revision,
            _digest_beside(steps, each.id) if has_more else None,
        )
        for each, (revision, has_more) in zip(report.sessions, ends, strict=True)
    ]
