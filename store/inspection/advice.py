"""Conditions that threaten a store in its place, and advice about them in plain words.

Each check is a function of its own that returns a verdict; two tables at the end name them: checks
of the file from outside, and checks that read the store. Nothing is changed, and an older store is
not upgraded.
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import URL, Connection

from ..database import (
    COMPANION_SUFFIXES,
    COPIES,
    SCHEMA_HEAD,
    add_suffix,
    list_unusable_files,
    parse_url,
    read_version,
    resolve_path,
)
from ..errors import StoreError
from ..history import STALE_COPIES, erasure
from .distribution import TABLE_KINDS, load_table_parts
from .integrity import open_for_reading

State = Literal["fine", "advice", "unusable"]


class Condition(NamedTuple):
    """The result of one check: its subject, its state, the findings, and advice.

    ``state``: ``fine``; ``advice`` if something should be done; ``unusable`` if the store cannot be
    used as it is.
    """

    about: str
    state: State
    found: str
    advice: str = ""


class CheckVerdict(NamedTuple):
    """The result of a check, without its subject."""

    state: State
    found: str
    advice: str = ""


LARGE_LOG = 64 * 1024 * 1024
"""Bytes of a write-ahead log that grows this long only if a reader does not end."""
FLAWED_SQLITE = (3, 7, 0), (3, 51, 3)
"""From the first to before the second: a checkpoint that meets a commit may damage the file."""
MENDED_SQLITE: dict[tuple[int, ...], int] = {
    (3, 50): 7,
    (3, 44): 6,
}
"""The first fixed version of older release lines."""
MOUNTS_FILE = Path("/proc/self/mounts")
_NETWORKS = """
9p afs beegfs ceph cifs coda fuse.glusterfs fuse.s3fs fuse.sshfs gfs2 glusterfs lustre ncpfs nfs
nfs4 smb3 smbfs vboxsf
"""
NETWORK_FILE_SYSTEMS = frozenset(_NETWORKS.split())
"""File systems without reliable locks and a reliable write-ahead log."""


def doctor(target: str | os.PathLike[str] | URL) -> list[Condition]:
    """Check a store and its surroundings; return the findings in a fixed order.

    Raises InvalidValue for a target that is no path or URL; every other problem is a finding.
    """
    url = parse_url(target)
    conditions: list[Condition] = []
    if url.get_backend_name() == "sqlite":
        path = Path(resolve_path(url))
        if not path.is_file():
            missing = f"there is no file {path}"
            return [Condition("file", "unusable", missing, "name an existing store")]
        conditions += [Condition(about, *check(path)) for about, check in FILE_CHECKS.items()]
    try:
        with open_for_reading(url) as connection:
            found = read_version(connection)
            if found == SCHEMA_HEAD:
                schema = _report_fine(f"{found}, the newest")
            elif found is None:
                schema = _report_advice("the database is empty", "import or append something")
            else:
                known = f"{found}; this release has {SCHEMA_HEAD}"
                schema = _report_advice(known, "run `convostore migrate`; other commands do so too")
            conditions.append(Condition("schema", *schema))
            if schema.state == "fine":  # nothing else is known about another schema
                checks = STORE_CHECKS[connection.dialect.name]
                conditions += [
                    Condition(name, *check(connection)) for name, check in checks.items()
                ]
    except StoreError as error:
        conditions.append(Condition("store", "unusable", str(error)))
    return conditions


def _report_fine(found: str) -> CheckVerdict:
    return CheckVerdict("fine", found)


def _report_advice(found: str, advice: str) -> CheckVerdict:
    return CheckVerdict("advice", found, advice)


def check_sqlite(_: Path) -> CheckVerdict:
    """Check the version of SQLite (https://sqlite.org/wal.html#walresetbug)."""
    found = f"version {sqlite3.sqlite_version}"
    if not has_log_flaw(sqlite3.sqlite_version_info):
        return _report_fine(found)
    flaw = "it can damage a file when a checkpoint meets a commit; writers of this store never let"
    rule = "let other programs only read the file, or use a Python with SQLite 3.51.3 or newer"
    return CheckVerdict("fine", f"{found}: {flaw} them meet", rule)


def has_log_flaw(found: tuple[int, ...]) -> bool:
    """Tell whether a version of SQLite has the flaw (https://sqlite.org/wal.html#walresetbug)."""
    first, beyond = FLAWED_SQLITE
    if not first <= found < beyond:
        return False
    return found[2] < MENDED_SQLITE.get(found[:2], math.inf)


def check_file_system(path: Path) -> CheckVerdict:
    """Check that locks hold on the file system of a file."""
    kind = find_file_system(path, MOUNTS_FILE.read_text("utf-8") if MOUNTS_FILE.exists() else "")
    if kind not in NETWORK_FILE_SYSTEMS:
        return _report_fine(kind or "unknown")
    return _report_advice(
        f"{kind} is a network file system, where locks do not hold",
        "move the store to a local disk, or use PostgreSQL",
    )


def find_file_system(path: Path, mounts: str) -> str:
    """Return the kind of file system that a path is on; the deepest, last mount counts."""
    kinds = {}
    for line in mounts.splitlines():
        _, place, kind, *_ = line.split(" ")
        kinds[Path(place.replace("\\040", " "))] = kind
    for folder in (path, *path.parents):
        if folder in kinds:
            return kinds[folder]
    return ""


def check_links(path: Path) -> CheckVerdict:
    """Check that a file has no second name."""
    names = path.stat().st_nlink
    if names == 1:
        return _report_fine("the file has one name")
    found = f"the file has {names} names (hard links), each with a log of its own"
    return CheckVerdict("unusable", found, "remove all but one, or copy the file")


def check_modes(path: Path) -> CheckVerdict:
    """Check that others may not use a file and the files of SQLite and the queue beside it."""
    files = [add_suffix(path, ending) for ending in ("", *COMPANION_SUFFIXES)]
    others = stat.S_IRWXG | stat.S_IRWXO
    names = ", ".join(file.name for file in files if file.exists() and file.stat().st_mode & others)
    if not names:
        return _report_fine("readable by the owner alone")
    return _report_advice(f"others than the owner may use {names}", f"chmod 600 {path}*")


def check_rights(path: Path) -> CheckVerdict:
    """Check that this user may write a file, its folder and the files beside it."""
    closed = list_unusable_files(path)
    if not closed:
        return _report_fine("may be written, and so may its folder and the files beside it")
    return _report_advice(
        f"{' and '.join(closed)} cannot be written by this user",
        "give the user the right, or copy the file: reading needs to write beside it, too",
    )


def check_log(path: Path) -> CheckVerdict:
    """Check the size of the write-ahead log."""
    size = _measure_file(add_suffix(path, "-wal"))
    if size <= LARGE_LOG:
        return _report_fine(f"{size:,} bytes")
    return _report_advice(
        f"the write-ahead log has {size:,} bytes: somebody reads and does not end",
        "look for a program with an open transaction or an unfinished query, and end it",
    )


def check_rewrite_room(path: Path) -> CheckVerdict:
    """Check that the disk has room to rewrite a file."""
    size = _measure_file(path)
    free = shutil.disk_usage(path.parent).free
    found = f"{free:,} bytes are free, the file has {size:,}"
    if free > size:
        return _report_fine(found)
    return _report_advice(found, "make room: purging and upgrading write it anew")


def _measure_file(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def check_purge(connection: Connection) -> CheckVerdict:
    """Check that no erasure waits for a purge."""
    waiting = sum(not each.purged for each in erasure.list_erasures(connection))
    if not waiting:
        return _report_fine("nothing is waiting for it")
    found = f"{waiting:,} erasures may have left bytes in the file"
    return _report_advice(found, "run `convostore purge` while nobody else reads")


def check_copies(connection: Connection) -> CheckVerdict:
    """Check that no listed copy holds erased sessions."""
    listed, stale = COPIES.rows(connection), STALE_COPIES.rows(connection)
    if not stale:
        return _report_fine(f"{len(listed):,} listed, none holds what was erased")
    found = f"what was erased since may be in {', '.join(row.path for row in stale)}"
    return _report_advice(found, "remove them, and make new ones")


def check_server(connection: Connection) -> CheckVerdict:
    """Return the version of a server and how its tables lie, which is always fine."""
    found = ".".join(map(str, connection.dialect.server_version_info or ()))
    kinds = Counter(each.kind for each in load_table_parts(connection))
    lie = ", ".join(
        f"{kinds[kind]} tables {told}" for kind, told in TABLE_KINDS.items() if kinds[kind]
    )
    return _report_fine(f"{connection.dialect.name} {found}, {lie}")


FILE_CHECKS: dict[str, Callable[[Path], CheckVerdict]] = {
    "sqlite": check_sqlite,
    "file system": check_file_system,
    "links": check_links,
    "modes": check_modes,
    "rights": check_rights,
    "log": check_log,
    "room": check_rewrite_room,
}
"""The checks of a file from outside, by subject, in order."""
STORE_CHECKS: dict[str, dict[str, Callable[[Connection], CheckVerdict]]] = {
    "sqlite": {"purge": check_purge, "copies": check_copies},
    "postgresql": {"server": check_server},
}
"""The checks that read a store, by kind of database and subject."""
