"""An export's zip archive, read as the files in it that hold conversations.

Other files of it, such as pictures and profiles, are not looked at; nothing is unpacked to disk.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ..records import FilePath

try:
    from backports.zstd import ZstdError, zipfile
except ImportError:  # of itself Python knows the packing of zstd from 3.14 on
    import zipfile  # type: ignore[no-redef]
    from zipfile import BadZipFile as ZstdError  # type: ignore[assignment]

from ..errors import StoreError
from .parser_events import NoteEvent
from .source import HeldFile, SourceValue, TranscriptSource

CONVERSATION_FILE = re.compile(r"(.*/)?conversations[-_]?\d*\.json|header\.json|samples/.+\.json")
"""Names of the files that hold conversations: numbered ones, or a head and a file for each."""

LARGE, TIGHT = 100_000_000, 300
"""A file of more bytes that is packed tighter than that is made to fill the memory: words never
come near it.
"""

UNPACKING_ERRORS = (zipfile.BadZipFile, ZstdError, zlib.error, EOFError, RuntimeError)
"""What reading a file of an archive raises where it is damaged, encrypted or packed otherwise."""


FileReader = Callable[[TranscriptSource], Iterator[SourceValue | NoteEvent]]
"""The way in which the values of a file are read."""


class ExportArchive(TranscriptSource):
    """An archive: its files' values, one file after the other."""

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self.problem = None
        self.report_to(None)

    def values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the values of all files. Raises StoreError where one cannot be unpacked."""
        return self._read_files(TranscriptSource.values)

    def first_values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the values that tell the kind of each file, one file after the other."""
        return self._read_files(TranscriptSource.first_values)

    def items(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the values of all files, the items of lists in place of the lists."""
        return self._read_files(TranscriptSource.items)

    def _read_files(self, read: FileReader) -> Iterator[SourceValue | NoteEvent]:
        self.rows = 0
        try:
            with zipfile.ZipFile(self.path) as archive:
                names = list_conversation_files(archive)
                sizes = (archive.getinfo(name).file_size for name in names)
                self.limits.check_size(sum(sizes), "unpacked, the file has")
                for name in names:
                    file = archive.getinfo(name)
                    if file.file_size > max(LARGE, TIGHT * file.compress_size):
                        packed, whole = file.compress_size, file.file_size
                        raise zipfile.BadZipFile(
                            f"{file.filename}: {packed:,} bytes would become {whole:,}"
                        )
                    held = HeldFile(zipfile.Path(archive, name), file.file_size)
                    yield from self._read_file(held, read)
        except NotImplementedError as problem:
            how = "pip install 'convostore[zstd]' brings what unpacks zstd"
            raise StoreError(f"cannot unpack {str(self.path)!r}: {problem}; {how}") from problem
        except UNPACKING_ERRORS as problem:
            raise StoreError(f"cannot unpack {str(self.path)!r}: {problem}") from problem
        self._progress(self.path.stat().st_size)

    def _read_file(self, file: HeldFile, read: FileReader) -> Iterator[SourceValue | NoteEvent]:
        self.limits.check_time()
        source = TranscriptSource(self.path, file)
        source.limits = self.limits
        self.problem = self.problem or source.problem
        yield from read(source)
        self.rows += source.rows


def is_export_archive(path: FilePath) -> bool:
    """Tell whether a file is an archive with conversations in it."""
    with suppress(*UNPACKING_ERRORS), zipfile.ZipFile(path) as archive:
        return bool(list_conversation_files(archive))
    return False


def list_conversation_files(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of an archive's files that hold conversations, in order."""
    return sorted(filter(CONVERSATION_FILE.fullmatch, archive.namelist()))
