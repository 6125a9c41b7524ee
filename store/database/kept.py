"""What an open store keeps in memory of what it has read: bounded in bytes, safe for threads.

Who keeps something says how it is known that it is still true: here it is only held. A transaction
that writes sees nothing of it and adds nothing, since what it sees may never come to be.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any

from ..errors import InvalidValue

BYTES = 64_000_000
"""What a store keeps, if nothing else is said."""


class Kept:
    """Values by key, of at most ``limit`` bytes together; what was asked for last stays longest.

    A value is never changed once it is here: a later one takes its place.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = Lock()
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._hits = self._misses = self._bytes = 0

    def get(self, key: Hashable) -> Any:
        """Return what is kept under a key, None where nothing is."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def count(self, *, hit: bool) -> None:
        """Count a value that what is kept was of use for, or one that was made anew."""
        with self._lock:
            self._hits += hit
            self._misses += not hit

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value of about so many bytes; what was not asked for longest goes for it."""
        with self._lock:
            self._take_out(key)
            self._values[key] = value, size
            self._bytes += size
            while self._bytes > self.limit:
                self._take_out(next(iter(self._values)))

    def forget(self, key: Hashable) -> None:
        """Keep nothing under a key any more."""
        with self._lock:
            self._take_out(key)

    def figures(self) -> tuple[int, int, int, int]:
        """Return how many were of use, how many were not there, the bytes and number there are."""
        with self._lock:
            return self._hits, self._misses, self._bytes, len(self._values)

    def _take_out(self, key: Hashable) -> None:
        _, size = self._values.pop(key, (None, 0))
        self._bytes -= size


def checked_bytes(limit: int) -> int:
    """Return how many bytes may be kept. Raises InvalidValue."""
    if type(limit) is not int or limit < 0:
        raise InvalidValue(f"cache_bytes is a number of bytes, 0 for none, not {limit!r}")
    return limit
