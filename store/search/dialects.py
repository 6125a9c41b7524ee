"""The pieces of SQL of the index that differ between databases.

A file has two FTS5 tables that keep no text. The first search creates them, so a store that is
never searched has no page of them; `search_rows` maps their rows to messages. FTS5 removes a row
only if it is given the row's text again, so deleted rows stay in these tables as numbers without
a message until a purge empties them. On a server the words are in `search_rows` itself and are
deleted with their row; trigrams are used if the extension ``pg_trgm`` is installed.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection, text

from ..database import Row, Statement


class IndexSql(NamedTuple):
    """The SQL of the index for one kind of database.

    ``match_words`` and ``match_names`` are queries for numbers of the index by an expression, whose
    parameter is inserted as ``name``. ``message_place`` and ``summary_place`` are the place of a
    message ``m`` and of a summary ``s`` in the order of storing.
    """

    lock: tuple[str, ...]
    exists: str
    create: tuple[str, ...]
    clear: tuple[str, ...]
    drop: tuple[str, ...]
    number: str
    match_words: str
    match_names: str
    message_keys: str
    message_place: str
    summary_place: str
    max_number: str
    min_number: str
    size: str


_FILE_INDEX = IndexSql(
    lock=(),
    exists="SELECT 1 FROM sqlite_schema WHERE name = 'search_words'",
    create=(
        """CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5(
    text, content='', tokenize='unicode61 remove_diacritics 2')""",
        """CREATE VIRTUAL TABLE IF NOT EXISTS search_parts USING fts5(
    names, content='', detail=none, columnsize=0, tokenize='trigram')""",
    ),
    clear=(
        "INSERT INTO search_words (search_words) VALUES ('delete-all')",
        "INSERT INTO search_parts (search_parts) VALUES ('delete-all')",
    ),
    drop=("DROP TABLE IF EXISTS search_words", "DROP TABLE IF EXISTS search_parts"),
    number="rowid",
    match_words="SELECT rowid AS number FROM search_words WHERE search_words MATCH :{name}",
    match_names="SELECT rowid AS number FROM search_parts WHERE search_parts MATCH :{name}",
    message_keys="(SELECT json_extract(value, '$[0]') AS tree_id,"
    " json_extract(value, '$[1]') AS branch,"
    " json_extract(value, '$[2]') AS seq FROM json_each(:places))",
    message_place="m.rowid",
    summary_place="s.rowid",
    max_number="SELECT MAX(id) FROM search_words_docsize",
    min_number="SELECT MIN(id) FROM search_words_docsize",
    size="SELECT (SELECT SUM(LENGTH(block)) FROM search_words_data)"
    " + (SELECT SUM(LENGTH(block)) FROM search_parts_data)",
)
_SERVER_INDEX = IndexSql(
    lock=("SELECT pg_advisory_xact_lock(1936024946)",),
    exists="SELECT to_regclass('ix_search_rows_words')::text WHERE"
    " to_regclass('ix_search_rows_words') IS NOT NULL",
    create=(
        "CREATE INDEX IF NOT EXISTS ix_search_rows_words ON search_rows USING gin (words)",
        """DO $$ BEGIN
    IF EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm') THEN
        CREATE INDEX IF NOT EXISTS ix_search_rows_names
        ON search_rows USING gin (names gin_trgm_ops);
    END IF;
END $$""",
    ),
    clear=(),
    drop=(
        "DROP INDEX IF EXISTS ix_search_rows_words",
        "DROP INDEX IF EXISTS ix_search_rows_names",
    ),
    number="number",
    match_words="SELECT number FROM search_rows WHERE words @@ CAST(:{name} AS tsquery)",
    match_names="SELECT number FROM search_rows WHERE names ILIKE :{name}",
    message_keys="(SELECT CAST(value ->> 0 AS bigint) AS tree_id,"
    " CAST(value ->> 1 AS bigint) AS branch,"
    " CAST(value ->> 2 AS bigint) AS seq FROM json_array_elements(CAST(:places AS json)))",
    message_place="m.stored_at",
    summary_place="s.created_at",
    max_number="SELECT MAX(number) FROM search_rows",
    min_number="SELECT MIN(number) FROM search_rows",
    size="SELECT pg_total_relation_size('search_rows')",
)
INDEX_SQL = {"sqlite": _FILE_INDEX, "postgresql": _SERVER_INDEX}


def get_index_sql(connection: Connection) -> IndexSql:
    """Return the SQL of the index for the database of a connection."""
    return INDEX_SQL[connection.dialect.name]


@cache
def cache_statement(sql: str) -> Statement[Row]:
    """Return a text as a statement, compiled once."""
    return Statement(text(sql.replace("::", r"\:\:")))
