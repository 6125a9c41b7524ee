"""The medians of one operation, done again and again for a while."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

LEAST = 3
"""Times that an operation is done, unless once takes longer than all the time that there is."""


class Pace(NamedTuple):
    """How long an operation is measured, and how often at most."""

    seconds: float = 1.0
    most: int = 60


def medians(
    work: Callable[[Any], object], pace: Pace, prepare: Callable[[], Any] = lambda: None
) -> dict[str, float]:
    """Return an operation's wall and CPU time in ms, and how often it was done.

    ``prepare`` gives what it is done with, and is not timed. The first time is not counted, where
    there is time for more.
    """
    since = time.perf_counter()
    samples = [_timed(work, prepare())]
    if time.perf_counter() - since < pace.seconds:
        samples = [_timed(work, prepare()) for _ in range(LEAST)]
    while time.perf_counter() - since < pace.seconds and len(samples) < pace.most:
        samples.append(_timed(work, prepare()))
    wall, cpu = map(median, zip(*samples, strict=True))
    return {"wall": round(wall, 4), "cpu": round(cpu, 4), "times": len(samples)}


def _timed(work: Callable[[Any], object], given: Any) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work(given)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    del result
    gc.collect(0)
    return wall * 1000, cpu * 1000
