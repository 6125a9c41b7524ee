"""A file that is only read: nothing beside it is written either.

SQLite keeps the index of a write-ahead log in a file beside the store, and would create that file
even for a reader. So a file whose log is empty is opened as one that nobody changes
(``immutable``), which needs no other file. If somebody writes to it afterwards, its log is no
longer empty; the connections made before are then replaced by ones that use the log.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, Engine, event

from ..errors import NotAStore
from .files import (
    identify_file,
    is_private_target,
    list_unusable_files,
    parse_url,
    resolve_path,
)

READ_ONLY_MESSAGE = "the store was opened to be read only; nothing was written"


class ReadState(NamedTuple):
    """The state of a file and its log by which a change by others is seen."""

    identity: tuple[int, int] | None
    size: int
    modified: int
    has_log: bool


def load_read_state(path: str) -> ReadState:
    """Return the present state of a store's file. Raises NotAStore for a missing one."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise NotAStore(f"there is no file {path} that can be read: {error.strerror}") from error
    has_log = False
    with suppress(OSError):
        has_log = Path(f"{path}-wal").stat().st_size > 0
    return ReadState(identify_file(path), status.st_size, status.st_mtime_ns, has_log)


def build_read_only_uri(path: str) -> str:
    """Return the URI by which SQLite opens a file and writes nothing."""
    uri = f"{Path(path).as_uri()}?mode=ro"
    return uri if load_read_state(path).has_log else f"{uri}&immutable=1"


def is_write_protected(target: str | os.PathLike[str] | URL) -> bool:
    """Tell whether a target is an existing file that this user cannot write, or not beside it."""
    url = parse_url(target)
    if url.get_backend_name() != "sqlite" or is_private_target(target):
        return False
    path = resolve_path(url)
    return Path(path).exists() and bool(list_unusable_files(path))


def open_read_only(engine: Engine, path: str) -> None:
    """Let an engine open its file so that nothing is written."""

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, _: object, options: dict[str, Any]) -> Any:
        return sqlite3.connect(build_read_only_uri(path), uri=True, **options)
