"""An export's zip archive, read as the files in it that hold conversations.

Other files of it, such as pictures and profiles, are not looked at; nothing is unpacked to disk.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..errors import StoreError
from .events import Noted
from .source import FilePath, Source, Value

CONVERSATIONS = re.compile(r"(.*/)?conversations[-_]?\d*\.json|header\.json|samples/.+\.json")
"""Names of the files that hold conversations: numbered ones, or a head and a file for each."""

BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What reading a file of an archive raises where it is damaged, encrypted or packed otherwise."""


class Archive(Source):
    """An archive: its files' values, one file after the other."""

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self.problem = None
        self.report_to(None)

    def values(self) -> Iterator[Value | Noted]:
        """Return the values of all files. Raises StoreError where one cannot be unpacked."""
        self.rows = 0
        try:
            with zipfile.ZipFile(self.path) as archive:
                for name in conversations_in(archive):
                    yield from self._values_in(zipfile.Path(archive, name))
        except BROKEN as problem:
            raise StoreError(f"cannot unpack {str(self.path)!r}: {problem}") from problem
        self._progress(self.path.stat().st_size)

    def _values_in(self, file: zipfile.Path) -> Iterator[Value | Noted]:
        source = Source(self.path, file)
        self.problem = self.problem or source.problem
        yield from source.values()
        self.rows += source.rows


def is_export(path: FilePath) -> bool:
    """Tell whether a file is an archive with conversations in it."""
    with suppress(*BROKEN), zipfile.ZipFile(path) as archive:
        return bool(conversations_in(archive))
    return False


def conversations_in(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of an archive's files that hold conversations, in order."""
    return sorted(filter(CONVERSATIONS.fullmatch, archive.namelist()))
