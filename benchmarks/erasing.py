"""``python -m benchmarks.erasing``: how long others wait while a large session is deleted.

A store of some 200 MB; eight processes append to sessions of their own, one message every few
milliseconds, each commit durable. First they are alone, then a session of half the store is deleted
beside them. Two things are told: how long appends took, alone and beside it, and how long the
deletion held the writers' queue at a time. The queue is fair and the deletion has one place in it,
so an append waits for it as long as it holds the queue once, whatever else the machine does.
Returns 1 where the longest hold of the best run is over 100 ms.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

from store import Store
from store.database.writer_queue import QueuePlace

from .workload import conversation

TARGET = 0.1
"""Seconds that an append may wait for a deletion."""
PAUSE = 0.02
"""Seconds between two appends of a writer, in the mean."""
ALONE = 3.0
"""Seconds that the writers are alone."""
BATCH = 1_000


class Run(NamedTuple):
    """What one run saw, in seconds.

    The worst and the median append, alone and beside the deletion; how long that took in all, and
    how long it held the queue at a time.
    """

    megabytes: float
    appends: int
    alone: float
    alone_median: float
    beside: float
    beside_median: float
    deletion: float
    held: float
    held_median: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where the best run misses the target."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder:
        template = Path(folder, "template.db")
        fill(template, options.messages)
        runs = []
        for number in range(options.runs):
            path = Path(shutil.copy(template, Path(folder, f"{number}.db")))
            runs.append(measured(path, options.writers))
            print(told(runs[-1]), flush=True)
            path.unlink()
    best = min(run.held for run in runs)
    print(f"the longest that an append waited for the deletion, best run: {best * 1000:.0f} ms")
    return int(best > TARGET)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.erasing", description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000, help="in the store; 4 KB each")
    parser.add_argument("--writers", type=int, default=8, help="processes that append")
    parser.add_argument("--runs", type=int, default=3, help="of which the best one counts")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure on")
    return parser.parse_args(arguments)


def fill(path: Path, size: int) -> None:
    """Make a store: half of its messages in the session that will go."""
    with Store(path, durability="normal") as store:
        for name, seed in (("stays", 1), ("goes", 2)):
            store.create_session(name)
            messages = list(conversation(size // 2, seed=seed))
            for start in range(0, len(messages), BATCH):
                store.append(name, messages[start : start + BATCH])


def measured(path: Path, writers: int, *, alone: float = ALONE) -> Run:
    """Let writers append alone, then beside a deletion."""
    size = path.stat().st_size / 1e6
    with appending(path, writers) as waits:
        time.sleep(alone)
        with Store(path) as store:
            begun = time.monotonic()
            with holds() as held:
                store.delete_session("goes")
            ended = time.monotonic()
    before = [took for at, took in waits if at + took < begun]
    beside = [took for at, took in waits if at < ended and at + took >= begun]
    took = (*_summed(before), *_summed(beside), ended - begun)
    return Run(size, len(waits), *took, *_summed(held))


@contextmanager
def appending(path: Path, writers: int) -> Iterator[list[tuple[float, float]]]:
    """Let processes append meanwhile.

    At the end the list has when each append began, and how long it took.
    """
    context = multiprocessing.get_context("spawn")
    end = context.Event()
    pipes = [context.Pipe(duplex=False) for _ in range(writers)]
    processes = [
        context.Process(target=_write, args=(str(path), number, tell, end))
        for number, (_, tell) in enumerate(pipes)
    ]
    waits: list[tuple[float, float]] = []
    for process in processes:
        process.start()
    try:
        for told_by, _ in pipes:
            told_by.recv()  # each has begun
        yield waits
    finally:
        end.set()
        for told_by, _ in pipes:
            waits += told_by.recv()
        for process in processes:
            process.join()


@contextmanager
def holds() -> Iterator[list[float]]:
    """Note how long this process holds the writers' queue, each time."""
    take, leave = QueuePlace.take, QueuePlace.leave
    begun, held = [0.0], []

    def taking(self: QueuePlace, seconds: float | None = None) -> None:
        take(self, seconds)
        begun[0] = time.monotonic()

    def leaving(self: QueuePlace) -> None:
        leave(self)
        held.append(time.monotonic() - begun[0])

    QueuePlace.take, QueuePlace.leave = taking, leaving  # type: ignore[method-assign]
    try:
        yield held
    finally:
        QueuePlace.take, QueuePlace.leave = take, leave  # type: ignore[method-assign]


def _summed(times: list[float]) -> tuple[float, float]:
    """Return the worst and the median of some times, 0 where there are none."""
    ordered = sorted(times) or [0.0]
    return ordered[-1], ordered[len(ordered) // 2]


def _write(path: str, number: int, tell: Connection, end: Event) -> None:
    """Append until the end is told; send when each append began, and how long it took."""
    chance, waits = random.Random(number), []
    with Store(path) as store:
        store.create_session(f"writer {number}")
        tell.send("begun")
        for message in conversation(1_000_000, seed=number + 10):
            if end.is_set():
                break
            begun = time.monotonic()
            store.append(f"writer {number}", message)
            waits.append((begun, time.monotonic() - begun))
            time.sleep(chance.uniform(0, 2 * PAUSE))
    tell.send(waits)


def told(run: Run) -> str:
    """Return what a run saw in a line."""
    return (
        f"{run.megabytes:.0f} MB, {run.appends:,} appends:"
        f" alone at worst {run.alone * 1000:.0f} ms (median {run.alone_median * 1000:.1f}),"
        f" beside at worst {run.beside * 1000:.0f} ms (median {run.beside_median * 1000:.1f});"
        f" the deletion took {run.deletion:.1f} s and held the queue at most"
        f" {run.held * 1000:.0f} ms (median {run.held_median * 1000:.1f})"
    )


if __name__ == "__main__":
    sys.exit(main())
