"""Following the programs of this machine: their sessions are imported in the background."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Self

from .. import Store
from ..errors import StoreClosed, StoreError
from ..importing import GrowingFiles, TranscriptFile, find_session_folders, import_file
from ..records import FilePath

LOOK_PAUSE_SECONDS = 1.0
"""Seconds between two looks at the files, at least."""
LOOK_MULTIPLE = 150
"""How many times as long as a look the pause after it is."""
BEGUN_SECONDS = 1.0
"""Seconds of the first import for which the first answer waits, so that it has the newest."""
LONGEST_WAIT_SECONDS = 5.0
"""Seconds that the import waits for an answer, at most."""


class Follower:
    """Imports sessions while a server answers: first all, from the newest on, then new ones.

    It waits while a call is answered: threads of one process take turns at each statement, so an
    answer beside an import would take many times as long.
    """

    def __init__(self, store: Store, own: FilePath | None = None) -> None:
        self._store, self._own = store, own
        self._stopped, self._begun, self._quiet = Event(), Event(), Event()
        self._quiet.set()
        self._lock, self._calls = Lock(), 0
        self._thread = Thread(target=self._follow, name="convostore-import", daemon=True)
        self._until = 0.0
        self._done, self._files = 0, 0
        self._failed = 0

    def __enter__(self) -> Self:
        """Begin."""
        self._until = time.monotonic() + BEGUN_SECONDS
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, after the file at hand."""
        self._stopped.set()
        self._thread.join()

    @property
    def is_quiet(self) -> bool:
        """Tell whether no call is being answered."""
        return self._quiet.is_set()

    @contextmanager
    def give_way(self) -> Iterator[None]:
        """Let the import wait while a call is answered."""
        self._begun.wait(BEGUN_SECONDS)
        with self._lock:
            self._calls += 1
            self._quiet.clear()
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if not self._calls:
                    self._quiet.set()

    def describe(self) -> str | None:
        """Return how far the import is; None if it has all that there is."""
        if not self._begun.is_set():
            return "the sessions of programs are being looked for; ask again"
        if self._done < self._files:
            return f"{self._done} of {self._files} files are read; ask again for the others"
        return f"{self._failed} files could not be read" if self._failed else None

    def _follow(self) -> None:
        growing = GrowingFiles([each.folder for each in find_session_folders()], self._own)
        pause = 0.0
        while not self._stopped.wait(pause):
            began = time.thread_time()
            changed = growing.look()
            pause = max(LOOK_PAUSE_SECONDS, (time.thread_time() - began) * LOOK_MULTIPLE)
            self._done, self._files = 0, len(changed)
            for file in sorted(changed, key=_read_time, reverse=True):
                if self._stopped.is_set() or not self._import(file):
                    return
                self._done += 1
            self._begun.set()

    def _wait_for_calls(self, *_: int) -> None:
        """Wait until no call is answered; the first one waits until the import has begun."""
        if time.monotonic() > self._until:
            self._begun.set()
        self._quiet.wait(LONGEST_WAIT_SECONDS)

    def _import(self, file: TranscriptFile) -> bool:
        """Import a file; tell whether to go on."""
        try:
            import_file(self._store, file.path, progress=self._wait_for_calls)
        except StoreClosed:
            return False
        except (StoreError, OSError):
            self._failed += 1
        return True


def _read_time(file: TranscriptFile) -> float:
    try:
        return Path(file.path).stat().st_mtime
    except OSError:
        return 0.0
