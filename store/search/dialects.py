"""How each database keeps words and finds them: what differs, piece by piece.

A file has two FTS5 tables that keep no text. They are made by the first search, so a store that
nobody searches has no page of them; `search_rows` says which message a row of theirs is. FTS5 takes
a row out only where it is told its text again, so rows that went stay in them as numbers that lead
nowhere, until a purge empties them. On a server the words lie in `search_rows` itself and go with
their row; trigrams are used where the extension `pg_trgm` is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from sqlalchemy import Connection, TextClause, text

from ..database import Insertion, Row, Statement, search_rows
from .terms import LONGEST_TERM, WORD, Term, folded, names, spaced, words

LONGEST_ON_SERVER = 400_000
"""Code points of a message that a server keeps the words of: more than its type has room for."""
MOST_PLACES = 16_383
"""The last place of a word that a server knows."""
TRIGRAMS = 60
"""So many trigrams of a part are asked for."""

_SIGNS_OF_LIKE = re.compile(r"[\\%_]")
_ESCAPED = r"\\\g<0>"

ROW = Insertion(search_rows)
PLACE_OF_ROW = Insertion(search_rows, "tree_id", "branch", "seq", "summary", "number")


class Kept(NamedTuple):
    """A row of the index: its place, its number there, and the text that it is of."""

    tree_id: int
    branch: int
    seq: int
    summary: int
    number: int
    text: str


class Spelling(NamedTuple):
    """What a database calls things."""

    alone: tuple[str, ...]
    is_made: str
    make: tuple[str, ...]
    empty: tuple[str, ...]
    drop: tuple[str, ...]
    row: str
    words: str
    parts: str
    places: str
    message_place: str
    summary_place: str
    newest: str
    oldest: str
    size: str


_FILE = Spelling(
    alone=(),
    is_made="SELECT 1 FROM sqlite_schema WHERE name = 'search_words'",
    make=(
        """CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5(
    text, content='', tokenize='unicode61 remove_diacritics 2')""",
        """CREATE VIRTUAL TABLE IF NOT EXISTS search_parts USING fts5(
    names, content='', detail=none, columnsize=0, tokenize='trigram')""",
    ),
    empty=(
        "INSERT INTO search_words (search_words) VALUES ('delete-all')",
        "INSERT INTO search_parts (search_parts) VALUES ('delete-all')",
    ),
    drop=("DROP TABLE IF EXISTS search_words", "DROP TABLE IF EXISTS search_parts"),
    row="rowid",
    words="SELECT rowid AS number FROM search_words WHERE search_words MATCH :{name}",
    parts="SELECT rowid AS number FROM search_parts WHERE search_parts MATCH :{name}",
    places="(SELECT json_extract(value, '$[0]') AS tree_id, json_extract(value, '$[1]') AS branch,"
    " json_extract(value, '$[2]') AS seq FROM json_each(:places))",
    message_place="m.rowid",
    summary_place="s.rowid",
    newest="SELECT MAX(id) FROM search_words_docsize",
    oldest="SELECT MIN(id) FROM search_words_docsize",
    size="SELECT (SELECT SUM(LENGTH(block)) FROM search_words_data)"
    " + (SELECT SUM(LENGTH(block)) FROM search_parts_data)",
)
_SERVER = Spelling(
    alone=("SELECT pg_advisory_xact_lock(1936024946)",),
    is_made="SELECT to_regclass('ix_search_rows_words')::text WHERE"
    " to_regclass('ix_search_rows_words') IS NOT NULL",
    make=(
        "CREATE INDEX IF NOT EXISTS ix_search_rows_words ON search_rows USING gin (words)",
        """DO $$ BEGIN
    IF EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm') THEN
        CREATE INDEX IF NOT EXISTS ix_search_rows_names
        ON search_rows USING gin (names gin_trgm_ops);
    END IF;
END $$""",
    ),
    empty=(),
    drop=(
        "DROP INDEX IF EXISTS ix_search_rows_words",
        "DROP INDEX IF EXISTS ix_search_rows_names",
    ),
    row="number",
    words="SELECT number FROM search_rows WHERE words @@ CAST(:{name} AS tsquery)",
    parts="SELECT number FROM search_rows WHERE names ILIKE :{name}",
    places="(SELECT CAST(value ->> 0 AS bigint) AS tree_id, CAST(value ->> 1 AS bigint) AS branch,"
    " CAST(value ->> 2 AS bigint) AS seq FROM json_array_elements(CAST(:places AS json)))",
    message_place="m.stored_at",
    summary_place="s.created_at",
    newest="SELECT MAX(number) FROM search_rows",
    oldest="SELECT MIN(number) FROM search_rows",
    size="SELECT pg_total_relation_size('search_rows')",
)
SPELLINGS = {"sqlite": _FILE, "postgresql": _SERVER}
WRITE_WORDS = "INSERT INTO search_words (rowid, text) VALUES (:number, :text)"
WRITE_NAMES = "INSERT INTO search_parts (rowid, names) VALUES (:number, :text)"


def spelling(connection: Connection) -> Spelling:
    """Return what the database of a connection calls things."""
    return SPELLINGS[connection.dialect.name]


@cache
def statement(sql: str) -> Statement[Row]:
    """Return a text as a statement, compiled once."""
    return Statement(_escaped(sql))


def _escaped(sql: str) -> TextClause:
    return text(sql.replace("::", r"\:\:"))


def keep(connection: Connection, rows: list[Kept]) -> None:
    """Write rows of the index."""
    if connection.dialect.name == "sqlite":
        PLACE_OF_ROW.insert_many(connection, [row[:-1] for row in rows])
        for row in rows:
            _keep_in_file(connection, row)
    else:
        ROW.insert_many(connection, [_on_server(row) for row in rows])


def _keep_in_file(connection: Connection, row: Kept) -> None:
    held = spaced(row.text)
    statement(WRITE_WORDS).run(connection, number=row.number, text=held)
    known = names(row.text)
    if known:
        statement(WRITE_NAMES).run(connection, number=row.number, text=known)


def _on_server(row: Kept) -> Row:
    """Return a row as a server keeps it: words with their places, names in small letters."""
    held = row.text[:LONGEST_ON_SERVER]
    placed = enumerate(words(held), start=1)
    vector = " ".join(f"'{word}':{min(place, MOST_PLACES)}" for place, word in placed)
    return (*row[:-1], vector, names(held).lower())


def words_asked(dialect: str, terms: list[Term]) -> str:
    """Return what asks a database for all of the terms as words."""
    each = _file_words if dialect == "sqlite" else _server_words
    return (" AND " if dialect == "sqlite" else " & ").join(map(each, terms))


def _file_words(term: Term) -> str:
    words = term.kept.replace('"', " ")
    return f'"{words}"{" *" * term.begins}'


def _server_words(term: Term) -> str:
    each = [f"'{word[:LONGEST_TERM]}'" for word in WORD.findall(folded(term.kept))]
    return f"({' <-> '.join(each)}{':*' * term.begins})"


def part_asked(dialect: str, part: str) -> str:
    """Return what asks a database for a part of a name."""
    if dialect == "sqlite":
        return " AND ".join(map(_quoted, _trigrams(part.replace('"', " "))))
    return f"%{_SIGNS_OF_LIKE.sub(_ESCAPED, part.lower())}%"


def _quoted(trigram: str) -> str:
    return f'"{trigram}"'


def _trigrams(part: str) -> Iterator[str]:
    return islice((part[at : at + 3] for at in range(len(part) - 2)), TRIGRAMS)
