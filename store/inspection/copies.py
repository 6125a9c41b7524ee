"""Copies of a store: made while it is at work, checked, remembered, put back, removed.

The store lists the copies made of it, because an erasure has to name those that still hold what it
erased. How a copy is written, and in what order the list is kept, stands in ``database.copying``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import Connection

from ..clock import Now, milliseconds
from ..database import (
    COPIES,
    FORGET_COPY,
    PART_SUFFIX,
    SCHEMA_HEAD,
    CopyRow,
    Database,
    add_suffix,
    block_writers,
    claim_file,
    discard_copy,
    finish_copy,
    list_copy,
    parse_url,
    publish_copy,
    read_version,
    resolve_path,
    write_copy,
)
from ..errors import InvalidValue, NotAStore, SessionNotFound, StoreError, StoreFull, quoted
from ..history import STALE_COPIES, erasure, redaction, sessions
from ..records import Copy, Removal, Restored
from ..text import is_text
from .checks import OLDER
from .integrity import check, reading

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
    readable by its owner alone, and whole as soon as it has its name. ``replace`` allows to put it
    in the place of an earlier copy; never of a file that is in use. Raises StoreError where it
    cannot be made or does not pass its check, StoreFull without room, StoreBusy where the file to
    replace is in use; then nothing is left of it.
    """
    own = _own_file(database)
    place = _listable(path)
    _allow(place, replace=replace, apart_from=own)
    moment = milliseconds(now)
    number = _announced(database, place, moment)
    try:
        _write(database, place, replace=replace)
    except BaseException:
        _forget(database, number)
        raise
    noted = _finished(database, number, place)
    return Copy(noted, str(place), "backup", moment, place.stat().st_size)


def listed(connection: Connection) -> list[Copy]:
    """Return the copies that were made of a store and are listed in it, oldest first."""
    return [_copy(row) for row in COPIES.rows(connection)]


def remove_copies(database: Database) -> Removal:
    """Remove the copies that may still hold what was erased; return which, and which are left.

    Left are files that changed since they were made, so that they may be in use as stores of their
    own, and those in a folder that is not there now. What is gone already is forgotten.
    """
    with database.reading() as connection:
        holding = STALE_COPIES.rows(connection)
    removed = [row for row in holding if _removed(row)]
    left = [row for row in holding if row not in removed]
    with suppress(StoreFull):  # what is gone is forgotten by the next one
        _forget_all(database, removed)
    return Removal(_paths(removed), _paths(left))


def restore(
    copy: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    replace: bool = False,
) -> Restored:
    """Put a copy in the place of a store: checked first, then as a whole.

    ``replace`` allows to put it in the place of a file that is there, which is lost then; one that
    is in use is never replaced. The copy itself stays. What the store knew of its copies goes on.
    Raises NotAStore and SchemaTooNew for what is no copy, StoreBusy for a store in use, StoreError
    where the copy is damaged; then the store is as it was.
    """
    source, place = _file(copy), _file(target)
    if not source.exists():
        raise StoreError(f"there is no file {source}; name a copy of a store")
    _allow(place, replace=replace, apart_from=source)
    schema, part = _written_beside(place, source)
    try:
        _check(part)
        back = _carry_over(source, part, place)
        _move_in(part, place, replace=replace)
    finally:
        discard_copy(part)
    return Restored(str(place), schema, *back)


def _own_file(database: Database) -> Path:
    if database.path is None:
        raise InvalidValue("only a file is copied here; of a server make a dump, with pg_dump")
    return Path(database.path)


def _listable(name: str | os.PathLike[str]) -> Path:
    """Return the file of a copy. Raises InvalidValue for a name that no list can hold."""
    place = _file(name)
    if not is_text(str(place)):
        raise InvalidValue(f"{quoted(str(place))} is no UTF-8, so no list can hold it: rename it")
    return place


def _file(name: str | os.PathLike[str]) -> Path:
    return Path(resolve_path(parse_url(name)))


def _allow(place: Path, *, replace: bool, apart_from: Path) -> None:
    """Refuse a place that is the store itself, or is taken."""
    if _is_same(place, apart_from):
        raise InvalidValue(f"{place} is the store itself; name another file")
    if place.exists() and not replace:
        raise StoreError(f"{place} exists already; name another file, or say that it is to go")


def _is_same(place: Path, other: Path) -> bool:
    if place == other:
        return True
    return place.exists() and place.samefile(other)


def _write(database: Database, place: Path, *, replace: bool) -> None:
    """Write a copy, check it, and give it its name; nothing else is left of it."""
    part = write_copy(database, place)
    try:
        _check(part)
        _move_in(part, place, replace=replace)
    finally:
        discard_copy(part)


def _written_beside(place: Path, source: Path) -> tuple[str, Path]:
    """Write a copy of a copy beside the place where it is to be; return its schema and its name."""
    with closing(Database(source)) as database:
        schema = _schema(database)
        return schema, write_copy(database, place)


def _schema(database: Database) -> str:
    with database.reading() as connection:
        schema = read_version(connection)
    if schema is None:
        raise NotAStore(f"{database.path} is empty; name a copy of a store")
    return schema


def _move_in(part: Path, place: Path, *, replace: bool) -> None:
    """Give a checked copy its name, once nobody uses the file that has it now.

    Who opens that one meanwhile waits in line, and writes nothing that would lie beside the copy.
    """
    is_taken = place.exists()
    with block_writers(place) if is_taken else nullcontext():
        if is_taken:
            claim_file(place)
        publish_copy(part, place, replace=replace)


def _announced(database: Database, place: Path, now: int) -> int | None:
    """Begin a line of the list; None where the store is too old, or its disk too full, for one."""
    if not _has_list(database):
        return None
    with suppress(StoreFull), database.writing() as connection:
        return list_copy(connection, place, "backup", now)
    return None


def _has_list(database: Database) -> bool:
    with database.reading() as connection:
        return (read_version(connection) or "") >= LISTED_FROM


def _finished(database: Database, number: int | None, place: Path) -> int | None:
    """End the line of a copy; None where there is none, or where it stays as one begun."""
    if number is None:
        return None
    with suppress(StoreError), database.writing() as connection:
        finish_copy(connection, number, place)
        return number
    return None


def _forget(database: Database, number: int | None) -> None:
    """Take back a line of a copy that was not made; if that fails, the line names nothing."""
    if number is None:
        return
    with suppress(StoreError), database.writing() as connection:
        FORGET_COPY.run(connection, number=number)


def _forget_all(database: Database, rows: list[CopyRow]) -> None:
    with database.writing() as connection:
        for row in rows:
            FORGET_COPY.run(connection, number=row.copy)


def _copy(row: CopyRow) -> Copy:
    return Copy(row.copy, row.path, row.kind, row.made_at, row.size)


def _paths(rows: Iterable[CopyRow]) -> tuple[str, ...]:
    return tuple(row.path for row in rows)


def _check(part: Path) -> None:
    findings = [each for each in check(part) if each.check != OLDER]
    if findings:
        first = f"{findings[0].where} {findings[0].problem}"
        raise StoreError(
            f"the copy does not pass its check ({len(findings)} findings, the first: {first});"
            " nothing was kept; `convostore verify` says whether the store itself is damaged"
        )


def _removed(row: CopyRow) -> bool:
    """Remove a copy's file unless it is another by now; tell whether nothing is left of it."""
    path = Path(row.path)
    if not path.parent.is_dir():
        return False
    add_suffix(path, PART_SUFFIX).unlink(missing_ok=True)
    try:
        unchanged = _is_unchanged(path, row)
    except FileNotFoundError:
        return True
    if unchanged:
        path.unlink()
    return unchanged


def _is_unchanged(path: Path, row: CopyRow) -> bool:
    status = path.stat()
    return (status.st_size, status.st_mtime_ns) == (row.size, row.modified)


class _Known(NamedTuple):
    """What a store knows that its copy may not: its list of copies, and what was taken away."""

    copies: tuple[CopyRow, ...] = ()
    erased: frozenset[str] = frozenset()
    redacted: Mapping[redaction.MessagePlace, redaction.SessionPosition] = MappingProxyType({})


def _known(path: Path) -> _Known:
    """Return what a file knows; of a damaged or foreign one, nothing."""
    if path.exists():
        with suppress(StoreError), reading(path) as connection:
            return _told_by(connection)
    return _Known()


def _told_by(connection: Connection) -> _Known:
    if read_version(connection) != SCHEMA_HEAD:
        return _Known()
    copies = tuple(COPIES.rows(connection))
    return _Known(copies, _erased(connection), redaction.load_redacted_places(connection))


def _erased(connection: Connection) -> frozenset[str]:
    return frozenset(each.session_id for each in erasure.erasures(connection))


class _Back(NamedTuple):
    """What a copy brings back: sessions that were erased, messages that were redacted."""

    erased: tuple[str, ...] = ()
    redacted: tuple[redaction.SessionPosition, ...] = ()


def _carry_over(source: Path, part: Path, place: Path) -> _Back:
    """Let a restored store know the copies there are; return what comes back with it."""
    before = _known(place)
    with closing(Database(part)) as database:
        with database.reading() as connection:
            if read_version(connection) != SCHEMA_HEAD:
                return _Back()
            erased = _come_back(connection, before.erased)
            back = _Back(erased, _said_again(connection, before))
        with database.writing() as connection:
            _list_anew(connection, [source, *map(Path, _paths(before.copies))])
        database.empty_log()  # the log stays behind when the file gets its name
    return back


def _come_back(connection: Connection, erased: frozenset[str]) -> tuple[str, ...]:
    """Return the sessions that were erased after the copy was made, and are in it."""
    gone = erased - _erased(connection)
    return tuple(sorted(each for each in gone if _is_there(connection, each)))


def _said_again(connection: Connection, before: _Known) -> tuple[redaction.SessionPosition, ...]:
    """Return the messages that were redacted after the copy was made, and are whole in it."""
    known = redaction.load_redacted_places(connection)
    new = {place: named for place, named in before.redacted.items() if place not in known}
    return tuple(named for place, named in new.items() if redaction.has_message(connection, place))


def _list_anew(connection: Connection, paths: list[Path]) -> None:
    """List the files there are, in place of lines that were begun and never finished.

    Their numbers are higher than those of all erasures that the restored store knows: they were
    made later, or are what it was restored from, so they hold none of those bytes.
    """
    _forget_unfinished(connection)
    known = {Path(row.path) for row in COPIES.rows(connection)}
    for path in dict.fromkeys(paths):
        if path not in known and path.exists():
            _list_finished(connection, path)


def _forget_unfinished(connection: Connection) -> None:
    for row in COPIES.rows(connection):
        if row.size is None:
            FORGET_COPY.run(connection, number=row.copy)


def _list_finished(connection: Connection, path: Path) -> None:
    number = list_copy(connection, path, "backup", milliseconds(None))
    finish_copy(connection, number, path)


def _is_there(connection: Connection, session_id: str) -> bool:
    try:
        sessions.session(connection, session_id)
    except SessionNotFound:
        return False
    return True
