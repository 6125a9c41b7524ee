"""What happens to open stores when the process forks.

A forked child inherits memory and open files, but not the threads that were at work, nor SQLite's
locks; SQLite keeps one state per file and process, locks and all, and forbids its connections to be
used on the other side. So there is a door: whoever begins an operation or creates a file passes
through it, and a fork shuts it, waits a while for the operations of other threads to end, and only
then lets the process fork. In the child each store begins anew with connections of its own. Where
an operation was still going on its state cannot be freed: that store, and its file, are of no use
in this child, and say so.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Protocol

from ..lazy_imports import importing_threads

FORK_PATIENCE = 1.0
"""How many seconds a fork waits for operations of other threads to end."""

FORKED = (
    "the process was forked inside an operation on the store, and SQLite has no way to open its "
    "file in the child; fork between operations, or start a new process"
)


class Forkable(Protocol):
    """What whoever has connections or locks answers for when the process forks."""

    def is_busy_elsewhere(self) -> bool:
        """Tell whether an operation is going on in another thread."""

    def start_in_child(self) -> None:
        """Begin anew in a forked child."""


fork_lock = threading.RLock()
"""Held to begin an operation or to create a file; shut while the process forks."""
forkables: weakref.WeakSet[Forkable] = weakref.WeakSet()
"""The databases that are open, and what else has locks."""
unusable_files: set[str] = set()
"""Files whose state in this process is a parent's, in the middle of something."""


def register_forkable(each: Forkable) -> None:
    """Tell somebody from now on of each fork."""
    with fork_lock:
        forkables.add(each)


def leak_object(inherited: object) -> None:
    """Keep what a forked child inherited, even past the interpreter's end.

    Closed, it would end the parent's work.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _before_fork() -> None:
    """Let the operations of other threads end and none begin, so that nothing is half done."""
    fork_lock.acquire()
    deadline = time.monotonic() + FORK_PATIENCE
    while _is_busy() and time.monotonic() < deadline:
        time.sleep(0.001)


def _is_busy() -> bool:
    own = threading.get_ident()
    if any(thread != own for thread in list(importing_threads.values())):
        return True
    return any(database.is_busy_elsewhere() for database in list(forkables))


def _after_fork() -> None:
    fork_lock.release()
    for database in list(forkables):
        database.start_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=fork_lock.release, after_in_child=_after_fork
    )
