"""The index, and how it catches up: nothing is written to it when messages are appended.

Its rows have numbers. Those of messages go up from 1 in the order in which they were stored, those
of summaries down from -1, so the newest row tells up to where messages are known, and the first one
up to where summaries are. On a file that is the place of a row in its table; a server has no such
place, and is asked for what has no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from sqlalchemy import Connection, bindparam, delete, insert, select, text

from ..database import Statement, Transactions, search_rows, settings
from ..errors import StoreError
from ..history import stored_calls
from ..messages import Columns, assemble
from ..records import Index
from .engines import Kept, keep, spelling, statement
from .said import in_summary, said

STEP = 256
"""Messages that a search takes into the index at most, before it looks for anything."""
STEP_LENGTH = 256 * 1024
"""Code points that it takes, but for a message that is longer."""
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
_columns = ", ".join(f"m.{name}" for name in Columns._fields)
_message = "r.tree_id = m.tree_id AND r.branch = m.branch AND r.seq = m.seq AND r.summary = 0"
_summary = "r.tree_id = s.tree_id AND r.summary = s.summary"
_file_messages = f"""FROM messages m WHERE m.rowid > COALESCE((
    SELECT m.rowid FROM search_rows r JOIN messages m ON {_message}
    WHERE r.number > 0 ORDER BY r.number DESC LIMIT 1), -1)"""
_file_summaries = f"""FROM summaries s WHERE s.rowid > COALESCE((
    SELECT s.rowid FROM search_rows r JOIN summaries s ON {_summary}
    WHERE r.number < 0 ORDER BY r.number LIMIT 1), -1)"""
_server_messages = f"FROM messages m LEFT JOIN search_rows r ON {_message} WHERE r.tree_id IS NULL"
_server_summaries = (
    "FROM summaries s LEFT JOIN search_rows r ON r.tree_id = s.tree_id AND r.branch = s.branch"
    " AND r.seq = s.last AND r.summary = s.summary WHERE r.tree_id IS NULL"
)
WAITING = {
    "sqlite": (_file_messages, _file_summaries, "rowid"),
    "postgresql": (_server_messages, _server_summaries, "stored_at"),
}
"""What has no row yet: of messages, of summaries; and the order of messages."""


def is_on(connection: Connection) -> bool:
    """Tell whether the store is to be searched."""
    return bool(SET.value(connection, setting=SETTING) != OFF)


def is_made(connection: Connection) -> bool:
    """Tell whether the database has what the index needs."""
    return statement(spelling(connection).is_made).row(connection) is not None


def is_behind(connection: Connection) -> bool:
    """Tell whether there are messages or summaries that have no row."""
    if not is_made(connection):
        return True
    messages, summaries, _ = WAITING[connection.dialect.name]
    asked = (f"SELECT 1 {each} LIMIT 1" for each in (messages, summaries))
    return any(statement(each).row(connection) for each in asked)


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
    messages, _, order = WAITING[connection.dialect.name]
    sql = f"SELECT {_place}, {_columns} {messages} ORDER BY m.{order}, {_place} LIMIT {STEP}"
    last = max(0, _number(connection, spelling(connection).newest))
    length = 0
    for number, row in enumerate(statement(sql).rows(connection), start=last + 1):
        if length > STEP_LENGTH:
            return
        tree_id, branch, seq, *columns = row
        run = {"tree_id": tree_id, "branch": branch, "first": seq, "last": seq}
        words = said(assemble(columns, stored_calls(connection, run).get(seq)))
        length += len(words)
        yield Kept(tree_id, branch, seq, 0, number, words)


def _of_summaries(connection: Connection) -> Iterator[Kept]:
    """Yield the next rows of summaries, as many as a step takes."""
    _, summaries, _ = WAITING[connection.dialect.name]
    sql = f"SELECT {_told} {summaries} ORDER BY s.created_at, s.summary LIMIT {SUMMARIES}"
    first = min(0, _number(connection, spelling(connection).oldest))
    for number, row in enumerate(statement(sql).rows(connection), start=1 - first):
        tree_id, branch, last, summary, title, body = row
        yield Kept(tree_id, branch, last, summary, -number, in_summary(title, body))


def go_on(transactions: Transactions) -> bool:
    """Take a step where nobody is in the way; tell whether the index is still behind.

    Raises StoreError where it is switched off.
    """
    with transactions.reading() as connection:
        _check_on(connection)
        if not is_behind(connection):
            return False
    with suppress(StoreError), transactions.soon() as connection:  # what was there is searched
        if is_on(connection):
            catch_up(connection)
    with transactions.reading() as connection:
        return is_behind(connection)


def _check_on(connection: Connection) -> None:
    if not is_on(connection):
        raise StoreError(IS_OFF)


def empty_dead(connection: Connection) -> None:
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


def bring(transactions: Transactions, *, on: bool | None, anew: bool) -> Index:
    """Switch the index on or off or empty it, as asked; where it is on, let it catch up."""
    with transactions.writing() as connection:
        if on is not None:
            switch(connection, on=on)
        if anew:
            empty(connection)
        is_left = is_on(connection)
    while is_left:
        with transactions.writing() as connection:
            is_left = is_on(connection) and catch_up(connection)
    with transactions.reading() as connection:
        return state(connection)


def refill(transactions: Transactions) -> None:
    """Make the index anew that a purge has emptied."""
    with transactions.reading() as connection:
        is_empty = is_made(connection) and not KNOWN.value(connection)
    if is_empty:
        bring(transactions, on=None, anew=False)
