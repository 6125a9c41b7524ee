"""Bring a database to the newest schema. Alembic is imported only where the database is behind.

Reads the version first and inside the writers' lock again, so that any number of processes may open a new or old
store at once. All revisions run in one transaction: killed at any moment, the next opening starts from where it was.
"""

from __future__ import annotations

import threading

import sqlalchemy
from sqlalchemy import Connection

from .engine import Database
from .errors import NotAStore, SchemaTooNew
from .resources import folder
from .schema import HEAD
from .statements import Statement

VERSION = Statement(
    sqlalchemy.text("SELECT version_num FROM alembic_version").columns(sqlalchemy.column("version_num"))
)

_MIGRATION_LOCK = 0x636F6E766F  # "convo"; only PostgreSQL needs it, a file has its own lock
_one_at_a_time = threading.Lock()  # what Alembic works on is global to the process


def upgrade(database: Database) -> str | None:
    """Bring the database to the newest schema; return the revision it had (None: it was empty).

    Raises SchemaTooNew where a newer release made it, NotAStore where it holds something else; both leave it alone.
    """
    with database.reading() as connection:
        found = version(connection)
    if found == HEAD:
        return found
    database.set_wal()
    with database.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sqlalchemy.select(sqlalchemy.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        else:
            connection.begin()
        found = version(connection)
        if found != HEAD:
            _run(connection)
    return found


def version(connection: Connection) -> str | None:
    """Return the revision of the store behind a connection, None where the database is empty."""
    tables = set(sqlalchemy.inspect(connection).get_table_names())
    row = VERSION.row(connection) if "alembic_version" in tables else None
    if row is None and tables <= {"alembic_version"}:
        return None
    if row is None or "session_ids" not in tables:
        raise NotAStore(f"the database holds {', '.join(sorted(tables)[:3])} and no store; name another file")
    found = str(row[0])
    if not (found.isascii() and found.isdigit()):
        raise NotAStore(f"schema {found!r} is not one of a store; name another file")
    if int(found) > int(HEAD):
        raise SchemaTooNew(found, HEAD)
    if found != HEAD and not list(folder("migrations").glob(f"versions/{found}_*.py")):
        raise NotAStore(f"schema {found!r} never was one of a store; name another file")
    return found


def _run(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(folder("migrations")).replace("%", "%%"))
    with _one_at_a_time:
        command.upgrade(config, HEAD)
