"""What may threaten a store where it lies, and what to do about it, in plain words.

Each check is a function of its own; two tables name them: those that look at the file from outside,
and those that ask the store. Nothing is changed, and an older store is not upgraded.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import URL, Connection

from ..database import COMPANIONS, COPIES, HEAD, Database, resolved, url_of, version
from ..errors import StoreError
from ..history import HOLDING, erasure

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


LARGE_LOG = 64 * 1024 * 1024
"""Bytes of a write-ahead log that only a reader who does not end makes so long."""
FLAWED = (3, 7, 0), (3, 51, 3)
"""From this SQLite on, before that one: a checkpoint that meets a commit may damage the file."""
MENDED: dict[tuple[int, ...], int] = {(3, 50): 7, (3, 44): 6}
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
    url = url_of(target)
    if url.get_backend_name() != "sqlite":
        return list(_inside(url, SERVER_CHECKS))
    path = Path(resolved(url))
    if not path.is_file():
        return [Condition("file", "unusable", f"there is no file {path}", "name an existing store")]
    return [*(check(path) for check in FILE_CHECKS), *_inside(url, STORE_CHECKS)]


def _inside(url: URL, checks: tuple[Callable[[Connection], Condition], ...]) -> Iterator[Condition]:
    """Ask the store itself, as far as it can be read."""
    try:
        with closing(Database(url)) as database, database.reading() as connection:
            schema = _schema(connection)
            yield schema
            if schema.state == "fine":
                yield from [check(connection) for check in checks]
    except StoreError as error:
        yield Condition("store", "unusable", str(error))


def _sqlite(_: Path) -> Condition:
    found = f"version {sqlite3.sqlite_version}"
    if not has_log_flaw(sqlite3.sqlite_version_info):
        return Condition("sqlite", "fine", found)
    flaw = "it can damage a file when a checkpoint meets a commit; writers of this store never let"
    rule = "let other programs only read the file, or use a Python with SQLite 3.51.3 or newer"
    return Condition("sqlite", "fine", f"{found}: {flaw} them meet", rule)


def has_log_flaw(found: tuple[int, ...]) -> bool:
    """Tell whether a version of SQLite has the flaw (https://sqlite.org/wal.html#walresetbug)."""
    mended = MENDED.get(found[:2])
    return FLAWED[0] <= found < FLAWED[1] and not (mended is not None and found[2] >= mended)


def _file_system(path: Path) -> Condition:
    kind = file_system_of(path, MOUNTS.read_text("utf-8") if MOUNTS.exists() else "")
    if kind not in NETWORKS:
        return Condition("file system", "fine", kind or "unknown")
    return Condition(
        "file system",
        "advice",
        f"{kind} is a network file system, where locks do not hold",
        "move the store to a local disk, or use PostgreSQL",
    )


def file_system_of(path: Path, mounts: str) -> str:
    """Return the kind of file system that a path is on; the deepest, last mount counts."""
    folders = [path, *path.parents]
    deepest, kind = len(folders), ""
    for line in mounts.splitlines():
        _, place, found, *_ = line.split(" ")
        mounted = Path(place.replace("\\040", " "))
        if mounted in folders and folders.index(mounted) <= deepest:
            deepest, kind = folders.index(mounted), found
    return kind


def _links(path: Path) -> Condition:
    names = path.stat().st_nlink
    if names == 1:
        return Condition("links", "fine", "the file has one name")
    found = f"the file has {names} names (hard links), each with a log of its own"
    return Condition("links", "unusable", found, "remove all but one, or copy the file")


def _modes(path: Path) -> Condition:
    files = [path, *(Path(f"{path}{each}") for each in COMPANIONS)]
    open_to_others = [
        each.name
        for each in files
        if each.exists() and stat.S_IMODE(each.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    ]
    if not open_to_others:
        return Condition("modes", "fine", "readable by the owner alone")
    found = f"others than the owner may use {', '.join(open_to_others)}"
    return Condition("modes", "advice", found, f"chmod 600 {path}*")


def _log(path: Path) -> Condition:
    log = Path(f"{path}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size <= LARGE_LOG:
        return Condition("log", "fine", f"{size:,} bytes")
    return Condition(
        "log",
        "advice",
        f"the write-ahead log has {size:,} bytes: somebody reads and does not end",
        "look for a program with an open transaction or an unfinished query, and end it",
    )


def _room(path: Path) -> Condition:
    size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
    found = f"{free:,} bytes are free, the file has {size:,}"
    if free > size:
        return Condition("room", "fine", found)
    return Condition("room", "advice", found, "make room: purging and upgrading write it anew")


def _schema(connection: Connection) -> Condition:
    found = version(connection)
    if found == HEAD:
        return Condition("schema", "fine", f"{found}, the newest")
    if found is None:
        return Condition("schema", "advice", "the database is empty", "import or append something")
    known = f"{found}; this release has {HEAD}"
    return Condition(
        "schema", "advice", known, "run `convostore migrate`; other commands do so too"
    )


def _purge(connection: Connection) -> Condition:
    waiting = sum(not each.purged for each in erasure.erasures(connection))
    if not waiting:
        return Condition("purge", "fine", "nothing is waiting for it")
    found = f"{waiting:,} erasures may have left bytes in the file"
    return Condition("purge", "advice", found, "run `convostore purge` while nobody else reads")


def _copies(connection: Connection) -> Condition:
    listed, holding = COPIES.rows(connection), HOLDING.rows(connection)
    if not holding:
        return Condition("copies", "fine", f"{len(listed):,} listed, none holds what was erased")
    found = f"what was erased since may be in {', '.join(row.path for row in holding)}"
    return Condition("copies", "advice", found, "remove them, and make new ones")


def _server(connection: Connection) -> Condition:
    found = ".".join(map(str, connection.dialect.server_version_info or ()))
    return Condition("server", "fine", f"{connection.dialect.name} {found}")


FILE_CHECKS: tuple[Callable[[Path], Condition], ...] = (
    _sqlite,
    _file_system,
    _links,
    _modes,
    _log,
    _room,
)
STORE_CHECKS = (_purge, _copies)
SERVER_CHECKS = (_server,)
