"""The tables of a server in parts: hash partitions on one machine, or the nodes of Citus.

Each key of a tree's table begins with its tree, so all rows of a tree lie in one part. Only an
empty store is divided: every table is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import Connection, literal_column, select, table

from ..database import TREE_TABLES, Database, session_ids
from ..errors import InvalidValue, StoreError

MAX_PARTITIONS = 1024
"""The most partitions that a table gets."""
TABLE_KINDS = {
    "whole": "whole",
    "partitions": "in partitions",
    "distributed": "distributed by Citus",
    "reference": "on each node of Citus",
    "local": "on one node of Citus",
}
"""How the rows of a table may lie, in words."""
_TABLES = """
SELECT class.relname, class.relkind = 'p', COUNT(part.inhrelid)
FROM pg_class AS class LEFT JOIN pg_inherits AS part ON part.inhparent = class.oid
WHERE class.relnamespace = CAST(current_schema() AS regnamespace)
  AND class.relkind IN ('r', 'p') AND NOT class.relispartition
GROUP BY class.relname, class.relkind ORDER BY class.relname
"""
_CITUS_TABLES = """
SELECT class.relname, kind.citus_table_type, kind.distribution_column, kind.shard_count
FROM citus_tables AS kind JOIN pg_class AS class ON class.oid = kind.table_name
"""
_VIEWS = """
SELECT CAST(oid AS regclass), pg_get_viewdef(oid) FROM pg_class
WHERE relkind = 'v' AND relnamespace = CAST(current_schema() AS regnamespace) ORDER BY pg_class.oid
"""
_CONSTRAINTS = """
SELECT contype, CAST(conrelid AS regclass), conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype IN ('p', 'u', 'f') AND connamespace = CAST(current_schema() AS regnamespace)
ORDER BY contype = 'f', pg_constraint.oid
"""
_INDEXES = """
SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON oid = indrelid
WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relname = ANY(%(names)s)
  AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)
ORDER BY indexrelid
"""
_TRIGGERS = """
SELECT relname, tgtype & 32 > 0, tgname, CAST(tgfoid AS regproc), pg_get_triggerdef(pg_trigger.oid)
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE NOT tgisinternal AND relnamespace = CAST(current_schema() AS regnamespace)
ORDER BY pg_trigger.oid
"""
_OWNER_FUNCTIONS = """
SELECT CAST(CAST(oid AS regprocedure) AS text) FROM pg_proc
WHERE prosecdef AND pronamespace = CAST(current_schema() AS regnamespace) ORDER BY oid
"""

_ONLY_SERVERS = "only the tables of PostgreSQL are divided; a file is on one machine"
_NO_CITUS = (
    "the database has no extension citus, or this is not its coordinator; create it, and add the"
    " workers, before"
)
_NO_TRIGGERS = (
    "the guards of raw messages need `citus.enable_unsafe_triggers`; ALTER DATABASE … SET it to on,"
    " on each node, and connect anew"
)


class TableParts(NamedTuple):
    """How the rows of a table lie.

    ``kind`` is one of `TABLE_KINDS`; ``by`` is the column that a row's part follows from.
    """

    table: str
    kind: str
    by: str | None
    parts: int


def list_table_parts(database: Database) -> list[TableParts]:
    """List the tables of a server's store, each with how its rows lie. Raises InvalidValue."""
    _require_server(database)
    with database.reading() as connection:
        return load_table_parts(connection)


def divide_tables(database: Database, partitions: int | None = None) -> list[TableParts]:
    """Divide the tables of an empty store on a server, in hash partitions or by Citus (None).

    Return what `list_table_parts` lists afterwards. A store with rows is refused unchanged, and so
    is one that is divided already. Raises InvalidValue, StoreError.
    """
    _require_server(database)
    if partitions is not None and not 2 <= partitions <= MAX_PARTITIONS:
        raise InvalidValue(f"a table has 2 to {MAX_PARTITIONS} partitions, not {partitions}")
    with database.writing() as connection:
        require_unused(connection)
        if partitions is None:
            require_citus(connection)
            known = (each.table for each in load_table_parts(connection))
            functions = connection.exec_driver_sql(_OWNER_FUNCTIONS).scalars().all()
            statements = build_citus_statements(known, functions)
        else:
            statements = list_partition_statements(connection, partitions)
        for statement in statements:
            _run(connection, statement)
        return load_table_parts(connection)


def _require_server(database: Database) -> None:
    if database.dialect != "postgresql":
        raise InvalidValue(_ONLY_SERVERS)


def _run(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement.replace("%", "%%"))


def require_unused(connection: Connection) -> None:
    """Lock the tables of a store that has no rows and is whole. Raises StoreError."""
    names = [session_ids.name, *(each.name for each in TREE_TABLES)]
    _run(connection, f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE")
    for name in names:
        if connection.scalar(select(literal_column("1")).select_from(table(name)).limit(1)):
            raise StoreError(
                f"the store is in use, {name} has rows; divide an empty one, and bring it the"
                " sessions with `convostore copy`"
            )
    if any(each.kind != "whole" for each in load_table_parts(connection)):
        raise StoreError("the store is divided already; `convostore distribute --check` lists how")


def load_table_parts(connection: Connection) -> list[TableParts]:
    """Return how the rows of each table of a server lie, by the names of the tables."""
    known = {}
    for name, is_partitioned, parts in connection.exec_driver_sql(_TABLES):
        kind, by = ("partitions", "tree_id") if is_partitioned else ("whole", None)
        known[name] = TableParts(name, kind, by, parts or 1)
    if connection.exec_driver_sql("SELECT to_regclass('citus_tables')").scalar():
        for name, kind, by, parts in connection.exec_driver_sql(_CITUS_TABLES):
            column = by if kind == "distributed" else None
            known[name] = TableParts(name, kind, column, parts)
    return list(known.values())


def list_partition_statements(connection: Connection, partitions: int) -> Iterator[str]:
    """Yield the statements that make the tables of trees anew, in hash partitions.

    Their keys, indexes and triggers stay what they were, and so do the views.
    """
    names = [each.name for each in TREE_TABLES]
    views = connection.exec_driver_sql(_VIEWS).all()
    constraints = connection.exec_driver_sql(_CONSTRAINTS).all()
    indexes = connection.exec_driver_sql(_INDEXES, {"names": names}).scalars().all()
    triggers = connection.exec_driver_sql(_TRIGGERS).all()
    yield from (f"DROP VIEW IF EXISTS {view} CASCADE" for view, _ in views)
    for kind, owner, name, _ in reversed(constraints):
        if kind == "f":
            yield f"ALTER TABLE {owner} DROP CONSTRAINT {name}"
    for name in names:
        yield from build_partitioned_table(name, partitions)
    for _, owner, name, definition in constraints:
        if owner in names:
            yield f"ALTER TABLE {owner} ADD CONSTRAINT {name} {definition}"
    yield from indexes
    for owner, is_of_statement, trigger, guard, definition in triggers:
        if owner in names:
            yield definition
        for part in range(partitions if is_of_statement and owner in names else 0):
            # A partition inherits the triggers of rows alone.
            begin = f"CREATE TRIGGER {trigger} BEFORE TRUNCATE ON {owner}_p{part}"
            yield f"{begin} FOR EACH STATEMENT EXECUTE FUNCTION {guard}()"
    yield from (f"CREATE VIEW {view} AS {definition}" for view, definition in views)


def build_partitioned_table(name: str, partitions: int) -> Iterator[str]:
    """Yield the statements that make a table anew, in hash partitions, without keys."""
    kept = "INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING COMMENTS"
    yield f"ALTER TABLE {name} RENAME TO whole_{name}"
    yield f"CREATE TABLE {name} (LIKE whole_{name} {kept}) PARTITION BY HASH (tree_id)"
    yield f"DROP TABLE whole_{name}"
    for part in range(partitions):
        values = f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part})"
        yield f"CREATE TABLE {name}_p{part} PARTITION OF {name} {values}"


def require_citus(connection: Connection) -> None:
    """Raise StoreError where Citus is missing, or forbids the guards of raw messages."""
    found = connection.exec_driver_sql("SELECT to_regclass('pg_dist_local_group')").scalar()
    if found is None:
        raise StoreError(_NO_CITUS)
    if connection.exec_driver_sql("SELECT groupid FROM pg_dist_local_group").scalar() != 0:
        raise StoreError(_NO_CITUS)
    allowed = connection.exec_driver_sql(
        "SELECT current_setting('citus.enable_unsafe_triggers', true)"
    )
    if allowed.scalar() != "on":
        raise StoreError(_NO_TRIGGERS)


def build_citus_statements(tables: Iterable[str], functions: Iterable[str]) -> Iterator[str]:
    """Yield the calls that distribute tables: those of trees together, by their tree.

    The look-up of ids is distributed by id; the others, and functions, are on each node.
    """
    first, *rest = of_trees = [each.name for each in TREE_TABLES]
    others = sorted({*tables} - {*of_trees, session_ids.name})
    yield f"SELECT create_distributed_table('{first}', 'tree_id', colocate_with => 'none')"
    for name in rest:
        yield f"SELECT create_distributed_table('{name}', 'tree_id', colocate_with => '{first}')"
    yield "SELECT create_distributed_table('session_ids', 'id', colocate_with => 'none')"
    for name in others:
        yield f"SELECT create_reference_table('{name}')"
    for name in functions:
        yield f"SELECT create_distributed_function('{name}')"
