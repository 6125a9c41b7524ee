"""Limits of a store on a server: of its connections, and of the time that it waits for them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sized
from typing import Any, NamedTuple

from ..errors import InvalidValue, Unavailable, quote_value

MOST_SECONDS_OF_A_LIMIT = 2_000_000
"""Seconds that fit into a server's ms of 32 bits."""
MOST_CONNECTIONS = 100_000


class ConnectionPlaces:
    """The places for connections that operations use at the same time."""

    def __init__(self, most: int | None, seconds: float) -> None:
        """Offer ``most`` places, each waited for that many seconds; None: as many as are asked."""
        self._free = threading.Semaphore(most or 0)
        self._most, self._seconds = most, seconds
        self.taken: set[object] = set()

    def take(self, operation: object) -> None:
        """Take a place for an operation. Raises Unavailable if none gets free in time."""
        if self._most is None:
            return
        if not self._free.acquire(timeout=self._seconds):
            raise Unavailable(
                f"none of the {self._most} connections of the pool was free for {self._seconds:g} "
                "seconds; nothing was written, try again later"
            )
        self.taken.add(operation)

    def has_room(self, idle: Iterable[Sized]) -> bool:
        """Tell whether idle connections may stay open beside those in use."""
        return self._most is None or len(self.taken) + sum(map(len, idle)) <= self._most

    def give_back(self, operation: object) -> None:
        """Give the place of an operation back, if it has one."""
        if operation in self.taken:
            self.taken.discard(operation)
            self._free.release()


class ServerLimits(NamedTuple):
    """The limits that a host sets; None of each is the default."""

    pool: tuple[int, int] | None = None
    pool_wait: float | None = None
    connect_timeout: float | None = None
    statement_timeout: float | None = None

    def checked(self, *, is_file: bool) -> ServerLimits:
        """Return the limits. Raises InvalidValue for one that cannot be, and for any on a file."""
        given = [name for name, value in self._asdict().items() if value is not None]
        if is_file and given:
            raise InvalidValue(f"{given[0]} is for a server; a file has no use for it")
        for name in given:
            if name != "pool":
                _check_seconds(name, getattr(self, name))
        if self.pool is not None:
            _check_pool(self.pool)
        elif self.pool_wait is not None:
            raise InvalidValue("pool_wait is the wait for a connection of a pool; give pool=, too")
        return self

    def build_places(self, timeout: float) -> ConnectionPlaces:
        """Return the places of the pool; without a wait of its own it has that of the store."""
        seconds = timeout if self.pool_wait is None else self.pool_wait
        return ConnectionPlaces(self.pool[1] if self.pool else None, seconds)


def _check_seconds(name: str, value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    least = 0 if name == "pool_wait" else 0.001
    if not is_number or not least <= value <= MOST_SECONDS_OF_A_LIMIT:
        raise InvalidValue(
            f"{name} must be in seconds, from {least} to {MOST_SECONDS_OF_A_LIMIT:,}, not "
            f"{quote_value(value)}"
        )


def _check_pool(pool: Any) -> None:
    is_pair = isinstance(pool, tuple | list) and len(pool) == 2
    if not is_pair or any(type(each) is not int for each in pool):
        raise InvalidValue(
            f"pool must be two numbers of connections, (least, most), not {quote_value(pool)}"
        )
    least, most = pool
    if not 0 <= least <= most <= MOST_CONNECTIONS or most == 0:
        raise InvalidValue(
            f"pool must be (least, most) with 0 <= least <= most and most from 1 to "
            f"{MOST_CONNECTIONS:,}, not {quote_value(pool)}"
        )
