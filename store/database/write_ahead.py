"""The care for a file's size and its write-ahead log, outside of any transaction."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from ..errors import StoreBusy
from .logs import get_logger

_write_ahead_logger = get_logger(__name__)

PURGE_PATIENCE = 1000
"""The most ms that a purge waits for readers.

It keeps the queue meanwhile, and any work left undone is done later.
"""

MAX_LOG_BYTES = 8 * 1024 * 1024
"""The most bytes of the write-ahead log before a writer stops to empty it."""
LOG_WARNING_BYTES = 64 * 1024 * 1024
"""The most bytes of the log before a warning reports it."""
LOG_PATIENCE = 100
"""The most ms that a writer waits for readers to empty the log."""
LOG_RETRY_SECONDS = 1.0
"""The seconds before another try."""
LOG_CHECK_INTERVAL = 32
"""The number of writes between two looks at the log's size."""

SWITCH_PAUSE = 0.005
"""The seconds between two tries to switch a file that is in use to a log."""

MAX_PURGE_SECONDS = 15.0
"""The most seconds that writers wait while a file is written anew, a second per 100 MB or so.

This is half of the default timeout of a writer.
"""
STEPS_PER_CHECK = 1_000
"""Steps of SQLite's machine between two looks at the clock."""

OPEN_READER_MESSAGE = (
    "somebody reads an older state of the store, whose bytes have to stay as long;"
    " end that, then purge again"
)
STOPPED_PURGE_MESSAGE = (
    "the purge was interrupted; the file is whole, and the next purge writes it anew"
)
LONG_PURGE_MESSAGE = (
    "writing the file anew takes more than {:g} s, and writers wait meanwhile, so it was given up;"
    " purge when they can wait, and say for how long (`longest`)"
)


class WriteAheadLog:
    """The write-ahead log of a file, which readers can keep from ever beginning anew."""

    def __init__(self, path: str) -> None:
        self._path = Path(f"{path}-wal")
        self._writes = 0
        self._again_at = 0.0
        self._told_at = LOG_WARNING_BYTES

    def keep_short(self, driver: sqlite3.Connection) -> None:
        """Empty the log where it has become too large.

        SQLite begins it anew when no reader is at work; if there always is one, it grows for ever.
        A failed try is repeated a second later, by the next write, so that the log is short again
        soon after a long reader has ended. The writers in line wait for each try.
        """
        self._writes += 1
        if self._writes % LOG_CHECK_INTERVAL and not self._again_at:
            return
        if time.monotonic() < self._again_at:
            return
        size = self._path.stat().st_size
        if size <= MAX_LOG_BYTES or checkpoint_log(driver, LOG_PATIENCE):
            self._again_at, self._told_at = 0.0, LOG_WARNING_BYTES
            return
        self._again_at = time.monotonic() + LOG_RETRY_SECONDS
        if size >= self._told_at:  # a warning, again each time that it has doubled
            self._told_at = 2 * size
            _write_ahead_logger.warning(
                "%s has grown to %d MB, because somebody has been reading the store for long;"
                " it is emptied when that has ended",
                self._path,
                size // 1_000_000,
            )


def has_log(driver: sqlite3.Connection) -> bool:
    """Tell whether a file has a write-ahead log; a copy has none until it is written to."""
    (mode,) = driver.execute("PRAGMA journal_mode").fetchone()
    return bool(mode == "wal")


def switch_to_log(driver: sqlite3.Connection, seconds: float) -> None:
    """Switch a file to write-ahead logging.

    This needs exclusive use of the file. If another connection looks at it, or begins to recover
    the log of a killed one, SQLite may refuse at once instead of waiting. So it is asked again
    until the seconds are over; then its error is raised.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            driver.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            is_over = time.monotonic() >= deadline
            if is_over or not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
        time.sleep(SWITCH_PAUSE)


def empty_log(driver: sqlite3.Connection, patience: int = PURGE_PATIENCE) -> None:
    """Fold the write-ahead log in and empty it. Raises StoreBusy if a reader prevents it."""
    if not checkpoint_log(driver, patience):
        raise StoreBusy(OPEN_READER_MESSAGE)


def checkpoint_log(driver: sqlite3.Connection, longest: int = PURGE_PATIENCE) -> bool:
    """Fold the write-ahead log into the file and empty it; tell whether readers let it happen.

    Waits for them at most ``longest`` ms.
    """
    (patience,) = driver.execute("PRAGMA busy_timeout").fetchone()
    driver.execute(f"PRAGMA busy_timeout = {min(patience, longest)}")
    try:
        busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        driver.execute(f"PRAGMA busy_timeout = {patience}")
    return not busy
