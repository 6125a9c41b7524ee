"""What the index has not taken in yet, looked through so that no search is empty by lateness.

An index that is written lazily is behind whenever it matters most: right after an import, and while
many write. So what is missing in it is read, what was stored last first, of those whose messages
are asked for and nobody else, for as long as a search may take. What is found is judged as the
index would: the words that a text has, or parts of the names in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from sqlalchemy import Connection

from ..database import Transactions
from ..records import Index
from .dialects import statement
from .documents import OF_MESSAGE, OF_RECORD, Row, message_row, summary_row, texts
from .index import is_behind, is_on, take_all, waiting
from .query import Asked
from .scope import Of, Trees
from .scores import IN_NAMES, Found, score
from .snippets import has_term, times
from .terms import Term, folded, names

SECONDS = 0.3
"""What looking through may take of a search."""
CHUNK = 32
"""Messages that are read at once."""
LEAST = 32
"""Messages that are looked at however long it takes: on a busy machine time passes with nothing."""
MOST = 20_000
"""Messages that are listed: more than can be read in that time."""


class Backlog(NamedTuple):
    """What was found in what has no row, and how many messages of it were not looked at."""

    found: list[Found]
    unread: int


NOTHING = Backlog([], 0)


def look_through(connection: Connection, asked: Asked, trees: Trees) -> Backlog:
    """Look through what has no row yet, as long as there is time."""
    if not is_behind(connection, asked.of):
        return NOTHING
    deadline = time.monotonic() + SECONDS
    found: list[Found] = []
    looked, rows = 0, _rows(connection, asked, trees)
    while chunk := [*islice(rows, CHUNK)]:
        said = texts(connection, [row for row in chunk if asked.has_row(row)], asked.tools)
        for row in chunk:
            if looked >= LEAST and time.monotonic() > deadline:
                return Backlog(found, _count(connection, asked.of, trees) - looked)
            looked += 1
            worth = _worth(said[row], asked.terms) if row in said else None
            holder = trees[row.tree_id].holder(row.branch, row.counted)
            if holder and worth is not None:
                found.append(Found(row, holder, worth))
    unread = 0 if looked < MOST else _count(connection, asked.of, trees) - looked
    return Backlog(found, unread)


def _worth(text: str, asked: tuple[Term, ...]) -> float | None:
    """Return the score of a text; None where it is not found by all that is asked for."""
    plain = folded(text)
    if worth := score(plain, asked):
        return worth
    if not all(has_term(plain, term) for term in asked):
        return None
    known = folded(names(text))
    in_names = (term.part is not None and folded(term.part) in known for term in asked)
    either = (times(plain, term) or is_part for term, is_part in zip(asked, in_names, strict=True))
    return IN_NAMES if all(either) else None


def _rows(connection: Connection, asked: Asked, trees: Trees) -> Iterator[Row]:
    """Yield what has no row, of the sessions that are asked for: messages, then summaries."""
    new, limits = waiting(connection, asked.of), asked.of.limits
    order = f"m.{new.order} DESC, m.seq DESC, m.branch DESC, m.tree_id DESC"
    messages = f"""SELECT {message_row(connection)} FROM {new.messages}
    WHERE {new.messages_where} ORDER BY {order} LIMIT {MOST}"""
    rows = map(Row._make, statement(messages).scan(connection, **limits))
    for row in chain(rows, _summaries(connection, asked.of)):
        if trees[row.tree_id].holder(row.branch, row.counted):
            yield row


def _summaries(connection: Connection, of: Of) -> Iterator[Row]:
    """Return the summaries that have no row, the newest first."""
    new = waiting(connection, of)
    sql = f"""SELECT {summary_row(connection)} FROM {new.summaries}
    JOIN compaction_records c ON {OF_RECORD} WHERE {new.summaries_where} ORDER BY place DESC"""
    return map(Row._make, statement(sql).rows(connection, **of.limits))


def _count(connection: Connection, of: Of, trees: Trees) -> int:
    """Return how many messages and summaries `_rows` would yield, if it yielded all."""
    new, limits = waiting(connection, of), of.limits
    known = _summaries(connection, of)
    held = (trees[row.tree_id].holder(row.branch, row.counted) for row in known)
    count = sum(1 for each in held if each)
    messages = f"""SELECT m.tree_id, m.branch, MAX(m.seq), COUNT(*) FROM {new.messages}
    WHERE {new.messages_where} GROUP BY m.tree_id, m.branch"""
    for tree_id, branch, last, new_there in statement(messages).rows(connection, **limits):
        beyond = max(0, last - trees[tree_id].end(branch))
        count += max(0, new_there - beyond)
    return count


def index(transactions: Transactions, *, owner: str | None = None) -> Index:
    """Take all that is not searched yet into the index; return what there is of an owner in it.

    What others have stored before is taken in with it, since the index follows the order of
    storing. Other writers have their turn between its steps. Raises StoreError.
    """
    take_all(transactions)
    of = Of(owner=owner, left=True)
    with transactions.reading() as connection:
        trees = Trees(connection, of)
        known = sum(
            1
            for row in _known(connection, of)
            if trees[row.tree_id].holder(row.branch, row.counted)
        )
        return Index(is_on(connection), known, _count(connection, of, trees), 0)


def _known(connection: Connection, of: Of) -> Iterator[Row]:
    """Yield the rows of the index in the trees of an owner."""
    messages = f"""SELECT {message_row(connection)} FROM search_rows r
    JOIN messages m ON {OF_MESSAGE} WHERE r.summary = 0{of.within("r")}"""
    summaries = f"""SELECT {summary_row(connection)} FROM search_rows r
    JOIN summaries s ON s.tree_id = r.tree_id AND s.summary = r.summary
    JOIN compaction_records c ON {OF_RECORD} WHERE r.summary > 0{of.within("r")}"""
    for sql in (messages, summaries):
        yield from map(Row._make, statement(sql).scan(connection, **of.limits))
