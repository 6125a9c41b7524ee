"""``python -m benchmarks``: take the measures and print one table.

A line that costs more than is asked says NO, or ``known`` where the table of measures says why and
the line is no worse than it says; behind the table stands what it would take. Returns 1 where any
line says NO.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .measures import MEASURES, Result, results
from .stage import Extent, Stage
from .timing import Pace

USUAL = (100, 1_000, 10_000, 100_000)
QUICK = (100, 1_000)
COLUMNS = ("measure", "messages", "ours", "raw", "wall ×", "CPU ×", "target", "met")
WIDTHS = (38, 9, 20, 11, 7, 7, 18, 5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a target is missed and nobody knows why."""
    options = _options(arguments)
    found: list[Result] = []
    if not options.json:
        print(*map(str.ljust, COLUMNS, WIDTHS))
    for result in _all(options):
        found.append(result)
        if not options.json:
            print(_line(result), flush=True)
    if options.json:
        print(json.dumps([result._asdict() for result in found], indent=1))
    else:
        _explain(found)
    return int(not all(result.met or result.known for result in found))


def _explain(found: list[Result]) -> None:
    """Print of each line that misses its target, as is known, what it would take."""
    for line, why in {result.line: result.known for result in found if result.known}.items():
        print(f"\n{line}: {why}")


def _met(result: Result) -> str:
    if result.met:
        return "yes"
    return "known" if result.known else "NO"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--sizes", type=_numbers, help="messages in the session, such as 1000,10000"
    )
    parser.add_argument("--measures", type=_names, help=f"some of {','.join(MEASURES)}")
    parser.add_argument(
        "--repeat",
        type=int,
        help="rounds of each measure; default: as many as fit in a few seconds",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, few rounds: under a minute"
    )
    parser.add_argument(
        "--million", action="store_true", help="also append to a session of a million messages"
    )
    parser.add_argument(
        "--writers", type=int, help="processes that append at once; default 16, with --quick 4"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--folder", type=Path, default=Path.cwd(), help="a folder on the disk to measure on"
    )
    return parser.parse_args(arguments)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(MEASURES):
        raise argparse.ArgumentTypeError(f"no measure is named {', '.join(sorted(unknown))}")
    return names


def _all(options: argparse.Namespace) -> Iterator[Result]:
    """Take the measures for each size; those that do not depend on it with the first size only."""
    sizes = options.sizes or (QUICK if options.quick else USUAL)
    extent = _extent(options)
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder:
            stage = Stage(Path(folder), size, extent)
            for name in _wanted(options, size, first=size == sizes[0]):
                yield from results(name, stage)
            stage.close()


def _wanted(options: argparse.Namespace, size: int, *, first: bool) -> list[str]:
    return [
        name
        for name, measure in MEASURES.items()
        if (options.measures is None or name in options.measures)
        and (first or not measure.once)
        and (options.million or not measure.on_request)
        and measure.smallest <= size <= measure.largest
    ]


def _extent(options: argparse.Namespace) -> Extent:
    if options.quick:
        return Extent(
            Pace(0.4, options.repeat), sessions=1_000, writers=options.writers or 4, appends=50
        )
    return Extent(
        Pace(2.0, options.repeat), sessions=10_000, writers=options.writers or 16, appends=400
    )


def _line(result: Result) -> str:
    ours, rival = (
        "" if figure is None else f"{figure:,.3g}" if figure < 1000 else f"{figure:,.0f}"
        for figure in (result.ours, result.rival)
    )
    wall, cpu = ("" if ratio is None else f"{ratio:.2f}" for ratio in (result.wall, result.cpu))
    cells = (
        result.line, f"{result.size:,}", f"{ours} {result.unit}", rival, wall, cpu, result.target,
        _met(result),
    )  # fmt: skip
    return " ".join(map(str.ljust, cells, WIDTHS)).rstrip()


if __name__ == "__main__":
    sys.exit(main())
