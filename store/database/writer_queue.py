"""The fair queue of writers.

One writer at a time, turns in the order of asking, across threads and processes.

SQLite's own way of waiting is not fair: a writer that finds the file locked sleeps a while and asks
again, so the lock goes to the one that happens to ask at the right moment. With sixteen writers
some wait for seconds, and some give up although all turns are short. So our writers wait in line
before BEGIN IMMEDIATE, and SQLite itself hardly ever sees two of them.

A writer holds an ``flock`` on a file beside the database, from before BEGIN until COMMIT has
returned, including the checkpoint that SQLite may make then, which also keeps our commits and
checkpoints apart. The line is a second lock, on the first byte of the same file: its holder is
first in line and waits for the ``flock``, the others wait for the second lock. The kernel grants
both in the order of the requests, and frees them when their process dies, however it dies: there is
nothing to clean up. A writer that finds both free has its turn at once.

A turn is time, not one write. A commit that follows one of another process pays for that: two
processes are woken, and SQLite reads the changed pages anew. So for ``TURN_SECONDS`` seconds after
a writer came through the line, it may take the ``flock`` again if it is free, past the waiting
writers. The first in line allows that: it looks now and then whether the lock is free, and asks the
kernel for it when all turns that began before its own must be over. From then on only the first in
line takes it, since new turns begin only in the line. So a writer that never pauses delays the next
one by ``TURN_SECONDS`` and a write, and in between keeps nobody from a lock that it does not use:
it releases the lock after each write. The line moves up at the end of the first write of a turn. By
then the previous writer has come back, if it comes at once, and is at the end of the line.

Until the next in line has been woken and runs, the line is free, and a newcomer would be first,
most often the writer that has just released it, if its turn was over by then. So the waiting
writers share a third lock, on the second byte. A newcomer looks at it: if others wait and nobody is
first, it lets the line move up before.

The locks belong to the opened file, not to the process. So each connection that writes opens
the lock file for itself and has a place of its own in the one line, whether the others are in its
process or not. Only the kernel knows whether it holds the locks, and no variable records it. A
signal may raise between any two steps of a program; a variable could then contradict the lock, and
a lock that is not recorded would never be released. Releasing a lock that is not held does no harm,
so the end of an operation always releases it, whatever went wrong. The end of the turn is recorded,
but that only permits to ask; and that the line may have been entered is recorded before it is, so
that the writes of a turn after its first take one step of the kernel and leave with one.

Giving up is the hard part. The locks have no deadline, and asking again and again without waiting
would lose the place in line each time. So a writer that does not get them at once leaves the
waiting to a thread of its own, and waits for that thread as long as its deadline allows. Nobody can
call the thread back. A writer that gives up says so and leaves its file to the thread, which closes
it when the turn comes, and so lets the next in line go on. The writer first says that it has gone
and then looks whether the turn had come; the thread first says that the turn has come and then
looks whether the writer has gone. So at least one of them sees the other, and closes the file.
Before a writer gives up it looks once past the line: a process that is stopped while it is first,
and does not use the lock, keeps others waiting, but not from writing.

The process whose turn begins writes its number into the file, for the error that others get at
their deadline. A forked child inherits the open files, and with them its parent's locks; it closes
them and begins anew. Where a lock of a byte belongs to the process (macOS), the order in which the
kernel grants the ``flock`` is the line. Where ``flock`` does not exist (Windows) there is no line,
and the database's own lock and busy timeout remain.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import re
import stat
import struct
import threading
import time
from io import FileIO
from typing import NamedTuple
from weakref import WeakSet

from ..errors import StoreBusy, StoreError, build_write_error

try:
    import fcntl

    HAS_FLOCK = True
except ImportError:  # pragma: no cover - Windows
    HAS_FLOCK = False

HAS_BYTE_LOCKS = HAS_FLOCK and hasattr(fcntl, "F_OFD_SETLKW")
"""Whether the lock of a byte can belong to an opened file."""

LOCK_SUFFIX = "-lock"
"""What the name of a store's file gets for that of its lock file."""

TURN_SECONDS = 0.01
"""The seconds of a turn: enough for dozens of writes, little for sixteen waiting writers."""
LOOK_SECONDS = 0.001
"""The seconds before the first in line looks again whether the lock is free."""

_OPEN_FLAGS = (
    os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK if HAS_FLOCK else 0
)
_LOCK_CONTENT = re.compile(rb"[0-9]* *\n? *")
"""The content of a lock file: nothing yet, or the number of the last process with the lock."""
_LOCK_CONTENT_BYTES = 12
"""The bytes of that content."""


class WriterQueue:
    """The line before a lock file; a place in it waits at most ``timeout`` seconds."""

    def __init__(self, path: str, timeout: float) -> None:
        self.path, self.timeout = path, timeout
        self._files: WeakSet[FileIO] = WeakSet()
        self.process = _render_lock_content()

    def leave_to_parent(self) -> None:
        """Start anew in a forked child, holding nothing.

        The parent's locks are neither used nor released. A file kept open would keep them when the
        parent is gone.
        """
        for file in list(self._files):
            file.close()
        self.process = _render_lock_content()

    def open_file(self) -> FileIO:
        """Open the lock file once more, for a lock of its own.

        The file must belong to nobody else: its first bytes are overwritten. Raises StoreError.
        """
        try:
            file = FileIO(self.path, "r+", opener=lambda path, _: os.open(path, _OPEN_FLAGS, 0o600))
            with contextlib.ExitStack() as closing:
                closing.callback(file.close)
                status = os.fstat(file.fileno())
                is_alone = stat.S_ISREG(status.st_mode) and status.st_nlink <= 1
                is_ours = is_alone and status.st_size <= _LOCK_CONTENT_BYTES
                content = os.pread(file.fileno(), _LOCK_CONTENT_BYTES, 0) if is_ours else b""
                if not (is_ours and _LOCK_CONTENT.fullmatch(content)):
                    raise StoreError(
                        f"{self.path} is not a lock file of a store, so it is not overwritten;"
                        " move it away, and the store makes its own"
                    )
                closing.pop_all()
        except OSError as error:
            raise build_write_error(f"cannot open the lock file {self.path}", error) from error
        self._files.add(file)
        return file

    def holder(self, file: FileIO) -> str:
        """Return the description of the holder of the lock."""
        try:
            number = os.pread(file.fileno(), _LOCK_CONTENT_BYTES, 0).decode().strip()
        except (OSError, ValueError):  # the turn has come just now, and the file is closed
            number = ""
        return f"process {number}" if number else "another writer"


class QueuePlace:
    """The place in line of one connection: taken for a write, left when it has ended.

    ``file`` is its lock file, None until it is first taken.
    """

    def __init__(self, queue: WriterQueue) -> None:
        self._queue = queue
        self.file: FileIO | None = None
        self._turn: _WriterTurn | None = None
        self._ends = 0.0
        self._is_in_line = False  # said before the line is asked, until it has been left

    def take(self, seconds: float | None = None) -> None:
        """Wait for the lock for some seconds, or as long as the queue's timeout (None).

        Raises StoreBusy, naming the process that holds it, at the deadline, StoreError if it cannot
        be taken at all. After an error the place must be closed.
        """
        if not HAS_FLOCK:
            return
        if self.file is None:
            self.file = self._queue.open_file()
        file = self.file
        try:
            if time.monotonic() < self._ends and _try_lock(file):
                return
            self._is_in_line = True
            # If others wait and nobody is first, one of them is being woken: let it be first.
            # A stopped process is not woken.
            over = time.monotonic() + TURN_SECONDS
            while _is_byte_locked(file, _WAITING_QUERY) and time.monotonic() < over:
                if _is_byte_locked(file, _FIRST_PLACE_QUERY):
                    break
                time.sleep(LOOK_SECONDS)
            if not (_apply_lock_operation(file, _TRY_FIRST_PLACE) and _try_lock(file)):
                self._wait(file, self._queue.timeout if seconds is None else seconds)
            self._ends = time.monotonic() + TURN_SECONDS
        except (OSError, RuntimeError) as error:  # no such locks, or no thread to wait
            self._turn = None
            told = f"cannot lock {self._queue.path}: {error}; nothing was written"
            raise StoreError(told) from error
        with contextlib.suppress(OSError):  # on a full disk the holder stays unknown
            os.pwrite(self.file.fileno(), self._queue.process, 0)

    def give_up(self) -> None:
        """End the wait at this place; called from another thread."""
        turn = self._turn
        if turn is not None:
            turn.give_up()

    def leave(self) -> None:
        """Release the lock, and let the line move up."""
        if self.file is not None:
            if self._is_in_line:
                _apply_lock_operation(self.file, _LEAVE_QUEUE)
                self._is_in_line = False
            fcntl.flock(self.file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave for good; a file that a thread still waits with is closed by that thread."""
        is_free = self._turn is None or self._turn.has_come
        if self.file is not None and is_free:
            self.file.close()

    def _wait(self, file: FileIO, seconds: float) -> None:
        if seconds > 0:
            self._turn = _WriterTurn(file)
            if self._turn.wait(seconds):
                return
            self.close()  # or the thread that waits with this file does
            file = self._queue.open_file()
            self.file, self._turn = file, None
            if _try_lock(file):  # past a first in line that is stopped; one that runs takes it now
                fcntl.flock(file, fcntl.LOCK_UN)
                time.sleep(TURN_SECONDS)
                if _try_lock(file):
                    return
        who = self._queue.holder(file)
        told = f"{who} held the store until the deadline; nothing was written, try again"
        raise StoreBusy(told)


class _WriterTurn:
    """A turn that a thread waits for, with a file that gets the lock then.

    The bare lock and thread of the interpreter are used: those of `threading` take steps of Python,
    which a signal can cut off in their midst.
    """

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self._coming = threading.Lock()
        self._coming.acquire()
        self.has_come = False
        self._is_wanted = True

    def wait(self, seconds: float) -> bool:
        """Wait for the turn; tell whether it came. If not, it will be given back when it comes."""
        came = False
        try:
            _thread.start_new_thread(self._take, ())
            self._coming.acquire(timeout=seconds)
            came = self.has_come
        finally:
            self._is_wanted = came
        return came

    def give_up(self) -> None:
        """End the wait, as at its deadline."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._coming.release()

    def _take(self) -> None:
        _apply_lock_operation(self._file, _MARK_WAITING)
        _apply_lock_operation(self._file, _AWAIT_FIRST_PLACE)
        if self._is_wanted:
            over = time.monotonic() + TURN_SECONDS
            while HAS_BYTE_LOCKS and time.monotonic() < over:  # other turns may go on
                time.sleep(LOOK_SECONDS)
                if _try_lock(self._file):
                    break
            else:
                fcntl.flock(self._file, fcntl.LOCK_EX)
        self.has_come = True
        self.give_up()
        if not self._is_wanted:
            self._file.close()


def _pack_lock_operation(
    command: str, kind: str, start: int, length: int
) -> tuple[int, bytes] | None:
    """Return the request to the kernel for an operation on the line; None if there is no line."""
    if not HAS_BYTE_LOCKS:
        return None
    lock = struct.pack(_LOCK_RECORD_FORMAT, getattr(fcntl, kind), os.SEEK_SET, start, length, 0)
    return getattr(fcntl, command), lock


_LOCK_RECORD_FORMAT = "hhqqi0q"
"""The kernel's record of a lock: its kind, from where the first byte counts, bytes, process."""
_AWAIT_FIRST_PLACE = _pack_lock_operation("F_OFD_SETLKW", "F_WRLCK", 0, 1)
_TRY_FIRST_PLACE = _pack_lock_operation("F_OFD_SETLK", "F_WRLCK", 0, 1)
_MARK_WAITING = _pack_lock_operation("F_OFD_SETLK", "F_RDLCK", 1, 1)
_LEAVE_QUEUE = _pack_lock_operation("F_OFD_SETLK", "F_UNLCK", 0, 2)
_FIRST_PLACE_QUERY = _pack_lock_operation("F_OFD_GETLK", "F_WRLCK", 0, 1)
_WAITING_QUERY = _pack_lock_operation("F_OFD_GETLK", "F_WRLCK", 1, 1)


def _apply_lock_operation(file: FileIO, operation: tuple[int, bytes] | None) -> bool:
    """Do an operation on the line; tell whether nobody else is first in it.

    A file system without such locks has no line.
    """
    try:
        if operation:
            fcntl.fcntl(file, *operation)
    except (BlockingIOError, PermissionError):  # systems say the one or the other
        return False
    except OSError:
        return True
    return True


def has_waiting_writers(path: str) -> bool:
    """Tell whether a writer of any process waits for a store's file."""
    if not HAS_BYTE_LOCKS:
        return False
    with (
        contextlib.suppress(OSError),  # nobody has written to the file yet
        FileIO(path + LOCK_SUFFIX, opener=open_to_ask) as file,
    ):
        return _is_byte_locked(file, _WAITING_QUERY)
    return False


def open_to_ask(path: str, _: int) -> int:
    """Open a lock file if there is one, for a question about the locks of others."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


class ByteRange(NamedTuple):
    """Some bytes of a lock file."""

    start: int
    length: int


def lock_range(file: FileIO, span: ByteRange) -> bool:
    """Lock bytes for an opened file, beside others that do; tell whether that was possible."""
    operation = _pack_lock_operation("F_OFD_SETLK", "F_RDLCK", *span)
    if operation is None:
        return False
    try:
        fcntl.fcntl(file, *operation)
    except OSError:
        return False
    return True


def unlock_range(file: FileIO, span: ByteRange) -> None:
    """Free bytes that an opened file has locked."""
    _apply_lock_operation(file, _pack_lock_operation("F_OFD_SETLK", "F_UNLCK", *span))


def is_range_locked(file: FileIO, span: ByteRange) -> bool:
    """Tell whether any other opened file has locked one of some bytes."""
    return _is_byte_locked(file, _pack_lock_operation("F_OFD_GETLK", "F_WRLCK", *span))


def _is_byte_locked(file: FileIO, question: tuple[int, bytes] | None) -> bool:
    """Answer a question about the others in line; False if there is no line."""
    if not question:
        return False
    try:
        answer = fcntl.fcntl(file, *question)
    except OSError:
        return False
    return bool(struct.unpack(_LOCK_RECORD_FORMAT, answer)[0] != fcntl.F_UNLCK)


def _try_lock(file: FileIO) -> bool:
    """Take the lock if nobody has it; tell whether it was taken."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _render_lock_content() -> bytes:
    """Return the content for the lock file: the number of this process."""
    return (b"%d\n" % os.getpid()).ljust(_LOCK_CONTENT_BYTES)
