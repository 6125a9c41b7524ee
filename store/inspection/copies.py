"""Copies of a store: made while it is in use, checked, listed, restored, removed.

The store lists its copies, because an erasure has to name those that still hold the erased
sessions. ``database.copying`` writes a copy and keeps the order of the list.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, resolve_now
from ..database import (
    COPIES,
    DELETE_COPY,
    PART_SUFFIX,
    SCHEMA_HEAD,
    CopyRow,
    Database,
    add_suffix,
    block_writers,
    claim_file,
    discard_copy,
    finish_copy,
    parse_url,
    publish_copy,
    read_version,
    record_copy,
    resolve_path,
    write_copy,
)
from ..errors import InvalidValue, NotAStore, SessionNotFound, StoreError, StoreFull, quote_value
from ..history import STALE_COPIES, erasure, redaction, sessions
from ..records import Copy, Removal, Restored
from ..text import is_text
from .checks import OLDER
from .integrity import check, open_for_reading

LISTED_FROM = "0003"
"""The first schema with a list of copies."""


def backup(
    database: Database,
    path: str | os.PathLike[str],
    *,
    replace: bool = False,
    now: Now = None,
) -> Copy:
    """Copy a store to a new file, while others read and write; check the copy and list it.

    The copy is one state of the store, with everything that was acknowledged before the call. It is
    readable by its owner alone, and whole as soon as it has its name. ``replace`` allows it to
    replace an earlier copy, but never a file that is in use. Raises StoreError if it cannot be
    made or does not pass its check, StoreFull without room, StoreBusy if the file to replace is in
    use; then nothing is left of it.
    """
    if database.path is None:
        raise InvalidValue("only a file can be copied; make a dump of a server with pg_dump")
    own = Path(database.path)
    place = _resolve_file(path)
    if not is_text(str(place)):
        raise InvalidValue(
            f"{quote_value(str(place))} is not UTF-8, so it cannot be listed; rename it"
        )
    _check_place(place, replace=replace, apart_from=own)
    moment = resolve_now(now)
    number = _begin_listing(database, place, moment)
    try:
        part = write_copy(database, place)
        try:
            _check_copy(part)
            _move_copy_in(part, place, replace=replace)
        finally:
            discard_copy(part)
    except BaseException:
        _forget_copy(database, number)
        raise
    noted = _finish_listing(database, number, place)
    return Copy(noted, str(place), "backup", moment, place.stat().st_size)


def listed(connection: Connection) -> list[Copy]:
    """Return the listed copies of a store, oldest first."""
    return [
        Copy(row.copy, row.path, row.kind, row.made_at, row.size) for row in COPIES.rows(connection)
    ]


def remove_copies(database: Database) -> Removal:
    """Remove the copies that may still hold erased data; return the removed and the remaining ones.

    Files that changed after they were made remain, since they may be in use as stores of their
    own, and so do files in a folder that is missing now. Missing files are dropped from the list.
    """
    with database.reading() as connection:
        holding = STALE_COPIES.rows(connection)
    removed = [row for row in holding if _remove_copy_file(row)]
    left = [row for row in holding if row not in removed]
    # On a full disk, the next call drops missing copies from the list.
    with suppress(StoreFull), database.writing() as connection:
        for row in removed:
            DELETE_COPY.run(connection, number=row.copy)
    return Removal(_list_paths(removed), _list_paths(left))


def restore(
    copy: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    replace: bool = False,
) -> Restored:
    """Replace a store with a copy, after a check and as a whole.

    ``replace`` allows it to replace an existing file, which is lost then; a file that is in use is
    never replaced. The copy itself stays, and so does the store's list of copies. Raises NotAStore
    and SchemaTooNew for a file that is no copy, StoreBusy for a store in use, StoreError if the
    copy is damaged; then the store is unchanged.
    """
    source, place = _resolve_file(copy), _resolve_file(target)
    if not source.exists():
        raise StoreError(f"there is no file {source}; name a copy of a store")
    _check_place(place, replace=replace, apart_from=source)
    schema, part = _write_copy_beside(place, source)
    try:
        _check_copy(part)
        back = _carry_over(source, part, place)
        _move_copy_in(part, place, replace=replace)
    finally:
        discard_copy(part)
    return Restored(str(place), schema, *back)


def _resolve_file(name: str | os.PathLike[str]) -> Path:
    return Path(resolve_path(parse_url(name)))


def _check_place(place: Path, *, replace: bool, apart_from: Path) -> None:
    """Refuse a place that is the store itself or another existing file."""
    if _is_same_file(place, apart_from):
        raise InvalidValue(f"{place} is the store itself; name another file")
    if place.exists() and not replace:
        raise StoreError(f"{place} exists already; name another file, or say that it is to go")


def _is_same_file(place: Path, other: Path) -> bool:
    if place == other:
        return True
    return place.exists() and place.samefile(other)


def _write_copy_beside(place: Path, source: Path) -> tuple[str, Path]:
    """Write a copy of a copy beside its final place; return its schema and its name."""
    with closing(Database(source)) as database:
        with database.reading() as connection:
            schema = read_version(connection)
        if schema is None:
            raise NotAStore(f"{database.path} is empty; name a copy of a store")
        return schema, write_copy(database, place)


def _move_copy_in(part: Path, place: Path, *, replace: bool) -> None:
    """Give a checked copy its name, once nobody uses the file with that name.

    A process that opens that file meanwhile has to wait, and writes nothing beside the copy.
    """
    is_taken = place.exists()
    with block_writers(place) if is_taken else nullcontext():
        if is_taken:
            claim_file(place)
        publish_copy(part, place, replace=replace)


def _begin_listing(database: Database, place: Path, now: int) -> int | None:
    """Begin a line of the list; None if the store is too old or its disk too full for one."""
    if not _has_list(database):
        return None
    with suppress(StoreFull), database.writing() as connection:
        return record_copy(connection, place, "backup", now)
    return None


def _has_list(database: Database) -> bool:
    with database.reading() as connection:
        return (read_version(connection) or "") >= LISTED_FROM


def _finish_listing(database: Database, number: int | None, place: Path) -> int | None:
    """Finish the line of a copy; None if there is none, or if it stays unfinished."""
    if number is None:
        return None
    with suppress(StoreError), database.writing() as connection:
        finish_copy(connection, number, place)
        return number
    return None


def _forget_copy(database: Database, number: int | None) -> None:
    """Delete the line of a copy that was not made; if that fails, the line names no file."""
    if number is None:
        return
    with suppress(StoreError), database.writing() as connection:
        DELETE_COPY.run(connection, number=number)


def _list_paths(rows: Iterable[CopyRow]) -> tuple[str, ...]:
    return tuple(row.path for row in rows)


def _check_copy(part: Path) -> None:
    findings = [each for each in check(part) if each.check != OLDER]
    if findings:
        first = f"{findings[0].where} {findings[0].problem}"
        raise StoreError(
            f"the copy does not pass its check ({len(findings)} findings, the first: {first});"
            " nothing was kept; `convostore verify` says whether the store itself is damaged"
        )


def _remove_copy_file(row: CopyRow) -> bool:
    """Remove a copy's file unless it has changed; tell whether nothing is left of it."""
    path = Path(row.path)
    if not path.parent.is_dir():
        return False
    add_suffix(path, PART_SUFFIX).unlink(missing_ok=True)
    try:
        status = path.stat()
        unchanged = (status.st_size, status.st_mtime_ns) == (row.size, row.modified)
    except FileNotFoundError:
        return True
    if unchanged:
        path.unlink()
    return unchanged


class _StoreFacts(NamedTuple):
    """Facts of a store that its copy may lack: its list of copies, its erasures and redactions."""

    copies: tuple[CopyRow, ...] = ()
    erased: frozenset[str] = frozenset()
    redacted: Mapping[redaction.MessagePlace, redaction.SessionPosition] = MappingProxyType({})


def _load_file_facts(path: Path) -> _StoreFacts:
    """Return the facts of a file; none for a damaged or foreign one."""
    if path.exists():
        with suppress(StoreError), open_for_reading(path) as connection:
            if read_version(connection) != SCHEMA_HEAD:
                return _StoreFacts()
            copies = tuple(COPIES.rows(connection))
            return _StoreFacts(
                copies, _load_erased_ids(connection), redaction.load_redacted_places(connection)
            )
    return _StoreFacts()


def _load_erased_ids(connection: Connection) -> frozenset[str]:
    return frozenset(each.session_id for each in erasure.list_erasures(connection))


class _ReturnedData(NamedTuple):
    """Erased sessions and redacted messages that a copy brings back."""

    erased: tuple[str, ...] = ()
    redacted: tuple[redaction.SessionPosition, ...] = ()


def _carry_over(source: Path, part: Path, place: Path) -> _ReturnedData:
    """List the existing copies in a restored store; return the erased data that it brings back."""
    before = _load_file_facts(place)
    with closing(Database(part)) as database:
        with database.reading() as connection:
            if read_version(connection) != SCHEMA_HEAD:
                return _ReturnedData()
            gone = before.erased - _load_erased_ids(connection)
            erased = tuple(sorted(each for each in gone if _has_live_session(connection, each)))
            known = redaction.load_redacted_places(connection)
            new = {place: named for place, named in before.redacted.items() if place not in known}
            back = _ReturnedData(
                erased,
                tuple(
                    named
                    for place, named in new.items()
                    if redaction.has_message(connection, place)
                ),
            )
        with database.writing() as connection:
            # Their numbers are higher than those of all erasures in the restored store: these files
            # were made later, or are its source, so they hold none of the erased bytes.
            paths = [source, *map(Path, _list_paths(before.copies))]
            _forget_unfinished(connection)
            listed = {Path(row.path) for row in COPIES.rows(connection)}
            for path in dict.fromkeys(paths):
                if path not in listed and path.exists():
                    number = record_copy(connection, path, "backup", resolve_now(None))
                    finish_copy(connection, number, path)
        database.empty_log()  # the log does not move when the file gets its name
    return back


def _forget_unfinished(connection: Connection) -> None:
    for row in COPIES.rows(connection):
        if row.size is None:
            DELETE_COPY.run(connection, number=row.copy)


def _has_live_session(connection: Connection, session_id: str) -> bool:
    try:
        sessions.load_session(connection, session_id)
    except SessionNotFound:
        return False
    return True
