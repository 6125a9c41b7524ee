"""Which rows of the index may be hits, what was stored last first: lazily; a page costs a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection

from .asked import Asked
from .engines import part_asked, spelling, statement, words_asked
from .rows import AFTER_MESSAGES, MESSAGE, OF_MESSAGE, OF_RECORD, SUMMARY, Row

_NUMBER = (
    "SELECT r.number, r.summary FROM sessions s JOIN search_rows r ON r.tree_id = s.tree_id"
    " AND r.branch = :branch AND r.seq = :seq AND r.summary = COALESCE((SELECT c.summary"
    " FROM compaction_records c WHERE c.tree_id = s.tree_id AND c.compaction = :record), 0)"
    " WHERE s.id = :session"
)


def place_of(
    connection: Connection, session: str, branch: int, seq: int, record: int
) -> int | None:
    """Return the place of a row, named as a hit names it; None where the index has it not."""
    values = {"session": session, "branch": branch, "seq": seq, "record": record}
    found = statement(_NUMBER).row(connection, **values)
    if found is None:
        return None
    number, summary = found
    return int(AFTER_MESSAGES - number if summary else number)


def in_words(connection: Connection, asked: Asked, below: int) -> Iterator[Row]:
    """Yield what has all the words and a place below another one."""
    spelled = spelling(connection)
    values = {"asked": words_asked(connection.dialect.name, [*asked.terms])}
    numbers = Numbers(spelled.words.format(name="asked"), spelled.row)
    yield from _rows(connection, asked, numbers, values, below)


def in_names(connection: Connection, asked: Asked, below: int) -> Iterator[Row]:
    """Yield what has every term as words or in a name, and is none that `in_words` yields."""
    if not any(term.part for term in asked.terms):
        return
    dialect, spelled = connection.dialect.name, spelling(connection)
    values = {"asked": words_asked(dialect, [*asked.terms])}
    words = spelled.words.format(name="asked")
    either = []
    for number, term in enumerate(asked.terms):
        queries = [spelled.words.format(name=f"word{number}")]
        values[f"word{number}"] = words_asked(dialect, [term])
        if term.part:
            queries.append(spelled.parts.format(name=f"part{number}"))
            values[f"part{number}"] = part_asked(dialect, term.part)
        either.append(f"SELECT number FROM ({' UNION '.join(queries)}) AS of{number}")
    if len(either) == 1:  # one term is looked for as far as a page needs it
        is_new = f"+{spelled.row} NOT IN (SELECT number FROM ({words}) AS said)"
        numbers = Numbers(f"{spelled.parts.format(name='part0')} AND {is_new}", spelled.row)
        del values["word0"]
    else:
        both = f"{' INTERSECT '.join(either)} EXCEPT {words}"
        numbers = Numbers(f"SELECT number FROM ({both}) AS named WHERE true", "number")
    yield from _rows(connection, asked, numbers, values, below)


class Numbers(NamedTuple):
    """A query for numbers of the index that ends in a condition, and what it calls the number."""

    query: str
    name: str


def _rows(
    connection: Connection, asked: Asked, numbers: Numbers, values: dict[str, Any], below: int
) -> Iterator[Row]:
    """Yield the rows of numbers: messages, then summaries, each the last stored first."""
    query, name = numbers
    if limits := asked.of.limits:
        values = values | limits
        theirs = f"SELECT r.number FROM search_rows r WHERE true{asked.of.within('r')}"
        query += f" AND +{name} IN ({theirs})"
    sql = f"""SELECT found.number, {MESSAGE} FROM (
    {query} AND {name} > 0 AND {name} < :below ORDER BY {name} DESC) AS found
    CROSS JOIN search_rows r CROSS JOIN messages m
    WHERE r.number = found.number AND r.summary = 0 AND {OF_MESSAGE}
    ORDER BY found.number DESC"""
    yield from map(Row._make, statement(sql).scan(connection, **values, below=below))
    sql = f"""SELECT {AFTER_MESSAGES} - r.number AS place, {SUMMARY} FROM (
    {query} AND {name} < 0) AS found
    CROSS JOIN search_rows r CROSS JOIN summaries s CROSS JOIN compaction_records c
    WHERE r.number = found.number AND r.summary > 0
    AND s.tree_id = r.tree_id AND s.summary = r.summary AND {OF_RECORD}
    ORDER BY place DESC"""
    rows = map(Row._make, statement(sql).rows(connection, **values))
    yield from (row for row in rows if row.place < below)
