"""The fair queue of writers: one writer at a time, in the order of asking, across threads and processes.

SQLite's own busy handler is not fair: at sixteen writers some wait for seconds and some give up. An ``flock`` on a
file beside the database is granted in order. It is held from before BEGIN until COMMIT has returned, checkpoint
included, which also keeps our commits and checkpoints apart. Where ``flock`` does not exist, the database's own lock
and busy timeout remain.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

from .errors import StoreBusy, StoreError

try:
    import fcntl

    FLOCK = True
except ImportError:  # pragma: no cover - Windows
    FLOCK = False


class WriterQueue:
    """A lock file beside the database; ``acquire`` waits at most ``timeout`` seconds."""

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._files: set[int] = set()
        self._start()

    def _start(self) -> None:
        self._thread_lock = threading.Lock()
        self._file: int | None = None
        self._pid = b"%d\n" % os.getpid()

    def leave_to_parent(self) -> None:
        """Start anew in a forked child, holding nothing.

        The parent's lock is neither used nor released. A file kept open would keep it locked when the parent is gone.
        """
        for file in self._files:
            os.close(file)
        self._files.clear()
        self._start()

    def acquire(self) -> None:
        """Take the lock; raises StoreBusy, naming the process that holds it, at the deadline."""
        deadline = time.monotonic() + self._timeout
        if not self._thread_lock.acquire(timeout=self._timeout):
            raise self._busy()
        try:
            self._lock_file(deadline)
        except BaseException:
            self._thread_lock.release()
            raise

    def release(self) -> None:
        """Give the lock to the next in line."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._thread_lock.release()

    def close(self) -> None:
        """Close the lock file, after the write that may be going on."""
        waited = self._thread_lock.acquire(timeout=self._timeout)
        if self._file is not None:
            self.close_file(self._file)
            self._file = None
        if waited:
            self._thread_lock.release()

    def open_file(self) -> int:
        """Open the lock file once more, for a lock of its own. Raises StoreError."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            problem = f"cannot open the lock file {self._path}: {error.strerror}"
            raise StoreError(f"{problem}; check its and its folder's permissions") from error
        self._files.add(file)
        return file

    def close_file(self, file: int) -> None:
        """Close what `open_file` opened."""
        self._files.discard(file)
        os.close(file)

    def _lock_file(self, deadline: float) -> None:
        if not FLOCK:
            return
        if self._file is None:
            self._file = self.open_file()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_in_line(self._file, deadline)
        with contextlib.suppress(OSError):  # on a full disk nobody learns who holds it, but the lock holds
            os.pwrite(self._file, self._pid.ljust(12), 0)

    def _wait_in_line(self, file: int, deadline: float) -> None:
        """Wait in a thread of its own, because ``flock`` knows no deadline and asking again loses one's place.

        The thread waits on a file of its own, so that giving up leaves nothing locked: the file is closed as soon as
        its turn comes.
        """
        turn = _Turn(self)
        if not turn.wait(deadline - time.monotonic()):
            raise self._busy()
        self.close_file(file)
        self._file = turn.file

    def _busy(self) -> StoreBusy:
        try:
            with open(self._path, "rb") as file:
                holder = file.read(12).decode(errors="replace").strip()
        except OSError:
            holder = ""
        who = f"process {holder}" if holder else "another writer"
        return StoreBusy(f"{who} held the store for {self._timeout:g} s; nothing was written, try again")


class _Turn:
    """One place in the line, waited for in a daemon thread."""

    def __init__(self, queue: WriterQueue) -> None:
        self._queue = queue
        self.file = queue.open_file()
        self._lock = threading.Lock()
        self._given = threading.Event()
        self._abandoned = False
        threading.Thread(target=self._take, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        if self._given.wait(max(0.0, seconds)):
            return True
        with self._lock:
            self._abandoned = not self._given.is_set()
            return not self._abandoned

    def _take(self) -> None:
        fcntl.flock(self.file, fcntl.LOCK_EX)
        with self._lock:
            if self._abandoned:
                self._queue.close_file(self.file)
            else:
                self._given.set()
