"""Writes of a process that wait for the same file, done in one transaction.

A commit costs a flush of the disk, whatever is in it. So writes that wait while another one is at
work are done together: one turn in the queue of the file, one transaction, one flush. Each keeps
its own answer and its own error, since each is a savepoint. A write with none waiting after it is
a transaction of its own, without a savepoint.

The first in line leads. It waits for the file as any writer does, does its own write, then those
that wait after it, as long as a turn in the queue lasts, commits, and tells each that it is done.
Then it leaves the line, and the next one leads. A write that the leader has taken is no longer in
line: before that its caller may give up, and nothing of it has happened; after that it runs to its
end.

The line is the only state. Whoever leads is not recorded, but is the first in line, and each change
of the line is one step of the interpreter, which no signal cuts in two. A leader that a signal
interrupts before its commit puts back what it has taken, and leaves the line, so that the next one
leads. If an error of the database ends the transaction, such as a full disk, everything in it has
failed, and each gets that error.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from sqlalchemy import Connection

from ..cancellation import Cancelled, bind_caller, wake_on_leave
from ..errors import StoreBusy
from .driver_errors import list_driver_errors, translate_error
from .files import KnownFile
from .writer_queue import TURN_SECONDS

GroupResultT = TypeVar("GroupResultT")

_BUSY_MESSAGE = "another writer held the store until the deadline; nothing was written, try again"


_groups: WeakValueDictionary[object, GroupCommit] = WeakValueDictionary()


def get_group(file: KnownFile, synchronous: str) -> GroupCommit:
    """Return the line of a file, the same for all stores of this process that commit alike.

    It is called under the lock of forks, and a forked child has lines of its own.
    """
    key = os.getpid(), file.path, file.identity, synchronous
    return _groups.setdefault(key, GroupCommit())


class Transaction(Protocol):
    """What a group needs of the lease that its leader has."""

    connection: Connection
    driver: Any

    @property
    def path(self) -> str | None:
        """The path of the file."""

    def begin(self) -> None:
        """Begin, unless it has begun."""

    def commit(self) -> None:
        """Commit all writes."""


class GroupedWrite(Generic[GroupResultT]):
    """A write in line: its work, and its result or error once it is done.

    ``patience`` is the seconds that it may still wait, None if it has not waited yet. ``waking`` is
    released to let the thread that waits look again at the line.
    """

    def __init__(self, work: Callable[[Connection], GroupResultT]) -> None:
        self.work, self.is_done = work, False
        self.patience: float | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._context = copy_context()
        self.waking: threading.Lock | None = None

    def wake(self) -> None:
        """Let the thread that waits look again at the line."""
        if self.waking:  # else it does not wait yet, and will look before
            with suppress(RuntimeError):  # it has been woken already
                self.waking.release()

    def finish(self) -> None:
        """Let the thread that waits go on with the result or error."""
        self.is_done = True
        self.wake()

    def run(self, lease: Transaction) -> None:
        """Do the work as a savepoint of a transaction, in the context of the thread that waits.

        Its error is kept, with nothing written. Raises an error that ended the transaction.
        """
        lease.begin()  # the leader may have done without a statement
        driver, self.error = lease.driver, None
        driver.execute("SAVEPOINT grouped_write")
        try:
            self.result = self._context.run(_run_bound, self.work, lease.connection)
        except (Exception, Cancelled) as error:
            if not driver.in_transaction:
                raise
            driver.execute("ROLLBACK TO grouped_write")
            self.error = _translate_if_driver_error(error, lease)
        driver.execute("RELEASE grouped_write")


class GroupCommit:
    """The line of the writes of a process that may be committed together."""

    def __init__(self) -> None:
        self._line: list[GroupedWrite[Any]] = []

    def join(self, write: GroupedWrite[Any], timeout: float) -> bool:
        """Wait until a write is done, or is the first in line; tell whether it has to lead.

        Raises the error of the write; StoreBusy at its deadline.
        """
        self._line.append(write)
        if self._line[:1] != [write]:
            with wake_on_leave(partial(self._give_up, write)):
                self._wait(write, timeout)
                if write.error is not None:
                    raise write.error
        return not write.is_done

    def _wait(self, write: GroupedWrite[Any], timeout: float) -> None:
        woken = write.waking = threading.Lock()
        woken.acquire()
        ends, seconds = time.monotonic() + timeout, timeout
        while not (write.is_done or self._line[:1] == [write]):
            if not woken.acquire(timeout=seconds):
                self._give_up(write)
                seconds = -1  # it was taken just now, and will be done soon
        write.patience = max(0.0, ends - time.monotonic())

    def leave(self, write: GroupedWrite[Any]) -> None:
        """Leave the line, and let the next one lead; may be repeated."""
        self._remove(write)
        for first in self._line[:1]:
            first.wake()

    def lead(self, write: GroupedWrite[GroupResultT], lease: Transaction) -> GroupResultT:
        """Do a write, and those that wait after it, in one transaction; return its result."""
        result = write.work(lease.connection)
        taken: list[GroupedWrite[Any]] = []
        try:
            if len(self._line) > 1:
                self._run_waiting(taken, lease)
            lease.commit()
            for each in taken:
                each.finish()
        except BaseException as error:
            self._dissolve(taken, lease, error)
            raise
        return result

    def _run_waiting(self, taken: list[GroupedWrite[Any]], lease: Transaction) -> None:
        """Do the writes after the leader's in its transaction, and add them to ``taken``."""
        ends = time.monotonic() + TURN_SECONDS
        while (following := self._line[1:2]) and time.monotonic() < ends:
            taken += following
            if self._remove(*following):
                taken[-1].run(lease)
            else:  # its caller has given it up
                taken.pop()

    def _dissolve(
        self, taken: list[GroupedWrite[Any]], lease: Transaction, error: BaseException
    ) -> None:
        """Tell the writes of a group of an error, or put them back if they may still be done."""
        is_refused = isinstance(error, list_driver_errors())
        is_committed = not isinstance(error, Exception) and not lease.driver.in_transaction
        for each in reversed(taken):
            if is_refused:
                each.error = _translate_if_driver_error(error, lease)
            if is_refused or is_committed:
                each.finish()
            elif not each.is_done and each not in self._line:
                self._line.insert(1, each)

    def _give_up(self, write: GroupedWrite[Any]) -> None:
        """Take a write out of the line, if it is still there: then it does not happen."""
        if self._remove(write):
            write.error = StoreBusy(_BUSY_MESSAGE)
            write.finish()

    def _remove(self, write: GroupedWrite[Any]) -> bool:
        try:
            self._line.remove(write)
        except ValueError:
            return False
        return True


def _run_bound(work: Callable[[Connection], GroupResultT], connection: Connection) -> GroupResultT:
    bind_caller()
    return work(connection)


def _translate_if_driver_error(error: BaseException, lease: Transaction) -> BaseException:
    if not isinstance(error, list_driver_errors()):
        return error
    told = translate_error(error, lease.path)
    told.__cause__ = error
    return told
