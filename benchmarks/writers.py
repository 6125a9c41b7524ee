"""``python -m benchmarks.writers``: appends a second of many threads or tasks in one process.

Each writer appends to a session of its own without pause, with the default durability, on a disk
whose flush takes 5 ms: a small C program stands between SQLite and the system (LD_PRELOAD; without
a C compiler, or with ``--flush 0``, the disk is measured as it is). Appends that wait are
committed together, and beside that each alone, as before there were groups. Afterwards every
session has to have what was acknowledged. Returns 1 if one has not, or if 64 writers of a kind
together are not ten times as quick as alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from store import AsyncStore, Store
from store.database import Database

SOURCE = Path(__file__).with_name("slow_sync.c")
MANY, TARGET = 64, 10
"""Writers that have to be so many times as quick together."""
MESSAGE = {"role": "user", "content": "Look at the second test, please. " * 8}
HEAD = "writers           together     alone       ×   CPU together   alone   median     99 %"


class Run(NamedTuple):
    """Appends a second, µs of CPU for each, the median and the 99th percentile wait in ms."""

    rate: float
    cpu: float
    median: float
    most: float
    lost: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where something was lost or the target is missed."""
    options = _options(arguments)
    is_missed = False
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder:
        environment = make_environment(Path(folder), options.flush)
        print(f"a flush takes {options.flush:g} ms" if environment else "the disk as it is")
        print(HEAD)
        for kind in options.kinds.split(","):
            for count in map(int, options.writers.split(",")):
                sides = (
                    measure(kind, count, way, options.seconds, folder, environment) for way in WAYS
                )
                together, alone = sides
                print(render(kind, count, together, alone), flush=True)
                is_slow = count >= MANY and together.rate < TARGET * alone.rate
                is_missed |= bool(together.lost + alone.lost) or (is_slow and bool(environment))
    return int(is_missed)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.writers", description=__doc__)
    parser.add_argument("--writers", default="1,8,64", help="numbers of writers")
    parser.add_argument("--kinds", default="threads,tasks", help="threads, tasks, or both")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--flush", type=float, default=5.0, help="ms of a flush; 0: the disk's own")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure on")
    return parser.parse_args(arguments)


def make_environment(folder: Path, flush: float) -> dict[str, str]:
    """Compile the slow disk; return the variables that load it, none where that is not possible."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not flush or not compiler or not sys.platform.startswith("linux"):
        return {}
    target = folder / "slow_sync.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(target), str(SOURCE)]
    subprocess.run(command, check=True)
    return {"LD_PRELOAD": str(target), "SYNC_MICROSECONDS": f"{flush * 1000:.0f}"}


def measure(
    kind: str, count: int, way: str, seconds: float, folder: str, environment: dict[str, str]
) -> Run:
    """Let writers append in a process of their own."""
    command = [sys.executable, "-m", __spec__.name, kind, str(count), way, str(seconds), folder]
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True
    )
    return Run(*json.loads(done.stdout))


WAYS = ("together", "alone")


def append_without_pause(kind: str, count: int, way: str, seconds: float, folder: Path) -> Run:
    """Let so many writers append, together or each alone, and look for what they were told."""
    if way == "alone":
        Database.write_in_group = Database.write  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place, "chat.db")
        with Store(path) as store:
            for writer in range(count):
                store.create_session(f"{writer}")
        began, spent = time.monotonic(), time.process_time()
        waits = KINDS[kind](path, count, began + seconds)
        took, spent = time.monotonic() - began, time.process_time() - spent
        with Store(path) as store:
            heads = [store.session(f"{writer}").head for writer in range(count)]
        lost = sum(head != len(each) for head, each in zip(heads, waits, strict=True))
    every = sorted(wait for each in waits for wait in each)
    middle, most = every[len(every) // 2], every[len(every) * 99 // 100]
    return Run(len(every) / took, spent / len(every) * 1e6, middle * 1000, most * 1000, lost)


def append_in_threads(path: Path, count: int, end: float) -> list[list[float]]:
    """Append in threads that share a store; return how long each append of each took."""

    def write(writer: int) -> list[float]:
        waits: list[float] = []
        while (began := time.monotonic()) < end:
            store.append(f"{writer}", MESSAGE)
            waits.append(time.monotonic() - began)
        return waits

    with Store(path, timeout=120) as store, ThreadPoolExecutor(count) as threads:
        return list(threads.map(write, range(count)))


def append_in_tasks(path: Path, count: int, end: float) -> list[list[float]]:
    """Append in tasks of an awaited store; return the same."""

    async def write(store: AsyncStore, writer: int) -> list[float]:
        waits: list[float] = []
        while (began := time.monotonic()) < end:
            await store.append(f"{writer}", MESSAGE)
            waits.append(time.monotonic() - began)
        return waits

    async def write_all() -> list[list[float]]:
        async with AsyncStore(path, timeout=120) as store:
            return [*await asyncio.gather(*(write(store, writer) for writer in range(count)))]

    return asyncio.run(write_all())


KINDS = {"threads": append_in_threads, "tasks": append_in_tasks}


def render(kind: str, count: int, together: Run, alone: Run) -> str:
    """Return the line of a number of writers."""
    lost = together.lost + alone.lost
    return (
        f"{count:>3} {kind:<10} {together.rate:>9,.0f}/s {alone.rate:>7,.0f}/s"
        f" {together.rate / alone.rate:>7.2f} {together.cpu:>11,.0f} µs {alone.cpu:>4,.0f} µs"
        f" {together.median:>5,.1f} ms {together.most:>5,.1f} ms" + " LOST" * bool(lost)
    )


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in KINDS:
        kind, count, way, seconds, folder = sys.argv[1:]
        run = append_without_pause(kind, int(count), way, float(seconds), Path(folder))
        print(json.dumps(run))
    else:
        sys.exit(main())
