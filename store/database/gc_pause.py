"""Python's cyclic garbage collector, kept from running while thousands of messages are being made.

It runs when many containers were made, and walks through all that are alive. What a long read makes
is all alive and has no cycles, so more than half of its time went into walks that find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

MANY = 500
"""Messages from which on it is worth while."""


_RUNNING = nullcontext()


def pause_gc(messages: int) -> AbstractContextManager[None]:
    """Keep the collector from running while so many messages are made, if they are many.

    It stays as it is for a host that has switched it off; threads that overlap at worst end the
    pause early.
    """
    return _RUNNING if messages < MANY or not gc.isenabled() else _paused()


@contextmanager
def _paused() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
