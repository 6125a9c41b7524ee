"""The files that are to be imported of folders.

In a folder in which a program keeps its sessions, these are the files that are named like them, by
the table of kinds; anywhere else any file may be a transcript, and its content tells.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..transcripts import KINDS, FilePath, Home, is_home, is_kept
from .reading import is_file_of


class FileFound(NamedTuple):
    """A file that may be imported.

    ``asked`` for by the user, or one of many in a folder, where others may be something else.
    ``kept`` False where it lies with a program's sessions and is none: it is not even opened.
    """

    path: Path
    asked: bool = False
    kept: bool = True


class HomeFound(NamedTuple):
    """What a program keeps in a folder: how many files of sessions, of how many bytes in all.

    ``changed_at`` is when one of them was last written (ms).
    """

    kind: str
    folder: Path
    files: int
    size: int
    changed_at: int


def homes_found() -> list[HomeFound]:
    """Return what is found on this machine, in the order of the kinds; nothing is read."""
    homes = ((kind, home) for kind, row in KINDS.items() for home in row.homes)
    folders = {home.path: _kept(kind, home) for kind, home in homes}
    return [each for each in folders.values() if each.files]


def _kept(kind: str, home: Home) -> HomeFound:
    told = [path.stat() for path in home.files() if path.is_file()]
    changed_at = max((each.st_mtime_ns for each in told), default=0) // 1_000_000
    return HomeFound(kind, home.path, len(told), sum(each.st_size for each in told), changed_at)


def files_in(paths: Iterable[Path], own: FilePath | None = None) -> Iterator[FileFound]:
    """Yield the files given, and those in the folders given, in order.

    What is hidden in a folder is passed over, but for folders in which programs keep sessions; so
    are the files of the store itself, ``own``.
    """
    for path in paths:
        if path.is_dir():
            yield from (each for each in _inside(path) if not is_file_of(own, each.path))
        else:
            yield FileFound(path, asked=True)


def _inside(path: Path) -> Iterator[FileFound]:
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if is_home(name) or _is_seen(name))
        for name in sorted(filter(_is_seen, names)):
            inner = Path(folder, name)
            if inner.is_file():
                yield FileFound(inner, kept=is_kept(inner.absolute()) is not False)


def _is_seen(name: str) -> bool:
    return not name.startswith(".")
