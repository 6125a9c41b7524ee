"""A transcript file as JSON values: one document, or rows of JSON that are read one at a time.

A row is a line of the file. Files of crashed writers are read here, once for all kinds:
broken rows, two values on a row, comments at the top, a byte order mark, bad UTF-8. Nothing here
looks at the file's suffix, or knows what the values mean.
"""

from __future__ import annotations

import codecs
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

from pydantic_core import from_json

from ..errors import StoreError
from ..records import FilePath
from ..text import wrap_in_list
from .disk_buffer import pack_value
from .limits import UNLIMITED, Limits
from .parser_events import Event, NoteEvent, SessionNames, note_unread_value

Progress = Callable[[int], object]
"""A callable that is told how far a file is read."""

LONG_DOCUMENT = 16 * 2**20
"""Bytes from which a document that is a list is read item by item."""
LIST_CHUNK = 2**20
"""Characters of a long list that are read at once."""
FIRST_ITEMS = 20
"""Items of a long list that tell its kind."""

PROGRESS_STEP = 256 * 1024
"""Bytes between two calls of a progress function."""

PACKED_FILE_SIGNATURES = {
    b"\x1f\x8b": "compressed by gzip: unpack it with gunzip",
    b"PK\x03\x04": "a zip archive: unpack it with unzip",
    b"BZh": "compressed by bzip2: unpack it with bunzip2",
    b"\xfd7zXZ": "compressed by xz: unpack it with unxz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: unpack it with unzstd",
    codecs.BOM_UTF16_LE: "text in UTF-16: convert it with iconv -f UTF-16 -t UTF-8",
    codecs.BOM_UTF16_BE: "text in UTF-16: convert it with iconv -f UTF-16 -t UTF-8",
    b"{\0": "text in UTF-16: convert it with iconv -f UTF-16LE -t UTF-8",
    b"[\0": "text in UTF-16: convert it with iconv -f UTF-16LE -t UTF-8",
    b"\0{": "text in UTF-16: convert it with iconv -f UTF-16BE -t UTF-8",
    b"\0[": "text in UTF-16: convert it with iconv -f UTF-16BE -t UTF-8",
}
"""First bytes of a file that is no text in UTF-8 → its kind, and the advice."""

CLINE_FILE_STEMS = ("api_conversation_history", "claude_messages")
"""Names that Cline and its kin give the file of every session, whose folder is named after it."""

_decode_first_value = json.JSONDecoder().raw_decode


class SourceValue(NamedTuple):
    """One JSON value and the row it began on, counted from 1.

    The row of a document is None, as its parts have none.
    """

    row: int | None
    value: Any


class HeldFile(NamedTuple):
    """A file in an archive, and its bytes when unpacked."""

    path: zipfile.Path
    size: int


class TranscriptSource:
    """A transcript file, or one that an archive at its place holds (``held``).

    Rows are streamed, and so are the items of a long list for kinds that hold a conversation in
    each (`items`); other documents are held whole, because JSON cannot be read otherwise.
    ``problem`` says what is wrong with a document that cannot be read, ``rows`` how many were read
    when the values were returned last: those that say something, a document being one. ``kind``
    is what it is told to hold by more than its values.
    """

    rows = 0
    kind: str | None = None

    limits: Limits = UNLIMITED
    """What reading may take."""

    keeps_beside = False
    """Whether fields beside messages are reported, and not only counted."""

    _is_long_list = False

    def __init__(self, path: FilePath, held: HeldFile | None = None) -> None:
        self.path = Path(path)
        self._file = held.path if held else self.path
        self._size = held.size if held else self.path.stat().st_size
        self.problem: str | None = None
        self.report_to(None)
        self._is_long_list = self._is_list_of_objects()
        is_whole = not self._is_long_list and self._begins_document()
        self._documents = self._read_documents() if is_whole else []

    @property
    def stem(self) -> str:
        """Return the file's name without its last suffix, as text any store can hold.

        Where a program names all files alike, it is the name of the folder.
        """
        name = self.path.stem
        if name in CLINE_FILE_STEMS:
            name = self.path.absolute().parent.name
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def report_to(self, progress: Progress | None) -> None:
        """Name the function that gets the bytes read so far from now on; None for nobody."""
        self._progress = progress or (lambda _: None)

    def values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the file's values in order, with a note in place of unreadable ones.

        Raises OSError where the file cannot be read.
        """
        self.rows = 0
        if self._is_long_list:
            self.rows = 1
            yield SourceValue(None, [*self._list_items()])
            self._progress(self.path.stat().st_size)
        elif self._documents:
            self.rows = len(self._documents)
            yield from self._documents
            self._progress(self.path.stat().st_size)
        else:
            yield from self._values_of_rows()

    def first_values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the values that tell the file's kind, a long list as its first items.

        Raises OSError where the file cannot be read.
        """
        if not self._is_long_list:
            return self.values()
        return iter([SourceValue(None, [*islice(self._list_items(), FIRST_ITEMS)])])

    def items(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the file's values in order, the items of lists in place of the lists.

        Raises OSError where the file cannot be read.
        """
        if self._is_long_list:
            self.rows = 1
            yield from (SourceValue(None, each) for each in self._list_items())
            self._progress(self.path.stat().st_size)
            return
        for item in self.values():
            if isinstance(item, NoteEvent):
                yield item
            else:
                yield from (SourceValue(item.row, each) for each in wrap_in_list(item.value))

    def _is_list_of_objects(self) -> bool:
        """Tell whether a long file is one list of objects; it is read to its end."""
        if self._size < LONG_DOCUMENT or not self._first_row(LIST_CHUNK).startswith(b"["):
            return False
        try:
            return all(isinstance(each, dict) for each in self._list_items())
        except (StoreError, RecursionError):
            return False

    def _list_items(self) -> Iterator[Any]:
        """Yield the items of the list that the file is. Raises StoreError, RecursionError."""
        try:
            with self._file.open("r", encoding="utf-8-sig") as file:
                for item in _decode_list_items(cast("TextIO", file)):
                    self.limits.check_time()
                    yield item
        except ValueError as problem:
            raise StoreError(f"{self.path} changed while it was read: {problem}") from problem

    def _values_of_rows(self) -> Iterator[SourceValue | NoteEvent]:
        consumed = reported = 0
        at_top = True
        with self._file.open("rb") as file:
            for number, raw in enumerate(file, 1):
                consumed += len(raw)
                self.limits.check_time()
                row = _strip_row(number, raw)
                at_top = at_top and _is_skipped_row(row)
                if row and not at_top:
                    self.rows += 1
                    # Writers that crash or race leave two side by side (8 rows of 606 real files).
                    is_ended = raw.endswith(b"\n")
                    try:
                        for value in _decode_row(row):
                            yield SourceValue(number, value)
                    except (ValueError, RecursionError) as problem:
                        text = f"line {number} is left out, it is {_explain_decode_error(problem)}"
                        yield NoteEvent(number, text, broken=True, unfinished=not is_ended)
                if consumed - reported >= PROGRESS_STEP:
                    reported = consumed
                    self._progress(consumed)
        self._progress(consumed)

    def _begins_document(self) -> bool:
        """Tell whether the first row is only the beginning of a value, as in indented JSON."""
        first = self._first_row()
        if not first.startswith((b"{", b"[")):
            return False
        try:
            _decode_first_value(first.decode())
        except json.JSONDecodeError as problem:
            # no JSON string goes over the end of a row: an open one means a row that was cut, not
            # the start of a document
            return not problem.msg.startswith("Unterminated string")
        except (ValueError, RecursionError):
            return False
        return False

    def _first_row(self, size: int = -1) -> bytes:
        """Return the first row that says something; at most ``size`` bytes of it, if given."""
        with self._file.open("rb") as file:
            raws = iter(partial(file.readline, size), b"")
            rows = (_strip_row(number, raw) for number, raw in enumerate(raws, 1))
            return next((row for row in rows if not _is_skipped_row(row)), b"")

    def _read_documents(self) -> list[SourceValue]:
        """Return the file's documents, mostly one; none where one of them cannot be read."""
        try:
            text = self._file.read_bytes().decode("utf-8-sig").rstrip()
            return [SourceValue(None, held) for held in _decode_adjacent_values(text)]
        except (ValueError, RecursionError) as problem:
            self.problem = _explain_decode_error(problem)
            return []


def _strip_row(number: int, raw: bytes) -> bytes:
    if number == 1:
        raw = raw.removeprefix(codecs.BOM_UTF8)
    return raw.strip()


def _is_skipped_row(row: bytes) -> bool:
    """Tell a row that may stand above the first value: an empty one, or a comment."""
    return not row or row.startswith(b"//")


def _decode_row(row: bytes) -> Iterable[Any]:
    """Return the values of a row, mostly one, which a quicker reader reads.

    What that one refuses is read by the one that tells why, or takes it: lone surrogates, deeper
    nesting, several values. Raises ValueError, RecursionError.
    """
    try:
        return (from_json(row),)
    except ValueError:
        return map(_check_nesting, _decode_adjacent_values(row.decode().strip()))


def _check_nesting(value: Any) -> Any:
    """Return a value that can be kept until it is told. Raises RecursionError."""
    pack_value(value)
    return value


def _decode_adjacent_values(text: str) -> Iterator[Any]:
    """Yield the values that stand side by side in a text."""
    place = _skip_whitespace(text, 0)
    while place < len(text):
        value, end = _decode_first_value(text, place)
        yield value
        place = _skip_whitespace(text, end)


def _decode_list_items(file: TextIO) -> Iterator[Any]:
    """Yield the items of a list, with only a part of it in memory.

    An item that goes on after the text that was read is decoded again with twice as much. Raises
    ValueError where the file holds anything but one list.
    """
    text, place, begins = file.read(LIST_CHUNK).lstrip(), 0, "["
    while True:
        found = _NEXT_ITEM[begins].match(text, place)
        try:
            if not found:
                raise json.JSONDecodeError(f"Expecting {begins!r} or the end", text, place)
            if found["end"]:
                break
            item, end = _decode_first_value(text, found.end())
            if not _LIST_SIGN.match(text, end):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, end)
        except json.JSONDecodeError:
            more = file.read(max(LIST_CHUNK, len(text) - place))
            if not more:
                raise
            text, place = text[place:] + more, 0
            continue
        yield item
        place, begins = end, ","
    rest = iter(partial(file.read, LIST_CHUNK), "")
    is_followed = any(map(str.strip, rest))
    if is_followed or text[found.end() :].strip():
        raise json.JSONDecodeError("Extra data", text, found.end())


_NEXT_ITEM = {
    "[": re.compile(r"\s*\[\s*(?:(?P<end>\])|(?=[^\s\]]))"),
    ",": re.compile(r"\s*(?:(?P<end>\])|,\s*(?=[^\s]))"),
}
"""The text before an item, by its first sign, or the end of the list."""
_LIST_SIGN = re.compile(r"\s*[],]")


def _skip_whitespace(text: str, place: int) -> int:
    """Return where the next value of a row begins."""
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _explain_decode_error(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        where = f"line {problem.lineno}, " if problem.lineno > 1 else ""
        return f"not JSON: {problem.msg} at {where}character {problem.colno}"
    if isinstance(problem, UnicodeDecodeError):
        return f"not UTF-8: {problem.reason} at byte {problem.start + 1}"
    return "nested too deeply" if isinstance(problem, RecursionError) else f"not JSON: {problem}"


ConversationParser = Callable[[SourceValue, SessionNames], Iterator[Event]]
"""How one conversation is read, which gets an id of its own from the names of its file."""


def parse_conversations(
    source: TranscriptSource,
    is_one: Callable[[Any], object],
    expected: str,
    read: ConversationParser,
) -> Iterator[Event]:
    """Return what each conversation of a file says, and a note for each value that is none.

    ``expected`` says in words what such a value is no one of.
    """
    names = SessionNames(source.stem)
    for item in source.items():
        if isinstance(item, NoteEvent):
            yield item
        elif is_one(item.value):
            yield from read(item, names)
        else:
            yield note_unread_value(item.row, item.value, f"no {expected}")


def for_each_conversation(
    is_one: Callable[[Any], object], expected: str
) -> Callable[[ConversationParser], Callable[[TranscriptSource], Iterator[Event]]]:
    """Make the parser of one conversation that of a file, as `parse_conversations` reads it."""

    def decorate(read: ConversationParser) -> Callable[[TranscriptSource], Iterator[Event]]:
        @wraps(read)
        def parse(source: TranscriptSource) -> Iterator[Event]:
            return parse_conversations(source, is_one, expected, read)

        return parse

    return decorate
