"""Follow growing files by looking at their sizes and times at intervals.

A look takes a thousandth of a second for each few hundred files. Looking takes a fixed share of the
time for any number of files: the wait before the next look is a multiple of the time of the last.
Folders are walked again when one of them has changed, so that new files are found.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..transcripts import FilePath
from .folders import TranscriptFile, find_folders, find_transcript_files

LOOK_PAUSE = 1.0
"""Seconds between two looks, at least."""
LOOK_SHARE = 1 / 150
"""The share of one processor that looking may take."""
WALK_INTERVAL = 300
"""Looks after which folders are walked again, even if no file time shows a change."""

DATABASE_ENDINGS = (".db", ".vscdb", ".sqlite3")
"""Endings of the names of programs' databases; new rows are first in the log beside the file."""

FileState = tuple[int, ...]
"""The size of a file and the time of its last write (ns); for a database, those of its log too."""


class GrowingFiles:
    """The files of some paths; each look returns those that have changed since the last look."""

    def __init__(self, paths: Iterable[Path], own: FilePath | None = None) -> None:
        self._paths = list(paths)
        self._own = own
        self._looks = 0
        self._folders: dict[Path, FileState | None] = {}
        self._files: list[TranscriptFile] = []
        self._seen: dict[Path, FileState | None] = {}

    def rounds(self) -> Iterator[list[TranscriptFile]]:
        """Yield all files first, then the changed ones, forever; wait in between."""
        yield self.look()
        pause = LOOK_PAUSE
        while True:
            time.sleep(pause)
            began = time.thread_time()
            changed = self.look()
            pause = max(LOOK_PAUSE, (time.thread_time() - began) / LOOK_SHARE)
            if changed:
                yield changed

    def look(self) -> list[TranscriptFile]:
        """Return the files that are new or have changed since the last look."""
        if self._looks % WALK_INTERVAL == 0 or self._has_moved():
            self._walk()
        self._looks += 1
        return [file for file in self._files if self._has_changed(file)]

    def forget(self, path: Path) -> None:
        """Forget a file, so that the next look returns it as new: its content was read in vain."""
        self._seen.pop(path, None)

    def _has_moved(self) -> bool:
        """Tell whether something was added to a folder or removed from it."""
        return any(_read_file_state(folder) != seen for folder, seen in self._folders.items())

    def _walk(self) -> None:
        self._folders = {folder: _read_file_state(folder) for folder in find_folders(self._paths)}
        self._files = list(find_transcript_files(self._paths, self._own))

    def _has_changed(self, file: TranscriptFile) -> bool:
        """Tell whether a file exists and has changed; remember its present size and time."""
        if not file.kept:
            return False
        before, now = self._seen.get(file.path), _read_file_state(file.path)
        self._seen[file.path] = now
        return now is not None and now != before


def _read_file_state(path: Path) -> FileState | None:
    """Return the size and time of a file, None if there is no file."""
    own = _read_file_stat(path)
    if own is None or path.suffix not in DATABASE_ENDINGS:
        return own
    return own + (_read_file_stat(path.with_name(f"{path.name}-wal")) or ())


def _read_file_stat(path: Path) -> FileState | None:
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_size, told.st_mtime_ns
