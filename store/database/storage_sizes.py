"""The bytes of a database: its pages, and those of each table with its indexes."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, text

from .statements import Statement

_SQLITE_PAGES = """
SELECT (page_count - freelist_count) * page_size, freelist_count * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
PAGE_SIZES = {
    "sqlite": Statement(text(_SQLITE_PAGES)),
    "postgresql": Statement(text("SELECT pg_database_size(current_database()), 0")),
}
_SQLITE_TABLES = """
SELECT objects.tbl_name, SUM(pages.pgsize)
FROM dbstat AS pages
JOIN sqlite_schema AS objects ON objects.name = pages.name
WHERE pages.aggregate = TRUE
GROUP BY objects.tbl_name
"""
SQLITE_MODULE = Statement(text("SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'"))
"""Whether SQLite was built with the table that tells the size of each table."""
_POSTGRESQL_TABLES = """
SELECT CAST(COALESCE(whole.relname, part.relname) AS text),
    CAST(SUM(pg_total_relation_size(part.oid)) AS bigint)
FROM pg_class AS part
LEFT JOIN pg_inherits ON inhrelid = part.oid
LEFT JOIN pg_class AS whole ON whole.oid = inhparent
WHERE part.relkind = 'r' AND part.relnamespace = current_schema()::regnamespace
GROUP BY 1
"""
TABLE_SIZES = {
    "sqlite": Statement(text(_SQLITE_TABLES)),
    "postgresql": Statement(text(_POSTGRESQL_TABLES.replace("::", r"\:\:"))),
}


class PageBytes(NamedTuple):
    """The bytes of pages that hold rows, and of those that hold nothing any more."""

    used: int
    free: int


def load_page_bytes(connection: Connection) -> PageBytes:
    """Return the bytes of a database; a server does not tell the free ones."""
    return PageBytes(*PAGE_SIZES[connection.dialect.name].one(connection))


def load_table_bytes(connection: Connection) -> dict[str, int] | None:
    """Return the bytes of each table with its indexes; None where SQLite does not tell them."""
    dialect = connection.dialect.name
    if dialect == "sqlite" and not SQLITE_MODULE.value(connection):
        return None
    return dict(TABLE_SIZES[dialect].rows(connection))
