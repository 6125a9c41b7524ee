"""A pause of Python's cyclic garbage collector while thousands of messages are being made.

It runs after many containers were made, and walks through all that are alive. The containers of a
long read are all alive and have no cycles, so more than half of its time went into useless walks.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

PAUSE_THRESHOLD = 500
"""The least number of messages for which the pause is worth while."""


_NO_PAUSE = nullcontext()


def pause_gc(messages: int) -> AbstractContextManager[None]:
    """Pause the collector while a number of messages is made, if they are many.

    If a host has switched it off, it stays off; threads that overlap at worst end the pause early.
    """
    return _NO_PAUSE if messages < PAUSE_THRESHOLD or not gc.isenabled() else _pause_collector()


@contextmanager
def _pause_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
