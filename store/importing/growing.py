"""Files that grow, followed by a look at their sizes and times now and then.

A look takes a thousandth of a second for each few hundred files. However many there are, looking
has a fixed share of the time: the next look waits so many times as long as the last one took.
Folders are walked again where one of them has changed, so that new files are found.
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
"""What looking may take of one processor."""
WALK = 300
"""Looks after which folders are walked again, even if no clock told that they have changed."""

DATABASES = (".db", ".vscdb", ".sqlite3")
"""How names of programs' databases end; what is new there is in the log beside them first."""

Seen = tuple[int, ...]
"""A file's size and when it was written last (ns); of a database, those of its log, too."""


class Growing:
    """The files of some paths, of which each look tells those that have changed since the last."""

    def __init__(self, paths: Iterable[Path], own: FilePath | None = None) -> None:
        self._paths = list(paths)
        self._own = own
        self._looks = 0
        self._folders: dict[Path, Seen | None] = {}
        self._files: list[FileFound] = []
        self._seen: dict[Path, Seen | None] = {}

    def rounds(self) -> Iterator[list[FileFound]]:
        """Yield the files at first, then those that changed, for ever; wait in between."""
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
        """Return the files that are new or not as they were at the last look."""
        if self._looks % WALK == 0 or self._has_moved():
            self._walk()
        self._looks += 1
        return [file for file in self._files if self._has_changed(file)]

    def forget(self, path: Path) -> None:
        """Take a file for one that is new: what it has was read in vain."""
        self._seen.pop(path, None)

    def _has_moved(self) -> bool:
        """Tell whether something came into a folder, or went."""
        return any(_seen(folder) != seen for folder, seen in self._folders.items())

    def _walk(self) -> None:
        self._folders = {folder: _seen(folder) for folder in folders_in(self._paths)}
        self._files = list(files_in(self._paths, self._own))

    def _has_changed(self, file: FileFound) -> bool:
        """Tell whether a file is there and other than it was; that of now is kept in mind."""
        if not file.kept:
            return False
        before, now = self._seen.get(file.path), _seen(file.path)
        self._seen[file.path] = now
        return now is not None and now != before


def _seen(path: Path) -> Seen | None:
    """Return what is seen of a file, None where there is none."""
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
