"""The store's own errors in place of those that drivers raise.

Nothing else is translated: an error that no driver raised arrives as itself. Damage is reported
where rows are decoded.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError

from ..errors import (
    TOO_MANY_FILES,
    VERIFY_HINT,
    Damaged,
    InvalidValue,
    NotAStore,
    ReadOnly,
    StoreBusy,
    StoreError,
    StoreFull,
    Unavailable,
)
from .files import list_unusable_files

K = TypeVar("K")
V = TypeVar("V")


class RowsByKey(dict[K, V]):
    """The values of rows by position or number: each key that is looked up must have a row."""

    def __missing__(self, key: K) -> Any:
        raise Damaged(f"there is no row of {key!r:.40} where others need one; {VERIFY_HINT}")


@contextmanager
def translate_driver_errors(file: str | None) -> Iterator[None]:
    """Turn the drivers' errors into the store's own, chained; on a file or a server (None)."""
    try:
        yield
    except list_driver_errors() as error:
        raise translate_error(error, file) from error


def list_driver_errors() -> tuple[type[Exception], ...]:
    """Return the exception types of the drivers.

    The errors of statements come straight from them, not through SQLAlchemy.
    """
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error, DBAPIError, *([psycopg.Error] if psycopg else []))


READ_ONLY_STATE = "25006"
UNSUPPORTED_STATE = "0A000"
"""The state of much that a server cannot do; a replica also answers a write so."""
_REPLICA_WORDS = "during recovery"

_CODE_ERRORS: dict[str, tuple[type[StoreError], str]] = {
    "SQLITE_BUSY": (
        StoreBusy,
        "another program held the database until the deadline; nothing was written, try again",
    ),
    "SQLITE_LOCKED": (
        StoreBusy,
        "another program held the database; nothing was written, try again",
    ),
    "SQLITE_FULL": (StoreFull, "the disk is full; nothing was written, make room and try again"),
    "SQLITE_IOERR_WRITE": (
        StoreFull,
        "the disk did not take the write; nothing was written, make room and try again",
    ),
    "SQLITE_IOERR_SHMSIZE": (
        StoreFull,
        "the disk has no room for the store's index; make room and try again",
    ),
    "SQLITE_NOTADB": (NotAStore, "{file} is no SQLite database; it was not touched"),
    "SQLITE_READONLY": (
        ReadOnly,
        "{file} or its folder cannot be written; check their permissions",
    ),
    "SQLITE_CANTOPEN": (
        StoreError,
        "{file} cannot be opened, or nothing be written beside it; check the permissions of both",
    ),
    "55P03": (
        StoreBusy,
        "another writer held what was needed until the deadline; nothing was written, try again",
    ),
    "40001": (StoreBusy, "another transaction was in the way; nothing was written, try again"),
    "40P01": (StoreBusy, "another transaction was in the way; nothing was written, try again"),
    "57014": (
        StoreBusy,
        "the server ended a statement at its timeout or on request; nothing was written, try again",
    ),
    READ_ONLY_STATE: (
        ReadOnly,
        "the server takes no writes: it is a replica (standby), or read-only; nothing was written",
    ),
    "53100": (StoreFull, "the server's disk is full; nothing was written, make room and try again"),
    "SQLITE_CORRUPT": (
        Damaged,
        "{file} is damaged; restore a backup; where it opens `convostore verify` says what is hit",
    ),
}


_CROWDED_SERVER_WORDS = (
    *("starting up", "shutting down", "in recovery mode", "not yet accepting connections"),
    *("too many", "remaining connection slots", "no more connections"),
)
"""The words of servers and poolers that have no free connection at the moment.

The driver has no SQLSTATE of an attempt to connect (57P03, 53300), only the server's text.
"""


_REFUSAL_WORDS = ("FATAL:", "no password supplied")
"""The words of a server that refuses a role or a database, and of a driver that has no password."""


_POOLER_REFUSAL = "unsupported startup parameter"
"""What a pooler says of the settings of a connection."""


_WRONG_OPTION = re.compile(
    r"(invalid connection option|invalid \w+ value|bad value for connect_timeout)\b.*"
)
"""The driver's words about an option of a URL, which come before any server is asked."""


def build_connection_error(error: Exception) -> StoreError:
    """Return the error for a connection to a server that could not be made.

    A server that responds and refuses the role or the database will do so again.
    """
    told = " ".join(str(_unwrap_error(error)).split())
    if _POOLER_REFUSAL in told:
        return StoreError(
            f"a pooler is in front of the server; open the store with pooler=True: {told}"
        )
    if wrong := _WRONG_OPTION.search(told):
        return InvalidValue(f"the URL of the store has an option that cannot be: {wrong[0]}")
    is_refused = get_sqlstate(error)[:2] in ("28", "3D")
    is_refused = is_refused or any(each in told for each in _REFUSAL_WORDS)
    if is_refused and not any(each in told for each in _CROWDED_SERVER_WORDS):
        return translate_error(error, None)
    return Unavailable(f"no connection to the server: {told}; nothing was written, try again later")


RETRIABLE_STATES = ("40001", "40P01")
"""The states of a failed transaction that may succeed if it is run again."""


def is_retriable(error: StoreError) -> bool:
    """Tell whether a server has asked for a transaction to be done from the beginning."""
    return getattr(error.__cause__, "sqlstate", None) in RETRIABLE_STATES


def _has_free_descriptors() -> bool:
    """Tell whether the process can open the files of a connection: file, log, index."""
    with ExitStack() as opened:
        try:
            for _ in range(3):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError:
            return False
    return True


_PERMISSION_CODES = ("SQLITE_READONLY", "SQLITE_CANTOPEN")
_UNDECODED_MESSAGE = "Could not decode to UTF-8"
"""The message of Python's driver for invalid text; it has no code for it."""


def _unwrap_error(error: BaseException) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def get_sqlstate(error: BaseException) -> str:
    """Return the SQLSTATE of a server's error, empty if it has none."""
    return getattr(_unwrap_error(error), "sqlstate", None) or ""


def translate_error(error: Exception, file: str | None) -> StoreError:
    """Return the store's own error for one of a driver's, on a file or on a server (None)."""
    original = _unwrap_error(error)
    if any(kind.__name__ == "DataError" for kind in type(original).__mro__):  # of whichever driver
        return build_value_error(original)
    name, state = getattr(original, "sqlite_errorname", ""), get_sqlstate(original)
    if state == UNSUPPORTED_STATE and _REPLICA_WORDS in str(original):
        state = READ_ONLY_STATE
    if name == "SQLITE_CANTOPEN" and not _has_free_descriptors():
        return StoreError(TOO_MANY_FILES)
    if file and name.startswith(_PERMISSION_CODES) and (closed := list_unusable_files(file)):
        return ReadOnly(
            f"{' and '.join(closed)} cannot be written by this user; check the permissions there"
        )
    if str(original).startswith(_UNDECODED_MESSAGE):
        return Damaged(f"{file} is damaged: {original}; `convostore verify` says where")
    for prefix, (kind, text) in _CODE_ERRORS.items():
        if name.startswith(prefix) or state == prefix:
            return kind(text.format(file=file))
    return StoreError(f"the database refused: {original}")


UNSTORABLE_ERRORS = (OverflowError, UnicodeEncodeError)


def build_value_error(error: BaseException) -> InvalidValue:
    """Return the error for a value that cannot be stored."""
    return InvalidValue(f"a value that no database can hold: {' '.join(str(error).split())}")
