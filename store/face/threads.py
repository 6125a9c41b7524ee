"""The threads that do the work of an awaited face, and the pages of a line that they read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from ..database import register_forkable
from ..errors import StoreError
from .calls import FaceMethod

ThreadParams = ParamSpec("ThreadParams")
ThreadResultT = TypeVar("ThreadResultT")
PageT = TypeVar("PageT")
OpenedT = TypeVar("OpenedT")
ThreadWork: TypeAlias = Callable[[], ThreadResultT]
"""A piece of work for a thread."""
GROUP_THREADS = 64
"""The most threads for appends to a file, which wait for each other without a connection."""


class Threads(Protocol):
    """An object with threads, and a face whose methods they call."""

    async def _run(
        self, work: ThreadWork[ThreadResultT], *, waits: bool = False, is_grouped: bool = False
    ) -> ThreadResultT:
        """Run work in a thread and return its result."""

    def _call(
        self,
        method: FaceMethod[ThreadParams, ThreadResultT],
        *args: ThreadParams.args,
        **options: ThreadParams.kwargs,
    ) -> ThreadResultT:
        """Call a method of the face."""


class StorePools(Generic[OpenedT]):
    """The threads of an awaited store, and the store that the first of them opens.

    Calls that come one after the other are all done by one thread, ``warm``: what it needs is in
    the caches of its processor. A pool gives them to its threads in turn. A forked child has none
    of the threads, so it begins with new ones.
    """

    def __init__(self, opening: ThreadWork[OpenedT], size: int) -> None:
        self._opening, self._size, self._is_over = opening, size, False
        self._opened: Future[OpenedT] | None = None
        self.start_in_child()
        self.open()
        register_forkable(self)

    def start_in_child(self) -> None:
        """Begin with new threads; what the others had to do is the parent's."""
        if self._is_over:
            return
        self._lock = Lock()
        self._warm = ThreadPoolExecutor(1, "convostore-warm")
        self._last: Future[Any] | None = None
        self.readers = ThreadPoolExecutor(self._size, "convostore")
        self.writers = ThreadPoolExecutor(self._size, "convostore-waiting")
        self.grouped = ThreadPoolExecutor(max(self._size, GROUP_THREADS), "convostore-grouped")
        if self._opened and not self._opened.done():
            self._opened = None  # begun again later: no thread can start inside of the fork

    def is_busy_elsewhere(self) -> bool:
        """Return False: the store itself tells a fork."""
        return False

    def open(self) -> Future[OpenedT]:
        """Return the opening of the store; ask before other work is given to the threads."""
        with self._lock:
            if self._opened is None:
                self._opened = self.readers.submit(self._opening)
            return self._opened

    def submit(
        self, pool: ThreadPoolExecutor, work: ThreadWork[ThreadResultT]
    ) -> Future[ThreadResultT]:
        """Give work to the warm thread, or to a pool while that has something to do."""
        with self._lock:
            if self._last is None or self._last.done():
                self._last = submitted = self._warm.submit(work)
                return submitted
        return pool.submit(work)

    def end(self) -> None:
        """Wait for running calls, and take no more."""
        self.open()
        self._is_over = True
        for pool in (self._warm, self.writers, self.grouped, self.readers):
            pool.shutdown()


class AsyncPages(AsyncIterator[PageT]):
    """The pages that a method of a face yields, each awaited; raises StoreError once closed."""

    def __init__(self, threads: Threads, opened: Callable[[], Iterator[PageT]]) -> None:
        self._threads, self._opened = threads, opened
        self._items: Iterator[PageT] | None = None
        self._is_closed = False

    async def __anext__(self) -> PageT:
        if self._is_closed:
            raise StoreError("these pages are closed; call `pages` again")
        if self._items is None:
            self._items = await self._threads._run(self._opened)
        item: PageT | None = await self._threads._run(partial(next, self._items, None))
        if item is None:
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Close the iterator: it yields no more pages."""
        self._is_closed = True
