"""The backlog: messages that are not indexed yet, searched so that late indexing hides no hit.

A lazily written index lags when it matters most: right after an import, and while many processes
write. So its missing messages are read, the last stored first, only those of the searched
sessions, and within the time limit of a search. They match by the same rules as in the index: by
the words of a text, or by parts of the names in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from sqlalchemy import Connection

from ..database import Transactions
from ..records import Index
from .dialects import cache_statement
from .documents import (
    MESSAGE_CONDITION,
    RECORD_CONDITION,
    Document,
    list_message_columns,
    list_summary_columns,
    load_texts,
)
from .index import build_unindexed_sql, index_all, is_index_behind, is_search_on
from .query import NAME_SCORE, Match, Query, score_text
from .scope import Scope, SearchedTrees
from .terms import Term, count_term, extract_name_lines, fold_text, has_term

BACKLOG_SECONDS = 0.3
"""The seconds of a search that the backlog may take."""
BACKLOG_BATCH = 32
"""Messages that are read at once."""
LEAST_READ = 32
"""Messages that are read regardless of the time, which may pass without progress when busy."""
MOST_LISTED = 20_000
"""Messages that are listed: more than can be read in that time."""


class BacklogResult(NamedTuple):
    """The matches in the backlog, and how many messages of it were not read."""

    matches: list[Match]
    unread: int


def search_backlog(connection: Connection, query: Query, trees: SearchedTrees) -> BacklogResult:
    """Search the documents without an entry in the index, as long as there is time."""
    matches: list[Match] = []
    if not is_index_behind(connection, query.scope):
        return BacklogResult(matches, 0)
    deadline = time.monotonic() + BACKLOG_SECONDS
    count, documents = 0, _list_unindexed(connection, query.scope, trees)
    while batch := [*islice(documents, BACKLOG_BATCH)]:
        wanted = [document for document in batch if query.has_document(document)]
        texts = load_texts(connection, wanted, query.tools)
        for document in batch:
            if count >= LEAST_READ and time.monotonic() > deadline:
                unread = _count_unindexed(connection, query.scope, trees) - count
                return BacklogResult(matches, unread)
            count += 1
            text = texts.get(document)
            score = None if text is None else _score_unindexed(text, query.terms)
            holder = trees[document.tree_id].find_holder(document.branch, document.origin)
            if holder and score is not None:
                matches.append(Match(document, holder, score))
    is_complete = count < MOST_LISTED
    unread = 0 if is_complete else _count_unindexed(connection, query.scope, trees) - count
    return BacklogResult(matches, unread)


def _score_unindexed(text: str, terms: tuple[Term, ...]) -> float | None:
    """Return the score of a text; None if the index would not find it by all terms."""
    folded = fold_text(text)
    if score := score_text(folded, terms):
        return score
    if not all(has_term(folded, term) for term in terms):
        return None
    names = fold_text(extract_name_lines(text))
    for term in terms:
        is_in_name = term.name_part is not None and fold_text(term.name_part) in names
        if not (is_in_name or count_term(folded, term)):
            return None
    return NAME_SCORE


def _list_unindexed(
    connection: Connection, scope: Scope, trees: SearchedTrees
) -> Iterator[Document]:
    """Yield the documents of a scope without an entry: messages, then summaries."""
    new = build_unindexed_sql(connection, scope)
    query = f"""SELECT {list_message_columns(connection)} FROM {new.messages}
    WHERE {new.messages_where}
    ORDER BY m.{new.order} DESC, m.seq DESC, m.branch DESC, m.tree_id DESC LIMIT {MOST_LISTED}"""
    rows = cache_statement(query).scan(connection, **scope.parameters)
    messages = map(Document._make, rows)
    for document in chain(messages, _list_unindexed_summaries(connection, scope)):
        if trees[document.tree_id].find_holder(document.branch, document.origin):
            yield document


def _list_unindexed_summaries(connection: Connection, scope: Scope) -> Iterator[Document]:
    """Return the summaries without an entry, the newest first."""
    new = build_unindexed_sql(connection, scope)
    query = f"""SELECT {list_summary_columns(connection)} FROM {new.summaries}
    JOIN compaction_records c ON {RECORD_CONDITION}
    WHERE {new.summaries_where} ORDER BY place DESC"""
    rows = cache_statement(query).rows(connection, **scope.parameters)
    return map(Document._make, rows)


def _count_unindexed(connection: Connection, scope: Scope, trees: SearchedTrees) -> int:
    """Return how many documents `_list_unindexed` would yield if it yielded all."""
    new = build_unindexed_sql(connection, scope)
    count = 0
    for document in _list_unindexed_summaries(connection, scope):
        if trees[document.tree_id].find_holder(document.branch, document.origin):
            count += 1
    query = f"""SELECT m.tree_id, m.branch, MAX(m.seq), COUNT(*) FROM {new.messages}
    WHERE {new.messages_where} GROUP BY m.tree_id, m.branch"""
    for tree_id, branch, last, messages in cache_statement(query).rows(
        connection, **scope.parameters
    ):
        beyond = max(0, last - trees[tree_id].last_position(branch))
        count += max(0, messages - beyond)
    return count


def index(transactions: Transactions, *, owner: str | None = None) -> Index:
    """Index all documents that are not indexed yet; return the state of an owner's index.

    The documents of other owners are indexed too, since the index follows the order of storing.
    Other writers can write between the steps. Raises StoreError.
    """
    index_all(transactions)
    scope = Scope(owner=owner, left=True)
    with transactions.reading() as connection:
        trees = SearchedTrees(connection, scope)
        messages = f"""SELECT {list_message_columns(connection)} FROM search_rows r
        JOIN messages m ON {MESSAGE_CONDITION} WHERE r.summary = 0{scope.tree_condition("r")}"""
        summaries = f"""SELECT {list_summary_columns(connection)} FROM search_rows r
        JOIN summaries s ON s.tree_id = r.tree_id AND s.summary = r.summary
        JOIN compaction_records c ON {RECORD_CONDITION}
        WHERE r.summary > 0{scope.tree_condition("r")}"""
        entries = 0
        for query in (messages, summaries):
            for row in cache_statement(query).scan(connection, **scope.parameters):
                document = Document._make(row)
                if trees[document.tree_id].find_holder(document.branch, document.origin):
                    entries += 1
        unindexed = _count_unindexed(connection, scope, trees)
        return Index(is_search_on(connection), entries, unindexed, 0)
