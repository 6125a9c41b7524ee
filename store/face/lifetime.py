"""The lifetime of a handle, and the thread that may use it.

A handle that is kept, or given to another thread, would go on working after the end of its
transaction, on a connection that is someone else's by now, and nobody would commit its writes. So
each method checks first.
"""

from __future__ import annotations

import os
from threading import get_ident
from typing import Self

from ..errors import StoreError, StoreForked


class Lifetime:
    """The time from the beginning of a handle to its end, in the thread that began it."""

    def __init__(self, handle: str) -> None:
        self._handle = handle
        self._thread, self._process = get_ident(), os.getpid()
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True

    def check(self) -> None:
        """Raise StoreError after the end, in another thread, and in a forked process."""
        if self._process != os.getpid():
            raise StoreForked(f"{self._handle} belong to the parent process; nothing was done")
        if self._is_over:
            raise StoreError(f"{self._handle} have ended; nothing was done; use the store itself")
        if self._thread != get_ident():
            raise StoreError(
                f"{self._handle} belong to the thread that began them; nothing was done"
            )
