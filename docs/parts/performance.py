"""The page of performance, made of the figures that lie beside it: tables, plots, who is faster.

`benchmarks.peers` and `benchmarks.scale` measure and keep the figures; nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from benchmarks.figures import read
from benchmarks.measures import MEASURES
from benchmarks.peers.table import OPERATIONS, WHOLE_FILE
from benchmarks.plots import Line, compared, grown, milliseconds, number, times
from benchmarks.scale import growing, many

from .markdown import as_table

OURS, BY_HAND = "ours", "raw"
CLEARLY = 1.05
"""How many times as much is clearly more, where two runs differ by some hundredths."""

WHY = {
    "append": "a message is checked, sealed by a digest and searched for the facts that rules use;"
    " writers take turns, so that none starves",
    "batch": "the same for each of the thousand",
    "load": "each message has its position, its id and its time",
    "newest": "the line is determined first, through forks and rewinds",
    "view": "any policy is applied, each call paired with its result, and replacements are"
    " explained; by hand two rules are written into the program",
    "again": "as above",
    "behind": "the store finds the end of the summary; the others are given it",
    "rewind": "the move is recorded and can be undone; elsewhere rows are deleted or a pointer is"
    " set",
    "list": "a session has its title, owner, metadata and revision",
    "import": "most of it is SQLAlchemy and pydantic",
}
"""What the store does in an operation that a faster side does not."""


def measured_on(program: str) -> Callable[[], str]:
    """Return what makes the sentence of where and when a program measured."""

    def made() -> str:
        on = read()[program]["machine"]
        place = f"{on['cores']} cores, {on['system']}, Python {on['python']}, SQLite {on['sqlite']}"
        return f"Measured on {on['date']}: {place}; {_busy(on)}."

    return made


def _busy(machine: Mapping[str, Any]) -> str:
    """Return how much else the machine had to do, and what that means."""
    if not _is_busy(machine):
        return f"load {machine['load']} when it began"
    return (
        f"load {machine['load']} when it began, from other programs, so that waits are longer than"
        " on a machine of one's own; CPU times hardly are"
    )


def _is_busy(machine: Mapping[str, Any]) -> bool:
    return float(machine["load"]) > float(machine["cores"])


def sides() -> str:
    """Return who is compared, and in which version."""
    rows = (
        (each["label"], f"`{each['used']}`", f"{each['distribution']} {each['version']}".strip())
        for each in read()["peers"]["sides"].values()
    )
    return as_table(["name", "class or module", "version"], rows)


def peers() -> str:
    """Return how many times the CPU of the work by hand each side takes."""
    found = read()["peers"]
    others = [name for name in found["sides"] if name != BY_HAND]
    rows = (
        (OPERATIONS[name], _by_hand(sizes), *(_ratios(sizes, side) for side in others))
        for name, sizes in found["times"].items()
    )
    sizes = " · ".join(map(number, found["sizes"]))
    labels = (found["sides"][name]["label"] for name in others)
    return as_table([f"{sizes} messages", "by hand", *labels], rows)


def _by_hand(sizes: Mapping[str, Any]) -> str:
    return " · ".join(milliseconds(each[BY_HAND]["cpu"]) for each in sizes.values())


def _ratios(sizes: Mapping[str, Any], side: str) -> str:
    return " · ".join(_ratio(each, side) for each in sizes.values() if side in each)


def _ratio(by_side: Mapping[str, Any], side: str) -> str:
    return times(by_side[side]["cpu"] / by_side[BY_HAND]["cpu"])


def waits() -> str:
    """Return how long each side takes on the clock, in the largest session.

    A machine that has other work to do says nothing about that.
    """
    found = read()["peers"]
    if _is_busy(found["machine"]):
        return "(Omitted: the machine had other work to do.)"
    rows = (
        (OPERATIONS[name], *(_wall([*sizes.values()][-1], side) for side in found["sides"]))
        for name, sizes in found["times"].items()
    )
    return as_table(["", *(each["label"] for each in found["sides"].values())], rows)


def _wall(by_side: Mapping[str, Any], side: str) -> str:
    return milliseconds(by_side[side]["wall"]) if side in by_side else ""


def faster() -> str:
    """Return where others take less than the store, and why."""
    rows = [
        (OPERATIONS[name], ", ".join(less), WHY[name])
        for name, sizes in read()["peers"]["times"].items()
        if (less := [*_less([*sizes.values()][-1])])
    ]
    if not rows:
        return "In none of these operations."
    return as_table(["", "the store takes", "because"], rows)


def _less(by_side: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sides that clearly take less than the store, and how much more the store takes."""
    labels = {name: each["label"] for name, each in read()["peers"]["sides"].items()}
    for name, taken in by_side.items():
        ratio = by_side[OURS]["cpu"] / taken["cpu"]
        if ratio > CLEARLY:
            yield f"{times(ratio)} that of {_called(name, labels)}"


def _called(name: str, labels: Mapping[str, str]) -> str:
    return "the work by hand" if name == BY_HAND else labels[name]


def misses() -> str:
    """Return the operations that cost more than they should, and what it would take."""
    rows = [
        [line, str(target), f"{target.miss.within:g}", target.miss.why]
        for measure in MEASURES.values()
        for line, target in measure.lines.items()
        if target.miss
    ]
    return as_table(["", "target", "at most", "possible improvement"], rows)


def peers_plot() -> str:
    """Return the picture of who takes how much, in the largest session."""
    found = read()["peers"]
    labels = {name: side["label"] for name, side in found["sides"].items() if name != BY_HAND}
    rows = {
        OPERATIONS[name]: _row([*sizes.values()][-1], labels)
        for name, sizes in found["times"].items()
        if name not in WHOLE_FILE
    }
    size = number(found["sizes"][-1])
    title = f"CPU time, as a multiple of hand-written sqlite3, in a session of {size} messages"
    return compared(title, rows, labels[OURS])


def _row(by_side: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, float]:
    base = by_side[BY_HAND]["cpu"]
    return {label: by_side[name]["cpu"] / base for name, label in labels.items() if name in by_side}


def growing_plot() -> str:
    """Return the picture of what grows with a session."""
    lines = _grown("growing", "messages", growing.OPERATIONS)
    return grown(
        "CPU time of one operation, as the session grows", "messages in the session", lines
    )


def many_plot() -> str:
    """Return the picture of what grows with the number of sessions."""
    lines = _grown("many", "sessions", many.OPERATIONS)
    title = "CPU time of one operation, as the file fills"
    return grown(title, "sessions in the file", lines)


def _grown(program: str, counted: str, operations: Mapping[str, str]) -> list[Line]:
    """Return a line for each operation, over the sizes at which it was measured."""
    steps = read()["scale"][program]
    return [
        Line(
            label,
            [
                (step[counted], step["times"][name]["cpu"])
                for step in steps
                if name in step["times"]
            ],
        )
        for name, label in operations.items()
    ]


def crowd_plot() -> str:
    """Return the picture of how long a view and an append take beside others."""
    crowds = read()["scale"]["crowd"]
    together = sorted({each["processes"] for each in crowds})
    lines = [
        Line(
            f"{said}, {_processes(count)}",
            [(each["sessions"], each[part]) for each in crowds if each["processes"] == count],
        )
        for count in together
        for part, said in (("p50", "median"), ("p99", "99th percentile"))
    ]
    title = "Wait for a view and an append, as more sessions work at once"
    return grown(title, "sessions that view and append without pause", lines, high=300)


def _processes(count: int) -> str:
    return f"{count} processes" if count > 1 else "1 process"


def growing_table() -> str:
    """Return the same as figures."""
    steps = read()["scale"]["growing"]
    rows = [*_figures(steps, growing.OPERATIONS)]
    rows.append(["the file", *(f"{step['bytes'] / 2**20:,.0f} MiB" for step in steps)])
    return as_table(["", *(number(step["messages"]) for step in steps)], rows)


def many_table() -> str:
    """Return the same as figures."""
    steps = read()["scale"]["many"]
    return as_table(
        ["", *(number(step["sessions"]) for step in steps)], _figures(steps, many.OPERATIONS)
    )


def _figures(
    steps: Iterable[Mapping[str, Any]], operations: Mapping[str, str]
) -> Iterator[list[str]]:
    steps = [*steps]
    for name, label in operations.items():
        taken = [step["times"].get(name) for step in steps]
        yield [label, *(milliseconds(each["cpu"]) if each else "" for each in taken)]


def crowd_table() -> str:
    """Return what each crowd did."""
    rows = (
        (
            each["processes"],
            each["sessions"],
            number(each["appends_per_second"]),
            *map(milliseconds, (each["p50"], each["p99"], each["append_p50"], each["append_p99"])),
            _memory(each),
            each["errors"],
            each["lost"],
        )
        for each in read()["scale"]["crowd"]
    )
    head = (
        "processes", "sessions", "appends/s", "view and append: median", "99 %", "append: median",
        "99 %", "memory of a process, idle → at most", "errors", "lost",
    )  # fmt: skip
    return as_table(head, rows)


def _memory(crowd: Mapping[str, Any]) -> str:
    idle, most = (crowd[part] / crowd["processes"] for part in ("idle_mib", "mib"))
    return f"{idle:,.0f} → {most:,.0f} MiB"
