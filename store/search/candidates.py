"""Which rows of the index may be hits, what was stored last first: lazily; a page costs a page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..history import NO_LIMIT
from .dialects import part_asked, spelling, statement, words_asked
from .documents import AFTER_MESSAGES, OF_MESSAGE, OF_RECORD, Row, message_row, summary_row
from .query import Asked

FIRST = 2_000
"""Rows that are asked for at first; hardly any page needs more."""


class Bound(NamedTuple):
    """The highest place, and the highest number in the index, that rows are asked for of."""

    place: int = NO_LIMIT
    number: int = NO_LIMIT


NOWHERE = Bound()


def bound_of(
    connection: Connection, session: str, branch: int, seq: int, record: int
) -> Bound | None:
    """Return the place of a row, named as a hit names it, and its number; None where it is gone.

    Only in a file numbers are in the order of storing, so that they limit what is read.
    """
    values = {"session": session, "branch": branch, "seq": seq, "record": record}
    spelled = spelling(connection)
    message = f"""SELECT {spelled.message_place}, r.number FROM sessions x
    JOIN messages m ON m.tree_id = x.tree_id AND m.branch = :branch AND m.seq = :seq
    LEFT JOIN search_rows r ON {OF_MESSAGE} AND r.summary = 0 WHERE x.id = :session"""
    summary = f"""SELECT {AFTER_MESSAGES} + {spelled.summary_place}, 0 FROM sessions x
    JOIN compaction_records c ON c.tree_id = x.tree_id AND c.compaction = :record
    JOIN summaries s ON {OF_RECORD} WHERE x.id = :session"""
    found = statement(summary if record else message).row(connection, **values)
    if found is None:
        return None
    place, number = found
    is_file = spelled.message_place == "m.rowid"
    return Bound(place, number if is_file and number is not None else NO_LIMIT)


def in_words(connection: Connection, asked: Asked, bound: Bound) -> Iterator[Row]:
    """Yield what has all the words."""
    spelled = spelling(connection)
    values = {"asked": words_asked(connection.dialect.name, [*asked.terms])}
    numbers = Numbers(spelled.words.format(name="asked"), spelled.row)
    yield from _rows(connection, asked, numbers, values, bound)


def in_names(connection: Connection, asked: Asked, bound: Bound) -> Iterator[Row]:
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
    yield from _rows(connection, asked, numbers, values, bound)


class Numbers(NamedTuple):
    """A query for numbers of the index that ends in a condition, and what it calls the number."""

    query: str
    name: str


def _rows(
    connection: Connection, asked: Asked, numbers: Numbers, values: dict[str, Any], bound: Bound
) -> Iterator[Row]:
    """Yield the rows of numbers: messages, then summaries, each the last stored first."""
    query, name = numbers
    if limits := asked.of.limits:
        values = values | limits
        theirs = f"SELECT r.number FROM search_rows r WHERE true{asked.of.within('r')}"
        query += f" AND +{name} IN ({theirs})"
    sql = f"""SELECT {message_row(connection)} FROM (
    {query} AND {name} > 0 AND {name} <= :number ORDER BY {name} DESC) AS found
    CROSS JOIN search_rows r CROSS JOIN messages m
    WHERE r.number = found.number AND r.summary = 0 AND {OF_MESSAGE}
    AND {spelling(connection).message_place} <= :place
    ORDER BY {_order(connection)} LIMIT :most"""
    seen = 0
    for most in (FIRST, NO_LIMIT):
        found = statement(sql).scan(connection, **values, **bound._asdict(), most=most)
        for row in islice(found, seen, None):
            seen += 1
            yield Row(*row)
        if seen < FIRST:
            break
    sql = f"""SELECT {summary_row(connection)} FROM (
    {query} AND {name} < 0) AS found
    CROSS JOIN search_rows r CROSS JOIN summaries s CROSS JOIN compaction_records c
    WHERE r.number = found.number AND r.summary > 0
    AND s.tree_id = r.tree_id AND s.summary = r.summary AND {OF_RECORD}
    ORDER BY place DESC"""
    yield from map(Row._make, statement(sql).rows(connection, **values))


def _order(connection: Connection) -> str:
    """Return the order of storing: in a file that of numbers, which is read as far as needed."""
    is_file = spelling(connection).message_place == "m.rowid"
    return "found.number DESC" if is_file else "place DESC, seq DESC, branch DESC, tree_id DESC"
