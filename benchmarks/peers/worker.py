"""One side in a process of its own: ``python -m benchmarks.peers.worker NAME FOLDER SIZE``.

It fills its files and then does what each line of its input asks for, an order in JSON; each answer
is a line of JSON.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..stage import ENDLESS
from ..timing import _LONG as LONG
from ..workload import START, Message, conversation
from .ours import Ours
from .table import PEERS

SESSION, PROVED = "session", "proved"
SESSIONS, LISTED = 1_000, 200
NEWEST, REWOUND, ADDED, BATCH = 20, 10, 3, 1_000
MINUTE = 60_000
"""Milliseconds between two sessions of the file of many, as an app makes them."""
FEW = 3
"""Times that an operation is done at least, unless it is slow."""

Work = Callable[[Any], Awaitable[Any]]


class Operation(NamedTuple):
    """What is done before the clock runs, and what is timed; it is given what came before."""

    prepare: Work
    work: Work


async def _nothing(_: object) -> None:
    """Prepare nothing."""


class Worker:
    """A side and its files: a session of some size, and a file of many sessions."""

    def __init__(self, name: str, folder: Path, size: int) -> None:
        self.size, self.now = size, START + 100 * 10_000 * (size + 100)
        self.peer = PEERS[name].open(folder / f"{name}.db")
        self.many = PEERS[name].open(folder / f"{name}-many.db")
        self.kept, self.hidden = 0, SESSION
        self._more = conversation(ENDLESS, seed=2)
        self._warm: set[str] = set()
        self.operations = self._operations()

    def _operations(self) -> dict[str, Operation]:
        peer, now = self.peer, self.now
        return {
            "load": Operation(_nothing, lambda _: peer.load(SESSION)),
            "newest": Operation(_nothing, lambda _: peer.newest(SESSION, NEWEST)),
            "view": Operation(self._unseen, lambda unseen: peer.view(unseen, now)),
            "again": Operation(self._added, lambda _: peer.view(SESSION, now)),
            "behind": Operation(
                self._unseen_behind, lambda unseen: peer.behind(unseen, self.kept, now)
            ),
            "rewind": Operation(self._ten, lambda _: peer.rewind(SESSION, REWOUND)),
            "append": Operation(self._given(1), lambda new: peer.append(SESSION, new)),
            "batch": Operation(self._given(BATCH), lambda new: peer.append(SESSION, new)),
            "list": Operation(_nothing, lambda _: self.many.sessions(LISTED)),
        }

    def _given(self, count: int) -> Work:
        async def made(_: object) -> list[Any]:
            later = self.now - START
            new = islice(self._more, count)
            moved = [{**each, "timestamp": each["timestamp"] + later} for each in new]
            return self.peer.native(moved)

        return made

    async def _unseen(self, _: object) -> str:
        return await self.peer.unseen(SESSION)

    async def _unseen_behind(self, _: object) -> str:
        return await self.peer.unseen(self.hidden)

    async def _added(self, _: object) -> None:
        """Let three messages come after a view."""
        if "again" not in self._warm:
            await self.peer.view(SESSION, self.now)
        await self.peer.append(SESSION, await self._given(ADDED)(None))

    async def _ten(self, _: object) -> None:
        await self.peer.append(SESSION, await self._given(REWOUND)(None))

    async def fill(self, kept: int = 0) -> dict[str, Any]:
        """Fill the files; return how many messages stand behind the summary."""
        await self.peer.create(SESSION)
        await self.peer.fill(SESSION, self.peer.native([*conversation(self.size)]))
        self.hidden = await self.peer.hide(SESSION, self.now)
        self.kept = self.peer.kept(self.hidden) if isinstance(self.peer, Ours) else kept
        gc.collect()
        gc.freeze()
        return {"kept": self.kept}

    async def fill_many(self) -> dict[str, Any]:
        """Create many sessions."""
        for number in range(SESSIONS):
            await self.many.create(f"s{number:06}", START + number * MINUTE)
        return {}

    async def prove(self) -> dict[str, Any]:
        """Return digests of what each operation gives, which are the same on all sides."""
        peer, found = self.peer, {}
        found["load"] = peer.plain(await peer.load(SESSION))
        found["newest"] = peer.plain(await peer.newest(SESSION, NEWEST))
        found["view"] = await peer.view(SESSION, self.now)
        behind = await peer.behind(self.hidden, self.kept, self.now)
        found["behind"] = [each for each in behind if each["role"] != "system"]
        found["writes"] = await self._written()
        if "list" not in peer.lacks:
            found["list"] = await self.many.sessions(LISTED)
        return {name: _digest(value) for name, value in found.items()}

    async def _written(self) -> list[Message]:
        """Append, rewind and append in a session of its own; return what it holds."""
        peer, messages = self.peer, [*conversation(40, seed=3)]
        await peer.create(PROVED)
        await peer.append(PROVED, peer.native(messages[:20]))
        await peer.append(PROVED, peer.native(messages[20:30]))
        await peer.rewind(PROVED, REWOUND)
        await peer.append(PROVED, peer.native(messages[30:]))
        return peer.plain(await peer.load(PROVED))

    async def measure(self, name: str, seconds: float, most: int) -> dict[str, Any]:
        """Do an operation again and again; return the times of each in ms."""
        if name in self.peer.lacks:
            return {"wall": [], "cpu": []}
        operation = self.operations[name]
        if name not in self._warm:
            first = await _timed(operation)
            self._warm.add(name)
            if first[0] > seconds * 1000:
                return {"wall": [first[0]], "cpu": [first[1]]}
        times = [await _timed(operation)]
        since = time.perf_counter()
        while len(times) < most and time.perf_counter() - since < seconds:
            times.append(await _timed(operation))
        wall, cpu = zip(*times, strict=True)
        return {"wall": wall, "cpu": cpu}


async def _timed(operation: Operation) -> tuple[float, float]:
    """Do an operation once; return its wall and CPU time in ms."""
    given = await operation.prepare(None)
    wall, cpu = time.perf_counter(), time.process_time()
    result = await operation.work(given)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    del result
    if wall > LONG:
        gc.collect()
    return wall * 1000, cpu * 1000


def _digest(value: Any) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


async def serve(worker: Worker) -> None:
    """Obey line by line, until there are no more."""
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        answer = await getattr(worker, order.pop("do"))(**order)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    named, folder, size = sys.argv[1:]
    asyncio.run(serve(Worker(named, Path(folder), int(size))))
