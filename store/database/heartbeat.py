"""The heartbeat of works that take many transactions, such as an answer that is being streamed.

Others must be able to tell a work that is quiet from one whose process is gone. So each work has a
`Pulse`, and one thread of the process beats for all of them, every second, as long as there are
any. It holds them weakly: a work that nobody refers to any more is not kept alive.

On a file a beat is a lock of a byte in the lock file of the writers' queue, far after the bytes of
the queue. The kernel frees it when the process dies, however it dies. The place of the byte tells
the work and the second of the beat, so a stopped process, which keeps its lock, is seen to be late:
nothing is written, and readers only ask the kernel. Where the lock of a byte cannot belong to an
opened file (macOS, Windows, a server), a beat is a write that renews a lease in the work's row, by
the clock of the database.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from io import FileIO
from weakref import WeakSet

from sqlalchemy import BigInteger, Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from ..errors import StoreError
from . import fork_safety
from .lease import get_lease
from .writer_queue import (
    HAS_BYTE_LOCKS,
    LOCK_SUFFIX,
    ByteRange,
    is_range_locked,
    lock_range,
    open_to_ask,
    unlock_range,
)

BEAT_SECONDS = 1.0
"""The seconds between two beats."""
LEASE_SECONDS = 4
"""The seconds after its last beat for which a work counts as alive."""
RENEWAL_PATIENCE = 1.0
"""The most seconds that a renewal waits for other writers; the next one comes soon."""

_FIRST_BYTE = 2**62
_BYTES_PER_WORK = 2**32
"""A byte for each second since 1970, until 2106."""
_WORKS = 2**30
"""The works whose bytes are kept apart; two of one place may pass for each other, nothing else."""


class DatabaseClock(FunctionElement[int]):
    """The present moment in ms, by the clock of the database."""

    inherit_cache = True
    type = BigInteger()


@compiles(DatabaseClock)
def _compile_clock_sqlite(*_: object, **__: object) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


@compiles(DatabaseClock, "postgresql")
def _compile_clock_postgresql(_: DatabaseClock, __: SQLCompiler, **___: object) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"


class Pulse:
    """The sign of life of one work, from `start` to `stop`.

    ``number`` is the work's own random number, ``open_file`` opens a lock file, if there is one.
    Without a lock ``renew`` renews the lease in the work's row, once there is one.
    """

    def __init__(self, number: int, open_file: Callable[[], FileIO | None]) -> None:
        self._number, self._open_file = number, open_file
        self.renew: Callable[[], object] | None = None
        self._file: FileIO | None = None
        self._second = 0
        self._is_beating = False

    @property
    def is_locked(self) -> bool:
        """Whether a lock is the sign of life, and no lease has to be renewed."""
        return self._file is not None

    def start(self) -> None:
        """Begin to beat."""
        with contextlib.suppress(StoreError), fork_safety.fork_lock:
            self._file = self._open_file()
        self._is_beating = True
        if self._file and not self._lock():
            self._close()
        _HEART.add(self)

    def beat(self) -> None:
        """Show that the work goes on."""
        if self._file is not None:
            self._lock()
        elif self._is_beating and self.renew:
            with contextlib.suppress(StoreError):
                self.renew()

    def stop(self) -> None:
        """End the beating."""
        self._is_beating = False
        _HEART.remove(self)
        self._close()

    def __del__(self) -> None:
        """Close the file of a work that nobody refers to any more."""
        if self._file is not None:
            self._file.close()

    def _lock(self) -> bool:
        """Lock the byte of this second, then free that of the last beat."""
        second = int(time.time())
        with fork_safety.fork_lock:  # so that the file is not closed meanwhile
            if self._file is None or self._file.closed:
                return False
            if second != self._second:
                if not lock_range(self._file, _get_bytes(self._number, second, second)):
                    return False
                if self._second:
                    unlock_range(self._file, _get_bytes(self._number, self._second, self._second))
                self._second = second
        return True

    def _close(self) -> None:
        with fork_safety.fork_lock:
            if self._file is not None:
                self._file.close()
                self._file = None


class Heart:
    """The thread that beats for all pulses of the process, while there are any."""

    def __init__(self) -> None:
        self._pulses: WeakSet[Pulse] = WeakSet()
        self._thread: threading.Thread | None = None
        fork_safety.register_forkable(self)

    def add(self, pulse: Pulse) -> None:
        """Beat for a pulse from now on."""
        with fork_safety.fork_lock:
            self._pulses.add(pulse)
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run, name="convostore-heartbeat", daemon=True
                )
                with contextlib.suppress(RuntimeError):  # no thread can be started: saves beat, too
                    thread.start()
                    self._thread = thread

    def remove(self, pulse: Pulse) -> None:
        """Beat for a pulse no more."""
        with fork_safety.fork_lock:
            self._pulses.discard(pulse)

    def is_busy_elsewhere(self) -> bool:
        """Tell that a fork need not wait: a beat is an operation of a database, or a moment."""
        return False

    def start_in_child(self) -> None:
        """Forget the pulses of the parent, whose thread is not in the child."""
        self._pulses, self._thread = WeakSet(), None

    def _run(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            self._beat()
            with fork_safety.fork_lock:
                if not self._pulses:
                    self._thread = None
                    return

    def _beat(self) -> None:
        with fork_safety.fork_lock:
            beating = list(self._pulses)
        while beating:
            beating.pop().beat()


_HEART = Heart()


def is_beating(connection: Connection, number: int) -> bool:
    """Tell whether a work beats by a lock, in this process or any other of this machine."""
    path = get_lease(connection).path
    if path is None or not HAS_BYTE_LOCKS:
        return False
    now = int(time.time())
    asked = _get_bytes(number, now - LEASE_SECONDS, now + 1)
    with (
        fork_safety.fork_lock,
        contextlib.suppress(OSError),  # nobody has written to the file yet
        FileIO(path + LOCK_SUFFIX, opener=open_to_ask) as file,
    ):
        return is_range_locked(file, asked)
    return False


def _get_bytes(number: int, first: int, last: int) -> ByteRange:
    """Return the bytes of a work that stand for some seconds, both included."""
    start = _FIRST_BYTE + number % _WORKS * _BYTES_PER_WORK
    return ByteRange(start + first, last - first + 1)
