"""The read-only SQL console, for an untrusted query of a person or a model.

On SQLite the query runs in a child process (`console`) with only the necessary means: the file
opened for reading, an authorizer, limits of memory, time and output, none of the parent's open
files, and no environment. Guards in the host's own process are not enough, since a single
instruction of SQLite may run for minutes. On PostgreSQL a read-only transaction and a statement
timeout are set here, but the role of the URL decides which tables can be read and which functions
can be called, so give the console a role with no other right than SELECT.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from difflib import get_close_matches
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, Connection, func, select

from ..database import (
    Database,
    build_read_only_uri,
    is_write_protected,
    parse_url,
    resolve_path,
    translate_driver_errors,
)
from ..errors import InvalidValue, QueryRefused, StoreError, quote_value
from ..messages import is_integer
from ..text import is_text
from .console import ConsoleRequest, RefusedStatement, encode_rows, write_header

CONSOLE_FILE = Path(__file__).with_name("console.py")
CHILD_GRACE = 1.0
"""Seconds after the timeout until the child is killed, for its start and its answer."""
FETCHED_ROWS = 16
"""Rows per fetch from a server: they are in memory before their size is known."""
LONGEST_TIMEOUT = 3600.0
"""The longest timeout in seconds."""

QUERY_ERRORS = {"", "SQLITE_ERROR", "SQLITE_RANGE", "SQLITE_MISMATCH"}
"""The names that SQLite gives to errors of a query itself."""

Parameter = None | bool | int | float | str
Parameters = Sequence[Parameter] | Mapping[str, Parameter]


class QueryResult(NamedTuple):
    """The result of a query: names of columns, rows of JSON values, and whether there is more.

    Bytes are ``{"hex": …}``. Rows end at the limit of rows or at 16 MiB, whichever comes first.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool


def query(
    target: str | os.PathLike[str] | URL,
    sql: str,
    *,
    parameters: Parameters = (),
    limit: int = 1000,
    timeout: float = 2.0,
) -> QueryResult:
    """Run one reading statement on a store and return at most ``limit`` rows.

    The store cannot change. ``parameters`` fill the driver's own placeholders: ``?`` and
    ``:name`` on SQLite, ``%s`` and ``%(name)s`` on PostgreSQL, which accepts only a SELECT.
    ``timeout`` is in seconds. Raises QueryRefused for a query that is not allowed, too long or too
    large, InvalidValue for invalid SQL, and other StoreErrors if the store cannot be read.
    """
    if not is_text(sql):
        raise InvalidValue("a query must be a text without NUL and lone surrogates")
    if type(limit) is not int or limit < 0:
        raise InvalidValue(f"limit must be a whole number from 0, not {quote_value(limit)}")
    if not isinstance(timeout, int | float) or not 0 < timeout <= LONGEST_TIMEOUT:
        longest = f"at most {LONGEST_TIMEOUT:g}"
        raise InvalidValue(
            f"timeout must be in seconds, more than 0 and {longest}, not {quote_value(timeout)}"
        )
    request = ConsoleRequest(sql, _check_parameters(parameters), limit, timeout)
    url = parse_url(target)
    try:
        return _query_store(url, request)
    except InvalidValue as problem:
        unknown = MISSING_NAME.search(str(problem))
        if not unknown:
            raise
        advice = _find_near_names(url, {*WORDS.findall(sql)}, *unknown.groups())
        raise InvalidValue(f"{problem}; {advice}") from problem.__cause__


def _query_store(url: URL, request: ConsoleRequest) -> QueryResult:
    """Run a query in a child process, or on the server."""
    if url.get_backend_name() != "sqlite":
        with closing(Database(url)) as database, database.reading() as connection:
            return _query_server(connection, request)
    path = Path(resolve_path(url))
    if not path.exists():
        raise InvalidValue(f"there is no file {path}; name an existing store")
    is_protected = is_write_protected(url)
    uri = build_read_only_uri(str(path)) if is_protected else f"{path.as_uri()}?mode=ro"
    message = json.dumps({"uri": uri, **request._asdict()})
    return _parse_answer(_run_console(message.encode(), request.timeout), str(path))


MISSING_NAME = re.compile(
    r"no such (table|column): (\S+)|(?<=: )(relation|column) \"?([^\s\"]+)\"? does not exist"
)
"""The engines' error for a missing name: its kind, and the name."""
WORDS = re.compile(r"\w+")
CLOSE, ALIKE = 0.8, 0.6
"""How much of two names is the same: where a table goes before a view, and at least."""
TABLE_COLUMNS = {
    "sqlite": """
SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY m.rowid, c.cid""",
    "postgresql": """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position""",
}


def _find_near_names(url: URL, words: set[str], *said: str | None) -> str:
    """Return the name of a table or column that is like one that is not there.

    Columns of views that are among the words of the query come first.
    """
    what, name = filter(None, said)
    rows = query(url, TABLE_COLUMNS[url.get_backend_name()], timeout=LONGEST_TIMEOUT).rows
    tables = {
        table: tuple(column for _, column in held) for table, held in groupby(rows, itemgetter(0))
    }
    seen = views(url)
    used = {name: seen[name] for name in seen if name in words and what == "column"}
    stages = ((used, ALIKE), (seen | tables, CLOSE), (seen, ALIKE), (tables, ALIKE))
    for columns, likeness in stages:
        owners: dict[str, list[str]] = {}
        for table in columns:
            for known in columns[table] if what == "column" else (table,):
                owners.setdefault(known, []).append(table)
        for near in get_close_matches(name.rpartition(".")[2].lower(), owners, 1, likeness):
            of = f", of {', '.join(owners[near])}" if what == "column" else ""
            return f"did you mean {near!r}{of}?"
    return "`convostore sql` lists the views and their columns"


VIEWS = {
    "sqlite": """
SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
WHERE m.type = 'view' ORDER BY m.rowid, c.cid""",
    "postgresql": """
SELECT c.table_name, c.column_name FROM information_schema.columns c
JOIN information_schema.views v USING (table_schema, table_name)
WHERE c.table_schema = current_schema() ORDER BY c.table_name, c.ordinal_position""",
}


def views(target: str | os.PathLike[str] | URL) -> dict[str, tuple[str, ...]]:
    """Return the views for people by name, with the names of their columns.

    Raises StoreErrors if the store cannot be read.
    """
    listing = VIEWS[parse_url(target).get_backend_name()]
    columns = query(target, listing, timeout=LONGEST_TIMEOUT).rows
    by_view = groupby(columns, key=itemgetter(0))
    return {name: tuple(column for _, column in rows) for name, rows in by_view}


WRITING_ROLE = """
SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR EXISTS (
  SELECT FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace
    AND relkind IN ('r', 'p')
    AND has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE')))"""


def writing_role(target: str | os.PathLike[str] | URL) -> str | None:
    """Return the role of a server's URL if it may change the store; None for a file.

    By calling a function of the server, a query can do anything that such a role may do.
    """
    if parse_url(target).get_backend_name() == "sqlite":
        return None
    found = query(target, WRITING_ROLE, timeout=LONGEST_TIMEOUT).rows
    return str(found[0][0]) if found else None


def _check_parameters(parameters: Parameters) -> list[Parameter] | dict[str, Parameter]:
    """Convert parameters to JSON values. Raises InvalidValue for other values."""
    is_named = isinstance(parameters, Mapping)
    if not is_named and (not isinstance(parameters, Sequence) or isinstance(parameters, str)):
        kind = type(parameters).__name__
        raise InvalidValue(f"parameters must be a list or, for named ones, an object, not {kind}")
    for value in parameters.values() if isinstance(parameters, Mapping) else parameters:
        is_real = isinstance(value, float) and math.isfinite(value)
        is_plain = value is None or isinstance(value, bool) or is_integer(value) or is_text(value)
        if not (is_plain or is_real):
            valid = "a parameter is null, a number of 64 bits or a text"
            raise InvalidValue(f"{valid}, not {quote_value(value)}")
    return dict(parameters) if isinstance(parameters, Mapping) else list(parameters)


def _run_console(request: bytes, timeout: float) -> list[bytes]:
    """Run the console as a child process; return the lines of its answer."""
    try:
        done = subprocess.run(  # noqa: S603 - our own file, run by our own interpreter
            [sys.executable, "-I", "-S", str(CONSOLE_FILE)],
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout + CHILD_GRACE,
            check=False,
            close_fds=True,
            cwd=os.sep,
            env={},
        )
    except subprocess.TimeoutExpired as error:
        raise QueryRefused(
            f"the query was stopped: longer than {timeout:g} s; narrow it down"
        ) from error
    except OSError as error:
        raise StoreError(f"the console cannot be started: {error.strerror}") from error
    return done.stdout.splitlines()


def _parse_answer(lines: Sequence[bytes | str], file: str | None = None) -> QueryResult:
    """Return the result in the console's answer. Raises the error that it reports."""
    try:
        *answer, last = [json.loads(line) for line in lines]
        if "end" in last:
            header, *rows = answer
            return QueryResult(tuple(header["columns"]), [tuple(row) for row in rows], last["end"])
        error = _parse_error(last)
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise QueryRefused(
            "the query used too much memory or time, and its process ended; narrow it down"
        ) from problem
    with translate_driver_errors(file):
        raise error


def _parse_error(report: dict[str, str]) -> Exception:
    """Return the error that the last line of an answer reports."""
    if "refused" in report:
        return QueryRefused(f"the query was refused: {report['refused']}")
    message, code = report["error"], report["code"]
    if code in QUERY_ERRORS:
        return InvalidValue(f"the query cannot be run: {message}")
    error = sqlite3.DatabaseError(message)  # as SQLite raised it in the child
    error.sqlite_errorname = code
    return error


REFUSALS = {
    "25": "PostgreSQL only reads here",  # a write in a read-only transaction
    "0A": "PostgreSQL only reads here",  # a write inside a SELECT
    "42501": "the role is not allowed to",
    "57014": "longer than the timeout",
}
"""The reasons of PostgreSQL's refusals, by the beginning of their SQLSTATE."""


def _query_server(connection: Connection, request: ConsoleRequest) -> QueryResult:
    """Run a query on a server. Raises QueryRefused, InvalidValue."""
    dbapi: Any = connection.dialect.loaded_dbapi
    try:
        return _parse_answer(list(_answer_from_server(connection, request)))
    except RefusedStatement as refused:
        raise QueryRefused(f"the query was refused: {refused}") from refused
    except dbapi.Error as error:
        state = getattr(error, "sqlstate", None) or ""
        text = " ".join(str(error).split())
        for beginning, reason in REFUSALS.items():
            if state.startswith(beginning):
                raise QueryRefused(f"the query was refused: {reason} ({text})") from error
        raise InvalidValue(f"the query cannot be run: {text}") from error


def _answer_from_server(connection: Connection, request: ConsoleRequest) -> Iterator[str]:
    """Yield the lines of an answer, from a cursor on the server, which takes only a SELECT."""
    deadline = time.monotonic() + request.timeout
    _limit_statement_time(connection, deadline)
    driver: Any = connection.connection.driver_connection
    with driver.cursor(name="console") as cursor:
        cursor.execute(request.sql, request.parameters or None)
        yield write_header(cursor.description)
        batch = min(request.limit + 1, FETCHED_ROWS)
        yield from encode_rows(_fetch_rows(connection, cursor, batch, deadline), request.limit)


def _fetch_rows(
    connection: Connection,
    cursor: Any,
    batch: int,
    deadline: float,
) -> Iterator[Sequence[Any]]:
    """Yield rows on demand; each fetch has the time that is left until the deadline."""
    while some := cursor.fetchmany(batch):
        yield from some
        _limit_statement_time(connection, deadline)


def _limit_statement_time(connection: Connection, deadline: float) -> None:
    left = deadline - time.monotonic()
    milliseconds = max(1, math.ceil(left * 1000))  # 0 would be no limit
    connection.execute(select(func.set_config("statement_timeout", f"{milliseconds}ms", True)))
