"""The settings of each connection, and the engine that applies them."""

from __future__ import annotations

import math
import sqlite3
from typing import Any

import sqlalchemy
from sqlalchemy import URL, Engine, event
from sqlalchemy.exc import SQLAlchemyError

from ..errors import Damaged, InvalidValue

SYNCHRONOUS_LEVELS = {"full": "FULL", "normal": "NORMAL"}
"""The meaning of ``durability`` on SQLite.

NORMAL may lose the last commits at a power cut (never at a killed process).
"""

CONNECTION_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",  # else REPLACE deletes rows without firing their triggers
    "PRAGMA trusted_schema = OFF",
    "PRAGMA secure_delete = ON",  # an erased message leaves no bytes in freed pages
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA mmap_size = 0",
    "PRAGMA fullfsync = ON",  # where flushing a file is no flush of the disk: on macOS
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA cache_size = -16000",
)

SNAPSHOT_OPTIONS = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
"""The server's setting for reads that see one state; SQLite's reads always do."""


KEEPALIVE_OPTIONS = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""The keepalive of a server's connection: idle seconds, seconds between probes, their number."""


def create_server_engine(url: URL, synchronous: str, timeout: float) -> Engine:
    """Return an engine for a server, with our settings on each connection.

    ``timeout`` is the most seconds to wait for a connection, and for any one lock; the work of a
    statement itself has no limit. Settings in the URL take precedence.
    """
    level = "on" if synchronous == "FULL" else "off"
    settings = f"-c synchronous_commit={level} -c lock_timeout={compute_lock_timeout(timeout)}"
    asked = url.normalized_query
    patience = max(2, math.ceil(timeout))
    arguments: dict[str, Any] = {"connect_timeout": patience, **KEEPALIVE_OPTIONS}
    ours = {name: value for name, value in arguments.items() if name not in asked}
    options = " ".join((settings, *asked.get("options", ())))
    return _create_engine(url, connect_args={**ours, "options": options})


def compute_lock_timeout(seconds: float) -> int:
    """Return the lock timeout of a server in ms; never 0, which would wait for ever."""
    return max(1, int(seconds * 1000))


def create_file_engine(url: URL, path: str, synchronous: str, timeout: float) -> Engine:
    """Return an engine for a file, with our settings on each connection.

    ``timeout`` is the most seconds that SQLite waits for a lock.
    """
    engine = _create_engine(url.set(database=path), connect_args={"timeout": timeout})

    @event.listens_for(engine, "connect")
    def settle(driver: sqlite3.Connection, _record: object) -> None:
        driver.isolation_level = None
        try:
            for pragma in (*CONNECTION_PRAGMAS, f"PRAGMA synchronous = {synchronous}"):
                driver.execute(pragma)
        except UnicodeDecodeError as error:  # SQLite quotes the schema, the driver cannot read it
            raise Damaged(f"{path} is damaged: its schema is no text; restore a backup") from error

    return engine


def _create_engine(url: URL, **options: Any) -> Engine:
    try:
        # Idle connections are kept by the database, so the pool sees them as taken: a limit there
        # would be waited for.
        return sqlalchemy.create_engine(url, pool_size=16, max_overflow=-1, **options)
    except ModuleNotFoundError as error:
        raise InvalidValue(
            f"{url.render_as_string()} cannot be opened: {error};"
            " a server needs its driver: install convostore[postgres]"
        ) from error
    except (SQLAlchemyError, ImportError, ValueError, TypeError) as error:
        raise InvalidValue(f"{url.render_as_string()} cannot be opened: {error}") from error
