"""A program's SQLite database, read as the conversations in it.

It is opened to read only, and neither locked nor changed: without a log of writes beside it
(``-wal``) it is read as if nobody wrote, else beside the program's own readers; where these left a
log and no index of it, a copy is read, because SQLite would write a new index.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import LimitExceeded, StoreError, UnknownTranscript
from ..records import FilePath
from .other_programs import PROGRAM_BY_STATE_KEY, find_columns_program
from .parser_events import NoteEvent
from .source import SourceValue, TranscriptSource

SQLITE_SIGNATURE = b"SQLite format 3\0"
"""What a database of SQLite begins with."""

STORE_TABLES = {"alembic_version", "sessions", "branches", "head_moves"}
"""Tables by which a store of our own is told."""

EXTRA_VALUE_BYTES = 1024 * 1024
"""Bytes that a value may have beyond those of the file that it is from."""
TIMES, LEAST, ROW = 8, 32 * 1024 * 1024, 200
"""The most bytes read from a database: a multiple of its size plus a constant; each row also counts
its size in memory. A row is read once, or a few times; but a join on a name that all rows share
makes a million rows of a thousand in one table and a thousand in another.
"""
STEPS_PER_TIME_CHECK = 10_000
"""Steps of SQLite between two looks at the time."""

SELECT_TABLE_COLUMNS = """
    SELECT tables.name || '.' || columns.name
    FROM sqlite_schema AS tables JOIN pragma_table_info(tables.name) AS columns
    WHERE tables.type = 'table'
"""

SELECT_ZCODE_PART = """
    SELECT EXISTS (
        SELECT 1 FROM part
        WHERE CASE WHEN (data GLOB '*tool_*' OR data GLOB '*thinking*') AND json_valid(data)
            THEN json_extract(data, '$.type') IN ('tool_use', 'tool_result', 'thinking')
        END
    )
"""
"""A part that ZCode names otherwise than opencode, whose tables it has."""

SqliteConnection = sqlite3.Connection


class Layout(NamedTuple):
    """How a program lays out its database: columns that tell it, and how conversations are read.

    ``columns`` are named with their table. ``values`` returns each conversation as one JSON value,
    with notes in place of broken ones.
    """

    columns: frozenset[str]
    values: Callable[[SqliteConnection], Iterator[Any]]


Layouts = Mapping[str, Layout]
"""Kind of transcript → how its program's database is laid out."""


class DatabaseSource(TranscriptSource):
    """A database: its conversations, one after the other."""

    def __init__(self, path: FilePath, layouts: Layouts) -> None:
        self.path = Path(path)
        self.problem = None
        self.report_to(None)
        with self._opened() as rows:
            self.kind = _find_database_kind(rows, layouts, self.path)
        self._layout = layouts[self.kind]

    def values(self) -> Iterator[SourceValue | NoteEvent]:
        """Return the conversations. Raises StoreError where the database cannot be read."""
        self.rows = 0
        with self._opened() as rows:
            for value in self._layout.values(rows):
                self.rows += 1
                self.limits.check_time()
                yield value if isinstance(value, NoteEvent) else SourceValue(None, value)
        self._progress(self.path.stat().st_size)

    @contextmanager
    def _opened(self) -> Iterator[SqliteConnection]:
        try:
            with (
                _prepare_address(self.path) as address,
                closing(sqlite3.connect(address, uri=True, isolation_level=None)) as rows,
            ):
                rows.text_factory = lambda raw: raw.decode("utf-8", "replace")
                rows.set_progress_handler(self.limits.is_over, STEPS_PER_TIME_CHECK)
                rows.row_factory = _RowByteCounter(self.path).row
                # what a column is computed from may be short, and make a gigabyte of it
                rows.setlimit(
                    sqlite3.SQLITE_LIMIT_LENGTH,
                    _count_database_bytes(self.path) + EXTRA_VALUE_BYTES,
                )
                yield rows
        except (sqlite3.Error, UnicodeError, LookupError) as problem:
            self.limits.check_time()
            what = f"{str(self.path)!r} is an SQLite database that cannot be read"
            raise StoreError(f"{what}: {problem}") from problem


class _RowByteCounter:
    """Count the bytes read from a database."""

    def __init__(self, path: Path) -> None:
        self._left = self._allowed = TIMES * _count_database_bytes(path) + LEAST

    def row(self, cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> sqlite3.Row:
        """Return a row with its names. Raises LimitExceeded where there are too many."""
        sizes = (len(value) for value in values if isinstance(value, str | bytes))
        self._left -= ROW + sum(sizes)
        if self._left < 0:
            told = "its tables, joined with each other, have more bytes"
            raise LimitExceeded("the size of the file", self._allowed, told)
        return sqlite3.Row(cursor, values)


def is_sqlite_file(path: FilePath) -> bool:
    """Tell whether a file is a database of SQLite, by its first bytes."""
    with Path(path).open("rb") as file:
        return file.read(len(SQLITE_SIGNATURE)) == SQLITE_SIGNATURE


@contextmanager
def _prepare_address(path: Path) -> Iterator[str]:
    """Yield the address at which SQLite reads a database without writing beside it."""
    log, index = _build_sibling_path(path, "-wal"), _build_sibling_path(path, "-shm")
    if not log.exists() or not log.stat().st_size:
        yield _build_sqlite_uri(path, "mode=ro&immutable=1")
    elif index.exists():
        yield _build_sqlite_uri(path, "mode=ro")
    else:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "copy")
            shutil.copyfile(path, copy)
            shutil.copyfile(log, _build_sibling_path(copy, "-wal"))
            yield _build_sqlite_uri(copy, "mode=ro")


def _count_database_bytes(path: Path) -> int:
    """Return the bytes of a database and its log."""
    log = _build_sibling_path(path, "-wal")
    waiting = log.stat().st_size if log.exists() else 0
    return path.stat().st_size + waiting


def _build_sibling_path(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _build_sqlite_uri(path: Path, how: str) -> str:
    return f"{path.absolute().as_uri()}?{how}"


def _find_database_kind(rows: SqliteConnection, layouts: Layouts, path: Path) -> str:
    tables, columns = load_table_names(rows), load_column_names(rows)
    if tables >= STORE_TABLES:
        what = f"{path} is a store of convostore's own"
        raise UnknownTranscript(f"{what}: export its sessions, then import the exported files")
    program = find_columns_program(columns) or _find_cell_program(rows, columns)
    for kind, layout in layouts.items():
        if layout.columns <= columns and program is None:
            return kind
    told = ", ".join(sorted(tables)[:6]) or "none"
    whose = f"{program}, which" if program else "a program that"
    what = f"is an SQLite database of {whose} is not read; its tables: {told}"
    raise UnknownTranscript(f"{path} {what}", program)


def _find_cell_program(rows: SqliteConnection, columns: set[str]) -> str | None:
    """Return the program that the cells of a database tell, where its tables are another's."""
    if "part.data" in columns and rows.execute(SELECT_ZCODE_PART).fetchone()[0]:
        return "ZCode"
    if "ItemTable.key" not in columns:
        return None
    found = {key for (key,) in rows.execute("SELECT key FROM ItemTable")}
    return next((program for key, program in PROGRAM_BY_STATE_KEY.items() if key in found), None)


def load_table_names(rows: SqliteConnection) -> set[str]:
    """Return the names of a database's tables."""
    found = rows.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return {name for (name,) in found}


def load_column_names(rows: SqliteConnection) -> set[str]:
    """Return the names of a database's columns, each with its table."""
    return {name for (name,) in rows.execute(SELECT_TABLE_COLUMNS)}


def parse_json_cell(cell: object) -> Any:
    """Return the JSON value that a cell holds as text or bytes, None where it holds none."""
    if not isinstance(cell, str | bytes):
        return None
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return None
