"""The index, and how it catches up: nothing is written to it when messages are appended.

Its rows have numbers. Those of messages go up from 1 in the order in which they were stored, those
of summaries down from -1, so the newest row tells up to where messages are known, and the first one
up to where summaries are. On a file that is the place of a row in its table; a server has no such
place, and is asked for what has no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select, text

from ..database import Statement, Transactions, search_rows, settings
from ..errors import StoreError
from ..records import Index
from .dialects import Kept, keep, spelling, statement
from .documents import messages_at
from .said import in_summary, said
from .scope import Of

STEP = 256
"""Messages that a search takes into the index at most, before it looks for anything."""
STEP_LENGTH = 256 * 1024
"""Code points that it takes, but for a message that is longer."""
CHUNK = 8
"""Messages that are in memory at once, as they are stored."""
SUMMARIES = 16
"""Summaries that it takes."""
OFF = "off"
SETTING = "search"
IS_OFF = "searching is switched off in this store; `convostore index --on` switches it on"

_setting = settings.c.name == bindparam("setting")
SET = Statement(select(settings.c.value).where(_setting))
UNSET = Statement(delete(settings).where(_setting))
SET_TO = Statement(insert(settings).values(name=bindparam("of"), value=bindparam("to")))
FORGET_ALL = Statement(delete(search_rows))
KNOWN = Statement(text("SELECT COUNT(*) FROM search_rows"))
ALL = Statement(text("SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM summaries)"))
DEAD = "SELECT (SELECT COUNT(*) FROM search_words_docsize) > (SELECT COUNT(*) FROM search_rows)"

_place = "m.tree_id, m.branch, m.seq"
_told = "s.tree_id, s.branch, s.last, s.summary, s.title, s.body"
_message = "r.tree_id = m.tree_id AND r.branch = m.branch AND r.seq = m.seq AND r.summary = 0"
_summary = "r.tree_id = s.tree_id AND r.summary = s.summary"


class Waiting(NamedTuple):
    """What has no row yet, of messages ``m`` and of summaries ``s``: where, and in which order."""

    messages: str
    messages_where: str
    order: str
    summaries: str
    summaries_where: str


_FILE = Waiting(
    "messages m",
    f"""+m.rowid > COALESCE((SELECT m.rowid FROM search_rows r JOIN messages m ON {_message}
    WHERE r.number > 0 ORDER BY r.number DESC LIMIT 1), -1)""",
    "rowid",
    "summaries s",
    f"""s.rowid > COALESCE((SELECT s.rowid FROM search_rows r JOIN summaries s ON {_summary}
    WHERE r.number < 0 ORDER BY r.number LIMIT 1), -1)""",
)
_SERVER = Waiting(
    f"messages m LEFT JOIN search_rows r ON {_message}",
    "r.tree_id IS NULL",
    "stored_at",
    f"summaries s LEFT JOIN search_rows r ON {_summary} AND r.branch = s.branch AND r.seq = s.last",
    "r.tree_id IS NULL",
)
WAITING = {"sqlite": _FILE, "postgresql": _SERVER}
ANYBODY = Of()


def waiting(connection: Connection, of: Of = ANYBODY) -> Waiting:
    """Return what of somebody's has no row yet.

    On a file all that is new has the highest places of its table; the sign before such a place lets
    the messages of few trees be found by their trees.
    """
    told = WAITING[connection.dialect.name]
    new = told.messages_where if of.limits else told.messages_where.removeprefix("+")
    return told._replace(
        messages_where=f"{new}{of.within('m')}",
        summaries_where=f"{told.summaries_where}{of.within('s')}",
    )


def is_on(connection: Connection) -> bool:
    """Tell whether the store is to be searched."""
    return bool(SET.value(connection, setting=SETTING) != OFF)


def is_made(connection: Connection) -> bool:
    """Tell whether the database has what the index needs."""
    return statement(spelling(connection).is_made).row(connection) is not None


def is_behind(connection: Connection, of: Of = ANYBODY) -> bool:
    """Tell whether somebody has messages or summaries that have no row."""
    is_file = connection.dialect.name == "sqlite"
    if is_file and of.limits and not is_behind(connection):  # which a file tells at a glance
        return False
    new = waiting(connection, of)
    asked = (
        f"SELECT 1 FROM {new.messages} WHERE {new.messages_where} LIMIT 1",
        f"SELECT 1 FROM {new.summaries} WHERE {new.summaries_where} LIMIT 1",
    )
    return any(statement(each).row(connection, **of.limits) for each in asked)


def catch_up(connection: Connection) -> bool:
    """Take a step: make rows of some messages and summaries; tell whether there were any."""
    spelled = spelling(connection)
    _run(connection, spelled.alone)
    _run(connection, () if is_made(connection) else spelled.make)
    rows = [*_of_messages(connection), *_of_summaries(connection)]
    keep(connection, rows)
    return bool(rows)


def _run(connection: Connection, statements: Iterable[str]) -> None:
    for each in statements:
        statement(each).run(connection)


def _number(connection: Connection, sql: str) -> int:
    return statement(sql).value(connection) or 0


def _of_messages(connection: Connection) -> Iterator[Kept]:
    """Yield the next rows of messages, as many as a step takes."""
    new = waiting(connection)
    order = f"ORDER BY m.{new.order}, m.seq, m.branch, m.tree_id LIMIT {STEP}"
    sql = f"SELECT {_place} FROM {new.messages} WHERE {new.messages_where} {order}"
    number = max(0, _number(connection, spelling(connection).newest))
    length, places = 0, map(tuple, statement(sql).rows(connection))
    while length <= STEP_LENGTH and (chunk := [*islice(places, CHUNK)]):
        messages = messages_at(connection, chunk)
        for place in chunk:
            if length > STEP_LENGTH:
                return
            words = said(messages[place])
            length += len(words)
            number += 1
            tree_id, branch, seq = place
            yield Kept(tree_id, branch, seq, 0, number, words)


def _of_summaries(connection: Connection) -> Iterator[Kept]:
    """Yield the next rows of summaries, as many as a step takes."""
    new = waiting(connection)
    order = f"ORDER BY s.created_at, s.summary LIMIT {SUMMARIES}"
    sql = f"SELECT {_told} FROM {new.summaries} WHERE {new.summaries_where} {order}"
    first = min(0, _number(connection, spelling(connection).oldest))
    for number, row in enumerate(statement(sql).rows(connection), start=1 - first):
        tree_id, branch, last, summary, title, body = row
        yield Kept(tree_id, branch, last, summary, -number, in_summary(title, body))


def take_step(transactions: Transactions) -> None:
    """Take a step where nobody is in the way; else what there is has to do."""
    with suppress(StoreError), transactions.soon() as connection:
        if is_on(connection):
            catch_up(connection)


def check_on(connection: Connection) -> None:
    """Raise StoreError where searching is switched off."""
    if not is_on(connection):
        raise StoreError(IS_OFF)


def empty_stale_index(connection: Connection) -> None:
    """Empty the index of a file where it holds words of what was erased or redacted."""
    is_file = connection.dialect.name == "sqlite"
    if is_file and is_made(connection) and statement(DEAD).value(connection):
        empty(connection)


def empty(connection: Connection) -> None:
    """Take everything out of the index."""
    FORGET_ALL.run(connection)
    _run(connection, spelling(connection).empty if is_made(connection) else ())


def switch(connection: Connection, *, on: bool) -> None:
    """Note whether the store is to be searched; where it is not, drop the index."""
    UNSET.run(connection, setting=SETTING)
    if on:
        return
    SET_TO.run(connection, of=SETTING, to=OFF)
    FORGET_ALL.run(connection)
    _run(connection, spelling(connection).drop)


def state(connection: Connection) -> Index:
    """Return what there is of the index."""
    on, made = is_on(connection), is_made(connection)
    known = KNOWN.value(connection)
    size = _number(connection, spelling(connection).size) if made else 0
    return Index(on, known, ALL.value(connection) - known, size)


def update_index(transactions: Transactions, *, on: bool | None, anew: bool) -> Index:
    """Switch the index on or off or empty it, as asked; where it is on, let it catch up."""
    if on is not None or anew:
        with transactions.writing() as connection:
            if on is not None:
                switch(connection, on=on)
            if anew:
                empty(connection)
    take_all(transactions)
    with transactions.reading() as connection:
        return state(connection)


def take_all(transactions: Transactions) -> None:
    """Let the index catch up, if it is on, in steps between which other writers have their turn."""
    with transactions.reading() as connection:
        is_left = is_on(connection) and is_behind(connection)
    while is_left:
        with transactions.writing() as connection:
            is_left = is_on(connection) and catch_up(connection)


def refill_index(transactions: Transactions) -> None:
    """Make the index anew that a purge has emptied."""
    with transactions.reading() as connection:
        is_empty = is_made(connection) and not KNOWN.value(connection)
    if is_empty:
        take_all(transactions)
