"""Measures that need processes of their own: imports, cold opening, many writers."""

from __future__ import annotations

from statistics import median
from typing import Any

from . import alone
from .reading import Found
from .stage import SESSION, Stage, equal
from .timing import Pair, Times

ROUNDS = 9
SQLALCHEMY = ("import_name", "sqlalchemy")
IMPORTS: dict[str, tuple[object, ...]] = {
    "import store": ("import_name", "store"),
    "import Store": ("import_name", "store", "Store"),
}
"""Lines of what is imported, against SQLAlchemy alone: the package, and its class of that name."""


def cold(stage: Stage) -> Found:
    """Import, open and read in new processes; nothing slow may be imported on the way."""
    used = ("use_ours", stage.paths["ours"], SESSION)
    alone.run(*used)  # writes the bytecode that is missing
    rounds = range(stage.pace.repeat or ROUNDS)
    for line, ours in {**IMPORTS, "a short program": used}.items():
        sides = (ours, SQLALCHEMY)
        yield line, _pair([[alone.run(*side) for side in sides] for _ in rounds])
    opened = [
        [alone.run(f"open_{side}", path, SESSION) for side, path in stage.paths.items()]
        for _ in rounds
    ]
    yield "open + newest 20, cold", _pair(opened)
    yield "cold: slow libraries", float(len(opened[0][0]["slow"]))


def _pair(rounds: list[list[dict[str, Any]]]) -> Pair:
    ours, rival = zip(*rounds, strict=True)
    return Pair(_median(ours), _median(rival))


def _median(side: tuple[dict[str, Any], ...]) -> Times:
    return Times(median(each["wall"] for each in side), median(each["cpu"] for each in side))


def writers(stage: Stage) -> Found:
    """Append from many processes at once to one session.

    Nothing may be refused, lost, doubled or reordered.
    """
    stage.create("crowd")
    ours, raw = (_write(stage, f"write_{side}", path) for side, path in stage.paths.items())
    yield "writers: slowest", Pair(Times(ours["wall"], ours["cpu"]), Times(raw["wall"], raw["cpu"]))
    yield (
        "writers: worst wait",
        Pair(Times(ours["worst"], ours["worst"]), Times(raw["worst"], raw["worst"])),
    )
    yield "writers: errors", ours["errors"]
    yield "writers: lost or out of order", float(_wrong(stage))


def _write(stage: Stage, task: str, path: object) -> dict[str, float]:
    """Let many processes append at once.

    Return the sum of their errors and CPU times, the worst of the rest.
    """
    done = alone.together(
        [
            alone.start(task, path, "crowd", f"w{worker}", stage.extent.appends)
            for worker in range(stage.extent.writers)
        ]
    )
    figures = {
        name: [float(each[name]) for each in done] for name in ("wall", "cpu", "errors", "worst")
    }
    return {
        name: (sum if name in ("cpu", "errors") else max)(values)
        for name, values in figures.items()
    }


def _wrong(stage: Stage) -> int:
    """Return how many appends are not where they belong."""
    stored = stage.normal.messages("crowd")
    equal([each.seq for each in stored], list(range(1, len(stored) + 1)))
    said = [each.message["content"].split() for each in stored]
    expected = [str(number) for number in range(stage.extent.appends)]
    wrong = 0
    for worker in range(stage.extent.writers):
        found = [number for name, number in said if name == f"w{worker}"]
        wrong += max(
            len(expected) - len(found), sum(a != b for a, b in zip(found, expected, strict=False))
        )
    return wrong
