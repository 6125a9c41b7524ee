"""Several steps, one commit.

The work of a host in `Store.atomically` is one write transaction; each step in it is a savepoint. A
step that fails leaves no changes, and the host may go on. An exception of the host rolls back all
steps.

The rows read by a step stay the same until the commit. On a file nobody else writes meanwhile. On a
server the first step that reads a session locks its row before reading it: hosts that read a number
and write the next one lose none. Lists of sessions lock no sessions.

If two hosts lock the same trees in different orders, a server aborts one of them and asks it to
retry. The retry starts from the beginning, and first locks the sessions that the last attempt had
locked, in the order of their trees: another retry waits for it and cannot be in its way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection

from .. import history
from ..clock import Now, require_moment, resolve_now
from ..database import (
    Database,
    get_lease,
    get_lock_names,
    is_retriable,
    open_step,
    translate_host_errors,
)
from ..errors import InvalidValue, SessionNotFound, StoreBusy, StoreError, quote_value
from .calls import Call, bind_arguments, list_sessions_to_lock
from .lifetime import Lifetime
from .operations import Operations, StoreOperations

if TYPE_CHECKING:
    from ..history import UsageInput
    from ..records import Erasure

StepResultT = TypeVar("StepResultT")

MOST_ATTEMPTS = 8
"""How often the steps are tried in all, if a server asks for retries."""


class BoundOperations(StoreOperations):
    """The operations of a store on one connection, until their lifetime ends."""

    def __init__(self, connection: Connection, moment: int, lifetime: Lifetime) -> None:
        self._connection, self._began, self._lifetime = connection, moment, lifetime

    def _moment(self, now: Now) -> int:
        self._lifetime.check()
        return self._began if now is None else require_moment(now)


class ErasingSteps(Operations):
    """Erasures as steps."""

    def delete_session(
        self,
        *session_ids: str | Sequence[str],
        missing: str = "refuse",
        expected: str | None = None,
        costs: str = "keep",
        now: Now = None,
    ) -> list[Erasure]:
        """Erase sessions for good, as `Store.delete_session` does, with the other steps or not.

        Their rows are erased after the commit, so no `Erasure` is finished yet. The parameters are
        those of `Store.delete_session`. Raises SessionNotFound, Conflict, InvalidValue.
        """
        ids = history.erasure_batches.list_given_ids(session_ids, expected)
        options: dict[str, Any] = {"missing": missing, "expected": expected, "costs": costs}
        options["now"] = self._moment(now)
        return self._write(Call(history.erasure_batches.erase_sessions, (ids,), options))

    def forget(
        self,
        session_id: str,
        *,
        expected: str | None = None,
        costs: str = "keep",
        now: Now = None,
    ) -> Erasure:
        """Erase what a session's line has left, as `Store.forget` does, with the other steps.

        Most rows are erased after the commit. The parameters are those of `Store.forget`. Raises
        SessionNotFound, Conflict, InvalidValue.
        """
        options = {"expected": expected, "costs": costs, "now": self._moment(now)}
        return self._write(Call(history.branch_erasure.forget_branches, (session_id,), options))


class Steps(ErasingSteps, BoundOperations):
    """The operations of a store as steps of one transaction.

    Each step sees the changes of those before it. The moment of a step without one is the beginning
    of the transaction.
    """

    def __init__(self, connection: Connection, moment: int, lifetime: Lifetime) -> None:
        super().__init__(connection, moment, lifetime)
        self._held: set[str] = set()

    def record_usages(self, session_id: str, requests: Sequence[UsageInput]) -> None:
        """Record the usage of several requests of a session. Raises as `record_usage` does."""
        self._write(Call(history.usages.record_usages, (session_id, requests), {}))

    def _read(self, work: Call[StepResultT]) -> StepResultT:
        self._lifetime.check()
        with translate_host_errors(self._connection):
            if self._connection.dialect.name != "sqlite":
                self._hold(work)
            return work(self._connection)

    def _write(self, work: Call[StepResultT]) -> StepResultT:
        self._lifetime.check()
        with translate_host_errors(self._connection), open_step(self._connection):
            return work(self._connection)

    def _hold(self, work: Call[Any]) -> None:
        """Lock the sessions of a step in order before it reads them, against other writers."""
        sessions = work.sessions
        if sessions is None:
            sessions = list_sessions_to_lock(work, bind_arguments(work).arguments)
        for session_id in sessions:
            if session_id not in self._held:
                with suppress(SessionNotFound), open_step(self._connection):
                    history.lines.lock_session(self._connection, session_id)
                    self._held.add(session_id)


class Snapshot(BoundOperations):
    """The operations that read one state of a store, whatever others write meanwhile."""

    def _read(self, work: Call[StepResultT]) -> StepResultT:
        self._lifetime.check()
        with translate_host_errors(self._connection):
            return work(self._connection)

    def _write(self, work: Call[StepResultT]) -> StepResultT:
        self._lifetime.check()
        name = work.operation.__name__.replace("_", " ")
        raise InvalidValue(f"`reading` cannot {name}, because it only reads; use `atomically`")


def read_snapshot(database: Database, work: Callable[[Snapshot], StepResultT]) -> StepResultT:
    """Do work that reads one state of a store."""
    with (
        database.reading() as connection,
        Lifetime("these operations of `reading`") as lifetime,
    ):
        return work(Snapshot(connection, resolve_now(None), lifetime))


def atomically(
    database: Database, work: Callable[[Steps], StepResultT], moment: int
) -> StepResultT:
    """Do work as one transaction; retry it if a server asks for that."""
    check_work(work)
    locked: list[str] = []
    for left in reversed(range(MOST_ATTEMPTS)):
        try:
            with database.writing_for_host() as connection:
                before, locked = locked, get_lock_names(connection)
                history.lock_trees(connection, before)
                taken_out = get_lease(connection).taken_out
                with Lifetime("these steps of `atomically`") as lifetime:
                    result = work(Steps(connection, moment, lifetime))
                is_erasing = bool(taken_out)  # the commit empties it
            if is_erasing:
                with suppress(StoreError):  # the next erasure goes on with it
                    history.erasure_batches.continue_erasures(database, moment)
            return result
        except StoreBusy as busy:
            if not left or not is_retriable(busy):
                raise
    raise AssertionError("the last attempt returns or raises")


def check_work(work: Any) -> None:
    """Raise InvalidValue unless work is a plain function of steps."""
    check_plain_function(work, "because all other writers wait for it")


def check_plain_function(work: Any, why: str) -> None:
    """Raise InvalidValue unless work is callable, and no coroutine function; ``why`` says why."""
    if not callable(work):
        raise InvalidValue(f"work must be a function of the steps, not {quote_value(work)}")
    if inspect.iscoroutinefunction(work):
        raise InvalidValue(f"work must be a plain function, {why}")
