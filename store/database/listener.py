"""The connection on which a process hears of changes; `notifications` tells when they are sent."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from .driver_errors import list_driver_errors
from .notifications import CHANNEL, LOCK_SPACE, LOCKS

LINGER_SECONDS = 10.0
"""Seconds for which a lock, or the connection, is kept although nobody waits."""
RETRY_SECONDS = 0.1
"""Seconds until a lock is tried again that a writer has."""
RECONNECT_SECONDS = 1.0
"""Seconds after which a connection that was lost, or never came, is made anew."""
UNHEARD_SECONDS = 60.0
"""Seconds after which a server that tells nothing is asked whether it does now."""

_TELLS_NOTHING = "SELECT pg_is_in_recovery() OR to_regclass('pg_dist_node') IS NOT NULL"
_LOCKED = "SELECT lock FROM unnest(%s::int[]) AS lock WHERE {}({}, lock)"
_LOCK = _LOCKED.format("pg_try_advisory_lock_shared", LOCK_SPACE)
_UNLOCK = _LOCKED.format("pg_advisory_unlock_shared", LOCK_SPACE)

Wake = Callable[[], None]


class Listener:
    """Wakes those of a process who wait for trees, as long as there are any.

    ``connect`` opens a connection of the driver. It has a thread, which is the only one to use the
    connection; both end when nobody has waited for a while.
    """

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect, self._guard = connect, threading.Lock()
        self._waiting: dict[int, set[Wake]] = {}
        self._held: dict[int, float] = {}
        self._thread: threading.Thread | None = None
        self._driver: Any = None
        self._again_at, self._is_closed = 0.0, False
        self._alarm: socket.socket | None = None

    def add(self, tree_id: int, wake: Wake) -> None:
        """Wake somebody at changes of a tree, and as soon as they are heard, or no longer."""
        with self._guard:
            self._waiting.setdefault(tree_id, set()).add(wake)
        self._ring()

    def remove(self, tree_id: int, wake: Wake) -> None:
        """Wake somebody no more."""
        with self._guard:
            kept = self._waiting.get(tree_id, set())
            kept.discard(wake)
            if not kept:
                self._waiting.pop(tree_id, None)

    def hears(self, tree_id: int) -> bool:
        """Tell whether each change of a tree is heard from now on; connect anew if it is time."""
        if self._thread is None and not self._is_closed and time.monotonic() >= self._again_at:
            with self._guard, suppress(RuntimeError):  # no thread can be started: it looks often
                if self._thread is None:
                    started = threading.Thread(
                        target=self._run, name="convostore-listener", daemon=True
                    )
                    started.start()
                    self._thread = started
        return tree_id % LOCKS in self._held

    def end(self) -> None:
        """End the thread soon, which closes the connection."""
        self._is_closed = True
        self._ring()

    def close(self) -> None:
        """Close the connection, and wait for that."""
        self.end()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(RECONNECT_SECONDS)

    def _ring(self) -> None:
        if alarm := self._alarm:
            with suppress(OSError):  # it is full, or closed just now
                alarm.send(b"!")

    def _run(self) -> None:
        """Listen until nobody waits, or the connection is lost."""
        pause = RECONNECT_SECONDS
        try:
            with closing(self._connect()) as self._driver:
                (tells_nothing,) = self._driver.execute(_TELLS_NOTHING).fetchone()
                if tells_nothing:
                    pause = UNHEARD_SECONDS
                else:
                    self._driver.execute(f"LISTEN {CHANNEL}")
                    self._listen()
                    pause = 0.0
        except list_driver_errors():
            pass  # those who wait look as often as without it, until it is back
        finally:
            self._driver = self._alarm = None
            self._held = {}
            self._again_at = time.monotonic() + pause
            with self._guard:
                self._thread = None
                waiting = [wake for each in self._waiting.values() for wake in each]
        for wake in waiting:
            wake()

    def _listen(self) -> None:
        """Lock the awaited trees, and notify their waiters."""
        alarm, rung = socket.socketpair()
        with alarm, rung, selectors.DefaultSelector() as selector:
            for each in (alarm, rung):
                each.setblocking(False)
            self._alarm = alarm
            for source in (self._driver, rung):
                selector.register(source, selectors.EVENT_READ)
            while not self._is_closed and (pause := self._lock_trees()):
                selector.select(pause)
                with suppress(BlockingIOError):
                    rung.recv(4096)
                told = (each.payload for each in self._driver.notifies(timeout=0))
                self._wake({int(tree_id) for tree_id in told if tree_id.isdigit()})

    def _lock_trees(self) -> float:
        """Lock the trees that are waited for; return the seconds to the next time, 0 for none."""
        now = time.monotonic()
        with self._guard:
            trees = {tree_id: tree_id % LOCKS for tree_id in self._waiting}
        needed = {*trees.values()}
        self._held |= dict.fromkeys(needed & self._held.keys(), now)
        old = [lock for lock, at in self._held.items() if at < now - LINGER_SECONDS]
        if old:
            self._held = {lock: at for lock, at in self._held.items() if lock not in old}
            self._driver.execute(_UNLOCK, (old,))
        if new := needed - self._held.keys():
            locked = {lock for (lock,) in self._driver.execute(_LOCK, ([*new],))}
            self._held |= dict.fromkeys(locked, time.monotonic())
            self._wake({tree_id for tree_id, lock in trees.items() if lock in locked})
        if needed - self._held.keys():
            return RETRY_SECONDS
        return LINGER_SECONDS if self._held else 0.0

    def _wake(self, trees: set[int]) -> None:
        """Wake those who wait for some trees."""
        with self._guard:
            waiting = [wake for each in trees for wake in self._waiting.get(each, ())]
        for wake in waiting:
            wake()
