"""Copies of a store's file, and the list of them that the store itself keeps.

A copy is written by ``VACUUM INTO``: one state of the store, while others read and write. SQLite's
own backup is a tenth to a fifth quicker, but it copies freed pages too, and with them messages that
were erased and not purged yet; a copy made here holds the rows of the store and nothing else.

A copy gets its name only when all of it is on the disk. Its line in the list is written *before*
the copy begins: an erasure during the copy then counts it among those that may hold the erased
bytes. Numbers of copies are never used twice, so the order of any copy and any erasure is known,
whatever the clock said.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import (
    Connection,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    union_all,
    update,
)

from ..errors import StoreBusy, StoreError, StoreFull
from .engine import Database
from .schema import copies, erasures
from .statements import Insertion, Statement
from .writer_queue import QueuePlace, WriterQueue

COMPANION_SUFFIXES = ("-wal", "-shm", "-journal", "-lock")
"""The suffixes of the files that SQLite and the writers' queue put beside a file."""
PART_SUFFIX = ".part"
"""The suffix of a copy while it is being written."""

CLAIM_SECONDS = 1.0
"""The most seconds to wait for the users of a file before another file replaces it."""

_copy_numbers = union_all(
    select(func.max(copies.c.copy).label("number")),
    select(func.max(erasures.c.newest_copy)),
).subquery()
_newest_copy = func.coalesce(func.max(_copy_numbers.c.number), 0)
NEXT_COPY = Statement(select(_newest_copy + literal_column("1")))
INSERT_COPY = Insertion(copies)


class CopyRow(NamedTuple):
    """One line of the list of copies.

    An unfinished one has no size, and no moment (ns) of its file's last change.
    """

    copy: int
    made_at: int
    size: int | None
    modified: int | None
    kind: str
    path: str


_copy_query = select(*(copies.c[name] for name in CopyRow._fields))
COPIES = Statement(_copy_query.order_by(copies.c.copy), CopyRow)
FINISH_COPY = Statement(
    update(copies)
    .where(copies.c.copy == bindparam("number"))
    .values(size=bindparam("bytes"), modified=bindparam("changed"))
)
DELETE_COPY = Statement(delete(copies).where(copies.c.copy == bindparam("number")))
DELETE_REPLACED_COPIES = Statement(
    delete(copies)
    .where(copies.c.path == bindparam("name"))
    .where(copies.c.copy < bindparam("number"))
)


def add_suffix(path: Path, ending: str) -> Path:
    """Return a path with a suffix added to its name."""
    return path.with_name(path.name + ending)


def record_copy(connection: Connection, path: Path, kind: str, now: int) -> int:
    """Begin a line of the list; return its number."""
    number: int = NEXT_COPY.value(connection)
    unfinished = CopyRow(number, now, None, None, kind, str(path))
    INSERT_COPY.insert_many(connection, [unfinished])
    return number


def finish_copy(connection: Connection, number: int, path: Path) -> None:
    """Record the identity of a finished copy, and delete the line of an earlier copy."""
    status = path.stat()
    FINISH_COPY.run(connection, number=number, bytes=status.st_size, changed=status.st_mtime_ns)
    DELETE_REPLACED_COPIES.run(connection, name=str(path), number=number)


def write_copy(database: Database, path: Path) -> Path:
    """Write the present committed state to an unfinished copy, readable by its owner alone.

    Return its name. Raises StoreFull if the disk has no room, StoreError if it cannot be written;
    then nothing is left of it.
    """
    part = add_suffix(path, PART_SUFFIX)
    _create_new_file(part)
    try:
        with database.reading() as connection:
            driver = connection.connection.driver_connection
            driver.execute("VACUUM INTO ?", (str(part),))  # type: ignore[union-attr]
        _flush_path(part)
    except BaseException:
        discard_copy(part)
        raise
    return part


def publish_copy(part: Path, path: Path, *, replace: bool) -> None:
    """Give a finished copy its name, for good.

    Raises StoreError if the name is taken and ``replace`` is False.
    """
    if not replace:
        _create_new_file(path)
    try:
        part.replace(path)
    except OSError as error:
        raise StoreError(f"cannot give {part} its name: {error.strerror}") from error
    with suppress(StoreError):  # as SQLite does; the copy itself is on the disk
        _flush_path(path.parent)


def discard_copy(part: Path) -> None:
    """Remove an unfinished copy, and any files that its check put beside it.

    Files that cannot be removed stay: a copy that has its name by then is complete all the same.
    """
    for name in ("", *COMPANION_SUFFIXES):
        with suppress(OSError):
            add_suffix(part, name).unlink()


def check_disk_room(database: Database, path: Path, advice: str) -> None:
    """Raise StoreFull where there is no room for a copy; ``advice`` says what to do."""
    with database.reading() as connection:
        driver = connection.connection.driver_connection
        pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        (needed,) = driver.execute(pages).fetchone()  # type: ignore[union-attr]
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        room = f"{needed:,} bytes are needed at {path.parent}, {free:,} are free"
        raise StoreFull(f"there is no room for a copy: {room}; {advice}")


@contextmanager
def block_writers(path: Path) -> Iterator[None]:
    """Keep our writers from an existing file. Raises StoreBusy while one is at work."""
    place = QueuePlace(WriterQueue(str(add_suffix(path, "-lock")), CLAIM_SECONDS))
    try:
        place.take()
        yield
    finally:
        place.close()


def claim_file(path: Path) -> None:
    """Make sure that nobody has a file open, and remove the files beside it that belong to it.

    Only the last connection can leave write-ahead logging, so SQLite itself makes the check.
    Raises StoreBusy. The companions of a damaged file are removed as they are.
    """
    try:
        with closing(
            sqlite3.connect(path, timeout=CLAIM_SECONDS, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname.startswith("SQLITE_BUSY"):
            raise StoreBusy(
                f"{path} is in use, so it was not changed;"
                " close the programs that have it open, then try again"
            ) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        pass  # damaged: that may be the reason for its replacement
    for name in ("-wal", "-shm", "-journal"):
        add_suffix(path, name).unlink(missing_ok=True)


def _create_new_file(path: Path) -> None:
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError as error:
        reason = "; choose another name, or say that it may be replaced"
        if path.name.endswith(PART_SUFFIX):
            reason = ": a copy is being made just now, or one was cut off; if so, remove that file"
        raise StoreError(f"{path} exists already{reason}") from error
    except OSError as error:
        raise StoreError(f"cannot create {path}: {error.strerror}; name another place") from error


def _flush_path(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        raise StoreError(f"the disk did not take {path}: {error.strerror}; try again") from error
    finally:
        os.close(file)
