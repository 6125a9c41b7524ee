"""The threads that do the work of an awaited face, and the pages of a line that they read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import ParamSpec, Protocol, TypeAlias, TypeVar

from ..errors import StoreError
from .calls import FaceMethod

ThreadParams = ParamSpec("ThreadParams")
ThreadResultT = TypeVar("ThreadResultT")
PageT = TypeVar("PageT")
ThreadWork: TypeAlias = Callable[[], ThreadResultT]
"""A piece of work for a thread."""


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
