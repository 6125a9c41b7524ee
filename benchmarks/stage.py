"""What the measures play on: the store's file and the rival's, holding the same sessions."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from store import Store

from .rivals import Raw
from .timing import Pace
from .workload import ROOT, START, Message, conversation, payload

SESSION, SMALL = "session", "a hundred"
BATCH = 1000
ENDLESS = 10**12


class Extent(NamedTuple):
    """How much to do: rounds, sessions in a list, writers and their appends."""

    pace: Pace
    sessions: int
    writers: int
    appends: int


class Stage:
    """A session of ``size`` messages and one of a hundred, in the store and by hand.

    Each is there as FULL and NORMAL; ``forgetful`` makes each view anew. The moment of views lies
    after all messages.
    """

    def __init__(self, folder: Path, size: int, extent: Extent) -> None:
        self.folder, self.size, self.extent = folder, size, extent
        self.path, self.raw_path, self.pace = folder / "ours.db", folder / "raw.db", extent.pace
        self.paths = {"ours": self.path, "raw": self.raw_path}
        self._opened = ExitStack()
        self.full = self._opened.enter_context(Store(self.path))
        self.normal = self._opened.enter_context(Store(self.path, durability="normal"))
        forgetful = Store(self.path, durability="normal", cache_bytes=0)
        self.forgetful = self._opened.enter_context(forgetful)
        self.raw_full, self.raw_normal = Raw(self.raw_path), Raw(self.raw_path, "NORMAL")
        self.payload = 0
        for session, length in ((SESSION, size), (SMALL, 100)):
            self.create(session)
            for batch in batches(conversation(length)):
                self.payload += payload(batch)
                self.normal.append(session, batch)
                self.raw_normal.append(session, batch)
        self._more = conversation(ENDLESS, seed=2)
        self._numbers = count()
        self.now = START + 100 * 10_000 * (size + 100)
        gc.collect()
        gc.freeze()  # what lies here is no part of what the measures make

    def create(self, session: str) -> None:
        """Create a session on both sides."""
        self.normal.create_session(session, project_root=ROOT)
        self.raw_normal.create_sessions([(session, None, ROOT, None, 0, 0)])

    def more(self, length: int = 1) -> list[Message]:
        """Return messages that were not there yet."""
        return list(islice(self._more, length))

    def new_id(self) -> str:
        """Return a session id that was not there yet."""
        return f"new-{next(self._numbers)}"

    def close(self) -> None:
        """Close everything and remove the files."""
        self._opened.close()
        for raw in (self.raw_full, self.raw_normal):
            raw.connection.close()
        gc.unfreeze()
        for path in self.folder.iterdir():
            path.unlink()


def batches(messages: Iterator[Message], size: int = BATCH) -> Iterator[list[Message]]:
    """Yield messages in lists."""
    while batch := list(islice(messages, size)):
        yield batch


def equal(ours: Any, theirs: Any) -> None:
    """Make sure that both sides did the same, before their times are compared."""
    if ours != theirs:
        raise AssertionError("the store and its rival disagree: their times cannot be compared")
