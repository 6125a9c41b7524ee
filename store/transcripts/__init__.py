"""Read transcripts of other programs as sessions and messages, with pure parsers.

Each kind of transcript is a row of `TRANSCRIPT_KINDS`: its name, its features and its parser. Code
that only one program needs is in the folder of that program. Kinds are told apart by content, never
by suffix. `importing` and the commands call `sniff` and `read`. Nothing here depends on a store;
the events of a parser can be appended unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import StoreError, UnknownTranscript, check_readable_to_end
from ..records import FilePath
from . import writing
from .aider import AiderHistory, is_aider_history
from .apis.openai import OWNER_KEY, PROJECT_ROOT_KEY, convert_system_row, is_header_row
from .archive import ExportArchive, is_export_archive
from .database import DatabaseSource, is_sqlite_file
from .disk_buffer import KeyNumbers
from .grok_build import has_grok_screen
from .kinds import TRANSCRIPT_KINDS, Home, TranscriptKind
from .limits import Limits
from .opencode import OpencodeFolderSource, is_opencode_session_file
from .other_programs import ITEM_TYPES, find_messages_program, find_value_program
from .parser_events import (
    EXTRA_KEYS,
    READER_FORMAT,
    CompactionEvent,
    Event,
    ForkPoint,
    NoteEvent,
    RequestUsage,
    SessionEvent,
    SessionMessage,
    SideRowsEvent,
    StoreRow,
    UsageTokens,
    get_fields,
    get_list,
    list_texts,
    render_sketch,
)
from .source import PACKED_FILE_SIGNATURES, Progress, SourceValue, TranscriptSource
from .store_export import STORE_HEAD_KEY
from .usages import parse_message_usage

__all__ = [
    "EXTRA_KEYS",
    "ITEM_TYPES",
    "OWNER_KEY",
    "PROJECT_ROOT_KEY",
    "READER_FORMAT",
    "STORE_HEAD_KEY",
    "TRANSCRIPT_KINDS",
    "CompactionEvent",
    "Event",
    "FilePath",
    "ForkPoint",
    "Home",
    "KeyNumbers",
    "Limits",
    "NoteEvent",
    "Progress",
    "RequestUsage",
    "SessionEvent",
    "SessionMessage",
    "SideRowsEvent",
    "StoreRow",
    "UsageTokens",
    "build_refusal",
    "convert_system_row",
    "find_messages_program",
    "get_fields",
    "get_list",
    "is_header_row",
    "is_home",
    "is_kept",
    "is_named",
    "is_whole_file",
    "list_texts",
    "measure_file_size",
    "parse_message_usage",
    "read",
    "sniff",
    "writing",
]


CHAT_LIKE_KINDS = ("grok_build", "anthropic", "responses")
"""Kinds of messages; some look like those of a chat."""

UNKNOWN_PROGRAM = "a program that is not known"

READ_KINDS_HINT = "docs/transcripts.md lists the kinds of files that are read"
"""What every refusal ends with."""

SNIFFED_VALUES = 200
"""Values of a file, at most, that are looked at to tell its kind, or that it is another program's.
"""


def is_home(name: str) -> bool:
    """Tell whether a hidden folder of this name is one in which a program keeps sessions."""
    return any(name == home.folder for kind in TRANSCRIPT_KINDS.values() for home in kind.homes)


def is_named(name: str) -> bool:
    """Tell whether a hidden file of this name is one that a program leaves in any folder."""
    return any(name == kind.name for kind in TRANSCRIPT_KINDS.values())


def is_kept(path: Path) -> bool | None:
    """Tell whether a file, by its absolute path, is one in which a program keeps a session.

    None where it is in no program's folder, so that only its content can tell.
    """
    told = [home.holds(path) for kind in TRANSCRIPT_KINDS.values() for home in kind.homes]
    known = [each for each in told if each is not None]
    return any(known) if known else None


def sniff(path: str | PathLike[str], limits: Limits | None = None) -> str:
    """Return the kind of transcript a file holds, judged by its content.

    Raises UnknownTranscript, which names the content found and the content expected; StoreError if
    the file cannot be read, LimitExceeded.
    """
    source = _open_source(path, limits)
    return source.kind or _sniff_source(source)


def build_refusal(path: str | PathLike[str], problem: str) -> UnknownTranscript:
    """Return the error for a file that a kind read with an implausible result, with the reason."""
    program = _find_source_program(_open_source(path)) or UNKNOWN_PROGRAM
    found = f"looks like a file of {program}, which is not read: {problem}"
    return UnknownTranscript(f"{os.fspath(path)} {found}; {READ_KINDS_HINT}", program)


def read(
    path: str | PathLike[str],
    *,
    kind: str | None = None,
    progress: Progress | None = None,
    lines: Progress | None = None,
    beside: bool = False,
    limits: Limits | None = None,
) -> Iterator[Event]:
    """Read a transcript: each session, then its messages, with notes on omitted parts.

    A compaction of the context is reported after the last message before it.

    If ``kind`` is None, the content decides. ``progress`` gets the bytes consumed so far, ``lines``
    gets the number of lines read, at the end; a document counts as one. With ``beside``, rows that
    a program kept beside its messages are reported, not only counted. The same file gives the same
    events each time.
    Raises StoreError if the file cannot be read, UnknownTranscript if it is not a transcript,
    LimitExceeded.
    """
    if kind is not None and kind not in TRANSCRIPT_KINDS:
        kinds = ", ".join(TRANSCRIPT_KINDS)
        raise StoreError(f"there is no kind of transcript {kind!r}; the kinds are {kinds}")
    source = _open_source(path, limits)
    found = TRANSCRIPT_KINDS[kind or source.kind or _sniff_source(source)]
    source.keeps_beside = beside
    source.report_to(progress)
    return _list_source_events(source, found, lines or (lambda _: None))


def is_whole_file(path: str | PathLike[str]) -> bool:
    """Tell whether a file holds all that `read` reads of it, apart from a database's log."""
    return not (is_opencode_session_file(path) or has_grok_screen(path))


def measure_file_size(path: str | PathLike[str]) -> int:
    """Return a file's size in bytes: what `read` reports progress against. Raises StoreError."""
    try:
        return Path(path).stat().st_size
    except OSError as problem:
        raise _build_read_error(path, problem) from problem


def _open_source(path: FilePath, limits: Limits | None = None) -> TranscriptSource:
    limits = limits or Limits()
    try:
        check_readable_to_end(path)
        limits.check_size(measure_file_size(path))
        source: TranscriptSource
        if is_export_archive(path):
            source = ExportArchive(path)
        elif is_sqlite_file(path):
            source = DatabaseSource(
                path, {name: kind.layout for name, kind in TRANSCRIPT_KINDS.items() if kind.layout}
            )
        elif is_aider_history(path):
            source = AiderHistory(path)
        elif is_opencode_session_file(path):
            source = OpencodeFolderSource(path)
        else:
            with Path(path).open("rb") as file:
                first = file.read(16)
            packed = next(
                (
                    packed
                    for begin, packed in PACKED_FILE_SIGNATURES.items()
                    if first.startswith(begin)
                ),
                None,
            )
            if packed:
                raise UnknownTranscript(f"{os.fspath(path)} is not a text in UTF-8, but {packed}")
            source = TranscriptSource(path)
    except OSError as problem:
        raise _build_read_error(path, problem) from problem
    source.limits = limits
    return source


def _list_source_events(
    source: TranscriptSource, kind: TranscriptKind, lines: Progress
) -> Iterator[Event]:
    try:
        yield from kind.parse(source)
        lines(source.rows)
    except OSError as problem:
        raise _build_read_error(source.path, problem) from problem
    except RecursionError as problem:
        raise StoreError(f"{source.path}: a message is nested too deeply to be read") from problem


def _sniff_source(source: TranscriptSource) -> str:
    try:
        first: SourceValue | NoteEvent | None = None
        kind: str | None = None
        for item in _read_first_values(source):
            first = first or item
            if isinstance(item, SourceValue):
                source.limits.check_time()
                kind = _refine_kind(kind, item.value)
                _refuse_foreign_value(source, kind, item.value)
        if kind is None:
            program = _find_source_program(source)
            found = _describe_program(program) if program else _describe_source(source, first)
            raise _build_unknown_error(source, found, program)
        return kind
    except OSError as problem:
        raise _build_read_error(source.path, problem) from problem


def _read_first_values(source: TranscriptSource) -> Iterator[SourceValue | NoteEvent]:
    return islice(source.first_values(), SNIFFED_VALUES)


def _refine_kind(kind: str | None, value: Any) -> str | None:
    """Return the kind of a file in which a value follows; a chat's may turn out to be another."""
    found = kind or _find_value_kind(value)
    others = (
        name
        for name in CHAT_LIKE_KINDS
        if found == "openai" and TRANSCRIPT_KINDS[name].looks(value)
    )
    return next(others, found)


def _find_value_kind(value: Any) -> str | None:
    for name, kind in TRANSCRIPT_KINDS.items():
        if kind.looks(value):
            return name
    return None


def _refuse_foreign_value(source: TranscriptSource, kind: str | None, value: Any) -> None:
    program = find_value_program(value, always=True)
    if program is None and kind:
        program = TRANSCRIPT_KINDS[kind].foreign(value)
    if program:
        program = _find_source_program(source) or program
        raise _build_unknown_error(source, _describe_program(program), program)


def _find_source_program(source: TranscriptSource) -> str | None:
    """Return the program that one of a file's first values tells."""
    values = (item.value for item in _read_first_values(source) if isinstance(item, SourceValue))
    return next(filter(None, map(find_value_program, values)), None)


def _describe_program(program: str) -> str:
    return f"looks like a file of {program}, which is not read"


def _build_unknown_error(
    source: TranscriptSource, found: str, program: str | None
) -> UnknownTranscript:
    return UnknownTranscript(f"{source.path} {found}; {READ_KINDS_HINT}", program)


def _describe_source(source: TranscriptSource, first: SourceValue | NoteEvent | None) -> str:
    if source.problem:
        return f"is {source.problem}"
    if first is None:
        return "is empty"
    if isinstance(first, NoteEvent):
        return f"cannot be read: {first.text}"
    return f"begins with {render_sketch(first.value)}"


def _build_read_error(path: FilePath, problem: OSError) -> StoreError:
    return StoreError(f"cannot read {str(path)!r}: {problem.strerror or problem}")
