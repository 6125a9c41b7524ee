"""The store's own errors in place of those that drivers raise.

Nothing else is translated: an error that no driver raised arrives as itself. Damage is reported
where rows are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection

from ..errors import VERIFY_HINT, ConnectionLost, Damaged, StoreError
from .lease import Lease, get_lease
from .statements import (
    build_connection_error,
    is_breaking_error,
    list_driver_errors,
    translate_error,
)

_LOST_CONNECTION = "the connection to the server was lost; nothing was written, try again"
_UNKNOWN_COMMIT = (
    "the connection to the server was lost while it committed, so nobody knows whether it did; "
    "read what is there, or repeat the call: messages with an `id` are not stored twice"
)


K = TypeVar("K")
V = TypeVar("V")


class RowsByKey(dict[K, V]):
    """The values of rows by position or number: each key that is looked up must have a row."""

    def __missing__(self, key: K) -> Any:
        raise Damaged(f"there is no row of {key!r:.40} where others need one; {VERIFY_HINT}")


def is_connection_loss(lease: Lease, error: BaseException) -> bool:
    """Tell whether an error came with the loss of the connection to a server."""
    is_committing = lease.is_committing
    return lease.is_lost or (
        lease.is_on_server and is_breaking_error(error, is_committing=is_committing)
    )


def choose_error(
    error: Exception, lease: Lease | None, file: str | None, *, is_lost: bool
) -> StoreError:
    """Return the store's error for a driver's error; without a lease no connection was made."""
    if lease is None and file is None:
        return build_connection_error(error)
    if lease and is_lost:
        return ConnectionLost(_UNKNOWN_COMMIT if lease.is_committing else _LOST_CONNECTION)
    return translate_error(error, file)


@contextmanager
def translate_host_errors(connection: Connection) -> Iterator[None]:
    """Raise the store's own errors in a step of a host's transaction, as at its end."""
    lease = get_lease(connection)
    try:
        yield
    except list_driver_errors() as error:
        is_lost = is_connection_loss(lease, error)
        raise choose_error(error, lease, lease.path, is_lost=is_lost) from error


@contextmanager
def translate_driver_errors(file: str | None) -> Iterator[None]:
    """Turn the drivers' errors into the store's own, chained; on a file or a server (None)."""
    try:
        yield
    except list_driver_errors() as error:
        raise translate_error(error, file) from error
