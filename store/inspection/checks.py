"""The checks of a store's structures, schema, seals and keys; each one yields findings."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select, text
from sqlalchemy.exc import DBAPIError

from ..database import (
    BIG_INTEGER,
    GUARDED_TABLES,
    SCHEMA_HEAD,
    SCHEMA_VERSION,
    SEAL_COLUMN,
    SEALED_TABLES,
    Database,
    Row,
    Statement,
    compute_seal,
    list_sealed_columns,
    session_keys,
    sessions,
    upgrade_schema,
)
from ..errors import VERIFY_HINT, Damaged, StoreError
from ..history import derive_metadata_keys
from ..messages import decode_as
from ..records import Finding

OLDER = "older"
"""The name of the finding about messages that an earlier release did not protect; no damage."""
STREAM_OPTIONS = {"stream_results": True, "max_row_buffer": 50}
READ_ERRORS = (sqlite3.Error, DBAPIError, StoreError)
"""The errors of reading a damaged store: of the database, or of decoding its rows."""

SCHEMA_OBJECTS = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL",
    "postgresql": """
SELECT 'trigger', t.tgname, '' FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = current_schema()::regnamespace
    AND NOT t.tgisinternal
    AND t.tgenabled IN ('O', 'A')
UNION ALL SELECT 'view', viewname, '' FROM pg_views WHERE schemaname = current_schema()""",
}
SchemaObjects = dict[tuple[str, str], str]
"""The statements that made tables, indexes, triggers and views, by kind and name."""

SERVER_TRIGGERS = ("{}_no_change", "{}_no_truncate")

STORED_KEYS = Statement(
    select(session_keys.c.key, session_keys.c.value).where(
        session_keys.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER),
        session_keys.c.session_id == bindparam("session_id"),
    )
)
_select_tree_metadata = select(sessions.c.tree_id, sessions.c.id, sessions.c.metadata)
METADATA_OF_TREE = Statement(
    _select_tree_metadata.where(sessions.c.tree_id == bindparam("tree_id", type_=BIG_INTEGER))
)


@contextmanager
def open_savepoint(connection: Connection) -> Iterator[None]:
    """Let a transaction go on after an error; a server needs a savepoint for that."""
    if connection.dialect.name == "sqlite":
        yield
        return
    with connection.begin_nested():
        yield


def report_unchecked_place(where: str, error: Exception) -> Finding:
    """Return the finding for a place that could not be checked, and why.

    An error that neither a database nor a decoder raised says nothing about the store.
    """
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    if isinstance(error, READ_ERRORS):
        return Finding("integrity", where, f"cannot be read to its end: {reason}")
    problem = f"this check could not run: {type(error).__name__}: {reason}"
    return Finding("unchecked", where, problem)


def require_sound(findings: Iterable[Finding]) -> None:
    """Raise Damaged for the first finding."""
    for finding in findings:
        if finding.check != OLDER:
            raise Damaged(f"{finding.where}: {finding.problem}; {VERIFY_HINT}")


def check_structures(connection: Connection) -> Iterator[Finding]:
    """Yield the damage that SQLite finds in its own structures: pages, indexes, foreign keys.

    A server checks them itself, and keeps its foreign keys.
    """
    if connection.dialect.name != "sqlite":
        return
    yield from check_pages(connection)
    for table, rowid, parent, _ in connection.execute(text("PRAGMA foreign_key_check")):
        # the rows of a table WITHOUT ROWID have no number
        where = table if rowid is None else f"{table}, row {rowid}"
        yield Finding("orphan", where, f"what it belongs to is not in {parent}")


def check_pages(connection: Connection, table: str | None = None) -> Iterator[Finding]:
    """Yield the damage that SQLite finds in a table's pages and indexes, or in the file's."""
    for (problem,) in _build_integrity_check(table).rows(connection):
        if problem != "ok":
            yield Finding("integrity", table or "the file", problem)


@cache
def _build_integrity_check(table: str | None) -> Statement[Row]:
    return Statement(
        text(f"PRAGMA integrity_check({table})" if table else "PRAGMA integrity_check")
    )


def check_schema(connection: Connection) -> Iterator[Finding]:
    """Compare tables, indexes, triggers and views with those of a new store.

    A trigger that a new store lacks is wrong as well.
    """
    version = SCHEMA_VERSION.value(connection)
    if version != SCHEMA_HEAD:
        problem = f"the schema is {version}, it should be {SCHEMA_HEAD}"
        yield Finding("schema", "alembic_version", problem)
    objects, expected = (
        _load_schema_objects(connection),
        _build_schema_objects(connection.dialect.name),
    )
    for (kind, name), statement in expected.items():
        if (kind, name) not in objects:
            yield Finding("schema", f"{kind} {name}", "is missing")
        elif objects[kind, name] != statement:
            yield Finding("schema", f"{kind} {name}", "is not as the store made it")
    for kind, name in objects.keys() - expected.keys():
        if kind == "trigger":
            yield Finding("schema", f"trigger {name}", "is not one of the store's")


def _load_schema_objects(connection: Connection) -> SchemaObjects:
    """Return the objects of a schema, with their statements in single spaces."""
    rows = connection.execute(text(SCHEMA_OBJECTS[connection.dialect.name]))
    return {(kind, name): " ".join(statement.split()) for kind, name, statement in rows}


@cache
def _build_schema_objects(dialect: str) -> SchemaObjects:
    """Return the objects of a new store; of PostgreSQL's, the names of triggers and views."""
    with closing(Database(":memory:")) as database:
        upgrade_schema(database)
        with database.reading() as connection:
            objects = _load_schema_objects(connection)
    if dialect == "sqlite":
        return objects
    triggers = [
        ("trigger", name.format(table)) for name in SERVER_TRIGGERS for table in GUARDED_TABLES
    ]
    views = [(kind, name) for kind, name in objects if kind == "view"]
    return dict.fromkeys([*triggers, *views], "")


def check_seals(connection: Connection) -> Iterator[Finding]:
    """Yield the rows that differ from their seals; after damage, go on with the next table."""
    for table in SEALED_TABLES:
        columns = [table.c[name] for name in (*list_sealed_columns(table), SEAL_COLUMN)]
        try:
            with open_savepoint(connection):
                rows = connection.execute(select(*columns), execution_options=STREAM_OPTIONS)
                with closing(rows):
                    yield from _compare_seals(table, rows)
        except Exception as error:  # noqa: BLE001 - after any error the other tables are checked
            yield report_unchecked_place(table.name, error)


def check_table_seals(
    connection: Connection, table: Table, tree_id: int | None
) -> Iterator[Finding]:
    """Yield the rows of a table, of a tree or of all, that differ from their seals."""
    is_of_tree = tree_id is not None and "tree_id" in table.c
    values = {"tree_id": tree_id} if is_of_tree else {}
    rows = _select_sealed_rows(table, is_of_tree=is_of_tree).scan(connection, **values)
    return _compare_seals(table, rows)


@cache
def _select_sealed_rows(table: Table, *, is_of_tree: bool) -> Statement[Any]:
    rows = select(*(table.c[name] for name in (*list_sealed_columns(table), SEAL_COLUMN)))
    return Statement(rows.where(table.c.tree_id == bindparam("tree_id")) if is_of_tree else rows)


def _compare_seals(table: Table, rows: Iterable[Any]) -> Iterator[Finding]:
    names = list_sealed_columns(table)
    for *values, sealed in rows:
        try:
            is_sound = compute_seal(names, values) == sealed
        except (TypeError, ValueError):
            is_sound = False
        if not is_sound:
            row = dict(zip(names, values, strict=True))
            key = ", ".join(f"{key.name} {row[key.name]!r}" for key in table.primary_key)
            yield Finding("seal", f"{table.name}, {key}", "is not what was written")


def check_keys(connection: Connection, tree_id: int | None = None) -> Iterator[Finding]:
    """Yield the sessions, of a tree or of all, whose keys differ from those of their metadata."""
    rows = (
        connection.execute(_select_tree_metadata)
        if tree_id is None
        else METADATA_OF_TREE.rows(connection, tree_id=tree_id)
    )
    for tree, session_id, stored in rows:
        place = f"session {session_id!r}"
        try:
            metadata = decode_as(dict, stored) if stored else {}
        except Damaged:
            metadata = None
        stored_keys = STORED_KEYS.rows(connection, tree_id=tree, session_id=session_id)
        if metadata is None:
            yield Finding("facts", place, "its metadata are no JSON object")
        elif {*stored_keys} != {*derive_metadata_keys(metadata)}:
            yield Finding("facts", place, "its keys do not follow from its metadata")
