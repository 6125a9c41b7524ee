"""Who waits for an operation, and may leave before it has ended.

A task can be cancelled at any moment, but no thread can be ended from outside. So whoever lets a
thread work for a task notes in the work's context a `Caller`. When the task is cancelled, its
caller leaves: what only waits (for its turn to write, for a lock of a server, for a summary) is
woken and gives up. An operation that has got its turn binds the caller: it runs to its end whether
somebody waits for it or not, with all the transactions that it may still need. So what a caller
left has happened as a whole, or has not.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any


class Cancelled(BaseException):
    """Nobody waits for it any more; no failure of anybody."""


Awaiter = Callable[[Awaitable[Any], float | None], Any]
"""Returns what an awaitable comes to, unless that takes longer than some seconds."""


class Caller:
    """Whoever waits for an operation; ``finish`` awaits for it what only its own loop can."""

    def __init__(self, finish: Awaiter | None = None) -> None:
        self.finish = finish
        self._lock = threading.Lock()
        self._wakers: dict[Callable[[], object], bool] = {}
        self._has_left = self._is_bound = False

    def leave(self) -> None:
        """Wake what waits; may be said again, where something was not yet to be woken."""
        with self._lock:
            self._has_left = True
            for wake, always in self._wakers.items():
                if always or not self._is_bound:
                    wake()

    def bind(self) -> None:
        """Let the operation run to its end. Raises Cancelled where the caller has left before."""
        with self._lock:
            self._check(always=False)
            self._is_bound = True

    @contextmanager
    def waking(self, wake: Callable[[], object], *, always: bool) -> Iterator[None]:
        """Do what `wake_on_leave` says, for this caller."""
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


_NOBODY = nullcontext()
CURRENT_CALLER: ContextVar[Caller | None] = ContextVar("convostore_caller", default=None)
"""Who waits for what is done in a context; None: somebody who stays."""


def await_for_caller(value: Any, seconds: float | None) -> Any:
    """Return what a value comes to where it is to be awaited, in the loop of the task that waits.

    Where no task does, it stays as it is.
    """
    caller = CURRENT_CALLER.get()
    if caller and caller.finish and isawaitable(value):
        return caller.finish(value, seconds)
    return value


def bind_caller() -> None:
    """Let the operation run to its end from here on. Raises Cancelled where nobody waits for it."""
    caller = CURRENT_CALLER.get()
    if caller:
        caller.bind()


def wake_on_leave(
    wake: Callable[[], object], *, always: bool = False
) -> AbstractContextManager[None]:
    """Have ``wake`` called, from another thread, when the caller leaves during the block.

    ``always``: also when the caller is bound. Raises Cancelled where the caller has left before, or
    where the block failed after that.
    """
    caller = CURRENT_CALLER.get()
    if caller is None:
        return _NOBODY
    return caller.waking(wake, always=always)
