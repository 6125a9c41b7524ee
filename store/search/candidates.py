"""Which rows of the index may be hits, by their numbers: lazily, so that a page costs a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from ..history import NEVER
from .asked import Asked
from .engines import part_asked, spelling, statement, words_asked
from .holders import Of
from .terms import Term

RANKED = 5_000
"""Messages that are ranked at most; where more have the words, the newest come first."""
BEST = 128
"""Of those the best are looked for alone, before all of them are sorted."""
IN_NAMES = 0.0
"""The score of what has a word in a name only."""
UNRANKED = 1.0
"""The score of what has the words, where nothing is ranked."""

Candidate = tuple[int, float]
"""A number of the index, and its score."""
_WITHIN = {
    "tree": "SELECT number FROM search_rows WHERE tree_id = :tree",
    "owner": "SELECT r.number FROM sessions s JOIN search_rows r ON r.tree_id = s.tree_id"
    " WHERE s.owner = :owner",
}
"""The numbers that a search is limited to, by what it is limited by."""


def in_words(connection: Connection, asked: Asked) -> Iterator[Candidate]:
    """Yield what has all the words, behind the last hit already seen."""
    after = asked.after
    if after is not None and after.score <= IN_NAMES:
        return
    words = words_asked(connection.dialect.name, [*asked.terms])
    values = {"asked": words, **_limits(asked.of)}
    ordered = _ranked if _is_ranked(connection, asked, values) else _newest
    for number, score in ordered(connection, asked, values):
        if after is None or after.number == 0 or (score, number) < (after.score, after.number):
            yield number, float(score)


def _is_ranked(connection: Connection, asked: Asked, values: dict[str, Any]) -> bool:
    """Tell whether the order is that of the score: it is asked for, and few enough are scored."""
    if asked.order != "best":
        return False
    words = _words(connection, Of())
    sql = f"SELECT COUNT(*) FROM ({words} LIMIT {RANKED + 1}) AS counted"
    return bool(statement(sql).value(connection, **values) <= RANKED)


def _ranked(connection: Connection, asked: Asked, values: dict[str, Any]) -> Iterator[Any]:
    """Yield the best few, which need not all be sorted; then, if more are asked for, the others."""
    scored = spelling(connection).score.format(name="asked")
    sql = f"{_words(connection, asked.of, scored)} ORDER BY score DESC, number DESC"
    yield from statement(f"{sql} LIMIT {BEST}").rows(connection, **values)
    yield from statement(f"{sql} LIMIT {RANKED} OFFSET {BEST}").scan(connection, **values)


def _newest(connection: Connection, asked: Asked, values: dict[str, Any]) -> Any:
    row = spelling(connection).row
    words = _words(connection, asked.of, f", {UNRANKED} AS score")
    sql = f"{words} AND {row} <= :below ORDER BY {row} DESC"
    return statement(sql).scan(connection, **values, below=_below(asked))


def _below(asked: Asked) -> int:
    """Return the number up to which rows are asked for."""
    return asked.after.number if asked.after and asked.after.number else NEVER


def _words(connection: Connection, of: Of, score: str = "", name: str = "asked") -> str:
    """Return the query for the rows that have what is bound to a name as words."""
    spelled = spelling(connection)
    return spelled.words.format(score=score, name=name) + _within(spelled.row, of)


def _within(row: str, of: Of) -> str:
    """Return the condition that rows are among those that are asked for; `+` uses no index."""
    return "".join(f" AND +{row} IN ({_WITHIN[name]})" for name in _limits(of))


def _limits(of: Of) -> dict[str, Any]:
    """Return what a search is limited to."""
    known = {"tree": of.tree, "owner": of.owner}
    return {name: value for name, value in known.items() if value is not None}


def in_names(connection: Connection, asked: Asked) -> Iterator[Candidate]:
    """Yield what has every term as words or in a name, newest first; not what `in_words` yields."""
    if not any(term.part for term in asked.terms):
        return
    begun = asked.after is None or asked.after.score > IN_NAMES
    dialect = connection.dialect.name
    values = {
        **_limits(asked.of),
        "asked": words_asked(dialect, [*asked.terms]),
        "below": NEVER if begun else _below(asked),
    }
    for place, term in enumerate(asked.terms):
        values |= _values(dialect, place, term)
    sql = _one_in_names if len(asked.terms) == 1 else _all_in_names
    for (number,) in statement(sql(connection, asked)).scan(connection, **values):
        yield number, IN_NAMES


def _one_in_names(connection: Connection, asked: Asked) -> str:
    """Return the query for what has the only term in a name; read as far as a page needs it."""
    row = spelling(connection).row
    words = f"SELECT number FROM ({_words(connection, asked.of)}) AS said"
    in_part = f"{_parts(connection, asked.of, 0)} AND {row} < :below"
    return f"{in_part} AND +{row} NOT IN ({words}) ORDER BY {row} DESC"


def _all_in_names(connection: Connection, asked: Asked) -> str:
    """Return the query for what has each of several terms as a word, or in a name."""
    terms = enumerate(asked.terms)
    either = (_either(connection, asked.of, place, term) for place, term in terms)
    found = " INTERSECT ".join(either) + f" EXCEPT {_words(connection, asked.of)}"
    return f"SELECT number FROM ({found}) AS found WHERE number < :below ORDER BY number DESC"


def _either(connection: Connection, of: Of, place: int, term: Term) -> str:
    """Return the query for what has a term as a word, or in a name."""
    queries = [_words(connection, of, name=f"word{place}")]
    if term.part:
        queries.append(_parts(connection, of, place))
    return f"SELECT number FROM ({' UNION '.join(queries)}) AS of{place}"


def _parts(connection: Connection, of: Of, place: int) -> str:
    """Return the query for what has the part in a name that is bound for a term."""
    spelled = spelling(connection)
    return spelled.parts.format(name=f"part{place}") + _within(spelled.row, of)


def _values(dialect: str, place: int, term: Term) -> dict[str, str]:
    values = {f"word{place}": words_asked(dialect, [term])}
    if term.part:
        values[f"part{place}"] = part_asked(dialect, term.part)
    return values
