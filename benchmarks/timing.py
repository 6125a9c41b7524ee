"""Two pieces of work in turn, A B B A …, and the medians of their wall and CPU times.

Only ratios of one run count.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

_LONG = 0.005  # seconds from which on a collection of garbage is worth its time


class Times(NamedTuple):
    """Medians in ms."""

    wall: float
    cpu: float


class Pair(NamedTuple):
    """Two medians of one run."""

    ours: Times
    rival: Times

    @property
    def wall(self) -> float:
        """The ratio of wall times."""
        return self.ours.wall / self.rival.wall

    @property
    def cpu(self) -> float:
        """The ratio of CPU times."""
        return self.ours.cpu / self.rival.cpu


class Pace(NamedTuple):
    """How often to measure.

    ``repeat`` times, else as often as fits into so many seconds, 5 to 300 times.
    """

    seconds: float = 2.0
    repeat: int | None = None

    def enough(self, done: int, since: float) -> bool:
        """Tell whether to stop after so many rounds."""
        if self.repeat is not None:
            return done >= self.repeat
        return done >= 300 or (done >= 5 and time.perf_counter() - since > self.seconds)


def interleaved(
    ours: Callable[[Any], object],
    rival: Callable[[Any], object],
    pace: Pace,
    prepare: Callable[[], Any] = lambda: None,
) -> Pair:
    """Run both in turn, each round with what ``prepare`` gives.

    The first round is not counted. Who goes first changes from round to round: who comes second
    finds texts that are encoded and at hand.
    """
    samples: tuple[list[Times], list[Times]] = ([], [])
    turns = ((ours, samples[0]), (rival, samples[1]))
    _time(ours, prepared := prepare())
    _time(rival, prepared)
    since = time.perf_counter()
    while not pace.enough(len(samples[0]), since):
        prepared = prepare()
        for work, times in turns if len(samples[0]) % 2 else reversed(turns):
            times.append(_time(work, prepared))
    return Pair(*(Times(*map(median, zip(*each, strict=True))) for each in samples))


def _time(work: Callable[[Any], object], prepared: Any) -> Times:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work(prepared)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    del result
    if wall > _LONG:
        gc.collect()
    return Times(wall * 1000, cpu * 1000)


def measure_seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of CPU that work takes once."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure_quickest(work: Callable[[], Any], tries: int = 5) -> float:
    """Return the fewest seconds of CPU of several tries."""
    return min(measure_seconds(work) for _ in range(tries))
