"""What a process keeps in memory of what it has read: bounded, safe for threads.

Who keeps something says how it is known that it is still true: here it is only held. A transaction
that writes adds nothing, since what it sees may never come to be.

Words that were erased or redacted are to go from memory, too, at once and not only when they are
asked for again. So whatever is kept of a tree has the tree first in its key, and when something of
it was taken out, `invalidate_tree` drops all of it, in every open store of the process. Somebody
may still read the state from before, and would keep it again a moment later: who begins to read
notes how often anything was forgotten until then, and what is read before such a moment is not kept
behind it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from itertools import chain, count
from sys import getsizeof
from threading import Lock
from types import NoneType
from typing import Any, Protocol
from weakref import WeakValueDictionary

from ..errors import InvalidValue
from ..text import clear_caches

DEFAULT_CACHE_BYTES = 64_000_000
"""What a store keeps, if nothing else is said."""

_FLAT = frozenset((str, bytes, int, float, bool, NoneType))
"""Types of values that hold no others: a row of a table has nothing else."""

CacheKey = tuple[Hashable, ...]
"""What something is kept under: the number of a tree, then anything."""


class _Forgotten:
    """How often anything was forgotten in this process."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.times = 0

    def again(self) -> None:
        """Count once more."""
        self.times = next(self._numbers)


class TreeCache(Protocol):
    """Whoever keeps anything of trees."""

    def forget(self, tree_id: int) -> None:
        """Keep nothing of a tree any more."""


invalidations = _Forgotten()
_all: WeakValueDictionary[int, TreeCache] = WeakValueDictionary()


def register_tree_cache(keeper: TreeCache) -> None:
    """Tell somebody from now on of each tree that is to be forgotten."""
    _all[id(keeper)] = keeper


def is_current(since: int | None) -> bool:
    """Tell whether what was read may be kept; by a reader who began ``since`` then, by no writer.

    Whoever asks holds a lock that its `forget` waits for.
    """
    return since == invalidations.times


class Cache:
    """Values by key, of at most ``limit`` together; what was asked for last stays longest.

    A value is never changed once it is here: a later one takes its place.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = Lock()
        self._values: OrderedDict[CacheKey, tuple[Any, int]] = OrderedDict()
        self._hits = self._misses = self._bytes = 0
        register_tree_cache(self)

    def get(self, key: CacheKey) -> Any:
        """Return what is kept under a key, None where nothing is."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def count(self, *, hit: bool) -> None:
        """Count a value that what is kept was of use for, or one that was made anew."""
        with self._lock:
            self._hits += hit
            self._misses += not hit

    def put(self, key: CacheKey, value: Any, size: int, since: int | None) -> None:
        """Keep a value of a size; what was not asked for longest goes for it.

        Nothing goes for one that is larger than all the room. It was read when things had been
        forgotten ``since`` times; by a writer, None.
        """
        with self._lock:
            if not is_current(since):
                return
            self._take_out(key)
            if size > self.limit:
                return
            self._values[key] = value, size
            self._bytes += size
            while self._bytes > self.limit:
                self._take_out(next(iter(self._values)))

    def forget(self, tree_id: int) -> None:
        """Keep nothing of a tree any more."""
        with self._lock:
            for key in [each for each in self._values if each[0] == tree_id]:
                self._take_out(key)

    def figures(self) -> tuple[int, int, int, int]:
        """Return how many were of use, how many were not there, the bytes and number there are."""
        with self._lock:
            return self._hits, self._misses, self._bytes, len(self._values)

    def _take_out(self, key: CacheKey) -> None:
        _, size = self._values.pop(key, (None, 0))
        self._bytes -= size


def invalidate_tree(tree_id: int) -> None:
    """Keep nothing of a tree any more, wherever this process does."""
    invalidations.again()
    for reference in _all.valuerefs():  # made in one step: meanwhile others open stores
        if keeper := reference():
            keeper.forget(tree_id)
    clear_caches()


def measure_bytes(value: object) -> int:
    """Return about how many bytes a value takes that is of texts and numbers, however they nest."""
    if isinstance(value, dict):
        within: Iterable[object] = chain(value, value.values())
    elif isinstance(value, list | tuple):
        within = value
    else:
        return getsizeof(value)
    sizes = [getsizeof(each) if type(each) in _FLAT else measure_bytes(each) for each in within]
    return getsizeof(value) + sum(sizes)


def check_cache_bytes(limit: int) -> int:
    """Return how many bytes may be kept. Raises InvalidValue."""
    if type(limit) is not int or limit < 0:
        raise InvalidValue(f"cache_bytes is a number of bytes, 0 for none, not {limit!r}")
    return limit
