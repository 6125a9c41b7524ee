"""Several steps, one commit.

What a host does in `Store.atomically` is one write transaction; each step in it is a transaction
within that one (a savepoint), so a step that fails leaves nothing of its own behind, and the host
may go on. An exception of the host's takes back all steps.

Where two hosts lock the same trees in another order, a server ends one of them and asks for it to
be done again. Then it is done from the beginning, and first of all locks what it had come to the
last time, in the order of the trees: whoever does the same waits for it and cannot be in its way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection

from .. import history
from ..clock import Now, given
from ..database import Database, asks_again, guarded, locks
from ..errors import InvalidValue, StoreBusy, quoted
from .binding import Work, writes
from .operations import Whole

R = TypeVar("R")

ATTEMPTS = 8
"""How often steps are done from the beginning where a server asks for it."""


class Steps(Whole):
    """The operations of a store as steps of one transaction.

    They see what the steps before them did. Where no moment is given it is that of the beginning.
    """

    record_usages = writes(lambda: history.usages.record_usages)

    def __init__(self, connection: Connection, moment: int) -> None:
        self._connection, self._began = connection, moment

    def _moment(self, now: Now) -> int:
        return self._began if now is None else given(now)

    def _read(self, work: Work[R]) -> R:
        with guarded(self._connection):
            return work(self._connection)

    def _write(self, work: Work[R]) -> R:
        with guarded(self._connection), self._connection.begin_nested():
            return work(self._connection)


def atomically(database: Database, work: Callable[[Steps], R], moment: int) -> R:
    """Do work as one transaction, anew as often as a server asks for it."""
    check_work(work)
    locked: list[str] = []
    for left in reversed(range(ATTEMPTS)):
        try:
            with database.writing_for_host() as connection:
                before, locked = locked, locks(connection)
                history.lock_in_order(connection, before)
                return work(Steps(connection, moment))
        except StoreBusy as busy:
            if not left or not asks_again(busy):
                raise
    raise AssertionError("the last attempt returns or raises")


def check_work(work: Any) -> None:
    """Raise InvalidValue for what is no plain function."""
    if not callable(work):
        raise InvalidValue(f"work is a function of the steps, not {quoted(work)}")
    if inspect.iscoroutinefunction(work):
        raise InvalidValue("work is a plain function: no other writer goes on while it waits")
