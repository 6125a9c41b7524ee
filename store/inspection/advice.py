"""What may threaten a store where it lies, and what to do about it, in plain words.

Each check is a function of its own that gives a verdict; two tables at the end name them: those
that look at the file from outside, and those that ask the store. Nothing is changed, and an older
store is not upgraded.
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from sqlalchemy import URL, Connection

from ..database import (
    COMPANIONS,
    COPIES,
    HEAD,
    beside,
    closed_files,
    resolved,
    url_of,
    version,
)
from ..errors import StoreError
from ..history import STALE_COPIES, erasure
from .checking import reading

State = Literal["fine", "advice", "unusable"]


class Condition(NamedTuple):
    """One thing that was looked at: what it is about, how it is, what was found, what to do.

    ``state``: ``fine``; ``advice`` where something should be done; ``unusable`` where the store
    cannot be used as it is.
    """

    about: str
    state: State
    found: str
    advice: str = ""


class _Verdict(NamedTuple):
    """What a check says of that which it is about."""

    state: State
    found: str
    advice: str = ""


T = TypeVar("T")
Checks = dict[str, Callable[[T], _Verdict]]
"""Checks by what they are about, in their order."""

LARGE_LOG = 64 * 1024 * 1024
"""Bytes of a write-ahead log that only a reader who does not end makes so long."""
FLAWED = (3, 7, 0), (3, 51, 3)
"""From this SQLite on, before that one: a checkpoint that meets a commit may damage the file."""
MENDED: dict[tuple[int, ...], int] = {
    (3, 50): 7,
    (3, 44): 6,
}
"""Older lines that were mended too, from this number on."""
MOUNTS = Path("/proc/self/mounts")
_NETWORKS = """
9p afs beegfs ceph cifs coda fuse.glusterfs fuse.s3fs fuse.sshfs gfs2 glusterfs lustre ncpfs nfs
nfs4 smb3 smbfs vboxsf
"""
NETWORKS = frozenset(_NETWORKS.split())
"""File systems on which neither locks nor the write-ahead log can be relied on."""


def doctor(target: str | os.PathLike[str] | URL) -> list[Condition]:
    """Look at a store and everything around it; return what was found, in a fixed order.

    Raises InvalidValue for what is no path or URL; all else is an answer.
    """
    return list(_conditions(url_of(target)))


def _conditions(url: URL) -> Iterator[Condition]:
    """Look at a file from outside, where there is one, then ask the store."""
    if url.get_backend_name() == "sqlite":
        path = Path(resolved(url))
        if not path.is_file():
            missing = f"there is no file {path}"
            yield Condition("file", "unusable", missing, "name an existing store")
            return
        yield from _verdicts(FILE_CHECKS, path)
    yield from _inside(url)


def _inside(url: URL) -> Iterator[Condition]:
    """Ask the store itself, as far as it can be read."""
    try:
        with reading(url) as connection:
            yield from _asked(connection)
    except StoreError as error:
        yield Condition("store", "unusable", str(error))


def _asked(connection: Connection) -> Iterator[Condition]:
    """Ask a store of the newest schema; of another, the schema is all that can be told."""
    schema = _schema(connection)
    yield Condition("schema", *schema)
    if schema.state == "fine":
        yield from _verdicts(STORE_CHECKS[connection.dialect.name], connection)


def _verdicts(checks: Checks[T], subject: T) -> list[Condition]:
    return [Condition(about, *check(subject)) for about, check in checks.items()]


def _fine(found: str) -> _Verdict:
    return _Verdict("fine", found)


def _to_do(found: str, advice: str) -> _Verdict:
    return _Verdict("advice", found, advice)


def _sqlite(_: Path) -> _Verdict:
    found = f"version {sqlite3.sqlite_version}"
    if not has_log_flaw(sqlite3.sqlite_version_info):
        return _fine(found)
    flaw = "it can damage a file when a checkpoint meets a commit; writers of this store never let"
    rule = "let other programs only read the file, or use a Python with SQLite 3.51.3 or newer"
    return _Verdict("fine", f"{found}: {flaw} them meet", rule)


def has_log_flaw(found: tuple[int, ...]) -> bool:
    """Tell whether a version of SQLite has the flaw (https://sqlite.org/wal.html#walresetbug)."""
    first, beyond = FLAWED
    if not first <= found < beyond:
        return False
    return found[2] < MENDED.get(found[:2], math.inf)


def _file_system(path: Path) -> _Verdict:
    kind = file_system_of(path, _mounts())
    if kind not in NETWORKS:
        return _fine(kind or "unknown")
    return _to_do(
        f"{kind} is a network file system, where locks do not hold",
        "move the store to a local disk, or use PostgreSQL",
    )


def _mounts() -> str:
    if MOUNTS.exists():
        return MOUNTS.read_text("utf-8")
    return ""


def file_system_of(path: Path, mounts: str) -> str:
    """Return the kind of file system that a path is on; the deepest, last mount counts."""
    kinds = dict(_mounted(mounts))
    for folder in (path, *path.parents):
        if folder in kinds:
            return kinds[folder]
    return ""


def _mounted(mounts: str) -> Iterator[tuple[Path, str]]:
    """Yield where something is mounted, and the kind of its file system."""
    for line in mounts.splitlines():
        _, place, kind, *_ = line.split(" ")
        yield Path(place.replace("\\040", " ")), kind


def _links(path: Path) -> _Verdict:
    names = path.stat().st_nlink
    if names == 1:
        return _fine("the file has one name")
    found = f"the file has {names} names (hard links), each with a log of its own"
    return _Verdict("unusable", found, "remove all but one, or copy the file")


def _modes(path: Path) -> _Verdict:
    names = ", ".join(each.name for each in _files(path) if _is_open_to_others(each))
    if not names:
        return _fine("readable by the owner alone")
    return _to_do(f"others than the owner may use {names}", f"chmod 600 {path}*")


def _files(path: Path) -> Iterator[Path]:
    """Yield the file, and what SQLite and the queue have put beside it."""
    for ending in ("", *COMPANIONS):
        file = beside(path, ending)
        if file.exists():
            yield file


def _is_open_to_others(file: Path) -> bool:
    mode = file.stat().st_mode
    return bool(mode & (stat.S_IRWXG | stat.S_IRWXO))


def _rights(path: Path) -> _Verdict:
    closed = closed_files(path)
    if not closed:
        return _fine("may be written, and so may its folder and the files beside it")
    return _to_do(
        f"{' and '.join(closed)} cannot be written by this user",
        "give the user the right, or copy the file: reading needs to write beside it, too",
    )


def _log(path: Path) -> _Verdict:
    size = _size(beside(path, "-wal"))
    if size <= LARGE_LOG:
        return _fine(f"{size:,} bytes")
    return _to_do(
        f"the write-ahead log has {size:,} bytes: somebody reads and does not end",
        "look for a program with an open transaction or an unfinished query, and end it",
    )


def _size(file: Path) -> int:
    if file.exists():
        return file.stat().st_size
    return 0


def _room(path: Path) -> _Verdict:
    size = _size(path)
    free = shutil.disk_usage(path.parent).free
    found = f"{free:,} bytes are free, the file has {size:,}"
    if free > size:
        return _fine(found)
    return _to_do(found, "make room: purging and upgrading write it anew")


def _schema(connection: Connection) -> _Verdict:
    found = version(connection)
    if found == HEAD:
        return _fine(f"{found}, the newest")
    if found is None:
        return _to_do("the database is empty", "import or append something")
    known = f"{found}; this release has {HEAD}"
    return _to_do(known, "run `convostore migrate`; other commands do so too")


def _purge(connection: Connection) -> _Verdict:
    waiting = sum(not each.purged for each in erasure.erasures(connection))
    if not waiting:
        return _fine("nothing is waiting for it")
    found = f"{waiting:,} erasures may have left bytes in the file"
    return _to_do(found, "run `convostore purge` while nobody else reads")


def _copies(connection: Connection) -> _Verdict:
    listed, holding = COPIES.rows(connection), STALE_COPIES.rows(connection)
    if not holding:
        return _fine(f"{len(listed):,} listed, none holds what was erased")
    found = f"what was erased since may be in {', '.join(row.path for row in holding)}"
    return _to_do(found, "remove them, and make new ones")


def _server(connection: Connection) -> _Verdict:
    found = ".".join(map(str, connection.dialect.server_version_info or ()))
    return _fine(f"{connection.dialect.name} {found}")


FILE_CHECKS: Checks[Path] = {
    "sqlite": _sqlite,
    "file system": _file_system,
    "links": _links,
    "modes": _modes,
    "rights": _rights,
    "log": _log,
    "room": _room,
}
"""How the file lies there."""
STORE_CHECKS: dict[str, Checks[Connection]] = {
    "sqlite": {"purge": _purge, "copies": _copies},
    "postgresql": {"server": _server},
}
"""What each kind of database is asked."""
