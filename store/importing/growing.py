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
from .folders import FileFound, files_in, folders_in

PAUSE = 1.0
"""Seconds between two looks, at least."""
SHARE = 1 / 150
"""The share of one processor that looking may take."""
WALK = 300
"""Looks after which folders are walked again, even if no file time shows a change."""

DATABASES = (".db", ".vscdb", ".sqlite3")
"""Endings of the names of programs' databases; new rows are first in the log beside the file."""

Seen = tuple[int, ...]
"""The size of a file and the time of its last write (ns); for a database, those of its log too."""


class Growing:
    """The files of some paths; each look returns those that have changed since the last look."""

    def __init__(self, paths: Iterable[Path], own: FilePath | None = None) -> None:
        self._paths = list(paths)
        self._own = own
        self._looks = 0
        self._folders: dict[Path, Seen | None] = {}
        self._files: list[FileFound] = []
        self._seen: dict[Path, Seen | None] = {}

    def rounds(self) -> Iterator[list[FileFound]]:
        """Yield all files first, then the changed ones, forever; wait in between."""
        yield self.look()
        pause = PAUSE
        while True:
            time.sleep(pause)
            began = time.thread_time()
            changed = self.look()
            pause = max(PAUSE, (time.thread_time() - began) / SHARE)
            if changed:
                yield changed

    def look(self) -> list[FileFound]:
        """Return the files that are new or have changed since the last look."""
        if self._looks % WALK == 0 or self._has_moved():
            self._walk()
        self._looks += 1
        return [file for file in self._files if self._has_changed(file)]

    def forget(self, path: Path) -> None:
        """Forget a file, so that the next look returns it as new: its content was read in vain."""
        self._seen.pop(path, None)

    def _has_moved(self) -> bool:
        """Tell whether something was added to a folder or removed from it."""
        return any(_seen(folder) != seen for folder, seen in self._folders.items())

    def _walk(self) -> None:
        self._folders = {folder: _seen(folder) for folder in folders_in(self._paths)}
        self._files = list(files_in(self._paths, self._own))

    def _has_changed(self, file: FileFound) -> bool:
        """Tell whether a file exists and has changed; remember its present size and time."""
        if not file.kept:
            return False
        before, now = self._seen.get(file.path), _seen(file.path)
        self._seen[file.path] = now
        return now is not None and now != before


def _seen(path: Path) -> Seen | None:
    """Return the size and time of a file, None if there is no file."""
    own = _told(path)
    if own is None or path.suffix not in DATABASES:
        return own
    return own + (_told(path.with_name(f"{path.name}-wal")) or ())


def _told(path: Path) -> Seen | None:
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_size, told.st_mtime_ns
