"""Find the files to import in folders, and follow growing files.

In a folder where a program keeps its sessions, only files named like sessions are imported, by the
table of kinds. Anywhere else any file may be a transcript, and its content decides.

Growing files are followed by looking at their sizes and times at intervals. A look takes a
thousandth of a second for each few hundred files. Looking takes a fixed share of the time for any
number of files: the wait before the next look is a multiple of the time of the last. Folders are
walked again when one of them has changed, so that new files are found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from os.path import basename, realpath
from pathlib import Path
from typing import NamedTuple

from ..inspection import get_store_files
from ..records import FilePath
from ..transcripts import TRANSCRIPT_KINDS, Home, is_home, is_kept, is_named

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


class TranscriptFile(NamedTuple):
    """A file that may be imported.

    ``asked`` is True if the user named the file, False if it was found in a folder, where other
    files may be no transcripts. ``kept`` is False for a file that lies among the sessions of a
    program and is not one of them: it is not even opened.
    """

    path: Path
    asked: bool = False
    kept: bool = True


class SessionFolder(NamedTuple):
    """The sessions that a program keeps in a folder: the number of files and their bytes in all.

    ``changed_at`` is the time of the last write to any of them (ms).
    """

    kind: str
    folder: Path
    files: int
    size: int
    changed_at: int


def find_session_folders() -> list[SessionFolder]:
    """Return the folders of sessions on this machine, in the order of kinds; read no file."""
    homes = ((kind, home) for kind, row in TRANSCRIPT_KINDS.items() for home in row.homes)
    folders = {home.path: _measure_session_folder(kind, home) for kind, home in homes}
    return [each for each in folders.values() if each.files]


def find_skipped_folders(paths: Iterable[Path]) -> list[SessionFolder]:
    """Return the folders of sessions that lie below some folders and are passed over in them."""
    folders = [path.absolute() for path in paths if path.is_dir()]
    return [
        each
        for each in (find_session_folders() if folders else [])
        if any(_is_skipped_folder(each.folder.absolute(), folder) for folder in folders)
    ]


def _is_skipped_folder(home: Path, folder: Path) -> bool:
    if not home.is_relative_to(folder):
        return False
    return not all(
        is_home(name) or _is_visible_name(name) for name in home.relative_to(folder).parts
    )


def _measure_session_folder(kind: str, home: Home) -> SessionFolder:
    told = [path.stat() for path in home.files() if path.is_file()]
    changed_at = max((each.st_mtime_ns for each in told), default=0) // 1_000_000
    return SessionFolder(kind, home.path, len(told), sum(each.st_size for each in told), changed_at)


def find_transcript_files(
    paths: Iterable[Path], own: FilePath | None = None
) -> Iterator[TranscriptFile]:
    """Yield the given files and the files in the given folders, in order.

    Hidden files and folders are passed over, except folders in which programs keep sessions and
    files that programs leave anywhere. The files of the store itself, ``own``, are passed over too.
    """
    owned = get_store_files(own)
    for path in paths:
        if path.is_dir():
            yield from (
                each for each in _find_files_inside(path) if not _is_store_path(owned, each.path)
            )
        else:
            yield TranscriptFile(path, asked=True)


def _is_store_path(owned: set[str], path: Path) -> bool:
    """Tell whether a path is one of some files, maybe by a link; the name decides for most."""
    names = map(basename, owned)
    return (path.name in names or path.is_symlink()) and realpath(path) in owned


def find_folders(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the given folders, and the folders in them that may hold files."""
    for path in paths:
        yield from (Path(folder) for folder, _ in _walk_folders(path))


def _find_files_inside(path: Path) -> Iterator[TranscriptFile]:
    for folder, names in _walk_folders(path):
        for name in sorted(filter(_is_visible_file, names)):
            inner = Path(folder, name)
            if inner.is_file():
                yield TranscriptFile(inner, kept=is_kept(inner.absolute()) is not False)


def _walk_folders(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder with the names of its files, before the folders in it."""
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if is_home(name) or _is_visible_name(name))
        yield folder, names


def _is_visible_file(name: str) -> bool:
    return _is_visible_name(name) or is_named(name)


def _is_visible_name(name: str) -> bool:
    return not name.startswith(".")


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
