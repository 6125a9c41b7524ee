"""SQLAlchemy's engines, with the settings of each connection to a file or a server."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import SQLAlchemyError

from ..errors import Damaged, InvalidValue

PAGE_CACHE_PRAGMA, SMALL_PAGE_CACHE_PRAGMA = (
    f"PRAGMA cache_size = -{kilobytes}" for kilobytes in (16_000, 2_000)
)
CONNECTION_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",  # else REPLACE deletes rows without firing their triggers
    "PRAGMA trusted_schema = OFF",
    "PRAGMA secure_delete = ON",  # an erased message leaves no bytes in freed pages
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA mmap_size = 0",
    "PRAGMA fullfsync = ON",  # where flushing a file is no flush of the disk: on macOS
    "PRAGMA checkpoint_fullfsync = ON",
    PAGE_CACHE_PRAGMA,
)

INDEX_WORDS_TABLE = """CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_index_words
USING fts5vocab(main, search_words, instance)"""
"""The words in the index of a file, as a table of the connection: it can be made outside of a
transaction only, and is not in the file."""

KEEPALIVE_OPTIONS = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""The keepalive of a server's connection: idle seconds, seconds between probes, their number."""


def create_server_engine(
    url: URL, settings: dict[str, str], timeout: float, *, pooler: bool = False
) -> Engine:
    """Return an engine for a server, with our ``settings`` on each connection.

    ``timeout`` is the most seconds to wait for a connection, 2 or more. Settings in the URL take
    precedence. A ``pooler`` gives each transaction another connection of the server: no statement
    is prepared, and each transaction begins with the settings.
    """
    asked = url.normalized_query
    patience = max(2, math.ceil(timeout))
    arguments: dict[str, Any] = {"connect_timeout": patience, **KEEPALIVE_OPTIONS}
    arguments = {name: value for name, value in arguments.items() if name not in asked}
    begins_itself: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"}  # by each lease
    if pooler:
        arguments["prepare_threshold"] = None
        return _create_engine(url, connect_args=arguments, **begins_itself)
    ours = (f"-c {name}={value}" for name, value in settings.items())
    options = " ".join((*ours, *asked.get("options", ())))
    return _create_engine(url, connect_args={**arguments, "options": options}, **begins_itself)


@contextmanager
def limit_page_cache(connection: Connection) -> Iterator[None]:
    """Keep few pages of a file in memory meanwhile, for a pass over all rows."""
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.dbapi_connection
    driver.execute(SMALL_PAGE_CACHE_PRAGMA)
    try:
        yield
    finally:
        with suppress(sqlite3.Error):  # it was closed after an error
            driver.execute(PAGE_CACHE_PRAGMA)


def connect_apart(engine: Engine) -> Any:
    """Return a new connection of the driver, which is not among those of an engine."""
    made = engine.raw_connection()
    driver = made.driver_connection
    made.detach()
    return driver


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
            with suppress(sqlite3.Error):  # searches do without it
                driver.execute(INDEX_WORDS_TABLE)
        except UnicodeDecodeError as error:  # SQLite quotes the schema, the driver cannot read it
            raise Damaged(
                f"{path} is damaged: its schema is not a text; restore a backup"
            ) from error

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
