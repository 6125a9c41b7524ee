"""Following the programs of this machine: their sessions are imported in the background."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event, Thread
from typing import Self

from .. import Store
from ..errors import StoreClosed, StoreError
from ..importing import GrowingFiles, TranscriptFile, find_session_folders, import_file
from ..records import FilePath

LOOK_PAUSE_SECONDS = 1.0
"""Seconds between two looks at the files, at least."""
LOOK_MULTIPLE = 150
"""How many times as long as a look the pause after it is."""


class Follower:
    """Imports sessions while a server answers: first all, from the newest on, then new ones."""

    def __init__(self, store: Store, own: FilePath | None = None) -> None:
        self._store, self._own = store, own
        self._stopped = Event()
        self._thread = Thread(target=self._follow, name="convostore-import", daemon=True)
        self._done, self._files = 0, 0
        self._failed = 0

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, after the file at hand."""
        self._stopped.set()
        self._thread.join()

    def describe(self) -> str | None:
        """Return how far the import is; None if it has all that there is."""
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

    def _import(self, file: TranscriptFile) -> bool:
        """Import a file and index it; tell whether to go on."""
        try:
            import_file(self._store, file.path)
            self._store.index()
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
