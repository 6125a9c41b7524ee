"""One session that grows to a million messages: what each operation costs on the way there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from store import Policy, Store, StoredMessage

from ..stage import ENDLESS
from ..workload import ROOT, START, Message, conversation
from .watch import Pace, medians

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
QUICK = (60, 240)
WHOLE = 100_000
"""The most messages of which everything is read; more than that nobody sends to a model."""
SESSION, KEPT, NEWEST, REWOUND, ADDED = "session", 50, 20, 10, 3
BATCH = 5_000
SUMMARY = "What was said before."
NOW = START + 10**12
"""A moment after all messages, so that their age is not what differs."""

OPERATIONS = {
    "append": "append one message",
    "newest": "load the newest 20",
    "behind": "view behind a summary",
    "fork": "fork at the middle",
    "rewind": "rewind by 10, undo it",
    "hidden": "view behind a hidden range",
    "again": "view again after 3 more",
    "first": "view of all, the first",
    "load": "load all",
}
"""In the words of the plot."""
OF_ALL = ("hidden", "again", "first", "load")
"""What looks at the whole session, at least the first time."""


class Step(NamedTuple):
    """What is done before the clock runs, and what is timed with what that gave."""

    prepare: Callable[[], Any]
    work: Callable[[Any], object]


class Growing:
    """A store with one session, and the operations that are measured on it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.store = Store(path, durability="normal")
        self._forgetful = Store(path, durability="normal", cache_bytes=0)
        self.store.create_session(SESSION, project_root=ROOT)
        self._new = conversation(ENDLESS, small=True)
        self._names = count()

    def close(self) -> None:
        """Close the file."""
        self._forgetful.close()
        self.store.close()

    def grow(self, size: int) -> None:
        """Append until the session has so many messages."""
        missing = size - self.store.session(SESSION).head
        while missing > 0:
            self.store.append(SESSION, self.new(min(missing, BATCH)))
            missing -= BATCH

    def new(self, length: int) -> list[Message]:
        """Return messages that were not there yet."""
        return [*islice(self._new, length)]

    def steps(self) -> dict[str, Step]:
        """Return the operations, for the session as long as it is now."""
        store, head = self.store, self.store.session(SESSION).head
        compacted = self._compacted(head)
        return {
            "load": Step(_nothing, lambda _: store.messages(SESSION)),
            "newest": Step(_nothing, lambda _: self._newest()),
            "first": Step(self._afresh, _first),
            "behind": Step(_nothing, lambda _: store.view(compacted, now=NOW).messages),
            "hidden": Step(lambda: self._hidden(head), self._behind_a_range),
            "fork": Step(self._name, lambda name: store.fork(SESSION, head // 2, name)),
            "rewind": Step(_nothing, self._there_and_back),
            "again": Step(self._added, lambda _: store.view(SESSION, now=NOW).messages),
            "append": Step(lambda: self.new(1), lambda new: store.append(SESSION, new)),
        }

    def _newest(self) -> list[StoredMessage]:
        return self._forgetful.messages(SESSION, -NEWEST)

    def _name(self) -> str:
        return f"fork-{next(self._names)}"

    def _compacted(self, head: int) -> str:
        """Return a fork that was compacted step by step, until the newest messages are left."""
        fork = self.store.fork(SESSION, session_id=self._name()).id
        step = Policy.named(
            "raw", keep_messages=KEPT, window_messages=min(head, WHOLE), transcript_max_chars=2**31
        )
        while self.store.compact(fork, step, lambda _: SUMMARY, now=NOW).outcome == "applied":
            pass
        return fork

    def _hidden(self, head: int) -> str:
        """Return a fork of which all but the newest messages were hidden by position."""
        fork = self.store.fork(SESSION, session_id=self._name()).id
        self.store.hide(fork, 1, head - KEPT, SUMMARY)
        return fork

    def _behind_a_range(self, fork: str) -> None:
        assert self.store.view(fork, now=NOW).messages

    def _afresh(self) -> Store:
        """Open the file as the next process does; it is connected when the clock runs."""
        opened = Store(self._path, durability="normal")
        opened.session(SESSION)
        return opened

    def _added(self) -> None:
        """Look at the session, and let some messages come."""
        self.store.view(SESSION, now=NOW)
        self.store.append(SESSION, self.new(ADDED))

    def _there_and_back(self, _: object) -> None:
        self.store.rewind(SESSION, self.store.session(SESSION).head - REWOUND)
        self.store.undo_rewind(SESSION)


def _nothing() -> None:
    """Prepare nothing."""


def _first(opened: Store) -> None:
    with opened:
        assert opened.view(SESSION, now=NOW).messages


def measured(folder: Path, sizes: Sequence[int], pace: Pace) -> Iterator[dict[str, Any]]:
    """Grow the session from size to size; yield what each operation takes there."""
    with closing(Growing(folder / "growing.db")) as growing:
        for size in sizes:
            growing.grow(size)
            steps = growing.steps()
            names = [name for name in steps if size <= WHOLE or name not in OF_ALL]
            taken = {name: medians(steps[name].work, pace, steps[name].prepare) for name in names}
            yield {"messages": size, "bytes": _bytes(folder), "times": taken}


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("growing.db*"))
