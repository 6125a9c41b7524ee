"""The read-only SQL console: a query that must not be trusted, of a person or of a model.

On SQLite the query runs in a child process that has no more than it needs: the file opened for
reading, an authorizer, limits of memory, time and output (`console`), no open files of the
parent's, no environment. In one process with the host no guard is enough, since a single
instruction of SQLite may run for minutes. PostgreSQL has its own guards: a read-only transaction
and a statement timeout are set here, but what can be seen and called is decided by the role that
the URL names, so give the console one that may do nothing but SELECT.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, Connection, func, select

from ..database import Database, resolved, translated, url_of
from ..errors import InvalidValue, QueryRefused, StoreError, quoted
from ..messages import is_integer
from ..text import is_text
from .console import Refused, Request, header, rows

CONSOLE = Path(__file__).with_name("console.py")
GRACE = 1.0
"""Seconds that the child may take beyond the timeout, to start and to answer; then it is killed."""
AT_ONCE = 16
"""Rows that a server is asked for at once: they are in memory before their size is known."""
LONGEST = 3600.0
"""Seconds that may be asked for."""

NO_QUERY = {"", "SQLITE_ERROR", "SQLITE_RANGE", "SQLITE_MISMATCH"}
"""What SQLite calls the errors of a query itself."""

Value = None | bool | int | float | str
Parameters = Sequence[Value] | Mapping[str, Value]


class QueryResult(NamedTuple):
    """What a query found: names of columns, rows of JSON values, and whether there is more.

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

    Nothing of the store can change. ``parameters`` fill the driver's own placeholders: ``?`` and
    ``:name`` on SQLite, ``%s`` and ``%(name)s`` on PostgreSQL, which takes nothing but a SELECT.
    ``timeout`` is in seconds. Raises QueryRefused for what is not allowed, too long or too large,
    InvalidValue for what is no SQL, other StoreErrors where the store cannot be read.
    """
    _check(sql, limit, timeout)
    request = Request(sql, _plain(parameters), limit, timeout)
    url = url_of(target)
    if url.get_backend_name() == "sqlite":
        return _ask_file(url, request)
    return _ask_server(url, request)


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
    """Return the views for people by name, each with the names of its columns.

    Raises StoreErrors where the store cannot be read.
    """
    listing = VIEWS[url_of(target).get_backend_name()]
    columns = query(target, listing, timeout=LONGEST).rows
    by_view = groupby(columns, key=itemgetter(0))
    return {name: tuple(column for _, column in rows) for name, rows in by_view}


WRITER = """
SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR EXISTS (
  SELECT FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace
    AND relkind IN ('r', 'p')
    AND has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE')))"""


def writing_role(target: str | os.PathLike[str] | URL) -> str | None:
    """Return the role that a server's URL names, if it may change the store; of a file None.

    What such a role may do, a query may do by a function that the server has.
    """
    if url_of(target).get_backend_name() == "sqlite":
        return None
    found = query(target, WRITER, timeout=LONGEST).rows
    return str(found[0][0]) if found else None


def _check(sql: str, limit: int, timeout: float) -> None:
    if not is_text(sql):
        raise InvalidValue("a query is a text without NUL and lone surrogates")
    if type(limit) is not int or limit < 0:
        raise InvalidValue(f"limit is a whole number from 0, not {quoted(limit)}")
    _check_timeout(timeout)


def _check_timeout(timeout: float) -> None:
    if not isinstance(timeout, int | float) or not 0 < timeout <= LONGEST:
        raise InvalidValue(
            f"timeout is in seconds, more than 0 and at most {LONGEST:g}, not {quoted(timeout)}"
        )


def _plain(parameters: Parameters) -> list[Value] | dict[str, Value]:
    """Return parameters as JSON has them. Raises InvalidValue for what is none."""
    if isinstance(parameters, Mapping):
        return {name: _parameter(value) for name, value in parameters.items()}
    if isinstance(parameters, Sequence) and not isinstance(parameters, str):
        return [_parameter(value) for value in parameters]
    kind = type(parameters).__name__
    raise InvalidValue(f"parameters are a list or, for named ones, an object, not {kind}")


def _parameter(value: Value) -> Value:
    if _is_value(value):
        return value
    told = "a parameter is null, a number of 64 bits or a text"
    raise InvalidValue(f"{told}, not {quoted(value)}")


def _is_value(value: object) -> bool:
    """Tell whether a value can be a parameter."""
    if value is None or isinstance(value, bool):
        return True
    return is_integer(value) or is_text(value) or _is_real(value)


def _is_real(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _ask_file(url: URL, request: Request) -> QueryResult:
    path = _existing(url)
    asked = json.dumps({"uri": f"{path.as_uri()}?mode=ro", **request._asdict()})
    return _read(_run_child(asked.encode(), request.timeout), str(path))


def _existing(url: URL) -> Path:
    path = Path(resolved(url))
    if not path.exists():
        raise InvalidValue(f"there is no file {path}; name an existing store")
    return path


def _run_child(request: bytes, timeout: float) -> list[bytes]:
    """Return the lines that the console answered."""
    try:
        done = subprocess.run(  # noqa: S603 - our own file, run by our own interpreter
            [sys.executable, "-I", "-S", str(CONSOLE)],
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout + GRACE,
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


def _read(lines: Sequence[bytes | str], file: str | None = None) -> QueryResult:
    """Return what the console answered. Raises what it complained of."""
    try:
        *answered, last = [json.loads(line) for line in lines]
        if "end" in last:
            return _result(answered, last["end"])
        complaint = _complaint(last)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise QueryRefused(
            "the query ended its process: too much memory or time; narrow it down"
        ) from error
    with translated(file):
        raise complaint


def _result(answered: list[Any], truncated: bool) -> QueryResult:
    first, *others = answered
    return QueryResult(tuple(first["columns"]), [tuple(row) for row in others], truncated)


def _complaint(told: dict[str, str]) -> Exception:
    """Return the last line of an answer that failed as an error."""
    if "refused" in told:
        return QueryRefused(f"the query was refused: {told['refused']}")
    error, code = told["error"], told["code"]
    if code in NO_QUERY:
        return InvalidValue(f"the query cannot be run: {error}")
    return _as_raised(error, code)


def _as_raised(text: str, code: str) -> sqlite3.DatabaseError:
    """Return the error as SQLite raised it in the child."""
    error = sqlite3.DatabaseError(text)
    error.sqlite_errorname = code
    return error


REFUSALS = {
    "25": "PostgreSQL only reads here",  # a write in a read-only transaction
    "0A": "PostgreSQL only reads here",  # a write inside a SELECT
    "42501": "the role is not allowed to",
    "57014": "longer than the timeout",
}
"""What PostgreSQL refuses, by the beginning of its SQLSTATE."""


def _ask_server(url: URL, request: Request) -> QueryResult:
    with closing(Database(url)) as database, database.reading() as connection:
        return _ask(connection, request)


def _ask(connection: Connection, request: Request) -> QueryResult:
    dbapi: Any = connection.dialect.loaded_dbapi
    try:
        return _read(list(_answered(connection, request)))
    except dbapi.Error as error:
        raise _server_error(error) from error
    except Refused as refused:
        raise QueryRefused(f"the query was refused: {refused}") from refused


def _answered(connection: Connection, request: Request) -> Iterator[str]:
    """Yield the lines of an answer, from a cursor on the server.

    It takes no statement but a SELECT.
    """
    deadline = time.monotonic() + request.timeout
    _limit_time(connection, deadline)
    driver: Any = connection.connection.driver_connection
    with driver.cursor(name="console") as cursor:
        cursor.execute(request.sql, request.parameters or None)
        yield header(cursor.description)
        at_once = min(request.limit + 1, AT_ONCE)
        yield from rows(_fetched(connection, cursor, at_once, deadline), request.limit)


def _fetched(
    connection: Connection,
    cursor: Any,
    count: int,
    deadline: float,
) -> Iterator[Sequence[Any]]:
    """Yield rows as they are asked for.

    Whatever time a row allows to those that follow, they get what is left.
    """
    while some := cursor.fetchmany(count):
        yield from some
        _limit_time(connection, deadline)


def _limit_time(connection: Connection, deadline: float) -> None:
    left = f"{_milliseconds_until(deadline)}ms"
    connection.execute(select(func.set_config("statement_timeout", left, True)))


def _milliseconds_until(deadline: float) -> int:
    """Return the time that is left, at least 1: 0 would be no limit."""
    seconds = deadline - time.monotonic()
    return max(1, math.ceil(seconds * 1000))


def _server_error(error: Exception) -> StoreError:
    state = getattr(error, "sqlstate", None) or ""
    text = " ".join(str(error).split())
    for beginning, reason in REFUSALS.items():
        if state.startswith(beginning):
            return QueryRefused(f"the query was refused: {reason} ({text})")
    return InvalidValue(f"the query cannot be run: {text}")
