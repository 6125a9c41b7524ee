"""Bring a database to the newest schema. Alembic is imported only for an outdated database.

The version is read first, and again inside the writers' lock, so that any number of processes may
open a new or old store at once. All revisions run in one transaction: if it is killed at any
moment, the next opening starts from the old state.

Before a revision that rewrites rows an older file is copied, since there is no other way back. The
copy is made inside the lock, of the state before the transaction that upgrades.

Revisions are frozen: none of them calls the package. The kinds of tools and the prices of models,
which grow with each release, are therefore not theirs. They are inserted in the same transaction
whenever the digest of the package's table differs from the one in ``settings``. Rows that are there
stay as they are: a user may have changed them, and views of stored conversations must not change
with a release.

A new file needs none of the steps that led to the newest schema: a script makes it. The revisions
remain authoritative: the script gives the same schema as the revisions in an empty file, and a test
compares the two. A script of another revision is not used.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy
from sqlalchemy import Connection, bindparam, delete, insert, select

from ..clock import resolve_now
from ..errors import NotAStore, ReadOnly, SchemaTooNew, StoreError
from .engine import Database
from .file_copies import (
    add_suffix,
    check_disk_room,
    discard_copy,
    finish_copy,
    publish_copy,
    record_copy,
    write_copy,
)
from .files import find_folder
from .logs import get_logger
from .schema import METADATA, SCHEMA_HEAD, settings, tool_kinds
from .statements import Statement

if TYPE_CHECKING:
    from alembic.config import Config

_migration_logger = get_logger(__name__)

SCHEMA_VERSION = Statement(
    sqlalchemy.text("SELECT version_num FROM alembic_version").columns(
        sqlalchemy.column("version_num")
    )
)

KINDS_SETTING = "tool_kinds"
"""The setting that holds the digest of the kinds of tools that were inserted last."""
SEED_DIGEST = Statement(select(settings.c.value).where(settings.c.name == bindparam("setting")))
STORED_KINDS = select(tool_kinds.c.name)
DELETE_DIGEST = delete(settings).where(settings.c.name == bindparam("setting"))
SET_DIGEST = insert(settings).values(name=bindparam("setting"), value=bindparam("digest"))

SCRIPT_NAME = "schema.sql"
SCRIPT_HEADING = "-- schema {}\n"
"""The first line of the script of a revision."""
STATEMENT_SEPARATOR = "\n\n"
"""The separator before each statement, which no statement contains."""

COPY_ELSEWHERE_ADVICE = (
    "make room, or put the copy that is made before the upgrade on another disk with"
    " `convostore migrate --copy PATH`"
)

_MIGRATION_LOCK = 0x636F6E766F  # "convo"; only PostgreSQL needs it, a file has its own lock
_ALEMBIC_LOGGERS = ("alembic.runtime.migration", "alembic.runtime.plugins")
_alembic_lock = threading.Lock()  # Alembic's state is global to the process


class Upgrade(NamedTuple):
    """The revision that a database was found at (None: it was empty), and the copy made of it."""

    found: str | None
    copy: Path | None = None

    @property
    def told(self) -> str | None:
        """The upgrade in one line; None if there is nothing to tell."""
        if self.found in (None, SCHEMA_HEAD):
            return None
        kept = f"; a copy from before is {self.copy}" if self.copy else ""
        return f"the store was brought from schema {self.found} to {SCHEMA_HEAD}{kept}"


class Seed(NamedTuple):
    """Rows that come with a release, inserted if ``setting`` holds another ``digest`` of them."""

    setting: str
    digest: str
    insert: Callable[[Connection], object]

    def is_planted(self, connection: Connection) -> bool:
        """Tell whether these rows were inserted already."""
        return bool(SEED_DIGEST.value(connection, setting=self.setting) == self.digest)

    def plant(self, connection: Connection) -> None:
        """Insert the rows and keep their digest."""
        self.insert(connection)
        connection.execute(DELETE_DIGEST, {"setting": self.setting})
        connection.execute(SET_DIGEST, {"setting": self.setting, "digest": self.digest})


def upgrade_schema(
    database: Database,
    *,
    copy_to: Path | None = None,
    copy: bool = True,
    kinds: Mapping[str, str] | None = None,
    seeds: Sequence[Seed] = (),
) -> Upgrade:
    """Bring the database to the newest schema; return its earlier revision.

    Before rows are rewritten a file is copied, beside it or to ``copy_to`` (which is made whatever
    the revisions do), unless ``copy`` is False. ``kinds`` are the kinds of tools that the database
    must know, by name, ``seeds`` other rows that it must have. Raises SchemaTooNew if a newer
    release made it, NotAStore if it holds something else, StoreFull without room for the copy; all
    leave it unchanged.
    """
    if kinds is not None:
        seeds = (build_kinds_seed(kinds), *seeds)
    with database.reading() as connection:
        found = read_version(connection)
        if found == SCHEMA_HEAD and all(each.is_planted(connection) for each in seeds):
            return Upgrade(found)
    if database.is_read_only:
        return _accept_read_only(found)
    database.set_wal()
    with _silence_alembic():
        return _upgrade_outdated(database, copy_to, copy=copy, seeds=seeds)


def _accept_read_only(found: str | None) -> Upgrade:
    """Return the state of a store that may not be upgraded; its seeds may be those of before.

    Raises ReadOnly for an older schema, NotAStore for an empty database.
    """
    if found is None:
        raise NotAStore(
            "the database is empty, and was opened to be read only; `convostore migrate` makes a"
            " store of it, by a user who may write"
        )
    if found != SCHEMA_HEAD:
        raise ReadOnly(
            f"the store has schema {found}, and was opened to be read only; `convostore migrate`"
            f" brings it to {SCHEMA_HEAD}, by a user who may write"
        )
    return Upgrade(found)


def build_kinds_seed(kinds: Mapping[str, str]) -> Seed:
    """Return the kinds of tools, by name, as rows; those that are stored already stay."""

    def insert_kinds(connection: Connection) -> None:
        known = set(connection.scalars(STORED_KINDS))
        new = sorted(kinds.keys() - known)
        if new:
            rows = [{"name": name, "kind": kinds[name]} for name in new]
            connection.execute(insert(tool_kinds), rows)

    digest = sha256(repr(sorted(kinds.items())).encode()).hexdigest()
    return Seed(KINDS_SETTING, digest, insert_kinds)


@contextmanager
def _silence_alembic() -> Iterator[None]:
    """Keep Alembic's reports of its own work out of the host's log; its warnings stay there."""
    thread = threading.get_ident()

    def lets_pass(record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO or record.thread != thread

    for name in _ALEMBIC_LOGGERS:
        logging.getLogger(name).addFilter(lets_pass)
    try:
        yield
    finally:
        for name in _ALEMBIC_LOGGERS:
            logging.getLogger(name).removeFilter(lets_pass)


def _upgrade_outdated(
    database: Database, copy_to: Path | None, *, copy: bool, seeds: Sequence[Seed]
) -> Upgrade:
    """Bring an older or empty database to the newest schema; return its earlier revision."""
    with database.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(
                sqlalchemy.select(sqlalchemy.func.pg_advisory_xact_lock(_MIGRATION_LOCK))
            )
        else:
            connection.begin()
        found = read_version(connection)
        place = None
        _require_whole_schema(connection)
        if found != SCHEMA_HEAD and not (found is None and _create_by_script(connection)):
            place = _choose_copy_path(database, found, copy_to) if copy and found else None
            if place is None:
                _run_revisions(connection)
            else:
                _upgrade_with_copy(database, connection, place)
        for each in seeds:
            if not each.is_planted(connection):
                each.plant(connection)
    upgraded = Upgrade(found, place)
    if upgraded.told:
        _migration_logger.info("%s: %s", database.url.render_as_string(), upgraded.told)
    return upgraded


def _require_whole_schema(connection: Connection) -> None:
    """Raise StoreError on a worker of Citus, which has parts of the tables only."""
    if connection.dialect.name != "postgresql":
        return
    asked = "SELECT to_regclass('pg_dist_local_group')"
    if connection.exec_driver_sql(asked).scalar() is None:
        return
    if connection.exec_driver_sql("SELECT groupid FROM pg_dist_local_group").scalar() != 0:
        raise StoreError(
            "this is a worker of Citus, with parts of the tables only; open the store through the"
            " coordinator once, which makes or upgrades it"
        )


def _create_by_script(connection: Connection) -> bool:
    """Make a store in an empty file by the script, if there is one; tell whether it was made."""
    if connection.dialect.name != "sqlite" or sqlalchemy.inspect(connection).get_table_names():
        return False
    whole = read_statements(SCHEMA_HEAD)
    for statement in whole:
        connection.exec_driver_sql(statement)
    return bool(whole)


def read_statements(revision: str) -> list[str]:
    """Return the statements that make a revision of the schema in an empty file.

    The list is empty if the script makes another revision.
    """
    path = find_folder("migrations") / SCRIPT_NAME
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if not text.startswith(SCRIPT_HEADING.format(revision)):
        return []
    _, *made = text.split(STATEMENT_SEPARATOR)
    return made


def read_version(connection: Connection) -> str | None:
    """Return the revision of the store of a connection, None if the database is empty."""
    tables = set(sqlalchemy.inspect(connection).get_table_names())
    row = SCHEMA_VERSION.row(connection) if "alembic_version" in tables else None
    if row is None and tables <= {"alembic_version"}:
        return None
    if row is None or "session_ids" not in tables:
        raise NotAStore(
            f"the database has no store, but other tables ({', '.join(sorted(tables)[:3])}); "
            "name another file"
        )
    found = str(row[0])
    if not (found.isascii() and found.isdigit()):
        raise NotAStore(f"schema {found!r} is not one of a store; name another file")
    if int(found) > int(SCHEMA_HEAD):
        raise SchemaTooNew(found, SCHEMA_HEAD)
    if found != SCHEMA_HEAD and not list(find_folder("migrations").glob(f"versions/{found}_*.py")):
        raise NotAStore(f"schema {found!r} was never one of a store; name another file")
    return found


def _choose_copy_path(database: Database, found: str, copy_to: Path | None) -> Path | None:
    """Return the path for the copy of an older file, None if no copy is needed."""
    if database.path is None or copy_to is not None:
        return copy_to and copy_to.absolute()
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(_build_alembic_config())
    if not any(
        script.module.rewrites_rows for script in scripts.iterate_revisions(SCHEMA_HEAD, found)
    ):
        return None
    names = chain([found], (f"{found}.{number}" for number in count(2)))
    places = (add_suffix(Path(database.path), f".{name}") for name in names)
    return next(place for place in places if not place.exists())


def _upgrade_with_copy(database: Database, connection: Connection, place: Path) -> None:
    """Copy a file, then upgrade it; if that fails, the copy is removed as well."""
    check_disk_room(database, place, COPY_ELSEWHERE_ADVICE)
    part = write_copy(database, place)
    try:
        publish_copy(part, place, replace=False)
    except BaseException:
        discard_copy(part)
        raise
    try:
        _run_revisions(connection)
        number = record_copy(connection, place, "upgrade", resolve_now(None))
        finish_copy(connection, number, place)
    except BaseException:
        place.unlink()
        raise


def _run_revisions(connection: Connection) -> None:
    from alembic import command

    with _alembic_lock:
        command.upgrade(_build_alembic_config(connection=connection, tables=METADATA), SCHEMA_HEAD)


def _build_alembic_config(**attributes: object) -> Config:
    from alembic.config import Config

    config = Config(attributes=attributes)
    config.set_main_option("script_location", str(find_folder("migrations")).replace("%", "%%"))
    return config
