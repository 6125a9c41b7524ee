"""The safety of open stores when the process forks.

A forked child inherits memory and open files, but not the threads that were at work, nor SQLite's
locks; SQLite keeps one state per file and process, locks and all, and forbids its connections to be
used on the other side. So there is a door: each new operation or file passes through it, and a fork
shuts it, waits a while for the operations of other threads to end, and only then lets the process
fork. In the child each store begins anew with connections of its own. If an operation was still
running, its state cannot be freed: that store, and its file, cannot be used in this child, and
raise an error that says so.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Protocol

from ..lazy_imports import importing_threads

FORK_PATIENCE = 1.0
"""The most seconds that a fork waits for operations of other threads to end."""

FORKED_STORE_MESSAGE = (
    "the process was forked inside an operation on the store, and SQLite has no way to open its "
    "file in the child; fork between operations, or start a new process"
)


class Forkable(Protocol):
    """The duties of an owner of connections or locks when the process forks."""

    def is_busy_elsewhere(self) -> bool:
        """Tell whether an operation is going on in another thread."""

    def start_in_child(self) -> None:
        """Begin anew in a forked child."""


fork_lock = threading.RLock()
"""Held to begin an operation or to create a file; shut while the process forks."""
forkables: weakref.WeakSet[Forkable] = weakref.WeakSet()
"""The open databases, and the other owners of locks."""
unusable_files: set[str] = set()
"""Files whose state in this process is a parent's, in the middle of an operation."""


def register_forkable(each: Forkable) -> None:
    """Tell an object from now on of each fork."""
    with fork_lock:
        forkables.add(each)


def leak_object(inherited: object) -> None:
    """Keep an object that a forked child inherited, even past the interpreter's end.

    Closing it would end the parent's work.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _wait_before_fork() -> None:
    """Wait for the operations of other threads and let none begin, so that none is half done."""
    fork_lock.acquire()
    own, deadline = threading.get_ident(), time.monotonic() + FORK_PATIENCE
    while (
        any(thread != own for thread in list(importing_threads.values()))
        or any(database.is_busy_elsewhere() for database in list(forkables))
    ) and time.monotonic() < deadline:
        time.sleep(0.001)


def _restart_in_child() -> None:
    fork_lock.release()
    for database in list(forkables):
        database.start_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_wait_before_fork,
        after_in_parent=fork_lock.release,
        after_in_child=_restart_in_child,
    )
