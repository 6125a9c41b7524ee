"""One file with a hundred thousand sessions: what each operation costs on the way there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from store import Store
from store.face import Steps

from ..workload import ROOT, START
from .watch import Pace, medians

SIZES = (100, 1_000, 10_000, 100_000)
QUICK = (30, 120)
BATCH = 1_000
OWNERS = 100
LISTED = 200

OPERATIONS = {
    "create": "create a session",
    "append": "append one message to one",
    "view": "view of one",
    "list": "list 200",
    "owner": "list 200 of one owner",
    "next": "the next 200, from the middle",
}
"""In the words of the plot."""


def fill(store: Store, first: int, last: int) -> None:
    """Create sessions of a question and its answer, each by one of some owners."""

    def work(steps: Steps) -> None:
        for number in range(first, min(first + BATCH, last)):
            _create(steps, number)

    while first < last:
        store.atomically(work)
        first += BATCH


def _create(steps: Steps | Store, number: int) -> None:
    moment = START + 1_000 * number
    name, owner = f"s{number:06}", f"owner-{number % OWNERS}"
    steps.create_session(name, title=f"Chat {number}", project_root=ROOT, owner=owner, now=moment)
    steps.append(name, [{"role": "user", "content": "How are you?"}, _answer()], now=moment)


def _answer() -> dict[str, str]:
    return {"role": "assistant", "content": "Well, thank you."}


def measured(folder: Path, sizes: Sequence[int], pace: Pace) -> Iterator[dict[str, Any]]:
    """Add sessions from size to size; yield what each operation takes there."""
    with Store(folder / "many.db", durability="normal") as store:
        first = 0
        for size in sizes:
            fill(store, first, size)
            first = size
            taken = {name: medians(work, pace) for name, work in _works(store, size).items()}
            yield {"sessions": size, "times": taken}


def _works(store: Store, size: int) -> dict[str, Callable[[object], object]]:
    """Return the operations, of which the last ones add what the next size may not count."""
    middle = f"s{size // 2:06}"
    cursor = store.session(middle)
    names = count()
    now = START + 1_000 * size
    return {
        "list": lambda _: store.sessions(limit=LISTED),
        "owner": lambda _: store.sessions(limit=LISTED, owner="owner-7"),
        "next": lambda _: store.sessions(limit=LISTED, after=cursor),
        "view": lambda _: store.view(middle, now=now).messages,
        "append": lambda _: store.append(middle, _answer(), now=now),
        "create": lambda _: store.create_session(f"{size}-{next(names)}", now=START),
    }
