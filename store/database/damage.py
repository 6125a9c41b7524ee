"""What a caller is told of errors that drivers raise, and of those that damaged rows cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from ..errors import StoreError
from .lease import Lease, lease_of
from .statements import DAMAGED, driver_errors, translate

SENSELESS = (
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading rows raises that hold what no store writes."""


def damage(error: BaseException, lease: Lease | None) -> StoreError | None:
    """Return what is said of an error that only rows which make no sense can have caused.

    One that comes before the first statement is about what was given, not about what was read.
    """
    is_ours = isinstance(error, StoreError) or not isinstance(error, SENSELESS)
    if is_ours or lease is None or not lease.begun or lease.is_host:
        return None
    return StoreError(DAMAGED)


@contextmanager
def read_before() -> Iterator[None]:
    """Tell what damaged rows cause as damage, where their connection has been given back."""
    try:
        yield
    except StoreError:
        raise
    except SENSELESS as error:
        raise StoreError(DAMAGED) from error


@contextmanager
def guarded(connection: Connection) -> Iterator[None]:
    """Tell a host, in the midst of a transaction of its own, of errors as at the end of one.

    A TypeError is taken for a wrong call of the host's.
    """
    lease = lease_of(connection)
    lease.is_host = False
    try:
        with _told(lease):
            yield
    except TypeError:
        raise
    except SENSELESS as error:
        harm = damage(error, lease)
        if harm:
            raise harm from error
        raise
    finally:
        lease.is_host = True


@contextmanager
def _told(lease: Lease) -> Iterator[None]:
    """Turn the drivers' errors into the store's own, but for that of a lost connection."""
    try:
        yield
    except driver_errors() as error:
        if lease.is_lost:
            raise
        raise translate(error, lease.path) from error


@contextmanager
def translated(file: str | None) -> Iterator[None]:
    """Turn the drivers' errors into the store's own, chained; on a file or a server (None)."""
    try:
        yield
    except driver_errors() as error:
        raise translate(error, file) from error
