"""`AsyncStore`: the operations of `Store`, awaited.

It works under asyncio and under trio; anyio covers their differences.

If the operation of a cancelled task was still waiting, for its turn or for a lock, it has not
happened, and the task ends at once. An operation that had begun is finished first, and the
cancellation gets a note that says so. A summary that is being written is the exception: nothing
waits for it, and its compaction ends as failed. Operations that may wait for other writers, or for
a summary, have threads of their own, so that readers find a thread however many of them wait.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

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
from .async_operations import AsyncOperations, AsyncScopedOperations, AsyncStoreOperations
from .async_streaming import AsyncStreaming
from .calls import FaceMethod
from .store import Scoped, Store, Target, validate_owner
from .streaming import SAVE_EVERY_BYTES, SAVE_EVERY_MS
from .threads import StorePools, ThreadWork
from .workflows import Workflows

if TYPE_CHECKING:
    from sqlalchemy import URL

    from ..messages import GivenMessage
    from ..records import Draft, Session

AsyncParams = ParamSpec("AsyncParams")
AsyncResultT = TypeVar("AsyncResultT")
CANCEL_INTERVAL = 0.25
"""Seconds until work whose task was cancelled is told so again.

A server ignores a cancellation that arrives between two statements.
"""

SUMMARY_GRACE = 1.0
"""Seconds after which a summary that nobody waits for any more is cancelled in its loop."""

FINISHED_NOTE = "the operation had begun, so it was brought to its end: what it was to do is done"
FAILED_NOTE = "the operation had begun, so it was brought to its end, and failed: {!r}"


class AsyncWorkflows(AsyncOperations):
    """The workflows on sessions, awaited."""

    async def call(
        self,
        work: Callable[Concatenate[Any, AsyncParams], AsyncResultT],
        *args: AsyncParams.args,
        **options: AsyncParams.kwargs,
    ) -> AsyncResultT:
        """Call a function that takes a store, such as `export_session` or `import_file`.

        It runs in a thread, with this store as its first argument. Returns its result, and raises
        its exceptions.
        """
        return await self._run(partial(self._call, work, *args, **options), waits=True)

    async def wait(
        self,
        session_id: str,
        revision: str | None,
        timeout: float = 30.0,  # noqa: ASYNC109 - nothing is raised at its end
        *,
        drafts: bool = False,
    ) -> Session | None:
        """Wait until a session has another revision and return it; None after ``timeout`` seconds.

        With ``drafts`` the wait also ends when one of the session's drafts begins, grows, ends or
        dies. Reads from a file only after somebody has written to it. A server tells of a change,
        and is asked again every 5 seconds; behind a pooler and on a standby it is asked five times
        a second. Raises SessionNotFound, also if the session is deleted meanwhile, and
        InvalidValue.
        """
        asked = partial(self._call, Workflows._watch, session_id, revision, timeout, drafts=drafts)
        watch = await self._run(asked)
        alarm = _LoopAlarm()
        with watch.changes.woken_by(alarm.ring):
            while (changed := await self._run(watch.look)) is None and watch.has_time():
                await alarm.wait(watch.pause)
        return changed

    async def follow(self, draft: str | Draft, key: str = "content") -> AsyncIterator[str]:
        """Yield the text of an answer that any process streams, from the beginning until its end.

        ``draft`` is its id, or a draft that `drafts` returned; ``key`` the key of the message that
        the text belongs to. Waits for more text as long as the draft is live. Afterwards the answer
        is a message of the session, or its draft is in `drafts` and no longer live. Raises
        DraftNotFound.
        """
        watch = await self._run(partial(self._call, Workflows._watch_draft, draft, key))
        alarm = _LoopAlarm()
        with watch.changes.woken_by(alarm.ring):
            while (texts := await self._run(watch.look)) is not None:
                for text in texts:
                    yield text
                await alarm.wait(watch.pause)

    def streaming(
        self,
        session_id: str,
        message: GivenMessage,
        *,
        expected: str | None = None,
        every_bytes: int = SAVE_EVERY_BYTES,
        every_ms: int = SAVE_EVERY_MS,
        format: str | None = None,  # noqa: A002 - the public name
        alone: bool = False,
    ) -> AsyncStreaming:
        """Stream an answer: ``with store.streaming(id, message) as answer: answer.write(text)``.

        ``message`` is the beginning of the answer: its role, maybe more; ``format`` names the
        format of the whole, as in `append`. The text is saved beside the line, as a draft, after
        every ``every_bytes`` bytes of it (UTF-8), and at the latest with the first text that comes
        ``every_ms`` ms after the last save: a killed process loses less than that.

        Leaving the ``with`` appends the message and deletes the draft, in one change. After an
        exception the draft stays, with all of the text. It also stays, and Conflict is raised, if
        the head has moved since the beginning, or the revision ``expected`` is not the session's.
        Until the end the draft is live, however long no text comes: a heartbeat of the process
        tells others. ``alone`` refuses a session to which another answer is under way. Entering
        raises SessionNotFound, Conflict, DraftBusy, InvalidMessage, InvalidValue; leaving, and
        saving, DraftEnded if somebody finished or discarded the draft meanwhile.
        """
        opened = partial(
            self._call,
            Workflows.streaming,
            session_id,
            message,
            expected=expected,
            every_bytes=every_bytes,
            every_ms=every_ms,
            format=format,
            alone=alone,
        )
        return AsyncStreaming(self, opened)


class AsyncStore(AsyncWorkflows, AsyncStoreOperations):
    """A `Store` whose operations are awaited.

    ``target`` is the target of a `Store`, or an open store, which stays open when this one is
    closed. Each operation runs as a whole in one of the store's own threads: ``threads`` for
    operations that only read, and as many for those that may wait for other writers. Appends to a
    file, which are written together and need one connection for all, have up to 64. One more does
    what comes while nothing else is under way.
    """

    def __init__(
        self,
        target: Target | Store,
        *,
        durability: str = "full",
        timeout: float = 30.0,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        check_reads: bool = False,
        read_only: bool = False,
        pooler: bool = False,
        pool: tuple[int, int] | None = None,
        pool_wait: float | None = None,
        connect_timeout: float | None = None,
        statement_timeout: float | None = None,
        read_url: str | URL | None = None,
        threads: int = 8,
    ) -> None:
        self._is_given = isinstance(target, Store)
        opening = partial(
            _open_store,
            target,
            durability=durability,
            timeout=timeout,
            cache_bytes=cache_bytes,
            check_reads=check_reads,
            read_only=read_only,
            pooler=pooler,
            pool=pool,
            pool_wait=pool_wait,
            connect_timeout=connect_timeout,
            statement_timeout=statement_timeout,
            read_url=read_url,
        )
        self._pools = StorePools(opening, threads)

    def scoped(self, owner: str) -> AsyncScoped:
        """Return a face that sees and touches the sessions of an owner only, without waiting.

        It has no connections of its own: closing the store ends it. Raises InvalidValue for an
        invalid owner.
        """
        return AsyncScoped(self, partial(self._call, Store.scoped, owner), owner)

    async def _run(
        self, work: ThreadWork[AsyncResultT], *, waits: bool = False, is_grouped: bool = False
    ) -> AsyncResultT:
        """Run work in a thread of the store's pool and return its result."""
        caller = Caller(partial(_finish_in_loop, current_token()))
        context = copy_context()
        context.run(CURRENT_CALLER.set, caller)
        submitted = self._submit(partial(context.run, work), waits=waits, is_grouped=is_grouped)
        ended = _watch_end(submitted)
        try:
            await ended.wait()
        except GeneratorExit:  # there is no loop any more to wait in
            raise
        except BaseException as stopped:
            if not submitted.cancel():
                with CancelScope(shield=True):
                    while not ended.is_set():  # a server may be slow to answer, hence the thread
                        Thread(target=caller.leave, daemon=True).start()
                        with move_on_after(CANCEL_INTERVAL):
                            await ended.wait()
                failure = submitted.exception()
                if not isinstance(failure, Cancelled):
                    stopped.add_note(FAILED_NOTE.format(failure) if failure else FINISHED_NOTE)
            raise
        return submitted.result()

    def _submit(
        self, work: ThreadWork[AsyncResultT], *, waits: bool, is_grouped: bool
    ) -> Future[AsyncResultT]:
        """Give work to the threads for writers if it ``waits``, else to those for readers.

        Work that ``is_grouped`` needs no connection while it waits for a file.
        """
        pools = self._pools
        try:
            opened = pools.open()
            threads = pools.writers if waits or is_grouped else pools.readers
            if is_grouped and _is_file(opened):
                threads = pools.grouped
            return pools.submit(threads, work)
        except RuntimeError as error:
            raise StoreClosed("the store is closed; open it again") from error

    @property
    def _opened(self) -> Future[Store]:
        """The opening of the store, which its threads do before anything else."""
        return self._pools.open()

    def _call(
        self,
        method: FaceMethod[AsyncParams, AsyncResultT],
        *args: AsyncParams.args,
        **options: AsyncParams.kwargs,
    ) -> AsyncResultT:
        """Call a method of the store."""
        return method(self._opened.result(), *args, **options)

    async def close(self) -> None:
        """Wait for running operations and give back all connections.

        A cancelled close still runs to its end.
        """
        with CancelScope(shield=True):
            await to_thread.run_sync(self._end, limiter=CapacityLimiter(1))

    def _end(self) -> None:
        self._pools.end()
        if self._opened.exception() is None and not self._is_given:
            self._opened.result().close()

    async def __aenter__(self) -> Self:
        await _watch_end(self._opened).wait()
        self._opened.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncScoped(AsyncWorkflows, AsyncScopedOperations):
    """A `Scoped` whose operations are awaited, as `AsyncStore.scoped` returns it."""

    def __init__(self, store: AsyncWorkflows, scoped: Callable[[], Scoped], owner: str) -> None:
        self._store, self._scoped, self._owner = store, scoped, validate_owner(owner)

    @property
    def owner(self) -> str:
        """The owner of the sessions."""
        return self._owner

    async def _run(
        self, work: ThreadWork[AsyncResultT], *, waits: bool = False, is_grouped: bool = False
    ) -> AsyncResultT:
        """Run work in a thread of the whole store."""
        return await self._store._run(work, waits=waits, is_grouped=is_grouped)

    def _call(
        self,
        method: FaceMethod[AsyncParams, AsyncResultT],
        *args: AsyncParams.args,
        **options: AsyncParams.kwargs,
    ) -> AsyncResultT:
        """Call a method of the owner's face."""
        return method(self._scoped(), *args, **options)


_OPTION_DEFAULTS = {
    "durability": "full",
    "timeout": 30.0,
    "cache_bytes": DEFAULT_CACHE_BYTES,
    "check_reads": False,
    "read_only": False,
    "pooler": False,
    "pool": None,
    "pool_wait": None,
    "connect_timeout": None,
    "statement_timeout": None,
    "read_url": None,
}


def _open_store(target: Target | Store, **settings: Any) -> Store:
    """Open a store, or return the one that is open already. Raises StoreError."""
    if not isinstance(target, Store):
        return Store(target, **settings)
    if settings != _OPTION_DEFAULTS:
        raise InvalidValue("an open store has its settings already; do not pass any")
    return target


def _is_file(opened: Future[Store]) -> bool:
    """Tell whether a store is open, and a file."""
    is_open = opened.done() and not opened.exception()
    return is_open and opened.result().database.path is not None


def _finish_in_loop(
    loop: EventLoopToken, work: Awaitable[AsyncResultT], seconds: float | None
) -> AsyncResultT:
    """Run work in an event loop from a thread outside of it, and return its result."""
    return from_thread.run(_await_within, work, seconds, token=loop)


async def _await_within(work: Awaitable[AsyncResultT], seconds: float | None) -> AsyncResultT:
    with fail_after(None if seconds is None else seconds + SUMMARY_GRACE):
        return await work


def _find_loop_entrance() -> Callable[[Callable[[], object]], object]:
    """Return the function by which any thread has something called in this loop."""
    loop: Any = current_token().native_token
    asyncio_entrance = getattr(loop, "call_soon_threadsafe", None)
    return asyncio_entrance or loop.run_sync_soon  # type: ignore[no-any-return]


class _LoopAlarm:
    """An alarm that any thread rings, and that wakes a task of this loop."""

    def __init__(self) -> None:
        self._event, self._tell = Event(), _find_loop_entrance()

    def ring(self) -> None:
        """End the wait of the task, or its next one."""
        with suppress(RuntimeError):  # the loop has ended before
            self._tell(self._event.set)

    async def wait(self, seconds: float) -> None:
        """Wait until it has rung since the last wait, or for so many seconds."""
        with move_on_after(seconds):
            await self._event.wait()
        self._event = Event()


def _watch_end(submitted: Future[Any]) -> Event:
    """Return an event that a task of this loop can await: the end of work in a thread."""
    ended, tell = Event(), _find_loop_entrance()

    def notify(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended before
            tell(ended.set)

    submitted.add_done_callback(notify)
    return ended
