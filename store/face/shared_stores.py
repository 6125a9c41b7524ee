"""The stores that a process shares: opened by their first users, closed by their last."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

SharedT = TypeVar("SharedT")


class Shares(Generic[SharedT]):
    """The open stores that a process shares, by their targets and settings."""

    def __init__(self) -> None:
        self._open: dict[object, SharedT] = {}
        self._users: Counter[int] = Counter()
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            free = self._lock.release
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=free, after_in_child=free
            )

    def take(self, key: object, opened: Callable[[], SharedT]) -> SharedT:
        """Return the store of a key, opened now if needed, and count one more user."""
        with self._lock:
            shared = self._open.get(key)
            if shared is None:
                shared = self._open[key] = opened()
            self._users[id(shared)] += 1
            return shared

    def give_back(self, shared: SharedT) -> bool:
        """Count one user less; return whether none is left, which is true of unshared stores."""
        with self._lock:
            self._users[id(shared)] -= 1
            if self._users[id(shared)] > 0:
                return False
            del self._users[id(shared)]
            self._open = {key: each for key, each in self._open.items() if each is not shared}
            return True
