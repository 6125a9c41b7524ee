"""Find the files to import in folders.

In a folder where a program keeps its sessions, only files named like sessions are imported, by the
table of kinds. Anywhere else any file may be a transcript, and its content decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from os.path import basename, realpath
from pathlib import Path
from typing import NamedTuple

from ..inspection import get_store_files
from ..transcripts import TRANSCRIPT_KINDS, FilePath, Home, is_home, is_kept, is_named


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
