"""Pages of a line, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TypeVar

from ..errors import StoreError
from .threads import Threads

PageT = TypeVar("PageT")


class AsyncPages(AsyncIterator[PageT]):
    """The pages that a method of a face yields, each awaited; raises StoreError once closed."""

    def __init__(self, threads: Threads, opened: Callable[[], Iterator[PageT]]) -> None:
        self._threads, self._opened = threads, opened
        self._items: Iterator[PageT] | None = None
        self._is_closed = False

    async def __anext__(self) -> PageT:
        if self._is_closed:
            raise StoreError("these pages were closed; ask for `pages` anew")
        if self._items is None:
            self._items = await self._threads._run(self._opened)
        item: PageT | None = await self._threads._run(partial(next, self._items, None))
        if item is None:
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Close the iterator: it yields no more pages."""
        self._is_closed = True
