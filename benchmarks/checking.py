"""``python -m benchmarks.checking``: what it costs to compare what is read with what was stored.

The same file is opened as usual and with ``check_reads`` in turn. Told are the CPU times of an
ordinary store and how many times as long the other takes, each the median of the rounds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from store import Policy, Store

from .timing import measure_quickest, measure_seconds
from .workload import conversation

AGENT = Policy.named("agent")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chat.db")
        with Store(path) as store:
            store.create_session("s")
            store.append("s", conversation(asked.messages))
            store.create_session("short")
            store.append("short", conversation(20))
        rounds = [(dict(_times(path)), dict(_times(path, True))) for _ in range(asked.rounds)]
    print(f"{asked.messages:,} messages, the median of {asked.rounds} rounds")
    for name in rounds[0][0]:
        plain, checked = (median(each[side][name] for each in rounds) for side in (0, 1))
        print(f"{name}: {plain * 1000:.2f} ms, with check_reads {checked / plain:.1f} times that")


def _times(path: Path, check_reads: bool = False) -> Iterator[tuple[str, float]]:
    """Yield the CPU seconds of each operation on a store that has just been opened."""
    with Store(path, check_reads=check_reads) as store:
        store.view("short", AGENT)
        yield "first view", measure_seconds(lambda: store.view("s", AGENT))
        yield "view again", measure_quickest(lambda: store.view("s", AGENT))
        yield "load", measure_quickest(lambda: store.messages("s"))
        yield "newest 20", measure_quickest(lambda: store.messages("s", -20))
        said = {"role": "user", "content": "go on"}
        yield "append", measure_quickest(lambda: store.append("short", said))


if __name__ == "__main__":
    main()
