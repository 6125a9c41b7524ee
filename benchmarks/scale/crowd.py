"""Many sessions at once: each takes its view before every append, as an agent does.

``python -m benchmarks.scale.crowd PATH FIRST COUNT SECONDS`` is one process with so many of them,
on one event loop. It appends as an app does by default, each append safe from a power cut.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from store import AsyncStore, Store

from .. import alone
from ..workload import ROOT, START, conversation

CROWDS = ((1, 1), (1, 8), (1, 50), (1, 200), (8, 8), (8, 50), (8, 200))
"""Processes, and sessions in all of them together."""
QUICK = ((1, 2), (2, 4))
LENGTH = 100
"""Messages that each session has before."""
NOW = START + 10**12


class Done(NamedTuple):
    """What a session did: how long each view with its append took, in ms, and the appends alone."""

    steps: list[float]
    appends: list[float]


def measured(
    folder: Path, crowds: Sequence[tuple[int, int]], seconds: float
) -> Iterator[dict[str, Any]]:
    """Let each crowd work for a while on a file of its own; yield what it did."""
    for number, (processes, sessions) in enumerate(crowds):
        path = folder / f"crowd-{number}.db"
        _fill(path, sessions)
        done = alone.together([*_started(path, processes, sessions, seconds)])
        yield _summed(done, processes, sessions) | {"lost": _lost(path, sessions, done)}


def _fill(path: Path, sessions: int) -> None:
    with Store(path, durability="normal") as store:
        for number in range(sessions):
            store.create_session(_name(number), project_root=ROOT)
            store.append(_name(number), [*conversation(LENGTH, seed=number, small=True)])


def _name(number: int) -> str:
    return f"session-{number}"


def _started(
    path: Path, processes: int, sessions: int, seconds: float
) -> Iterator[subprocess.Popen[str]]:
    """Start processes that share the sessions among them; each waits for a line."""
    bounds = [sessions * number // processes for number in range(processes + 1)]
    for first, last in pairwise(bounds):
        given = [str(path), str(first), str(last - first), str(seconds)]
        yield subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scale.crowd", *given],
            cwd=alone.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


def _summed(done: list[dict[str, Any]], processes: int, sessions: int) -> dict[str, Any]:
    steps = sorted(each for one in done for each in one["steps"])
    appends = sorted(each for one in done for each in one["appends"])
    return {
        "processes": processes,
        "sessions": sessions,
        "appends_per_second": round(len(steps) / max(one["seconds"] for one in done), 1),
        "p50": _part(steps, 0.5),
        "p99": _part(steps, 0.99),
        "worst": _part(steps, 1),
        "append_p50": _part(appends, 0.5),
        "append_p99": _part(appends, 0.99),
        "mib": round(sum(one["mib"] for one in done), 1),
        "idle_mib": round(sum(one["idle"] for one in done), 1),
        "errors": sum(one["errors"] for one in done),
    }


def _part(ordered: list[float], part: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 2)


def _lost(path: Path, sessions: int, done: list[dict[str, Any]]) -> int:
    """Return how many acknowledged appends are missing, doubled or out of order."""
    counts = [count for one in done for count in one["counts"]]
    with Store(path) as store:
        return sum(_wrong(store, _name(at), count) for at, count in enumerate(counts[:sessions]))


def _wrong(store: Store, name: str, count: int) -> int:
    found = [each.message["content"] for each in store.messages(name, LENGTH + 1)]
    moved = sum(said != f"step {step}" for step, said in enumerate(found))
    return abs(len(found) - count) + moved


async def work(path: str, first: int, count: int, seconds: float) -> dict[str, Any]:
    """Open the store, wait for a line, let the sessions work; return what they did."""
    async with AsyncStore(path) as store:
        idle = alone.read_memory("VmRSS")
        print("ready", flush=True)
        sys.stdin.readline()
        begun = time.perf_counter()
        errors: list[Exception] = []
        alive = (
            _session(store, _name(number), begun + seconds, errors)
            for number in range(first, first + count)
        )
        done = await asyncio.gather(*alive)
        taken = time.perf_counter() - begun
    return {
        "steps": [each for one in done for each in one.steps],
        "appends": [each for one in done for each in one.appends],
        "counts": [len(one.steps) for one in done],
        "seconds": taken,
        "errors": len(errors),
        "idle": idle,
        "mib": alone.read_memory("VmHWM"),
    }


async def _session(store: AsyncStore, name: str, until: float, errors: list[Exception]) -> Done:
    """View and append, one after the other, until the time is over."""
    done = Done([], [])
    while (begun := time.perf_counter()) < until:
        try:
            assert (await store.view(name, now=NOW)).messages
            viewed = time.perf_counter()
            said = {"role": "user", "content": f"step {len(done.steps)}"}
            await store.append(name, said)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
            errors.append(error)
            print(error, file=sys.stderr)
            continue
        ended = time.perf_counter()
        done.steps.append((ended - begun) * 1000)
        done.appends.append((ended - viewed) * 1000)
    return done


if __name__ == "__main__":
    path, first, count, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(work(path, int(first), int(count), float(seconds)))))
