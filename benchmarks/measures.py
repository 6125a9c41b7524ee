"""The measures as a table: what each line of it may cost, and what takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import apart, assembling, compacting, reading, writing
from .reading import Found
from .stage import Stage
from .timing import Pair


class Miss(NamedTuple):
    """How far a target is missed, and ``why``: what it would take to reach it.

    It is no target: a line that is within it misses what is asked all the same, and says so. A
    line beyond it has become worse than is known.
    """

    within: float
    why: str


class Target(NamedTuple):
    """What a line may cost.

    ``by`` is ``wall`` or ``cpu`` (ratios), or ``ours`` (the figure itself, in its unit). ``miss``
    is there where it is known to cost more. It is asked of sessions of ``smallest`` to ``largest``
    messages; of others the line is left out.
    """

    by: str
    limit: float
    unit: str = "ms"
    miss: Miss | None = None
    smallest: int = 1
    largest: int = 10**9

    def __str__(self) -> str:
        of_what = self.unit if self.by == "ours" else f"× {self.by}"
        return f"≤ {self.limit:g} {of_what}"


class Measure(NamedTuple):
    """What takes a measure and the lines it gives; some are taken once and not for each size."""

    take: Callable[[Stage], Found]
    lines: dict[str, Target]
    once: bool = False
    on_request: bool = False
    smallest: int = 1
    largest: int = 10**9


class Result(NamedTuple):
    """A line of the table; ``met`` tells whether the target is reached.

    ``known`` says why it is not, where that is known and the line is no worse.
    """

    line: str
    size: int
    unit: str
    ours: float
    rival: float | None
    wall: float | None
    cpu: float | None
    target: str
    met: bool
    known: str | None


APPEND = (
    "SQLite alone takes 1.6 × what all takes by hand: more tables, keys between them, triggers"
    " that refuse a replacement, a row of facts. What is left for Python is a tenth of what"
    " checking, hashing and judging a message take. Facts that are written later, or stand in"
    " the row of the message, would spare a third"
)
BATCH = (
    "SQLite alone takes 1.2 to 1.3 ×, most of it the text itself; 2 to 5 µs a message are left for"
    " Python, which needs 20 to check, hash and judge it"
)
VIEW = (
    "SQLite alone takes 0.9 of what all takes by hand, and Python as long again, to judge, pair,"
    " repair and write messages that may hold anything. Half of that would have to go: a request"
    " written straight from the rows where nothing is to be repaired"
)
FOREIGN = (
    "the arguments of each call are decoded, which a chat takes as a text; a chat's own view has"
    " become cheaper, what the others do besides has not"
)
READ = (
    "SQLite alone takes 1.04 × what all takes by hand: seven columns more, of which digest and time"
    " are given out; Python, which gives keys back in their order, would have to take half its time"
)
DEEP = "each branch that a line runs through is asked for by itself, by the same statements"
TURN = (
    "SQLite alone takes 1.2 ×: two rows of the log and of the branch more, sealed, in tables of"
    " their own. A move without a log, or without seals, would reach it"
)
WRITERS = (
    "each turn is as long as an append that is alone, twice what it takes by hand, and a change of"
    " turns costs what SQLite reads anew. Only a cheaper append helps: longer turns do not"
)

MEASURES: dict[str, Measure] = {
    "disk": Measure(
        reading.disk,
        {
            "disk": Target(
                "ours",
                1.20,
                "× payload",
                Miss(
                    1.40,
                    "the tables of a store without messages take 0.3 MB, a tenth of what 1,000 say;"
                    " from 10,000 on it is reached",
                ),
            )
        },
        smallest=1_000,
    ),
    "load": Measure(reading.load_all, {"load all": Target("cpu", 1.25, miss=Miss(1.7, READ))}),
    "pages": Measure(
        reading.pages,
        {
            "iterate in pages": Target("cpu", 1.25, miss=Miss(1.75, READ)),
            "pages: peak memory": Target("ours", 64, "MiB"),
        },
    ),
    "newest": Measure(
        reading.newest,
        {
            "newest 20": Target("cpu", 1.3, miss=Miss(2.0, READ)),
            "newest 20 again": Target("cpu", 1.3),
            "newest 20: against 100": Target("cpu", 1.2),
        },
    ),
    "view": Measure(reading.view, {"view, all rules": Target("cpu", 1.5, miss=Miss(2.6, VIEW))}),
    "formats": Measure(
        reading.view_foreign,
        {
            f"view for {name}, against chat": Target("cpu", 1.3, miss=Miss(1.45, FOREIGN))
            for name in reading.PROVIDERS
        },
    ),
    "check": Measure(
        compacting.check,
        {
            "check": Target("ours", 10, largest=10_000),
            "check: against bare SQL": Target("cpu", 1.5, smallest=1_000),
            "check that fires: against bare SQL": Target("cpu", 2.5, smallest=1_000),
        },
    ),
    "compact": Measure(
        compacting.compact,
        {
            "compact, extractive summary included": Target("ours", 600),
            "compact: without the summary": Target("ours", 100),
            "extractive summary": Target("ours", 500),
            "compact: as much as a transcript shows": Target(
                "ours",
                100,
                miss=Miss(
                    130,
                    "half of it reads what is to be hidden and fits it into the transcript; the"
                    " view is weighed before and after, which could be done once",
                ),
            ),
        },
        largest=10_000,
    ),
    "compacted": Measure(
        compacting.view,
        {"view behind a compaction": Target("cpu", 1.2, miss=Miss(2.6, VIEW))},
        smallest=1_000,
    ),
    "request": Measure(
        assembling.request,
        {
            "request: against its view": Target(
                "cpu",
                1.5,
                miss=Miss(1.9, "the first view has become cheaper, what is put around it has not"),
            ),
            "check with short forms: against without": Target(
                "ours",
                10,
                miss=Miss(40, "each result of 10,000 visible messages is weighed as it would be"),
            ),
        },
        smallest=1_000,
        largest=10_000,
    ),
    "depth": Measure(
        reading.depth,
        {
            f"depth 100 against 1: {name}": Target("cpu", 1.3, miss=Miss(1.6, DEEP))
            for name in ("load", "newest 20", "view")
        },
        smallest=1_000,
        largest=10_000,
    ),
    "again": Measure(
        reading.view_again,
        {
            **{f"{name} again, 3 more messages": Target("cpu", 0.5) for name in reading.AGAIN},
            "newest 20 again, 3 more messages": Target(
                "cpu",
                1.3,
                miss=Miss(1.5, "what is new is weighed, column by column, before it is kept"),
            ),
        },
        smallest=1_000,
        largest=10_000,
    ),
    "list": Measure(reading.list_sessions, {"list 200": Target("cpu", 1.3)}, once=True),
    "append": Measure(
        writing.append_one,
        {
            "append one (FULL)": Target("wall", 1.5, miss=Miss(2.5, APPEND)),
            "append one (NORMAL)": Target("cpu", 2.0, miss=Miss(4.8, APPEND)),
            "append one: against 100": Target("cpu", 1.2),
        },
    ),
    "batch": Measure(
        writing.append_batch, {"append 1,000": Target("cpu", 1.5, miss=Miss(4.8, BATCH))}
    ),
    "fork": Measure(
        writing.fork,
        {
            "fork at the middle": Target("cpu", 1.3, miss=Miss(2.1, TURN)),
            "fork: against 100": Target("cpu", 1.2),
            "fork: disk": Target("ours", 4, "KiB"),
        },
    ),
    "rewind": Measure(
        writing.rewind,
        {
            "rewind by 10": Target("cpu", 1.3, miss=Miss(1.7, TURN)),
            "undo a rewind": Target("cpu", 1.3),
            "rewind and undo: against 100": Target("cpu", 1.2),
        },
    ),
    "cold": Measure(
        apart.cold,
        {
            "import store": Target("cpu", 1.3),
            "import Store": Target(
                "cpu",
                1.3,
                miss=Miss(1.5, "a third of what it adds describes the tables"),
            ),
            "a short program": Target(
                "cpu",
                2.5,
                miss=Miss(
                    3.0,
                    "a sixth of it is importing pydantic, of which policies are made, and a twelfth"
                    " the first full collection of garbage",
                ),
            ),
            "open + newest 20, cold": Target("ours", 15),
            "cold: slow libraries": Target("ours", 0, "imported"),
        },
        once=True,
    ),
    "writers": Measure(
        apart.writers,
        {
            "writers: slowest": Target("wall", 1.5, miss=Miss(3.0, WRITERS)),
            "writers: worst wait": Target("ours", 1000),
            "writers: errors": Target("ours", 0, "errors"),
            "writers: lost or out of order": Target("ours", 0, "messages"),
        },
        once=True,
    ),
    "million": Measure(
        writing.million,
        {
            "append one: a million against 100": Target("cpu", 1.2),
            "view behind: a million against 1,000": Target("cpu", 1.2),
        },
        once=True,
        on_request=True,
    ),
}
"""In the order in which they are taken: what reads before what writes."""


def results(name: str, stage: Stage) -> Iterator[Result]:
    """Take a measure; yield its lines."""
    measure = MEASURES[name]
    for line, found in measure.take(stage):
        target = measure.lines[line]
        if target.smallest <= stage.size <= target.largest:
            yield _result(line, stage.size, target, found)


def _result(line: str, size: int, target: Target, found: Pair | float) -> Result:
    if isinstance(found, Pair):
        figure = {"wall": found.wall, "cpu": found.cpu, "ours": found.ours.wall}[target.by]
        sides = (found.ours.wall, found.rival.wall, found.wall, found.cpu)
    else:
        figure, sides = found, (found, None, None, None)
    met, known = figure <= target.limit, None
    if target.miss and not met and figure <= target.miss.within:
        known = target.miss.why
    return Result(line, size, target.unit, *sides, str(target), met, known)
