"""Whether the schema is still the one that the store made, by that of a store made anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sqlalchemy import Connection, text

from ..database import HEAD, RAW_TABLES, VERSION, Database, upgrade
from ..records import Finding

SCHEMA_OBJECTS = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL",
    "postgresql": """
SELECT 'trigger', t.tgname, '' FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = current_schema()::regnamespace
    AND NOT t.tgisinternal
    AND t.tgenabled IN ('O', 'A')
UNION ALL SELECT 'view', viewname, '' FROM pg_views WHERE schemaname = current_schema()""",
}
SERVER_TRIGGERS = ("{}_no_change", "{}_no_truncate")


def check_schema(connection: Connection) -> Iterator[Finding]:
    """Compare tables, indexes, triggers and views with those of a store made anew.

    A trigger that this has not is wrong as well.
    """
    yield from _check_version(connection)
    found, expected = _objects(connection), _expected(connection.dialect.name)
    for (kind, name), statement in expected.items():
        if (kind, name) not in found:
            yield Finding("schema", f"{kind} {name}", "is missing")
        elif found[kind, name] != statement:
            yield Finding("schema", f"{kind} {name}", "is not as the store made it")
    for kind, name in found.keys() - expected.keys():
        if kind == "trigger":
            yield Finding("schema", f"trigger {name}", "is not one of the store's")


def _check_version(connection: Connection) -> Iterator[Finding]:
    version = VERSION.value(connection)
    if version != HEAD:
        problem = f"the schema is {version}, it should be {HEAD}"
        yield Finding("schema", "alembic_version", problem)


def _objects(connection: Connection) -> dict[tuple[str, str], str]:
    rows = connection.execute(text(SCHEMA_OBJECTS[connection.dialect.name]))
    return {(kind, name): " ".join(statement.split()) for kind, name, statement in rows}


@cache
def _expected(dialect: str) -> dict[tuple[str, str], str]:
    """Return what a new store has; of PostgreSQL's, the names of the triggers and views."""
    database = Database(":memory:")
    try:
        upgrade(database)
        with database.reading() as connection:
            objects = _objects(connection)
    finally:
        database.close()
    if dialect == "sqlite":
        return objects
    triggers = [("trigger", name.format(table)) for name in SERVER_TRIGGERS for table in RAW_TABLES]
    views = [(kind, name) for kind, name in objects if kind == "view"]
    return dict.fromkeys([*triggers, *views], "")
