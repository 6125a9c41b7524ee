"""Threads that go on appending whatever a server does, and what they were told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from store import Store
from store.errors import StoreError


class Writers:
    """Threads that append to the session ``s`` until it is over.

    ``acknowledged`` are the texts of the messages that were stored, ``told`` the errors.
    """

    def __init__(self, store: Store, count: int, is_over: Callable[[], bool]) -> None:
        self._store, self._is_over = store, is_over
        self.acknowledged: list[str] = []
        self.told: list[StoreError] = []
        self._threads = [
            threading.Thread(target=self._write, args=(thread,)) for thread in range(count)
        ]
        for each in self._threads:
            each.start()

    def _write(self, thread: int) -> None:
        number = 0
        while not self._is_over():
            name = f"{thread} {number}"
            try:
                self._store.append("s", {"role": "user", "content": name, "id": name})
                self.acknowledged.append(name)
                number += 1
            except StoreError as error:
                self.told.append(error)
                time.sleep(0.05)

    def join(self) -> None:
        """Wait for the threads, which end when it is over."""
        for each in self._threads:
            each.join()
