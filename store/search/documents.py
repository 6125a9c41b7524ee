"""The documents of a search, and the pieces of SQL of the index that differ between databases.

The narrow columns of a document are read first: for most documents, session and time decide
whether they are hits. The texts are read only for the remaining ones, many at a time.

A file has two FTS5 tables that keep no text. The first search creates them, so a store that is
never searched has no page of them; `search_rows` maps their rows to messages. FTS5 removes a row
only if it is given the row's text again, so deleted rows stay in these tables as numbers without
a message until a purge empties them. On a server the words are in `search_rows` itself and are
deleted with their row; trigrams are used if the extension ``pg_trgm`` is installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection

from ..history import NO_LIMIT, restore_calls
from ..messages import (
    Columns,
    Message,
    assemble_message,
    join_call,
    join_message_texts,
    join_summary_texts,
    list_called_functions,
)
from ..summaries import PROGRAM_BEGINNINGS, SYSTEM_ROLES, is_by_program
from .scope import Origin, TreeList, cache_statement

TEXT_BATCH = 64
"""Documents whose texts are read at once."""
MERGED_PAGES = 2_000
"""Pages of each table of the index that are written at once to merge its parts."""


class IndexSql(NamedTuple):
    """The SQL of the index for one kind of database.

    ``has_words`` asks for the table of the words of the index. ``parts`` counts the parts of the
    index that each search looks into, ``merge`` merges them. ``match_words`` and ``match_names``
    are queries for the numbers of the index from ``first`` to ``last`` by an expression, whose
    parameter is inserted as ``name``; on a server they have the keys of entries, too, and
    ``entries`` is a query for those with a ``condition``, as ``with_words`` and ``with_names`` are.
    ``in_trees`` and ``in_owned`` limit them to some trees,
    and to those of an owner, where numbers do not. ``message_place`` and ``summary_place`` are the
    place of a message ``m`` and of a summary ``s`` in the order of storing. ``has_patterns``
    tells whether it compares texts with regular expressions. ``held_ranges`` are
    rows of positions and of their session, ``trees`` is a query for trees.
    """

    lock: tuple[str, ...]
    exists: str
    is_made: str
    has_words: str
    create: tuple[str, ...]
    clear: tuple[str, ...]
    drop: tuple[str, ...]
    parts: str
    merge: tuple[str, ...]
    words_number: str
    names_number: str
    match_words: str
    match_names: str
    entries: str
    with_words: str
    with_names: str
    in_trees: str
    in_owned: str
    message_keys: str
    message_place: str
    summary_place: str
    has_patterns: bool
    held_ranges: str
    trees: str
    max_number: str
    min_number: str
    size: str


_SERVER_TREES = "(SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:trees AS json)))"
_HAS_WORDS = "words @@ CAST(:{name} AS tsquery)"
_HAS_NAMES = "names ILIKE :{name}"
_SERVER_ENTRIES = (
    "SELECT number, tree_id, branch, seq, summary FROM search_rows"
    " WHERE {condition} AND number BETWEEN :first AND :last"
)
_FILE_INDEX = IndexSql(
    lock=(),
    exists="SELECT 1 FROM sqlite_schema WHERE name = 'search_words'",
    is_made="SELECT 1 FROM sqlite_schema WHERE name = 'search_words'",
    has_words="SELECT 1 FROM sqlite_temp_schema WHERE name = 'search_index_words'",
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
    parts="SELECT MAX((SELECT COUNT(DISTINCT segid) FROM search_words_idx),"
    " (SELECT COUNT(DISTINCT segid) FROM search_parts_idx))",
    merge=(
        f"INSERT INTO search_words (search_words, rank) VALUES ('merge', -{MERGED_PAGES})",
        f"INSERT INTO search_parts (search_parts, rank) VALUES ('merge', -{MERGED_PAGES})",
    ),
    words_number="search_words.rowid",
    names_number="search_parts.rowid",
    match_words="SELECT rowid AS number FROM search_words"
    " WHERE search_words MATCH :{name} AND rowid BETWEEN :first AND :last",
    match_names="SELECT rowid AS number FROM search_parts"
    " WHERE search_parts MATCH :{name} AND rowid BETWEEN :first AND :last",
    entries="",
    with_words="",
    with_names="",
    in_trees="",
    in_owned="",
    message_keys="(SELECT json_extract(value, '$[0]') AS tree_id,"
    " json_extract(value, '$[1]') AS branch,"
    " json_extract(value, '$[2]') AS seq FROM json_each(:places))",
    message_place="m.rowid",
    summary_place="s.rowid",
    has_patterns=False,
    held_ranges="SELECT value ->> 0 AS tree_id, value ->> 1 AS branch, value ->> 2 AS first,"
    " value ->> 3 AS last, value ->> 4 AS holder FROM json_each(:held)",
    trees="(SELECT value FROM json_each(:trees))",
    max_number="SELECT MAX(id) FROM search_words_docsize",
    min_number="SELECT MIN(id) FROM search_words_docsize",
    size="SELECT (SELECT SUM(LENGTH(block)) FROM search_words_data)"
    " + (SELECT SUM(LENGTH(block)) FROM search_parts_data)",
)
_SERVER_INDEX = IndexSql(
    lock=("LOCK TABLE search_rows IN SHARE ROW EXCLUSIVE MODE",),
    exists="SELECT 1",
    is_made="SELECT to_regclass('ix_search_rows_words')::text WHERE"
    " to_regclass('ix_search_rows_words') IS NOT NULL",
    has_words="",
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
    parts="SELECT 1",
    merge=(),
    words_number="number",
    names_number="number",
    match_words=_SERVER_ENTRIES.format(condition=_HAS_WORDS),
    match_names=_SERVER_ENTRIES.format(condition=_HAS_NAMES),
    entries=_SERVER_ENTRIES,
    with_words=_HAS_WORDS,
    with_names=_HAS_NAMES,
    # An array makes the server look at the rows of these trees only: it is planned as it is.
    in_trees=" AND tree_id = ANY (CAST(translate(CAST(:trees AS text), '[]', '{}') AS bigint[]))",
    in_owned=" AND tree_id = ANY (ARRAY(SELECT tree_id FROM sessions WHERE owner = :owner))",
    message_keys="(SELECT CAST(value ->> 0 AS bigint) AS tree_id,"
    " CAST(value ->> 1 AS bigint) AS branch,"
    " CAST(value ->> 2 AS bigint) AS seq FROM json_array_elements(CAST(:places AS json)))",
    message_place="m.stored_at",
    summary_place="s.created_at",
    has_patterns=True,
    held_ranges="SELECT CAST(value ->> 0 AS bigint) AS tree_id,"
    " CAST(value ->> 1 AS bigint) AS branch, CAST(value ->> 2 AS bigint) AS first,"
    " CAST(value ->> 3 AS bigint) AS last, value ->> 4 AS holder"
    " FROM json_array_elements(CAST(:held AS json))",
    trees=_SERVER_TREES,
    max_number="SELECT MAX(number) FROM search_rows",
    min_number="SELECT MIN(number) FROM search_rows",
    size="SELECT pg_total_relation_size('search_rows')",
)
INDEX_SQL = {"sqlite": _FILE_INDEX, "postgresql": _SERVER_INDEX}


def get_index_sql(connection: Connection) -> IndexSql:
    """Return the SQL of the index for the database of a connection."""
    return INDEX_SQL[connection.dialect.name]


def plan_by_values(connection: Connection) -> None:
    """Have a server plan the queries of a transaction for their words, rare or frequent."""
    if connection.dialect.name == "postgresql":
        cache_statement("SET LOCAL plan_cache_mode = force_custom_plan").run(connection)


MessageKey = tuple[int, int, int]
"""The tree, the branch and the position of a message."""


class Document(NamedTuple):
    """A message or a summary (0: none) that may be a hit.

    ``place`` is its place in the order of storing, the higher the later: in a file the place of its
    row, on a server its time; summaries are below all messages. ``record`` is the compaction that
    made a summary; ``branch`` and ``seq`` are its last position. ``by_program``
    tells a message of a user that a program may have written; once it is marked, that one has.
    """

    place: int
    tree_id: int
    branch: int
    seq: int
    summary: int
    role: str
    at: int
    made_on: int
    made_at: int
    record: int
    by_program: int

    @property
    def is_prompt(self) -> bool:
        """Whether an app or a program wrote the message: found last, as many sessions have it."""
        return bool(self.by_program) or self.role in SYSTEM_ROLES

    @property
    def key(self) -> MessageKey:
        """The key of the message."""
        return self.tree_id, self.branch, self.seq

    @property
    def origin(self) -> Origin:
        """The place that decides which lines have it."""
        return Origin(self.made_on, self.made_at, self.record)


_MESSAGE_COLUMNS = (
    "m.tree_id, m.branch, m.seq, 0 AS summary, m.role, COALESCE(m.created_at, m.stored_at) AS at,"
    " m.branch AS made_on, m.seq AS made_at, 0 AS record"
)
_OPENING_SIGNS = ' \t\n\r["{'
"""Signs before the beginning of a text that is stored as it is, or as JSON."""
_PROGRAM_HEAD = 100
"""Characters of a stored content within which a text of a program begins."""
_SUMMARY_COLUMNS = (
    "s.tree_id, s.branch, s.last, s.summary, 'summary' AS role, s.created_at AS at,"
    " c.branch AS made_on, c.head AS made_at, c.compaction AS record,"
    " 0 AS by_program"
)
MESSAGE_CONDITION = "m.tree_id = r.tree_id AND m.branch = r.branch AND m.seq = r.seq"
RECORD_CONDITION = "c.tree_id = s.tree_id AND c.summary = s.summary"
AFTER_MESSAGES = -NO_LIMIT
"""The difference between a summary's place among all documents and among summaries."""

_KEY_CONDITION = "{0}.tree_id = p.tree_id AND {0}.branch = p.branch AND {0}.seq = p.seq"
_RAW_COLUMNS = ", ".join(f"m.{name}" for name in Columns._fields)
_STORED_MESSAGES = (
    f"SELECT p.tree_id, p.branch, p.seq, {_RAW_COLUMNS} FROM {{}} p CROSS JOIN messages m"
    f" WHERE {_KEY_CONDITION.format('m')}"
)
_STORED_CALLS = (
    "SELECT p.tree_id, p.branch, p.seq, c.call_id, c.name, c.arguments_form, c.arguments, c.extra"
    f" FROM {{}} p CROSS JOIN tool_calls c WHERE {_KEY_CONDITION.format('c')}"
    " ORDER BY c.tree_id, c.branch, c.seq, c.position"
)
_RESULT_TOOLS = (
    "SELECT p.tree_id, p.branch, p.seq, t.tool_name FROM {} p CROSS JOIN tool_results t"
    f" WHERE {_KEY_CONDITION.format('t')}"
)
_SUMMARY_TEXTS = (
    "SELECT p.tree_id, p.branch, p.seq, s.title, s.body FROM {} p CROSS JOIN summaries s"
    " WHERE s.tree_id = p.tree_id AND s.summary = p.seq"
)


def list_message_columns(connection: Connection) -> str:
    """Return the columns of a document that is a message ``m``."""
    sql = get_index_sql(connection)
    head = f"substr(m.content, 1, {_PROGRAM_HEAD})"
    begins = "<", *PROGRAM_BEGINNINGS
    has_any = " OR ".join(f"instr({head}, '{each}') > 0" for each in begins)
    if sql.has_patterns:
        has_any = f"{head} ~ '{'|'.join(map(re.escape, begins))}'"
    signs = {*_OPENING_SIGNS, *(each[0] for each in begins)}
    first_signs = "', '".join(sorted(signs))
    may_begin = f"m.role = 'user' AND substr(m.content, 1, 1) IN ('{first_signs}')"
    by_program = f"CASE WHEN {may_begin} AND ({has_any}) THEN 1 ELSE 0 END"
    return f"{sql.message_place} AS place, {_MESSAGE_COLUMNS}, {by_program} AS by_program"


def list_summary_columns(connection: Connection) -> str:
    """Return the columns of a document that is a summary ``s`` of a record ``c``."""
    place = get_index_sql(connection).summary_place
    return f"{AFTER_MESSAGES} + {place} AS place, {_SUMMARY_COLUMNS}"


_TREE_NUMBERS = (
    "SELECT MIN(number), MAX(number), COUNT(*) FROM search_rows"
    " WHERE tree_id IN (SELECT value FROM json_each(:trees)) AND number > 0"
)


def list_trees(connection: Connection, tree_ids: Iterable[int]) -> TreeList:
    """Return trees with the numbers that the messages of these have in the index of a file."""
    trees = json.dumps([*tree_ids])
    if connection.dialect.name != "sqlite":
        return TreeList(trees)
    first, last, count = cache_statement(_TREE_NUMBERS).rows(connection, trees=trees)[0]
    return TreeList(trees, first or 0, last or 0, count)


def load_documents_messages(
    connection: Connection, keys: Iterable[MessageKey]
) -> dict[MessageKey, Message]:
    """Return messages by their keys, as messages of a chat."""
    places = json.dumps([*keys])
    listing = get_index_sql(connection).message_keys
    calls: dict[MessageKey, list[object]] = {}
    call_rows = cache_statement(_STORED_CALLS.format(listing)).rows(connection, places=places)
    for (tree_id, branch), of_run in groupby(call_rows, itemgetter(0, 1)):
        run = {"tree_id": tree_id, "branch": branch}
        stored = [row[2:] for row in of_run]
        for seq, *call in restore_calls(connection, run, stored):
            calls.setdefault((tree_id, branch, seq), []).append(join_call(*call))
    rows = cache_statement(_STORED_MESSAGES.format(listing)).rows(connection, places=places)
    return {
        (tree_id, branch, seq): assemble_message(columns, calls.get((tree_id, branch, seq)))
        for tree_id, branch, seq, *columns in rows
    }


def mark_programs(connection: Connection, documents: list[Document]) -> list[Document]:
    """Return documents, with ``by_program`` only where a program wrote the whole message.

    Programs send their instructions and reminders in the role of the user.
    """
    doubtful = [each.key for each in documents if each.by_program]
    messages = load_documents_messages(connection, doubtful) if doubtful else {}
    return [
        each._replace(by_program=int(is_by_program(messages[each.key])))
        if each.by_program
        else each
        for each in documents
    ]


def load_texts(
    connection: Connection, documents: Collection[Document], tools: frozenset[str] | None = None
) -> dict[Document, str]:
    """Return the texts of documents; with ``tools``, only of calls and results of these tools."""
    keys = {each: each.key for each in documents if not each.summary}
    messages = load_documents_messages(connection, keys.values()) if keys else {}
    texts = {
        document: join_message_texts(messages[key])
        for document, key in _select_tool_messages(connection, keys, messages, tools)
    }
    summary_keys = {each: (each.tree_id, each.summary) for each in documents if each.summary}
    if summary_keys:
        bodies = load_summary_texts(connection, summary_keys.values())
        texts |= {document: bodies[key] for document, key in summary_keys.items()}
    return texts


def load_summary_texts(
    connection: Connection, keys: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], str]:
    """Return the texts of summaries by their trees and numbers."""
    places = json.dumps([(tree_id, 0, number) for tree_id, number in keys])
    statement = cache_statement(_SUMMARY_TEXTS.format(get_index_sql(connection).message_keys))
    return {
        (tree_id, number): join_summary_texts(*text)
        for tree_id, _, number, *text in statement.rows(connection, places=places)
    }


def _select_tool_messages(
    connection: Connection,
    keys: dict[Document, MessageKey],
    messages: dict[MessageKey, Message],
    tools: frozenset[str] | None,
) -> Iterator[tuple[Document, MessageKey]]:
    """Yield the messages that are calls or results of some tools; all, if no tools are given."""
    if tools is None or not keys:
        yield from keys.items()
        return
    rows = cache_statement(_RESULT_TOOLS.format(get_index_sql(connection).message_keys)).rows(
        connection, places=json.dumps([*keys.values()])
    )
    result_tools = {(tree_id, branch, seq): name for tree_id, branch, seq, name in rows}
    for document, key in keys.items():
        functions = list_called_functions(messages[key])
        names = [result_tools.get(key), *(each.get("name") for each in functions)]
        if any(isinstance(name, str) and name in tools for name in names):
            yield document, key
