"""`AsyncStore`: the operations of `Store`, awaited.

Under asyncio and under trio: what the two do differently is anyio's business.
"""

from __future__ import annotations

from collections.abc import Awaitable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, ParamSpec, Self, TypeVar

from anyio import (
    CancelScope,
    CapacityLimiter,
    Event,
    fail_after,
    from_thread,
    move_on_after,
    to_thread,
)
from anyio.lowlevel import EventLoopToken, current_token

from ..cancellation import CURRENT_CALLER, Caller, Cancelled
from ..database import DEFAULT_CACHE_BYTES
from ..errors import InvalidValue, StoreClosed
from .async_operations import AsyncStoreOperations
from .async_scoped import AsyncScoped
from .async_workflows import AsyncWorkflows
from .binding import Method
from .store import Store, Target
from .threads import Work

P = ParamSpec("P")
R = TypeVar("R")
AGAIN = 0.25
"""Seconds until work whose task was cancelled is told so again.

A server forgets it where it comes between two statements.
"""

LATE = 1.0
"""Seconds after which a summary that nobody waits for any more is cancelled in its loop."""

FINISHED = "the operation had begun, so it was brought to its end: what it was to do is done"
FAILED = "the operation had begun, so it was brought to its end, and failed: {!r}"


class AsyncStore(AsyncWorkflows, AsyncStoreOperations):
    """A `Store` whose operations are awaited.

    ``target`` is what a `Store` is opened with, or an open one, which stays open when this is
    closed. Each operation runs whole in a thread of the store's own: ``threads`` for those that
    only read, and as many for those that may wait for other writers.
    """

    def __init__(
        self,
        target: Target | Store,
        *,
        durability: str = "full",
        timeout: float = 30.0,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        check_reads: bool = False,
        threads: int = 8,
    ) -> None:
        self._threads = ThreadPoolExecutor(threads, "convostore")
        self._waiting = ThreadPoolExecutor(threads, "convostore-waiting")
        self._is_given = isinstance(target, Store)
        opening = partial(
            _open,
            target,
            durability=durability,
            timeout=timeout,
            cache_bytes=cache_bytes,
            check_reads=check_reads,
        )
        self._opened = self._threads.submit(opening)

    def scoped(self, owner: str) -> AsyncScoped:
        """Return a face that sees and touches the sessions of an owner only, at once.

        It has no connections of its own: closing the store ends it. Raises InvalidValue for what is
        no owner.
        """
        return AsyncScoped(self, partial(self._call, Store.scoped, owner), owner)

    async def _run(self, work: Work[R], *, waits: bool = False) -> R:
        """Run work in a thread of the store's pool; return what it returns."""
        caller = Caller(partial(_finish, current_token()))
        submitted = self._submit(_called_by(caller, work), waits)
        ended = _end_of(submitted)
        try:
            await ended.wait()
        except GeneratorExit:  # there is no loop any more to wait in
            raise
        except BaseException as stopped:
            if not submitted.cancel():
                await _left(caller, ended)
                _note(stopped, submitted)
            raise
        return submitted.result()

    def _submit(self, work: Work[R], waits: bool) -> Future[R]:
        """Give work to the threads for what waits for others, or to those for what only reads."""
        threads = self._waiting if waits else self._threads
        try:
            return threads.submit(work)
        except RuntimeError as error:
            raise StoreClosed("the store is closed; open it anew") from error

    def _call(
        self,
        method: Method[P, R],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        """Call a method of the store; opening it is the first thing that its threads did."""
        return method(self._opened.result(), *args, **options)

    async def close(self) -> None:
        """Wait for running operations and give back all connections.

        Cancelled, it ends by itself.
        """
        with CancelScope(shield=True):
            await to_thread.run_sync(self._end, limiter=CapacityLimiter(1))

    def _end(self) -> None:
        self._waiting.shutdown()
        self._threads.shutdown()
        if self._opened.exception() is None and not self._is_given:
            self._opened.result().close()

    async def __aenter__(self) -> Self:
        await _end_of(self._opened).wait()
        self._opened.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


_DEFAULTS = {
    "durability": "full",
    "timeout": 30.0,
    "cache_bytes": DEFAULT_CACHE_BYTES,
    "check_reads": False,
}


def _open(target: Target | Store, **settings: Any) -> Store:
    """Open a store, unless it is open. Raises StoreError."""
    if not isinstance(target, Store):
        return Store(target, **settings)
    if settings != _DEFAULTS:
        raise InvalidValue("an open store has its settings already; do not give them")
    return target


def _finish(loop: EventLoopToken, work: Awaitable[R], seconds: float | None) -> R:
    """Return what work comes to in a loop, from a thread that it has nothing to do with."""
    return from_thread.run(_within, work, seconds, token=loop)


async def _within(work: Awaitable[R], seconds: float | None) -> R:
    with fail_after(None if seconds is None else seconds + LATE):
        return await work


def _called_by(caller: Caller, work: Work[R]) -> Work[R]:
    """Let work know, in a context of its own, who waits for it."""
    context = copy_context()
    context.run(CURRENT_CALLER.set, caller)
    return partial(context.run, work)


def _end_of(submitted: Future[Any]) -> Event:
    """Return what a task of this loop can wait for: the end of work in a thread."""
    ended = Event()
    loop: Any = current_token().native_token
    tell = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon  # asyncio's, trio's

    def told(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended before
            tell(ended.set)

    submitted.add_done_callback(told)
    return ended


async def _left(caller: Caller, ended: Event) -> None:
    """Tell work that its task was cancelled, until it has ended.

    In a thread, because a server may take its time to be told.
    """
    with CancelScope(shield=True):
        while not ended.is_set():
            Thread(target=caller.leave, daemon=True).start()
            with move_on_after(AGAIN):
                await ended.wait()


def _note(stopped: BaseException, submitted: Future[Any]) -> None:
    """Add to a cancellation how work ended that was not given up."""
    failure = submitted.exception()
    if not isinstance(failure, Cancelled):
        stopped.add_note(FAILED.format(failure) if failure else FINISHED)
