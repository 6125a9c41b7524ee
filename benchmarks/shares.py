"""``python -m benchmarks.shares``: where the time of an operation goes.

Each call of SQLite's driver is timed inside of the operation. So its time falls into three parts:
the statements, COMMIT, and Python, which is all the rest. Beside them stands what the same job
takes by hand. The parts that are SQLite's, divided by that, say how near to it any Python around
the same statements could come.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import Engine, event

from . import rivals
from .rivals import Branches
from .stage import BATCH, SESSION, Extent, Stage
from .timing import Pace
from .workload import ROOT

COLUMNS = ("operation", "ours", "statements", "COMMIT", "Python", "by hand", "× all", "× SQLite")
WIDTHS = (20, 9, 10, 8, 8, 9, 6, 8)
ROUNDS = 200
LONG = 20
"""Rounds of what takes ms."""

SPENT: Counter[str] = Counter()
"""Nanoseconds in the driver, by what it did."""

_clock = time.perf_counter_ns


def _counted(on: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the driver that counts its time; with as little of its own as can be."""

    def method(*given: Any) -> Any:
        begun = _clock()
        try:
            return call(*given)
        finally:
            SPENT[on] += _clock() - begun

    return method


class TimedCursor(sqlite3.Cursor):
    """A cursor that counts what its statements take."""

    execute = _counted("statements", sqlite3.Cursor.execute)
    fetchone = _counted("statements", sqlite3.Cursor.fetchone)
    fetchall = _counted("statements", sqlite3.Cursor.fetchall)
    __next__ = _counted("statements", sqlite3.Cursor.__next__)
    _run = _counted("statements", sqlite3.Cursor.executemany)

    def executemany(self, text: str, rows: Iterable[Any]) -> sqlite3.Cursor:
        """Run a statement for each row; what makes the rows is none of SQLite's."""
        ran: sqlite3.Cursor = self._run(text, list(rows))
        return ran


class TimedConnection(sqlite3.Connection):
    """A connection that counts what its statements and COMMIT take."""

    def cursor(self, *_: Any, **__: Any) -> TimedCursor:  # type: ignore[override]
        """Return a cursor that counts."""
        return super().cursor(TimedCursor)

    def execute(self, *given: Any) -> sqlite3.Cursor:
        """Run a statement on a cursor that counts."""
        return self.cursor().execute(*given)

    commit = _counted("COMMIT", sqlite3.Connection.commit)


@contextmanager
def timed() -> Iterator[None]:
    """Let each connection that SQLAlchemy makes meanwhile count its time."""

    def connecting(_dialect: Any, _record: Any, _given: Any, options: dict[str, Any]) -> None:
        options["factory"] = TimedConnection

    event.listen(Engine, "do_connect", connecting)
    try:
        yield
    finally:
        event.remove(Engine, "do_connect", connecting)


class Job(NamedTuple):
    """An operation and the same by hand, each given what ``prepare`` makes for a round."""

    ours: Callable[[Any], object]
    by_hand: Callable[[Any], object]
    prepare: Callable[[], Any] = lambda: None
    rounds: int = ROUNDS


class Shares(NamedTuple):
    """Medians in µs."""

    ours: float
    statements: float
    commit: float
    by_hand: float

    @property
    def python(self) -> float:
        """What is neither a statement nor COMMIT."""
        return self.ours - self.statements - self.commit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    options = _options(arguments)
    print(*map(str.ljust, COLUMNS, WIDTHS))
    extent = Extent(Pace(), sessions=1, writers=1, appends=1)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder, timed():
        stage = Stage(Path(folder), options.size, extent)
        for name, job in jobs(stage).items():
            print(line(name, shares(job, options.rounds)), flush=True)
        stage.close()
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shares", description=__doc__)
    parser.add_argument("--size", type=int, default=1_000, help="messages in the session")
    parser.add_argument("--rounds", type=int, help="of each operation")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="a folder on a real disk")
    return parser.parse_args(arguments)


def jobs(stage: Stage) -> dict[str, Job]:
    """Return what is looked at, in the order in which it is done."""
    store, raw, now = stage.normal, stage.raw_normal, stage.now
    forks = Branches(stage.folder / "branches.db", "NORMAL")
    forks.create(SESSION, 1, stage.size)
    middle = stage.size // 2
    return {
        "newest 20": Job(
            lambda _: stage.forgetful.messages(SESSION, -20), lambda _: raw.newest(SESSION, 20)
        ),
        "load all": Job(
            lambda _: stage.forgetful.messages(SESSION),
            lambda _: raw.messages(SESSION),
            rounds=LONG,
        ),
        "first view": Job(
            lambda _: stage.forgetful.view(SESSION, now=now),
            lambda _: rivals.view(raw.messages(SESSION), now, ROOT),
            rounds=LONG,
        ),
        "append one": Job(
            lambda said: store.append(SESSION, said),
            lambda said: raw.append(SESSION, said),
            stage.more,
        ),
        "append 1,000": Job(
            lambda said: store.append(SESSION, said),
            lambda said: raw.append(SESSION, said),
            lambda: stage.more(BATCH),
            LONG,
        ),
        "fork at the middle": Job(
            lambda new: store.fork(SESSION, middle, new),
            lambda new: forks.fork(SESSION, middle, new),
            stage.new_id,
        ),
    }


def shares(job: Job, rounds: int | None = None) -> Shares:
    """Return the medians of an operation's parts, all on a file whose commits wait for no disk.

    The first round is not counted.
    """
    found = [_round(job) for _ in range(1 + (rounds or job.rounds))]
    return Shares(*map(median, zip(*found[1:], strict=True)))


def _round(job: Job) -> Shares:
    given = job.prepare()
    SPENT.clear()
    ours = _took(job.ours, given)
    statements, commit = SPENT["statements"] / 1000, SPENT["COMMIT"] / 1000
    return Shares(ours, statements, commit, _took(job.by_hand, given))


def _took(work: Callable[[Any], object], given: Any) -> float:
    begun = _clock()
    result = work(given)
    ended = _clock()
    del result  # to let go of what was read is no part of reading it
    return (ended - begun) / 1000


def line(name: str, of: Shares) -> str:
    """Return an operation's line of the table."""
    parts = (of.ours, of.statements, of.commit, of.python, of.by_hand)
    ratios = (of.ours / of.by_hand, (of.statements + of.commit) / of.by_hand)
    cells = (name, *(f"{part:,.0f} µs" for part in parts), *(f"{ratio:.2f}" for ratio in ratios))
    return " ".join(map(str.ljust, cells, WIDTHS)).rstrip()


if __name__ == "__main__":
    sys.exit(main())
