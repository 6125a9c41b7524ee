"""Callers that wait for an operation, and may leave before it has ended.

A task can be cancelled at any moment, but a thread cannot be ended from outside. So code that lets
a thread work for a task stores a `Caller` in the context of the work. When the task is cancelled,
its caller leaves: waiting (for its turn to write, for a lock of a server, for a summary) is
interrupted and given up. An operation that has got its turn binds the caller: it runs to its end
whether somebody waits for it or not, with all transactions that it still needs. So an operation
that a caller left has happened as a whole, or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any


class Cancelled(BaseException):
    """Raised when nobody waits for an operation any more; it is not a failure."""


Awaiter = Callable[[Awaitable[Any], float | None], Any]
"""Returns the result of an awaitable, unless it takes longer than some seconds."""


class Caller:
    """The caller of an operation; ``finish`` runs an awaitable in the caller's own loop."""

    def __init__(self, finish: Awaiter | None = None) -> None:
        self.finish = finish
        self._lock = threading.Lock()
        self._wakers: dict[Callable[[], object], bool] = {}
        self._has_left = self._is_bound = False

    def leave(self) -> None:
        """Wake all waiting work; may be repeated if something could not be woken yet."""
        with self._lock:
            self._has_left = True
            for wake, always in self._wakers.items():
                if always or not self._is_bound:
                    wake()

    def bind(self) -> None:
        """Let the operation run to its end. Raises Cancelled if the caller has left before."""
        with self._lock:
            self._check(always=False)
            self._is_bound = True

    @contextmanager
    def waking(self, wake: Callable[[], object], *, always: bool) -> Iterator[None]:
        """Do the same as `wake_on_leave`, for this caller."""
        with self._lock:
            self._check(always)
            self._wakers[wake] = always
        try:
            yield
        except Exception:
            self._check(always)
            raise
        finally:
            with self._lock:
                self._wakers.pop(wake, None)

    def _check(self, always: bool) -> None:
        if self._has_left and (always or not self._is_bound):
            raise Cancelled


_NO_CALLER = nullcontext()
CURRENT_CALLER: ContextVar[Caller | None] = ContextVar("convostore_caller", default=None)
"""The caller of the work in a context; None: a caller that never leaves."""


def bind_caller() -> None:
    """Let the operation run to its end from here on. Raises Cancelled if nobody waits for it."""
    caller = CURRENT_CALLER.get()
    if caller:
        caller.bind()


def wake_on_leave(
    wake: Callable[[], object], *, always: bool = False
) -> AbstractContextManager[None]:
    """Call ``wake``, from another thread, when the caller leaves during the block.

    ``always``: also when the caller is bound. Raises Cancelled if the caller has left before, or if
    the block failed after that.
    """
    caller = CURRENT_CALLER.get()
    if caller is None:
        return _NO_CALLER
    return caller.waking(wake, always=always)
