"""The index and its updates: appending messages does not write to it.

Its entries have numbers. Those of messages count up from 1 in the order of storing, and those of
summaries down from -1, so the highest entry marks the last indexed message, and the lowest the last
indexed summary. On a file that mark is the place of a row in its table; a server has no such place,
so a query finds the messages without an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select, text

from ..database import Insertion, Statement, Transactions, search_rows, settings
from ..errors import ReadOnly, StoreError, check_progress
from ..records import Index, ProgressCallback
from .documents import (
    cache_statement,
    get_index_sql,
    join_message_texts,
    join_summary_texts,
    load_documents_messages,
)
from .scope import Scope
from .terms import LONGEST_TERM, WORD_PATTERN, extract_name_lines, fold_text, split_cjk

STEP_MESSAGES = 256
"""Messages that a search indexes at most, before it looks for anything."""
STEP_LENGTH = 256 * 1024
"""Code points that it indexes at most, except for a message that is longer."""
MESSAGE_BATCH = 8
"""Messages that are in memory at once, as they are stored."""
STEP_SUMMARIES = 16
"""Summaries that it indexes at most."""
LONGEST_ON_SERVER = 400_000
"""Code points of a message whose words a server indexes: more than its type has room for."""
LAST_WORD_PLACE = 16_383
"""The highest position of a word on a server."""
SEARCH_OFF_VALUE = "off"
SEARCH_SETTING = "search"
SEARCH_IS_OFF = "searching is switched off in this store; `convostore index --on` switches it on"

INSERT_ENTRIES = Insertion(search_rows)
INSERT_ENTRY_PLACES = Insertion(search_rows, "tree_id", "branch", "seq", "summary", "number")
INSERT_WORDS = "INSERT INTO search_words (rowid, text) VALUES (:number, :text)"
INSERT_NAMES = "INSERT INTO search_parts (rowid, names) VALUES (:number, :text)"
_is_search_setting = settings.c.name == bindparam("setting")
GET_SETTING = Statement(select(settings.c.value).where(_is_search_setting))
DELETE_SETTING = Statement(delete(settings).where(_is_search_setting))
INSERT_SETTING = Statement(insert(settings).values(name=bindparam("of"), value=bindparam("to")))
DELETE_ENTRIES = Statement(delete(search_rows))
COUNT_ENTRIES = Statement(text("SELECT COUNT(*) FROM search_rows"))
COUNT_DOCUMENTS = Statement(
    text("SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM summaries)")
)
HAS_STALE_ENTRIES = (
    "SELECT (SELECT COUNT(*) FROM search_words_docsize) > (SELECT COUNT(*) FROM search_rows)"
)

_message_entry = "r.tree_id = m.tree_id AND r.branch = m.branch AND r.seq = m.seq AND r.summary = 0"
_summary_entry = "r.tree_id = s.tree_id AND r.summary = s.summary"


OWNS_INDEX: dict[str, Statement[Any]] = {
    "postgresql": Statement(
        text(
            "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class"
            " WHERE oid = to_regclass('search_rows')"
        )
    )
}
"""What a server is asked whether the index may be made, by dialect."""
INDEX_RIGHT_MESSAGE = (
    "the index of searches does not exist yet, and only the owner of the tables can make it: run "
    "`convostore index` once as the owner; until then searches read the newest messages"
)


class IndexEntry(NamedTuple):
    """An entry of the index: the place of its document, its number, and its text."""

    tree_id: int
    branch: int
    seq: int
    summary: int
    number: int
    text: str


class UnindexedSql(NamedTuple):
    """The tables and conditions of messages ``m`` and summaries ``s`` without an entry.

    ``order`` is the column of the order of storing.
    """

    messages: str
    messages_where: str
    order: str
    summaries: str
    summaries_where: str


_FILE_UNINDEXED = UnindexedSql(
    "messages m",
    f"""+m.rowid > COALESCE((SELECT m.rowid FROM search_rows r JOIN messages m ON {_message_entry}
    WHERE r.number > 0 ORDER BY r.number DESC LIMIT 1), -1)""",
    "rowid",
    "summaries s",
    f"""s.rowid > COALESCE((SELECT s.rowid FROM search_rows r JOIN summaries s ON {_summary_entry}
    WHERE r.number < 0 ORDER BY r.number LIMIT 1), -1)""",
)
_SERVER_UNINDEXED = UnindexedSql(
    f"messages m LEFT JOIN search_rows r ON {_message_entry}",
    "r.tree_id IS NULL",
    "stored_at",
    f"summaries s LEFT JOIN search_rows r ON {_summary_entry}"
    " AND r.branch = s.branch AND r.seq = s.last",
    "r.tree_id IS NULL",
)
UNINDEXED_SQL = {"sqlite": _FILE_UNINDEXED, "postgresql": _SERVER_UNINDEXED}
WHOLE_STORE = Scope()


def build_unindexed_sql(connection: Connection, scope: Scope = WHOLE_STORE) -> UnindexedSql:
    """Return the SQL of the messages and summaries of a scope that have no entry.

    On a file all new messages have the highest places of their table; the sign before a place makes
    SQLite find the messages of few trees by their trees.
    """
    sql = UNINDEXED_SQL[connection.dialect.name]
    where = sql.messages_where if scope.parameters else sql.messages_where.removeprefix("+")
    return sql._replace(
        messages_where=f"{where}{scope.tree_condition('m')}",
        summaries_where=f"{sql.summaries_where}{scope.tree_condition('s')}",
    )


def is_search_on(connection: Connection) -> bool:
    """Tell whether searching is switched on."""
    return bool(GET_SETTING.value(connection, setting=SEARCH_SETTING) != SEARCH_OFF_VALUE)


def has_index(connection: Connection) -> bool:
    """Tell whether the database has the tables or indexes of the index."""
    return cache_statement(get_index_sql(connection).exists).row(connection) is not None


def is_index_behind(connection: Connection, scope: Scope = WHOLE_STORE) -> bool:
    """Tell whether a scope has messages or summaries that have no entry."""
    is_file = connection.dialect.name == "sqlite"
    # On a file a quick check finds out whether any document has no entry.
    if is_file and scope.parameters and not is_index_behind(connection):
        return False
    new = build_unindexed_sql(connection, scope)
    queries = (
        f"SELECT 1 FROM {new.messages} WHERE {new.messages_where} LIMIT 1",
        f"SELECT 1 FROM {new.summaries} WHERE {new.summaries_where} LIMIT 1",
    )
    return any(cache_statement(each).row(connection, **scope.parameters) for each in queries)


def index_step(connection: Connection) -> bool:
    """Index some messages and summaries; tell whether there were any."""
    sql = get_index_sql(connection)
    _run_statements(connection, sql.lock)
    if not has_index(connection):
        if connection.dialect.name != "sqlite" and not OWNS_INDEX["postgresql"].value(connection):
            raise ReadOnly(INDEX_RIGHT_MESSAGE)
        _run_statements(connection, sql.create)
    entries = [*_load_new_message_entries(connection), *_load_new_summary_entries(connection)]
    if connection.dialect.name == "sqlite":
        INSERT_ENTRY_PLACES.insert_many(connection, [entry[:-1] for entry in entries])
        for entry in entries:
            words, names = split_cjk(entry.text), extract_name_lines(entry.text)
            number = entry.number
            cache_statement(INSERT_WORDS).run(connection, number=number, text=words)
            if names:
                cache_statement(INSERT_NAMES).run(connection, number=number, text=names)
        return bool(entries)
    rows = []
    for entry in entries:  # a server stores words with positions, and names in lower case
        content = entry.text[:LONGEST_ON_SERVER]
        vector = " ".join(
            f"'{word}':{min(place, LAST_WORD_PLACE)}"
            for place, word in enumerate(
                (
                    word[:LONGEST_TERM]
                    for word in WORD_PATTERN.findall(fold_text(split_cjk(content)))
                ),
                start=1,
            )
        )
        rows.append((*entry[:-1], vector, extract_name_lines(content).lower()))
    INSERT_ENTRIES.insert_many(connection, rows)
    return bool(entries)


def _run_statements(connection: Connection, statements: Iterable[str]) -> None:
    for each in statements:
        cache_statement(each).run(connection)


def _load_new_message_entries(connection: Connection) -> Iterator[IndexEntry]:
    """Yield the next entries of messages, as many as a step makes."""
    new = build_unindexed_sql(connection)
    query = f"""SELECT m.tree_id, m.branch, m.seq FROM {new.messages} WHERE {new.messages_where}
    ORDER BY m.{new.order}, m.seq, m.branch, m.tree_id LIMIT {STEP_MESSAGES}"""
    newest = cache_statement(get_index_sql(connection).max_number).value(connection)
    number = max(0, newest or 0)
    length, keys = 0, map(tuple, cache_statement(query).rows(connection))
    while length <= STEP_LENGTH and (batch := [*islice(keys, MESSAGE_BATCH)]):
        messages = load_documents_messages(connection, batch)
        for key in batch:
            if length > STEP_LENGTH:
                return
            content = join_message_texts(messages[key])
            length += len(content)
            number += 1
            tree_id, branch, seq = key
            yield IndexEntry(tree_id, branch, seq, 0, number, content)


def _load_new_summary_entries(connection: Connection) -> Iterator[IndexEntry]:
    """Yield the next entries of summaries, as many as a step makes."""
    new = build_unindexed_sql(connection)
    query = f"""SELECT s.tree_id, s.branch, s.last, s.summary, s.title, s.body FROM {new.summaries}
    WHERE {new.summaries_where} ORDER BY s.created_at, s.summary LIMIT {STEP_SUMMARIES}"""
    newest = cache_statement(get_index_sql(connection).min_number).value(connection)
    first = min(0, newest or 0)
    for number, row in enumerate(cache_statement(query).rows(connection), start=1 - first):
        tree_id, branch, last, summary, title, body = row
        yield IndexEntry(tree_id, branch, last, summary, -number, join_summary_texts(title, body))


def try_index_step(transactions: Transactions) -> None:
    """Index some messages if nobody else writes; else a search uses the index as it is."""
    with suppress(StoreError), transactions.soon() as connection:
        if is_search_on(connection):
            index_step(connection)


def index_all(transactions: Transactions, progress: ProgressCallback | None = None) -> None:
    """Update the index, if it is on, in steps; other writers can write between them."""
    with transactions.reading() as connection:
        is_left = is_index_behind(connection)
        if connection.dialect.name != "sqlite":  # the owner makes it before others fill it
            is_left = is_left or not has_index(connection)
        is_left = is_left and is_search_on(connection)
    while is_left:
        with transactions.writing() as connection:
            is_left = is_search_on(connection) and index_step(connection)
        if progress is not None:
            with transactions.reading() as connection:
                entries = COUNT_ENTRIES.value(connection)
                progress(entries, max(entries, COUNT_DOCUMENTS.value(connection)))


def clear_index(connection: Connection) -> None:
    """Delete all entries of the index."""
    DELETE_ENTRIES.run(connection)
    _run_statements(connection, get_index_sql(connection).clear if has_index(connection) else ())


def clear_stale_index(connection: Connection) -> None:
    """Clear the index of a file if it holds words of messages that were erased or redacted."""
    is_file = connection.dialect.name == "sqlite"
    if is_file and has_index(connection) and cache_statement(HAS_STALE_ENTRIES).value(connection):
        clear_index(connection)


def refill_index(transactions: Transactions) -> None:
    """Index everything anew after a purge has cleared the index."""
    with transactions.reading() as connection:
        is_empty = has_index(connection) and not COUNT_ENTRIES.value(connection)
    if is_empty:
        index_all(transactions)


def update_index(
    transactions: Transactions,
    *,
    on: bool | None,
    anew: bool,
    progress: ProgressCallback | None = None,
) -> Index:
    """Switch the index on or off or clear it, as requested; if it is on, update it.

    Switching the index off drops it.
    """
    check_progress(progress)
    if on is not None or anew:
        with transactions.writing() as connection:
            if on is not None:
                DELETE_SETTING.run(connection, setting=SEARCH_SETTING)
                if not on:
                    INSERT_SETTING.run(connection, of=SEARCH_SETTING, to=SEARCH_OFF_VALUE)
                    DELETE_ENTRIES.run(connection)
                    _run_statements(connection, get_index_sql(connection).drop)
            if anew:
                clear_index(connection)
    index_all(transactions, progress)
    with transactions.reading() as connection:
        entries = COUNT_ENTRIES.value(connection)
        size = 0
        if has_index(connection):
            size = cache_statement(get_index_sql(connection).size).value(connection) or 0
        waiting = COUNT_DOCUMENTS.value(connection) - entries
        return Index(is_search_on(connection), entries, waiting, size)
