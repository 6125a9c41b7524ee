"""``python -m benchmarks.scale``: let sessions, files and crowds grow, and print what it costs."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..figures import Figures, machine, written
from . import crowd, growing, many
from .watch import Pace

PROGRAMS = ("growing", "many", "crowd")
PACE, QUICK_PACE = Pace(), Pace(0.05, 3)
SECONDS, QUICK_SECONDS = 8.0, 0.3
"""How long a crowd works."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where an append was lost or refused."""
    options = _options(arguments)
    found: Figures = {"machine": machine()}
    for name in options.only or PROGRAMS:
        found[name] = []
        for line in _lines(name, options):
            found[name].append(line)
            if not options.json:
                print(_told(name, line), flush=True)
    if options.json:
        print(json.dumps(found, indent=1))
    if options.write:
        written("scale", found)
    return int(any(each["errors"] or each["lost"] for each in found.get("crowd", ())))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--only", type=_names, help=f"some of {','.join(PROGRAMS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: seconds")
    parser.add_argument(
        "--largest", type=int, help="the most messages in a session, and sessions in a file"
    )
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
    if unknown := set(names) - set(PROGRAMS):
        raise argparse.ArgumentTypeError(f"nothing is named {', '.join(sorted(unknown))}")
    return names


def _lines(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what one of the programs measures, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="scale-", dir=options.folder) as folder:
        yield from _measures(options)[name](Path(folder))


def _measures(
    options: argparse.Namespace,
) -> dict[str, Callable[[Path], Iterator[dict[str, Any]]]]:
    quick, largest = options.quick, options.largest or 10**9
    pace = QUICK_PACE if quick else PACE
    sizes = growing.QUICK if quick else _upto(growing.SIZES, largest)
    files = many.QUICK if quick else _upto(many.SIZES, largest)
    crowds = crowd.QUICK if quick else crowd.CROWDS
    seconds = QUICK_SECONDS if quick else SECONDS
    return {
        "growing": lambda folder: growing.measured(folder, sizes, pace),
        "many": lambda folder: many.measured(folder, files, pace),
        "crowd": lambda folder: crowd.measured(folder, crowds, seconds),
    }


def _upto(sizes: Iterable[int], largest: int) -> list[int]:
    return [size for size in sizes if size <= largest]


def _told(name: str, line: dict[str, Any]) -> str:
    """Return a line of figures: the size, then each figure by its name."""
    figures = {key: f"{value['cpu']:.3g} ms" for key, value in line.get("times", {}).items()}
    plain = {key: value for key, value in line.items() if key != "times"}
    said = [f"{key} {value:,}" for key, value in plain.items()]
    return f"{name}: " + ", ".join([*said, *(f"{key} {each}" for key, each in figures.items())])


if __name__ == "__main__":
    sys.exit(main())
