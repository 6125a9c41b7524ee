"""Pages of a line, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TypeVar

from ..errors import StoreError
from .threads import Threads

R = TypeVar("R")


class AsyncPages(AsyncIterator[R]):
    """The pages that a method of a face yields, each awaited; raises StoreError once closed."""

    def __init__(self, threads: Threads, opened: Callable[[], Iterator[R]]) -> None:
        self._threads, self._opened = threads, opened
        self._items: Iterator[R] | None = None
        self._is_closed = False

    async def __anext__(self) -> R:
        if self._is_closed:
            raise StoreError("these pages were closed; ask for `pages` anew")
        if self._items is None:
            self._items = await self._threads._run(self._opened)
        item: R | None = await self._threads._run(partial(next, self._items, None))
        if item is None:
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """Close the iterator: it yields no more pages."""
        self._is_closed = True
