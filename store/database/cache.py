"""A cache of rows and values read by a process: bounded, safe for threads.

The cache only holds values; its callers decide whether a value is still valid. A transaction that
writes adds nothing, since it may be rolled back.

Words that were erased or redacted must also leave memory, at once and not only at the next request
for them. So each cached value of a tree has the tree first in its key, and when rows of the tree
were taken out, `invalidate_trees` drops all its values, in every open store of the process. Another
thread may still read the earlier state, and would cache it again a moment later: so a reader notes
the number of invalidations at its start, and its values are not cached if that number has grown
meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable
from itertools import chain, count
from sys import getsizeof
from threading import Lock
from types import NoneType
from typing import Any, Protocol
from weakref import WeakValueDictionary

from ..text import clear_caches
from .operation_counters import Counters

DEFAULT_CACHE_BYTES = 64_000_000
"""The limit of a store's cache by default, in bytes."""

MAX_SESSION_TREES = 4096
"""How many sessions a store knows the trees of."""

_FLAT_TYPES = frozenset((str, bytes, int, float, bool, NoneType))
"""Types of values that hold no others: a row of a table has only these."""

CacheKey = tuple[Hashable, ...]
"""The key of a value: the number of a tree, then anything."""


class _InvalidationCount:
    """The number of invalidations in this process."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.times = 0

    def again(self) -> None:
        """Count once more."""
        self.times = next(self._numbers)


class TreeValueCache(Protocol):
    """A cache that holds values of trees."""

    def forget(self, trees: Collection[int]) -> None:
        """Keep nothing of some trees any more."""


invalidation_count = _InvalidationCount()
_tree_caches: WeakValueDictionary[int, TreeValueCache] = WeakValueDictionary()


def register_tree_cache(keeper: TreeValueCache) -> None:
    """Tell a cache from now on of each tree that must be forgotten."""
    _tree_caches[id(keeper)] = keeper


def is_mark_current(since: int | None) -> bool:
    """Tell whether a value may be cached: only by a reader, if ``since`` is still the count.

    The caller holds a lock that its `forget` waits for.
    """
    return since == invalidation_count.times


class SessionTrees:
    """The trees of the sessions that were asked for last, by their ids.

    A session stays in its tree as long as it lives. An entry may be of a session that is gone, so
    whoever finds no row in the tree asks the database again.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, Lock()
        self._trees: dict[str, int] = {}
        register_tree_cache(self)

    def get(self, session_id: object) -> int | None:
        """Return the tree of a session, None if it is unknown or the id is no text."""
        return self._trees.get(session_id) if isinstance(session_id, str) else None

    def put(self, session_id: str, tree_id: int, since: int | None) -> None:
        """Keep the tree of a session; ``since`` is as in `Cache.put`, None for a writer.

        A writer may keep it, too: what a rollback takes back is not found and asked for again.
        """
        if self._trees.get(session_id) == tree_id:
            return
        with self._lock:
            if self._limit and (since is None or is_mark_current(since)):
                while len(self._trees) >= self._limit:
                    del self._trees[next(iter(self._trees))]
                self._trees[session_id] = tree_id

    def forget(self, trees: Collection[int]) -> None:
        """Keep nothing of some trees any more."""
        with self._lock:
            for session_id in [each for each, tree in self._trees.items() if tree in trees]:
                del self._trees[session_id]


class Cache:
    """Values by key, of at most ``limit`` bytes together; the least recently used go first.

    A cached value is never changed: a later one replaces it. ``counters`` are those of its store.
    """

    def __init__(self, limit: int, counters: Counters | None = None) -> None:
        self.limit = limit
        self.trees = SessionTrees(MAX_SESSION_TREES if limit else 0)
        self.counters = counters or Counters()
        self._lock = Lock()
        self._values: OrderedDict[CacheKey, tuple[Any, int]] = OrderedDict()
        self._hits = self._misses = self._bytes = 0
        register_tree_cache(self)

    def get(self, key: CacheKey) -> Any:
        """Return the value of a key, None if there is none."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def count(self, *, hit: bool) -> None:
        """Count a hit, a value that the cache was of use for, or a miss, one made anew."""
        with self._lock:
            self._hits += hit
            self._misses += not hit

    def put(self, key: CacheKey, value: Any, size: int, since: int | None) -> None:
        """Cache a value of a size in bytes; the least recently used values make room for it.

        A value larger than the limit is not cached, and no other leaves for it. ``since`` is the
        count of invalidations when the read began; None for a writer.
        """
        with self._lock:
            if not is_mark_current(since):
                return
            self._take_out(key)
            if size > self.limit:
                return
            self._values[key] = value, size
            self._bytes += size
            while self._bytes > self.limit:
                self._take_out(next(iter(self._values)))

    def forget(self, trees: Collection[int]) -> None:
        """Keep nothing of some trees any more."""
        with self._lock:
            for key in [each for each in self._values if each[0] in trees]:
                self._take_out(key)

    def figures(self) -> tuple[int, int, int, int]:
        """Return the number of hits, of misses, of cached bytes and of cached values."""
        with self._lock:
            return self._hits, self._misses, self._bytes, len(self._values)

    def _take_out(self, key: CacheKey) -> None:
        _, size = self._values.pop(key, (None, 0))
        self._bytes -= size


def invalidate_trees(trees: Collection[int]) -> None:
    """Drop all values of some trees from all caches of this process."""
    invalidation_count.again()
    for reference in _tree_caches.valuerefs():  # made in one step: meanwhile others open stores
        if keeper := reference():
            keeper.forget(trees)
    clear_caches()


def measure_bytes(value: object) -> int:
    """Return about how many bytes a value takes, made of texts and numbers, nested or not."""
    if isinstance(value, dict):
        within: Iterable[object] = chain(value, value.values())
    elif isinstance(value, list | tuple):
        within = value
    else:
        return getsizeof(value)
    sizes = [
        getsizeof(each) if type(each) in _FLAT_TYPES else measure_bytes(each) for each in within
    ]
    return getsizeof(value) + sum(sizes)
