"""The files that are to be imported of folders.

In a folder in which a program keeps its sessions, these are the files that are named like them, by
the table of kinds; anywhere else any file may be a transcript, and its content tells.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..transcripts import FilePath, is_home, is_kept
from .reading import is_file_of


class FileFound(NamedTuple):
    """A file that may be imported.

    ``asked`` for by the user, or one of many in a folder, where others may be something else.
    ``kept`` False where it lies with a program's sessions and is none: it is not even opened.
    """

    path: Path
    asked: bool = False
    kept: bool = True


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
