"""The child process of the read-only console: a program that runs one untrusted SELECT on a file.

It is run by its path (``python -I -S console.py``), so it imports only the standard library, and
starts in 20 ms and in 15 MB. It reads one JSON object from stdin: ``uri`` of the
file, ``sql``, ``parameters``, ``limit`` (rows), ``timeout`` (seconds). JSON lines go out:
``{"columns"}``, then a list for each row, then ``{"end"}`` (were rows left out?), ``{"refused"}``
(why) or ``{"error", "code"}`` (what SQLite said).

Each guard covers a gap of the others. The authorizer lets the statement only read the tables of
this file; limits and a heap cap keep values and sorts small; the progress callback ends loops at
the deadline; a single instruction that never returns ends at the limit of CPU time, unless the
parent kills the process earlier.
"""

from __future__ import annotations

import json
import math
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

if sys.platform != "win32":  # Windows has only the heap cap and the parent's timeout
    import resource

MEBIBYTE = 1024 * 1024
ADDRESS_SPACE = 512 * MEBIBYTE
HEAP = 320 * MEBIBYTE
"""The part for SQLite, sorts and temporary tables included: no file is written for them."""
WRITTEN_FILE = 4 * MEBIBYTE
"""Room for the index of a write-ahead log, which even a reader must create; too small for abuse."""
OUTPUT_LIMIT = 16 * MEBIBYTE
"""Bytes of all answered rows as JSON."""
RESOURCES = {
    "AS": ADDRESS_SPACE,
    "FSIZE": WRITTEN_FILE,
    "CORE": 0,
}
"""The limits of this process, by the system's names; CPU time comes from the timeout."""

LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 68 * MEBIBYTE,  # a row with the largest message a store takes
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

_LONGEST_VALUE = LIMITS[sqlite3.SQLITE_LIMIT_LENGTH] // MEBIBYTE
LIMIT_PROBLEMS = {
    "SQLITE_NOMEM": f"more memory than {HEAP // MEBIBYTE} MiB; "
    "select fewer rows or narrower columns",
    "SQLITE_INTERRUPT": "longer than {timeout:g} s; narrow it down, or allow more time",
    "SQLITE_TOOBIG": f"a value beyond {_LONGEST_VALUE} MiB, or too long a query",
}
"""The texts of exceeded limits, by SQLite's name of the error."""
ALLOWED_READS = "the console reads the tables and views of the store, nothing else"
FUNCTION_PROBLEM = (
    "the function {}() is none of those that the console knows, which neither load code nor make "
    "values of any size; texts are joined with ||, numbers rounded with round()"
)

GUARD_PRAGMAS = (
    f"PRAGMA hard_heap_limit = {HEAP}",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA mmap_size = 0",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA query_only = ON",
)

TABLE_PRAGMAS = {"table_info", "table_xinfo", "index_list", "index_info", "foreign_key_list"}
"""Pragmas that describe the schema and change nothing."""

TABLE_FUNCTIONS = {"json_each", "json_tree", *(f"pragma_{name}" for name in TABLE_PRAGMAS)}
FIRST_USES = [f"SELECT * FROM {name} LIMIT 0" for name in TABLE_FUNCTIONS]  # noqa: S608
"""Run before the authorizer is set, because it takes the first use of a function for a write."""
READABLE_NAMES = {"sqlite_master", *TABLE_FUNCTIONS}
"""Names that can be read in any file, besides its own tables and views."""

_FUNCTIONS = """
-> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling changes char coalesce concat
concat_ws cos cosh count cume_dist current_date current_time current_timestamp date datetime degrees
dense_rank exp first_value floor glob group_concat hex highlight if ifnull iif instr json json_array
json_array_length json_error_position json_extract json_group_array json_group_object json_insert
json_object json_patch json_pretty json_quote json_remove json_replace json_set json_type json_valid
julianday lag last_value lead length like likelihood likely ln log log10 log2 lower ltrim match max
median min mod nth_value ntile nullif octet_length percent_rank percentile percentile_cont
percentile_disc pi pow power quote radians random rank regexp replace round row_number rtrim sign
sin sinh snippet soundex sqlite_source_id sqlite_version sqrt strftime string_agg substr substring
subtype sum tan tanh time timediff total trim trunc typeof unhex unicode unistr unixepoch unlikely
upper
"""
FUNCTIONS = frozenset(_FUNCTIONS.split())
"""All others are refused: they make values of any size in one step, load code, or are unknown."""

_ACTIONS = """
ALTER_TABLE ANALYZE ATTACH CREATE_INDEX CREATE_TABLE CREATE_TEMP_INDEX CREATE_TEMP_TABLE
CREATE_TEMP_TRIGGER CREATE_TEMP_VIEW CREATE_TRIGGER CREATE_VIEW CREATE_VTABLE DELETE DETACH
DROP_INDEX DROP_TABLE DROP_TEMP_INDEX DROP_TEMP_TABLE DROP_TEMP_TRIGGER DROP_TEMP_VIEW DROP_TRIGGER
DROP_VIEW DROP_VTABLE FUNCTION INSERT PRAGMA READ RECURSIVE REINDEX SAVEPOINT SELECT TRANSACTION
UPDATE
"""
ACTIONS = {
    getattr(sqlite3, f"SQLITE_{action}"): action.replace("_", " ")  # as in "CREATE TABLE"
    for action in _ACTIONS.split()
}
"""The actions that the authorizer judges, in words."""
ACTION_DETAILS = {"FUNCTION": 1}
"""The detail of an action that is judged, if it is not the first."""
FREE_ACTIONS = {"SELECT", "RECURSIVE"}
SCHEMAS = {"sqlite_master", "sqlite_temp_master"}


class ConsoleRequest(NamedTuple):
    """A statement with its parameters, its limit of rows, and its timeout in seconds."""

    sql: str
    parameters: Sequence[Any] | Mapping[str, Any]
    limit: int
    timeout: float


class RefusedStatement(Exception):
    """Raised for a refused statement, with the reason as its text."""


class Guard:
    """Judges the actions of a statement.

    ``refusal`` is the first denied action, in words.
    """

    def __init__(self, deadline: float) -> None:
        self.refusal: str | None = None
        self.readable = {*READABLE_NAMES}
        self._deadline = deadline
        self._listed = {
            "READ": self.readable,
            "PRAGMA": TABLE_PRAGMAS,
            "FUNCTION": FUNCTIONS,
        }

    def watch(self, connection: sqlite3.Connection) -> None:
        """Judge all further actions on a connection to a file; allow reading its tables."""
        self.readable.update(list_tables(connection))
        connection.set_progress_handler(self.overdue, 100)
        connection.set_authorizer(self.authorize)

    def authorize(self, action: int, *details: str | None) -> int:
        """Allow only selects, recursion, and reads, calls and pragmas of listed names."""
        name = ACTIONS.get(action, f"action {action}")
        listed = self._listed.get(name, ())
        subject = (details[ACTION_DETAILS.get(name, 0)] or "").lower()
        if name in FREE_ACTIONS or subject in listed or (name == "READ" and not details[1]):
            return sqlite3.SQLITE_OK
        self._refuse(name, subject)
        return sqlite3.SQLITE_DENY

    def _refuse(self, name: str, subject: str) -> None:
        """Keep the first denied action, in words."""
        if self.refusal is not None:
            return
        if name == "FUNCTION":
            self.refusal = FUNCTION_PROBLEM.format(subject)
        elif subject in SCHEMAS and name != "READ":
            self.refusal = f"a change of the schema; {ALLOWED_READS}"
        else:
            self.refusal = f"{f'{name} {subject}'.strip()}; {ALLOWED_READS}"

    def overdue(self) -> bool:
        """Tell SQLite to stop if the deadline has passed."""
        return time.monotonic() > self._deadline


def answer_stdin() -> None:
    """Answer the request on stdin."""
    message = json.loads(sys.stdin.buffer.read())
    uri, request = message.pop("uri"), ConsoleRequest(**message)
    confine_process(request.timeout)
    for line in answer_request(uri, request):
        sys.stdout.write(line + "\n")


def confine_process(timeout: float) -> None:
    """Limit the resources of this process: memory, CPU time, written files, core dumps."""
    if sys.platform == "win32":
        return
    set_hard_limit("CPU", math.ceil(timeout) + 1)
    for name, most in RESOURCES.items():
        set_hard_limit(name, most)


def set_hard_limit(name: str, most: int) -> None:
    """Set a limit for good, if the system has it."""
    with suppress(AttributeError, OSError, ValueError):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def answer_request(uri: str, request: ConsoleRequest) -> Iterator[str]:
    """Yield the lines of the answer; any error is its last line."""
    guard = Guard(time.monotonic() + request.timeout)
    try:
        connection = open_file(uri, guard, request.timeout)
        cursor = connection.execute(request.sql, request.parameters)
        yield write_header(cursor.description)
        yield from encode_rows(cursor, request.limit)
    except (sqlite3.Error, sqlite3.Warning, MemoryError, RefusedStatement) as error:
        yield json.dumps(describe_failed_answer(error, guard, request.timeout))


def open_file(uri: str, guard: Guard, timeout: float) -> sqlite3.Connection:
    """Open the file for reading, and set the guards."""
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout)
    connection.text_factory = decode_text
    for statement in (*GUARD_PRAGMAS, *FIRST_USES):
        connection.execute(statement)
    for kind, most in LIMITS.items():
        connection.setlimit(kind, most)
    guard.watch(connection)
    return connection


def list_tables(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the names of tables and views, in small letters."""
    names = connection.execute(
        "SELECT lower(name) FROM sqlite_master WHERE type IN ('table', 'view')"
    )
    yield from (name for (name,) in names)


def write_header(described: Sequence[Sequence[Any]] | None) -> str:
    """Return the first line of an answer, from the columns as the driver describes them."""
    if described is None:
        raise sqlite3.ProgrammingError("there is no statement in it")
    return json.dumps({"columns": [column[0] for column in described]})


def decode_text(value: bytes) -> str:
    """Return a text value, damaged or not.

    Raises Refused for a value that does not fit into the answer.
    """
    if len(value) > OUTPUT_LIMIT:
        raise RefusedStatement(f"a value of {len(value):,} bytes; take a part of it with substr()")
    return value.decode(errors="replace")


def encode_rows(cursor: Iterable[Any], limit: int) -> Iterator[str]:
    """Yield rows up to the limits of rows and bytes, then a line that tells whether more exist."""
    size = 0
    for number, row in enumerate(cursor):
        if number == limit:
            break
        line = encode_row(row)
        size += len(line)
        if size > OUTPUT_LIMIT:
            if number == 0:
                raise RefusedStatement(
                    f"a row of {size:,} bytes; take parts of its values with substr()"
                )
            break
        yield line
    else:
        yield json.dumps({"end": False})
        return
    yield json.dumps({"end": True})


def encode_row(row: Iterable[object]) -> str:
    """Return a row as a line."""
    return json.dumps([convert_to_json(value) for value in row])


def convert_to_json(value: object) -> object:
    """Convert a value to one that JSON can hold.

    Bytes become ``{"hex": …}``; infinity and all other values become text.
    """
    if is_json(value):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return {"hex": bytes(value).hex()}
    return str(value)


def is_json(value: object) -> bool:
    """Tell whether JSON can hold a value unchanged."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


def describe_failed_answer(error: Exception, guard: Guard, timeout: float) -> dict[str, str]:
    """Return the last line of an answer that failed."""
    if isinstance(error, RefusedStatement):
        return {"refused": str(error)}
    code = getattr(error, "sqlite_errorname", "")
    if isinstance(error, MemoryError):
        code = "SQLITE_NOMEM"
    if code in LIMIT_PROBLEMS:
        return {"refused": LIMIT_PROBLEMS[code].format(timeout=timeout)}
    if guard.refusal is not None:
        return {"refused": guard.refusal}
    if "one statement" in str(error):
        return {"refused": "more than one statement; give them one by one"}
    return {"error": str(error), "code": code}


if __name__ == "__main__":
    answer_stdin()
