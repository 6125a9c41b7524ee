"""Whether the schema is still the one that the store made, by that of a store made anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import cache

from sqlalchemy import Connection, text

from ..database import GUARDED_TABLES, HEAD, VERSION, Database, upgrade
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
Objects = dict[tuple[str, str], str]
"""The statements that made tables, indexes, triggers and views, by kind and name."""

SERVER_TRIGGERS = ("{}_no_change", "{}_no_truncate")


def check_schema(connection: Connection) -> Iterator[Finding]:
    """Compare tables, indexes, triggers and views with those of a store made anew.

    A trigger that this has not is wrong as well.
    """
    yield from _check_version(connection)
    found, expected = _objects(connection), _expected(connection.dialect.name)
    yield from _differing(found, expected)
    for kind, name in found.keys() - expected.keys():
        if kind == "trigger":
            yield Finding("schema", f"trigger {name}", "is not one of the store's")


def _differing(found: Objects, expected: Objects) -> Iterator[Finding]:
    for (kind, name), statement in expected.items():
        if (kind, name) not in found:
            yield Finding("schema", f"{kind} {name}", "is missing")
        elif found[kind, name] != statement:
            yield Finding("schema", f"{kind} {name}", "is not as the store made it")


def _check_version(connection: Connection) -> Iterator[Finding]:
    version = VERSION.value(connection)
    if version != HEAD:
        problem = f"the schema is {version}, it should be {HEAD}"
        yield Finding("schema", "alembic_version", problem)


def _objects(connection: Connection) -> Objects:
    rows = connection.execute(text(SCHEMA_OBJECTS[connection.dialect.name]))
    return {(kind, name): _words(statement) for kind, name, statement in rows}


def _words(statement: str) -> str:
    """Return a statement in which white space says nothing."""
    return " ".join(statement.split())


@cache
def _expected(dialect: str) -> Objects:
    """Return what a new store has; of PostgreSQL's, the names of the triggers and views."""
    objects = _made_anew()
    if dialect == "sqlite":
        return objects
    views = [(kind, name) for kind, name in objects if kind == "view"]
    return dict.fromkeys([*_server_triggers(), *views], "")


def _made_anew() -> Objects:
    with closing(Database(":memory:")) as database:
        upgrade(database)
        with database.reading() as connection:
            return _objects(connection)


def _server_triggers() -> Iterator[tuple[str, str]]:
    for name in SERVER_TRIGGERS:
        for table in GUARDED_TABLES:
            yield "trigger", name.format(table)
