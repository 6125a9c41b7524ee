"""Counts and times of the operations of an open store, summed up when they are asked for.

An operation adds a few values, from any thread. So adding is one step of the interpreter, without a
lock: the values wait in a queue, and are summed up when there are many, or when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from threading import Lock
from typing import NamedTuple, TypeAlias

CounterKey: TypeAlias = tuple[str, ...]
"""The kind of a value, then its labels."""

TIME_LIMITS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
"""The upper limits, in seconds, between which times are counted."""
TIMED_KINDS = ("operation", "queue")
"""The kinds of values that are times."""
MOST_UNSUMMED = 500
"""The values that may wait to be summed up."""
MOST_KEYS = 2_000
"""The keys with a sum of their own; whatever else has labels is counted as ``other``."""


class CounterSum(NamedTuple):
    """The number of values, their total, and how many are in each range of time."""

    number: int
    total: float
    ranges: tuple[int, ...]


class Counters:
    """Sums of values by key."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[CounterKey, float]] = deque()
        self._lock = Lock()
        self._sums: dict[CounterKey, CounterSum] = {}

    def add(self, key: CounterKey, value: float = 1) -> None:
        """Add a value."""
        self._waiting.append((key, value))
        if len(self._waiting) > MOST_UNSUMMED and self._lock.acquire(blocking=False):
            try:
                self._sum_up()
            finally:
                self._lock.release()

    def get_sums(self) -> dict[CounterKey, CounterSum]:
        """Return the sums up to now."""
        with self._lock:
            self._sum_up()
            return dict(self._sums)

    def _sum_up(self) -> None:
        for _ in range(len(self._waiting)):
            key, value = self._waiting.popleft()
            if key not in self._sums and len(self._sums) >= MOST_KEYS:
                key = (key[0], *("other" for _ in key[1:]))
            count, total, ranges = self._sums.get(key) or CounterSum(0, 0, ())
            if key[0] in TIMED_KINDS:
                counted = [*(ranges or (0,) * (len(TIME_LIMITS) + 1))]
                counted[bisect_left(TIME_LIMITS, value)] += 1
                ranges = tuple(counted)
            self._sums[key] = CounterSum(count + 1, total + value, ranges)
