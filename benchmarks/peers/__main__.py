"""``python -m benchmarks.peers``: ask every side for the same, in turn, and print one table.

Each side is a process of its own, of this interpreter; those whose library is not installed are
left out (the extra ``peers`` installs them). Before anything is timed all sides must give the same
messages.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from .. import alone
from ..figures import Figures, machine, written
from .table import OPERATIONS, PEERS, READING, WRITING

USUAL, QUICK = (1_000, 10_000), (400,)
TOO_SLOW = 3_000  # ms from which on an operation is done once


class Pace(NamedTuple):
    """How often: rounds, seconds of an operation in a round, and how many times at most."""

    rounds: int
    seconds: float
    most: int


class Worker:
    """A side's process."""

    def __init__(self, name: str, folder: Path, size: int) -> None:
        command = [sys.executable, "-m", "benchmarks.peers.worker", name, str(folder), str(size)]
        self._process = subprocess.Popen(
            command, cwd=alone.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        """Give an order; return the answer."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        if answer := self._process.stdout.readline():
            return dict(json.loads(answer))
        raise RuntimeError(
            f"a side ended with {self._process.wait()}: what went wrong stands above"
        )

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 0."""
    options = _options(arguments)
    names = [name for name in options.peers or PEERS if PEERS[name].is_there()]
    found = measured(names, _sizes(options), _pace(options), options.folder)
    print(json.dumps(found, indent=1) if options.json else told(found))
    if options.write:
        written("peers", found)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--peers", type=_names, help=f"some of {','.join(PEERS)}")
    parser.add_argument(
        "--sizes", type=_numbers, help="messages in the session, such as 1000,10000"
    )
    parser.add_argument("--quick", action="store_true", help="a small size, one round: seconds")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--write", action="store_true", help="keep the figures, and make the page of them"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path.cwd(), help="a folder on the disk to measure on"
    )
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(PEERS):
        raise argparse.ArgumentTypeError(f"nobody is named {', '.join(sorted(unknown))}")
    return names


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _sizes(options: argparse.Namespace) -> Sequence[int]:
    return options.sizes or (QUICK if options.quick else USUAL)


def _pace(options: argparse.Namespace) -> Pace:
    return Pace(1, 0.05, 3) if options.quick else Pace(3, 0.35, 40)


def measured(names: Sequence[str], sizes: Sequence[int], pace: Pace, folder: Path) -> Figures:
    """Measure everything; return it as it is kept."""
    times: dict[str, Any] = {
        "import": {"": {name: _imported(PEERS[name].imported, pace) for name in names}}
    }
    for size in sizes:
        for operation, found in _measured(names, size, pace, folder, lists=size == sizes[0]):
            place = "" if operation == "list" else str(size)
            times.setdefault(operation, {})[place] = found
    return {
        "machine": machine(),
        "sides": {name: _side(name) for name in names},
        "sizes": [*sizes],
        "times": {name: times[name] for name in OPERATIONS},
    }


def _side(name: str) -> dict[str, str]:
    side = PEERS[name]
    return {
        "label": side.label,
        "used": side.used,
        "distribution": side.distribution,
        "version": version(side.distribution) if side.distribution else "",
    }


def _imported(module: str, pace: Pace) -> dict[str, float]:
    if pace.rounds > 1:
        alone.run("import_name", module)  # writes the bytecode that is missing
    rounds = [alone.run("import_name", module) for _ in range(pace.rounds)]
    return {kind: median(each[kind] for each in rounds) for kind in ("wall", "cpu")}


def _measured(
    names: Sequence[str], size: int, pace: Pace, folder: Path, *, lists: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each operation's times by side, for one size."""
    with _workers(names, size, folder) as workers:
        kept = 0
        for worker in workers.values():
            kept = worker.ask(do="fill", kept=kept)["kept"]
            worker.ask(do="fill_many")
        _proved({name: worker.ask(do="prove") for name, worker in workers.items()})
        for operation in (*READING, *WRITING):
            if operation != "list" or lists:
                yield operation, _in_turn(workers, operation, pace)


@contextmanager
def _workers(names: Sequence[str], size: int, folder: Path) -> Iterator[dict[str, Worker]]:
    """Start the sides; the store comes first, which says where its summary ends."""
    first = sorted(names, key=lambda name: name != "ours")
    with ExitStack() as opened:
        path = opened.enter_context(tempfile.TemporaryDirectory(prefix="peers-", dir=folder))
        workers = {name: Worker(name, Path(path), size) for name in first}
        for worker in workers.values():
            opened.callback(worker.close)
        yield workers


def _proved(found: dict[str, dict[str, str]]) -> None:
    """Make sure that all sides give the same, before their times are compared."""
    (first, expected), *others = found.items()
    for name, digests in others:
        if wrong := [what for what, digest in digests.items() if expected[what] != digest]:
            raise AssertionError(f"{first} and {name} disagree about {', '.join(wrong)}")


def _in_turn(workers: dict[str, Worker], operation: str, pace: Pace) -> dict[str, Any]:
    """Let the sides do an operation in turn, round by round; return medians in ms.

    What takes seconds is done once.
    """
    samples: dict[str, dict[str, list[float]]] = {name: {"wall": [], "cpu": []} for name in workers}
    for number in range(pace.rounds):
        order = [*workers] if number % 2 else [*reversed(workers)]
        for name in order:
            done = samples[name]
            if done["wall"] and max(done["wall"]) > TOO_SLOW:
                continue
            asked = {"name": operation, "seconds": pace.seconds, "most": pace.most}
            answer = workers[name].ask(do="measure", **asked)
            for kind, known in done.items():
                known.extend(answer[kind])
    return {name: _medians(each) for name, each in samples.items() if each["wall"]}


def _medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {kind: round(median(each), 4) for kind, each in times.items()} | {
        "times": len(times["wall"])
    }


def told(found: Figures) -> str:
    """Return the figures as a table: CPU ms by hand, then how many times that."""
    lines = [
        " ".join(["operation".ljust(36), "messages", *(f"{name:>10}" for name in found["sides"])])
    ]
    for operation, sizes in found["times"].items():
        for size, by_side in sizes.items():
            cells = [f"{_cell(by_side, name):>10}" for name in found["sides"]]
            lines.append(" ".join([OPERATIONS[operation].ljust(36), size.rjust(8), *cells]))
    return "\n".join(lines)


def _cell(by_side: dict[str, Any], name: str) -> str:
    if name not in by_side:
        return "–"
    cpu, first = by_side[name]["cpu"], next(iter(by_side.values()))["cpu"]
    base = by_side.get("raw", {"cpu": first})["cpu"]
    return f"{cpu:.3g} ms" if name == "raw" else f"{cpu / base:.3g} ×"


if __name__ == "__main__":
    sys.exit(main())
