"""``python -m benchmarks.recording``: what it costs to record a request, beside an append.

Sessions of 1,000 and of 10,000 messages. In turn a message is appended, the view of the line is
taken, and the same view again with ``record=True``; a record costs what the two views differ by. It
may take as long as 1.5 appends and 1 ms for each MB of the request. Returns 1 where its median
takes longer. The time of a processor is told besides.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from pydantic_core import to_json

from store import Policy, Store

from .timing import Times
from .workload import START, conversation

SIZES = (1_000, 10_000)
POLICIES = ("agent", "raw")
APPENDS_ALLOWED = 1.5
MS_PER_MB = 1.0


class Cost(NamedTuple):
    """Medians of seconds: of an append, of a view, of a recorded one; and the MB of the request."""

    append: Times
    view: Times
    recorded: Times
    megabytes: float

    @property
    def record(self) -> float:
        """The seconds that recording takes besides the view."""
        return self.recorded.wall - self.view.wall

    @property
    def allowed(self) -> float:
        """The seconds that it may take."""
        return APPENDS_ALLOWED * self.append.wall + self.megabytes * MS_PER_MB / 1_000

    def __str__(self) -> str:
        processor = self.recorded.cpu - self.view.cpu
        told = (self.append.wall, self.view.wall, self.record, self.allowed, processor)
        times = "".join(f"{1_000 * each:9.2f}" for each in told)
        return f"{times}{self.megabytes:7.2f}{'' if self.record <= self.allowed else '  NO'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a record takes longer than asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recording", description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="messages of a session")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure on")
    options = parser.parse_args(arguments)
    print("messages policy    append ms  view  record  allowed  CPU ms     MB")
    met = True
    for size in map(int, options.sizes.split(",")):
        for policy in POLICIES:
            with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder:
                cost = measured(Path(folder) / "chat.db", size, policy, options.rounds)
            print(f"{size:8,} {policy:8}{cost}", flush=True)
            met &= cost.record <= cost.allowed
    return int(not met)


def measured(path: Path, size: int, policy_name: str, rounds: int) -> Cost:
    """Append, view and record in turn."""
    policy = Policy.named(policy_name)
    with Store(path) as store:
        store.create_session("s", now=START)
        messages = conversation(size + rounds + 1)
        store.append("s", [next(messages) for _ in range(size)])
        sent = store.view("s", policy, record=True).messages
        store.append("s", next(messages))  # whatever is built once is built by now
        taken: list[tuple[Times, Times, Times]] = []
        for message in messages:
            append = _time(lambda message=message: store.append("s", message))
            store.view("s", policy)  # the new message is read, for both
            view = _time(lambda: store.view("s", policy))
            recorded = _time(lambda: store.view("s", policy, record=True))
            taken.append((append, view, recorded))
    middle = [
        Times(median(each.wall for each in times), median(each.cpu for each in times))
        for times in zip(*taken, strict=True)
    ]
    return Cost(*middle, len(to_json(sent)) / 1e6)


def _time(work: Callable[[], object]) -> Times:
    """Return what a piece of work takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Times(time.perf_counter() - wall, time.process_time() - cpu)


if __name__ == "__main__":
    sys.exit(main())
