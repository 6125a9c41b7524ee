"""`AsyncStore`: the names of `Store`, awaited; bound to its methods, not written twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future as Submitted
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeAlias, TypeVar, cast, overload

from .clock import Now
from .errors import StoreClosed
from .records import Erasure
from .store import Method, Store, Target
from .summaries import PATIENCE, Patience

P = ParamSpec("P")
R = TypeVar("R")
Work: TypeAlias = Callable[[], R]
"""What a thread is given to do."""


def awaits(
    method: Method[P, R], *, waits: bool = False
) -> Callable[Concatenate[AsyncStore, P], Awaitable[R]]:
    """Bind a method of `Store` to `AsyncStore`: one thread hop for the whole operation.

    What ``waits`` for other writers, or for a summary, has threads of its own, so that however many
    wait, those who only read find a thread.

    A cancelled task leaves its operation to end by itself: it is committed whole or not at all,
    never half. Only a summary that is being written is not waited for: its compaction ends as
    failed.
    """

    @wraps(method)
    async def face(self: AsyncStore, *args: P.args, **options: P.kwargs) -> R:
        work = partial(self._call, method, *args, **options)
        return await self._run(work, waits=waits)

    return cast("Callable[Concatenate[AsyncStore, P], Awaitable[R]]", face)


def iterates(
    method: Method[P, Iterator[R]],
) -> Callable[Concatenate[AsyncStore, P], AsyncIterator[R]]:
    """Bind a method of `Store` that yields: each step is an operation by itself."""

    @wraps(method)
    async def face(
        self: AsyncStore,
        *args: P.args,
        **options: P.kwargs,
    ) -> AsyncIterator[R]:
        items = await self._run(partial(self._call, method, *args, **options))
        while item := await self._run(partial(next, items, None)):
            yield item

    return cast("Callable[Concatenate[AsyncStore, P], AsyncIterator[R]]", face)


class Deletes(Protocol):
    """How sessions are deleted: one gives an erasure, several a list of them."""

    @overload
    def __call__(
        self, session_id: str, /, *, purge: bool = False, now: Now = None
    ) -> Awaitable[Erasure]: ...
    @overload
    def __call__(
        self, *session_ids: str, purge: bool = False, now: Now = None
    ) -> Awaitable[list[Erasure]]: ...


class AsyncStore:
    """A `Store` whose operations are awaited.

    Each runs whole in a thread of the store's own: ``threads`` for those that only read, and as
    many for those that may wait for other writers.
    """

    def __init__(
        self,
        target: Target,
        *,
        durability: str = "full",
        timeout: float = 30.0,
        threads: int = 8,
    ) -> None:
        self._threads = ThreadPoolExecutor(threads, "convostore")
        self._waiting = ThreadPoolExecutor(threads, "convostore-waiting")
        self._opened = self._threads.submit(Store, target, durability=durability, timeout=timeout)

    create_session = awaits(Store.create_session, waits=True)
    session = awaits(Store.session)
    sessions = awaits(Store.sessions)
    rename_session = awaits(Store.rename_session, waits=True)
    set_metadata = awaits(Store.set_metadata, waits=True)
    append = awaits(Store.append, waits=True)
    messages = awaits(Store.messages)
    pages = iterates(Store.pages)
    fork = awaits(Store.fork, waits=True)
    rewind = awaits(Store.rewind, waits=True)
    undo_rewind = awaits(Store.undo_rewind, waits=True)
    head_moves = awaits(Store.head_moves)
    view = awaits(Store.view)
    erasures = awaits(Store.erasures)
    verify = awaits(Store.verify)
    check = awaits(Store.check)
    record_usage = awaits(Store.record_usage, waits=True)
    compactions = awaits(Store.compactions)
    hidden = awaits(Store.hidden)
    replaced = awaits(Store.replaced)
    plan_compaction = awaits(Store.plan_compaction)
    undo_compaction = awaits(Store.undo_compaction, waits=True)
    compact = awaits(Store.compact, waits=True)
    compact_if_needed = awaits(Store.compact_if_needed, waits=True)
    context = awaits(Store.context)
    delete_session = cast("Deletes", awaits(Store.delete_session, waits=True))
    purge = awaits(Store.purge, waits=True)
    backup = awaits(Store.backup, waits=True)
    copies = awaits(Store.copies)
    count_tokens = awaits(Store.count_tokens, waits=True)

    async def _run(self, work: Work[R], *, waits: bool = False) -> R:
        """Run work in a thread of the store's pool.

        A cancelled task ends when its work has, or will never begin.

        Only for a summary the work waits no longer then.
        """
        patience = Patience()
        submitted = self._submit(_with_patience(work, patience), waits)
        future = asyncio.wrap_future(submitted)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            patience.end()
            future.add_done_callback(_end_unheard)
            if not submitted.cancel():
                await asyncio.wait([future])
            raise

    def _submit(self, work: Work[R], waits: bool) -> Submitted[R]:
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
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._waiting.shutdown()
        self._threads.shutdown()
        if self._opened.exception() is None:
            self._opened.result().close()

    async def __aenter__(self) -> Self:
        await asyncio.wrap_future(self._opened)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _with_patience(work: Work[R], patience: Patience) -> Work[R]:
    """Let work know, in a context of its own, how long it is waited for."""
    context = copy_context()
    context.run(PATIENCE.set, patience)
    return partial(context.run, work)


def _end_unheard(ended: asyncio.Future[Any]) -> None:
    """Take the error of work that nobody waits for any more, so that none is reported as lost."""
    if not ended.cancelled():
        ended.exception()
