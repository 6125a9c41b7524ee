"""The place of a store: from a path or URL to a file that is private, and has an identity.

Also the place of the folders that are shipped beside the code: migrations and prompts.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from ..errors import InvalidValue, NotAStore, StoreMoved, build_write_error, quote_value
from ..text import hide_password

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]

DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg")


COMPANION_ENDINGS = ("-lock", "-wal", "-shm", "-journal")
"""The suffixes of the files beside a store, which are overwritten for it."""

MAX_NAME_BYTES = 255
"""The most bytes of a file's name that file systems accept."""


FileIdentity = tuple[int, int]
"""The device and the number of a file, whatever its name."""


def parse_url(target: str | os.PathLike[str] | URL) -> URL:
    """Return the URL of a path or URL text."""
    if isinstance(target, URL) or (isinstance(target, str) and "://" in target):
        try:
            url = make_url(target)
        except (SQLAlchemyError, ValueError) as error:
            raise InvalidValue(
                f"{hide_password(str(target))!r} is not a database URL: {error}"
            ) from error
        if url.drivername not in DRIVERS:
            raise InvalidValue(
                f"the URL of a store must begin with one of {', '.join(DRIVERS)},"
                f" not with {url.drivername}"
            )
        return url
    if not isinstance(target, str | os.PathLike):
        raise InvalidValue(
            f"a store must be named by a path or a URL, not by {quote_value(target)}"
        )
    return URL.create("sqlite", database=os.path.expanduser(os.fsdecode(target)))


def is_private_target(target: object) -> bool:
    """Tell whether a target is a private store, one that nobody else can name."""
    return isinstance(target, str | os.PathLike) and os.fspath(target) == ":memory:"


def remove_private_folder(folder: str | None, process: int) -> None:
    """Remove the folder of a temporary store, unless it is that of a forked child's parent."""
    if folder and os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def resolve_path(url: URL) -> str:
    """Return the real path of the database file; its folder must exist."""
    database = url.database or ":memory:"
    try:
        is_name = database != ":memory:" and b"\0" not in os.fsencode(database)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise InvalidValue("name a file; `Store(':memory:')` gives a private temporary one")
    if url.get_backend_name() != "sqlite":
        raise InvalidValue(
            f"{hide_password(str(url))} is a server, not a file; pg_restore restores one"
        )
    if url.query or url.host:  # some would make another file of it
        raise InvalidValue(
            f"{url.render_as_string()} names more than a file; use the settings of the store"
        )
    path = os.path.realpath(database)
    if path.endswith(COMPANION_ENDINGS):
        raise InvalidValue(
            f"{path} is named like a companion file of a store, and would be overwritten;"
            f" choose a name that does not end in {', '.join(COMPANION_ENDINGS)}"
        )
    if len(os.fsencode(os.path.basename(path))) > MAX_NAME_BYTES:
        raise InvalidValue(f"{quote_value(path)} is too long for the name of a file; shorten it")
    if os.path.isdir(path):
        raise NotAStore(f"{path} is a folder; name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise NotAStore(f"{path} is a pipe or a device; name a file")
    if not os.path.isdir(os.path.dirname(path)):
        raise InvalidValue(f"the folder of {path} does not exist; create it first")
    return path


class KnownFile:
    """A database file with the identity that it had when it was opened.

    If it may ``create`` a missing file, that is readable by its owner alone. SQLite gives its
    companions the same mode.
    """

    def __init__(self, path: str, *, create: bool = True) -> None:
        self.path = path
        if not create:
            self.identity = identify_file(path)
            return
        try:
            Path(path).touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            pass
        except OSError as error:
            raise build_write_error(f"cannot create {path}", error) from error
        self.identity = identify_file(path)

    def check(self) -> None:
        """Raise StoreMoved if the name leads to another file by now."""
        if identify_file(self.path) != self.identity:
            raise StoreMoved(
                f"{self.path} is no longer the file that was opened;"
                " nothing was written; open it again"
            )


def identify_file(path: str) -> FileIdentity | None:
    """Return the identity of a file.

    A second name (hard link) is refused, since it would get a log of its own.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    if status.st_nlink > 1:
        raise StoreMoved(
            f"{path} has {status.st_nlink} names (hard links); remove the others, or copy the file"
        )
    return status.st_dev, status.st_ino


def list_unusable_files(path: str | os.PathLike[str]) -> list[str]:
    """Return those of a store's file, its folder and the files beside it that the user cannot use.

    SQLite gives the files beside a store its present mode; a file that was made while the store was
    read-only stays read-only.
    """
    own = os.fspath(path)
    places = (own, os.path.dirname(own), *(own + ending for ending in COMPANION_ENDINGS))
    return [
        each for each in filter(os.path.exists, places) if not os.access(each, os.R_OK | os.W_OK)
    ]


def is_store_file(database: str | os.PathLike[str] | None, path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a store's own file or one beside it, without opening it.

    ``database`` None is a server, which has no file.
    """
    return os.path.realpath(path) in get_store_files(database)


def get_store_files(database: str | os.PathLike[str] | None) -> set[str]:
    """Return the paths of a store's own file and of those beside it, none for a server."""
    if database is None:
        return set()
    own = os.path.realpath(database)
    return {own + ending for ending in ("", *COMPANION_ENDINGS)}


def find_folder(name: str) -> Path:
    """Find a shipped folder: inside the package in a wheel, beside it in a checkout.

    Raises FileNotFoundError when it is in neither place: the installation is damaged.
    """
    for parent in (PACKAGE_FOLDER, PACKAGE_FOLDER.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(
        f"{name}/ is neither in nor next to the package at {PACKAGE_FOLDER}: "
        "the installation is incomplete, install it again"
    )
