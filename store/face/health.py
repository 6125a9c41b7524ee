"""The state of a store for a probe: whether it can be used now, and what to watch.

Nothing is locked or written, and only indexes are looked at, so a probe may ask every second.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlalchemy import Connection, func, select, text

from ..database import (
    SCHEMA_HEAD,
    Database,
    Statement,
    add_suffix,
    copies,
    has_waiting_writers,
    list_unusable_files,
    read_version,
)
from ..errors import StoreError
from ..history import draft_leases
from ..records import Health
from ..search import index_state

LEAST_ROOM = 64 * 1024 * 1024
"""Free bytes of the disk below which a store is not well: a log may grow as large."""
NEWEST_BACKUP = Statement(select(func.max(copies.c.made_at)).where(copies.c.size.is_not(None)))
TAKES_WRITES = {
    "postgresql": Statement(
        text(
            "SELECT NOT pg_is_in_recovery()"
            " AND current_setting('default_transaction_read_only') = 'off'"
        )
    )
}
"""What a server is asked whether it takes writes, by dialect."""


def check_health(database: Database) -> Health:
    """Return the state of a store; problems are reported, not raised."""
    try:
        return database.read(lambda connection: _check_state(database, connection))
    except (StoreError, OSError) as error:
        return Health(problems=(str(error),))


def _check_state(database: Database, connection: Connection) -> Health:
    path = Path(database.path) if database.path else None
    room = shutil.disk_usage(path.parent).free if path else None
    schema = read_version(connection)
    is_writable, problems = not database.is_read_only, []
    if path and (closed := list_unusable_files(path)):
        is_writable = False
        problems.append(f"{' and '.join(closed)} cannot be written by this user")
    elif not path and not TAKES_WRITES["postgresql"].value(connection):
        is_writable = False
        problems.append("the server takes no writes: it is a standby, or set to be read only")
    if schema != SCHEMA_HEAD:
        problems.append(f"the schema is {schema}, it should be {SCHEMA_HEAD}")
    if room is not None and room < LEAST_ROOM:
        problems.append(f"the disk has {room:,} bytes left")
    log = add_suffix(path, "-wal") if path else None
    return Health(
        reachable=True,
        writable=is_writable,
        schema=schema,
        free_bytes=room,
        log_bytes=log.stat().st_size if log and log.exists() else 0,
        waiting=bool(path) and has_waiting_writers(str(path)),
        behind=index_state.is_search_on(connection) and index_state.is_index_behind(connection),
        oldest_draft=draft_leases.find_oldest_live_draft(connection),
        last_backup=NEWEST_BACKUP.value(connection),
        problems=tuple(problems),
    )
