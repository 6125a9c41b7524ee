"""Every session of a store as a file of a folder, from which `import` makes them again.

A file has a row that tells what is known of the session, then the messages of its whole line. A
fork says how many of these another session has, too, so that they come to be shared again. For
that the other one has to be there first: forks are in folders of their own, each behind the one
of what it was forked from. The row is the same until the session changes; so whether a file is
written anew is told by its first line.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SessionNotFound, StoreError
from ..face import Store
from ..messages import Message
from ..records import Session
from ..transcripts import HEAD
from .options import every_session, require_folder
from .written import lines, write_private

PLAIN = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
"""Ids that are names of files as they are, on any system."""


class Exported(NamedTuple):
    """How many sessions were written to a folder, and how many are there as they are now.

    ``others`` are files of the folder that belong to no session of the store.
    """

    written: int
    unchanged: int
    others: int


def export_all(store: Store, folder: Path) -> Exported:
    """Write to a folder what is not there yet of all sessions, archived ones, too.

    The folder is made, for its owner alone. Raises StoreError, OSError.
    """
    require_folder(folder)
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{str(folder)!r} is no folder")
    folder.mkdir(mode=0o700, exist_ok=True)
    paths = _paths(store, folder)
    before = {*folder.glob("**/*.jsonl")}
    written = sum(_write(store, name, path) for name, path in paths.items())
    return Exported(written, len(paths) - written, len(before.difference(paths.values())))


def _paths(store: Store, folder: Path) -> dict[str, Path]:
    """Return where each session is written to."""
    sources = {each.id: each.forked_from for each in every_session(store)}
    return {name: folder / _folder_of(name, sources) / _file_of(name) for name in sources}


def _folder_of(name: str, sources: dict[str, str | None]) -> str:
    """Return the folder of a session: of forks, of their forks, and so on."""
    known = takewhile(sources.__contains__, _origins(name, sources))
    depth = sum(1 for _ in known)
    return f"forks-{depth:06}" if depth else "."


def _origins(name: str, sources: dict[str, str | None]) -> Iterator[str]:
    """Yield what a session was forked from, what that was forked from, and so on."""
    seen = {name}
    source = sources[name]
    while source is not None and source not in seen:
        yield source
        seen.add(source)
        source = sources.get(source)


def _file_of(name: str) -> str:
    """Return the name of a session's file: its id where that can be one."""
    if PLAIN.fullmatch(name):
        return f"{name}.jsonl"
    begin = re.sub(r"[^A-Za-z0-9]+", "-", name)[:60].strip("-")
    return f"{begin}~{sha256(name.encode()).hexdigest()[:16]}.jsonl"


def _write(store: Store, name: str, path: Path) -> bool:
    """Write a session's file; tell whether that was needed."""
    with suppress(SessionNotFound):  # erased meanwhile
        session = store.session(name)
        head = {HEAD: _head(store, session)}
        if _first_line(path) == head:
            return False
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_private(path, _rows(head, _messages(store, session)), replace=True)
        return True
    return False


def _rows(head: dict[str, Any], messages: Iterable[Message]) -> Iterator[str]:
    return lines(chain([head], messages), ascii_only=False)


def _messages(store: Store, session: Session) -> Iterator[Message]:
    return (stored.message for page in store.pages(session.id) for stored in page)


def _first_line(path: Path) -> Any:
    """Return what the first line of a file says, None where there is none that can be read."""
    with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
        return json.loads(file.readline())
    return None


def _head(store: Store, session: Session) -> dict[str, Any]:
    return {
        "session_id": session.id,
        "title": session.title,
        "project_root": session.project_root,
        "owner": session.owner,
        "metadata": session.metadata,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "archived": session.archived,
        "fork": _fork(store, session),
        "revision": session.revision,
    }


def _fork(store: Store, session: Session) -> dict[str, Any] | None:
    """Return what a session was forked from, and how many messages both still have."""
    if session.forked_from is None:
        return None
    with suppress(SessionNotFound):
        source = store.session(session.forked_from)
        return {"of": source.id, "at": _shared(store, source, session)}
    return None


def _shared(store: Store, one: Session, other: Session) -> int:
    """Return how many messages two lines have in common; where they part, they part for good."""
    most = min(one.head, other.head, other.forked_at or 0)

    def parted(position: int) -> bool:
        return _digest(store, one, position) != _digest(store, other, position)

    if not most or not parted(most):
        return most
    return bisect_left(range(1, most), True, key=parted)


def _digest(store: Store, session: Session, position: int) -> bytes:
    (stored,) = store.messages(session.id, position, position)
    return stored.digest
