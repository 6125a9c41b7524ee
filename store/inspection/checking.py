"""Is a store whole, as it lies there? An older one is checked without being brought up to date."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import URL, Connection

from ..database import HEAD, Database, upgrade, version, write_copy
from ..errors import StoreError
from ..records import Finding
from . import integrity
from .structures import structures


def check(target: str | os.PathLike[str] | URL) -> list[Finding]:
    """Return what is wrong with a store, as `Store.verify` does; the store is not upgraded.

    A finding ``older`` beside tells what an earlier release did not hold fast; it is no damage.

    Of a file of an older release its own structures are checked where they lie, and all else on a
    copy for the moment, which is brought to the newest schema. Raises StoreError where it is no
    store, or cannot be read at all.
    """
    with closing(Database(target)) as database:
        with database.reading() as connection:
            found = version(connection)
            if found == HEAD:
                return integrity.examine(connection)
            findings = list(structures(connection))
        if found is None or database.path is None:
            return [*findings, _of_schema(found)]
        return findings or _checked_copy(database)


@contextmanager
def reading(target: str | os.PathLike[str] | URL) -> Iterator[Connection]:
    """Look into a store as it is, for the time of the look alone."""
    with closing(Database(target)) as database, database.reading() as connection:
        yield connection


def _of_schema(found: str | None) -> Finding:
    problem = f"the schema is {found}, it should be {HEAD}; `convostore migrate` makes it so"
    return Finding("schema", "alembic_version", problem)


def _checked_copy(database: Database) -> list[Finding]:
    """Return what is wrong with a copy for the moment, in the newest schema."""
    with TemporaryDirectory(prefix="convostore-") as folder:
        try:
            return _upgraded(write_copy(database, Path(folder, "chat.db")))
        except StoreError as error:
            return [Finding("schema", "the store", f"cannot be upgraded: {error}")]


def _upgraded(part: Path) -> list[Finding]:
    """Upgrade a copy; return what is wrong with it then."""
    with closing(Database(part)) as copied:
        upgrade(copied, copy=False)
        with copied.reading() as connection:
            return integrity.examine(connection)
