"""The index and its updates: in a file, appending messages does not write to it.

Its entries have numbers. Those of messages in a file count up from 1 in the order of storing, and
those of summaries down from -1, so the highest entry marks the last indexed message, and the lowest
the last indexed summary. That mark is the place of a row in its table.

On a server entries are written with their messages (`history.search_entries`). Messages of older
stores, and those of a time when searching was off, get theirs once, in the order of their keys. A
setting has the key that was reached, so that whoever goes on begins there; at the end it says so,
and no search looks for messages without an entry any more. Switching searching on or off waits for
those who write entries, so each of them acts by what is true when it ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, text

from ..database import Insertion, Statement, Transactions, search_rows, settings
from ..errors import ReadOnly, StoreError, check_progress
from ..history import PLACE, search_entries
from ..messages import (
    extract_name_lines,
    join_message_texts,
    split_cjk,
)
from ..records import Index, ProgressCallback
from .documents import (
    get_index_sql,
    load_documents_messages,
    load_summary_texts,
)
from .index_state import (
    ENTRIES_COMPLETE,
    ENTRIES_SETTING,
    GET_SETTING,
    build_unindexed_sql,
    is_index_behind,
    is_search_on,
)
from .scope import cache_statement

STEP_MESSAGES = 256
"""Messages that a search indexes at most, before it looks for anything."""
STEP_LENGTH = 256 * 1024
"""Code points that it indexes at most, except for a message that is longer."""
MESSAGE_BATCH = 8
"""Messages that are in memory at once, as they are stored."""
STEP_SUMMARIES = 16
"""Summaries that it indexes at most."""
MERGED_SHARE = 8
"""An index is merged when one in so many of its entries is new."""
BEFORE_MESSAGES = -1, -1, -1
"""A key before those of all messages."""
SEARCH_IS_OFF = "searching is switched off in this store; `convostore index --on` switches it on"

INSERT_ENTRY_PLACES = Insertion(search_rows, "tree_id", "branch", "seq", "summary", "number")
INSERT_WORDS = "INSERT INTO search_words (rowid, text) VALUES (:number, :text)"
INSERT_NAMES = "INSERT INTO search_parts (rowid, names) VALUES (:number, :text)"
DELETE_SETTING = Statement(delete(settings).where(settings.c.name == bindparam("setting")))
INSERT_SETTING = Statement(insert(settings).values(name=bindparam("of"), value=bindparam("to")))
SET_SETTING = Statement(
    text(
        "INSERT INTO settings (name, value) VALUES (:of, :to)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
)
DELETE_ENTRIES = Statement(delete(search_rows))
COUNT_ENTRIES = Statement(text("SELECT COUNT(*) FROM search_rows"))
COUNT_DOCUMENTS = Statement(
    text("SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM summaries)")
)
HAS_STALE_ENTRIES = (
    "SELECT (SELECT COUNT(*) FROM search_words_docsize) > (SELECT COUNT(*) FROM search_rows)"
)

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
    "the index of searches does not exist, and only the owner of the tables can make it: run "
    "`convostore index` once as the owner; until then searches read all entries"
)


class IndexEntry(NamedTuple):
    """An entry of the index: the place of its document, its number, and its text."""

    tree_id: int
    branch: int
    seq: int
    summary: int
    number: int
    text: str


def has_index(connection: Connection) -> bool:
    """Tell whether the database has the tables or indexes of the index."""
    return cache_statement(get_index_sql(connection).exists).row(connection) is not None


def index_step(connection: Connection) -> bool:
    """Index some messages and summaries; tell whether there were any."""
    sql = get_index_sql(connection)
    if not _is_made(connection):
        if connection.dialect.name != "sqlite" and not OWNS_INDEX["postgresql"].value(connection):
            raise ReadOnly(INDEX_RIGHT_MESSAGE)
        _run_statements(connection, sql.create)
    if connection.dialect.name != "sqlite":
        return _index_older(connection)
    messages = _build_message_entries(connection, _find_new_messages(connection))
    summaries = _build_summary_entries(connection, _find_new_summaries(connection))
    entries = [*messages, *summaries]
    INSERT_ENTRY_PLACES.insert_many(connection, [entry[:-1] for entry in entries])
    for entry in entries:
        words, names = split_cjk(entry.text), extract_name_lines(entry.text)
        number = entry.number
        cache_statement(INSERT_WORDS).run(connection, number=number, text=words)
        if names:
            cache_statement(INSERT_NAMES).run(connection, number=number, text=names)
    return bool(entries)


def _index_older(connection: Connection) -> bool:
    """Write entries that a server lacks: those of messages, then those of summaries.

    A document may be erased after it was found: its tree is locked, and then its text is read.
    """
    reached = GET_SETTING.value(connection, setting=ENTRIES_SETTING)
    if reached == ENTRIES_COMPLETE:
        return False
    after = json.loads(reached) if reached else BEFORE_MESSAGES
    messages = _find_new_messages(connection, after)
    summaries = [] if messages else _find_new_summaries(connection)
    found = messages or summaries
    search_entries.lock_trees_by_number(connection, (place.tree_id for place in found))
    entries = [
        *_build_message_entries(connection, messages),
        *_build_summary_entries(connection, summaries),
    ]
    for entry in entries:
        place = search_entries.EntryPlace(*entry[:4])
        search_entries.add_older_entry(connection, place, entry.text)
    if messages:
        after = (entries or messages)[-1][:3]
    to = json.dumps(after) if found else ENTRIES_COMPLETE
    SET_SETTING.run(connection, of=ENTRIES_SETTING, to=to)
    return bool(found)


def _is_made(connection: Connection) -> bool:
    """Tell whether there is nothing to create for the index."""
    return cache_statement(get_index_sql(connection).is_made).row(connection) is not None


def _run_statements(connection: Connection, statements: Iterable[str]) -> None:
    for each in statements:
        cache_statement(each).run(connection)


def _find_new_messages(
    connection: Connection, after: Sequence[int] = BEFORE_MESSAGES
) -> list[search_entries.EntryPlace]:
    """Return the next messages without an entry; on a server those ``after`` a key."""
    new = build_unindexed_sql(connection)
    query = f"""SELECT m.tree_id, m.branch, m.seq FROM {new.messages}
    WHERE {new.messages_where} AND {new.after} ORDER BY {new.step_order} LIMIT {STEP_MESSAGES}"""
    after_key = dict(zip(PLACE, after, strict=True))
    return [
        search_entries.EntryPlace(*row)
        for row in cache_statement(query).rows(connection, **after_key)
    ]


def _build_message_entries(
    connection: Connection, found: Iterable[search_entries.EntryPlace]
) -> Iterator[IndexEntry]:
    """Yield the entries of messages that still exist, as many as a step makes."""
    newest = cache_statement(get_index_sql(connection).max_number).value(connection)
    number = max(0, newest or 0)
    length, places = 0, iter(found)
    while length <= STEP_LENGTH and (batch := [*islice(places, MESSAGE_BATCH)]):
        messages = load_documents_messages(connection, [place[:3] for place in batch])
        for place in batch:
            if length > STEP_LENGTH:
                return
            if place[:3] in messages:
                content = join_message_texts(messages[place[:3]])
                length += len(content)
                number += 1
                yield IndexEntry(*place, number, content)


def _find_new_summaries(connection: Connection) -> list[search_entries.EntryPlace]:
    """Return the next summaries without an entry."""
    new = build_unindexed_sql(connection)
    query = f"""SELECT s.tree_id, s.branch, s.last, s.summary FROM {new.summaries}
    WHERE {new.summaries_where} ORDER BY s.created_at, s.summary LIMIT {STEP_SUMMARIES}"""
    return [search_entries.EntryPlace(*row) for row in cache_statement(query).rows(connection)]


def _build_summary_entries(
    connection: Connection, found: Iterable[search_entries.EntryPlace]
) -> Iterator[IndexEntry]:
    """Yield the entries of summaries that still exist."""
    newest = cache_statement(get_index_sql(connection).min_number).value(connection)
    keys = {place: (place.tree_id, place.summary) for place in found}
    texts = load_summary_texts(connection, keys.values())
    existing = [place for place, key in keys.items() if key in texts]
    for number, place in enumerate(existing, start=1 - min(0, newest or 0)):
        yield IndexEntry(*place, -number, texts[keys[place]])


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
            is_left = is_left or not _is_made(connection)
        is_left = is_left and is_search_on(connection)
        known = COUNT_ENTRIES.value(connection) if is_left else 0
    is_new = is_left
    while is_left:
        with transactions.writing() as connection:
            is_left = is_search_on(connection) and index_step(connection)
        if progress is not None:
            with transactions.reading() as connection:
                entries = COUNT_ENTRIES.value(connection)
                progress(entries, max(entries, COUNT_DOCUMENTS.value(connection)))
    if is_new:
        _merge_index(transactions, known)


def _merge_index(transactions: Transactions, known: int) -> None:
    """Merge the parts of the index, in steps, if many entries are new."""
    with transactions.reading() as connection:
        entries = COUNT_ENTRIES.value(connection)
        sql = get_index_sql(connection)
        parts = cache_statement(sql.parts).value(connection) if has_index(connection) else 0
    is_many = (entries - known) * MERGED_SHARE >= entries
    while is_many and parts > 1:
        with transactions.writing() as connection:
            _run_statements(connection, sql.merge)
            parts = cache_statement(sql.parts).value(connection)


def clear_index(connection: Connection) -> None:
    """Delete all entries of the index."""
    DELETE_SETTING.run(connection, setting=ENTRIES_SETTING)
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


def _switch_search(connection: Connection, *, on: bool) -> None:
    """Switch searching on or off, when all who write entries have ended; off drops the index."""
    sql = get_index_sql(connection)
    _run_statements(connection, sql.lock)
    for setting in (search_entries.SEARCH_SETTING, ENTRIES_SETTING):
        DELETE_SETTING.run(connection, setting=setting)
    if not on:
        off = search_entries.SEARCH_OFF_VALUE
        INSERT_SETTING.run(connection, of=search_entries.SEARCH_SETTING, to=off)
        DELETE_ENTRIES.run(connection)
        _run_statements(connection, sql.drop)


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
            if on is not None and on != is_search_on(connection):
                _switch_search(connection, on=on)
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
