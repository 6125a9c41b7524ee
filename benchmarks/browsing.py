"""``python -m benchmarks.browsing``: how long pages of a large store take.

A store has a session of 10,000 messages with its requests, and 100,000 sessions more. `convostore
browse` serves it in a process of its own, and is asked for each page over HTTP: the first time, and
again; then the same while eight processes append, each commit durable, the first of them to the
large session. The times are those until the whole answer is there, so they hold what the machine
does besides. What counts is the least processor time that the server took for one of the answers.
Returns 1 where that is more than asked, or a page is larger.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from store import Store

from .scale import many
from .watching import read_processor_time
from .workload import ROOT, START, conversation

CHECKOUT = Path(__file__).resolve().parent.parent
LONG = "long"
LIST_TARGET, PAGE_TARGET, SIZE_TARGET = 100, 300, 200_000
"""What a page may take: ms of the list, ms of another page, and bytes."""
PAUSE = 0.02
"""Seconds between two appends of a writer."""
WRITERS = 8


class Measured(NamedTuple):
    """A page: ms of its first answer and, in the median, of the next ones; its bytes.

    ``cpu`` are the ms of a processor that the server takes for one of the next ones, at least.
    """

    name: str
    limit: float
    first: float
    again: float
    cpu: float
    size: int

    @property
    def met(self) -> bool:
        """Whether it takes no more of a processor, and is no larger, than asked."""
        return self.cpu <= self.limit and self.size <= SIZE_TARGET

    def __str__(self) -> str:
        times = f"{self.first:10.0f} {self.again:9.0f} {self.cpu:7.0f} {self.limit:6.0f}"
        return f"{self.name:32} {times} {self.size:8,}{'' if self.met else '  NO'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a page misses its target."""
    options = _read_options(arguments)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder:
        path = Path(folder) / "chat.db"
        fill(path, options.messages, options.sessions)
        with serving(path) as server:
            server.ask("/s/s000000")  # a page is asked of a server that has shown one
            alone = [*measured(server, options.messages, options.runs)]
            with writing(path):
                beside = [*measured(server, options.messages, options.runs)]
    for name, pages in (("alone", alone), (f"beside {WRITERS} writers", beside)):
        print(f"{name:34} first ms  again ms  CPU ms  asked   bytes")
        for page in pages:
            print(page)
    return int(not all(page.met for page in (*alone, *beside)))


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.browsing", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000, help="of the large session")
    parser.add_argument("--sessions", type=int, default=100_000, help="besides it")
    parser.add_argument("--runs", type=int, default=9, help="of each page")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure on")
    return parser.parse_args(arguments)


def fill(path: Path, messages: int, sessions: int) -> None:
    """Make a store: a large session with a usage before each answer, and many small ones."""
    with Store(path, durability="normal") as store:
        many.fill(store, 0, sessions)
        said = list(conversation(messages))
        store.create_session(LONG, title="A long one", project_root="/home/dev/other", now=START)
        store.append(LONG, said)
        for seq, message in enumerate(said):
            if message["role"] == "assistant" and seq:
                store.record_usage(
                    LONG,
                    input=2_000 + 10 * seq,
                    cached=1_000 + 9 * seq,
                    output=100,
                    model="claude-sonnet-4-5",
                    seq=seq,
                    now=message["timestamp"],
                )


class Server:
    """The command that serves a store, and a connection to it with the cookie."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        place = urlsplit(process.stdout.readline().decode().strip())
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=60)
        self._connection.request("GET", f"{place.path}?{place.query}")
        answer = self._connection.getresponse()
        self._cookie = answer.headers["set-cookie"].partition(";")[0]
        self._pid = process.pid
        self._connection.close()

    def ask(self, page: str) -> bytes:
        """Return a page."""
        self._connection.request("GET", page, headers={"cookie": self._cookie})
        answer = self._connection.getresponse()
        text = answer.read()
        self._connection.close()  # a server ends one that is not used for a while
        if answer.status != 200:
            raise RuntimeError(f"{page} is answered with {answer.status}")
        return text

    @property
    def spent(self) -> float:
        """The processor time of the server so far (ms)."""
        return 1_000 * read_processor_time(self._pid)


@contextmanager
def serving(path: Path) -> Iterator[Server]:
    """Serve a store by the command."""
    command = [sys.executable, "-m", "store", "--db", str(path), "browse", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        try:
            yield Server(process)
        finally:
            process.terminate()


def list_pages(messages: int) -> Iterator[tuple[str, str, float]]:
    """Yield the pages to be measured: what each is, its address, and the ms that it may take."""
    middle = messages // 2
    yield "the list of sessions", "/", LIST_TARGET
    yield "the list, by project", f"/?project={quote(ROOT)}", LIST_TARGET
    for mode in ("raw", "sent", "both"):
        yield f"a conversation, {mode}", f"/s/{LONG}?mode={mode}", PAGE_TARGET
    yield "both, from the middle", f"/s/{LONG}?mode=both&from={middle}", PAGE_TARGET
    yield "both, the newest", f"/s/{LONG}?mode=both&to={messages}", PAGE_TARGET
    yield "the requests", f"/requests/{LONG}/0", PAGE_TARGET
    yield "a request", f"/requests/{LONG}/{max(1, messages // 5)}", PAGE_TARGET
    yield "a request at the end", f"/requests/{LONG}/0?at={messages}", PAGE_TARGET
    yield "policies", f"/policies/{LONG}", PAGE_TARGET
    yield "files, commands, failures", f"/files/{LONG}", PAGE_TARGET
    yield "the tree", f"/tree/{LONG}", PAGE_TARGET


def measured(server: Server, messages: int, runs: int) -> Iterator[Measured]:
    """Ask for each page the first time, and some times again."""
    for name, page, limit in list_pages(messages):
        first, _, size = _ask_timed(server, page)
        asked = [_ask_timed(server, page) for _ in range(runs)]
        again, cpu = median(each[0] for each in asked), min(each[1] for each in asked)
        yield Measured(name, limit, first, again, cpu, size)


def _ask_timed(server: Server, page: str) -> tuple[float, float, int]:
    """Return the ms until a page is there, the ms of a processor that it took, and its bytes."""
    begun, spent = time.perf_counter(), server.spent
    size = len(server.ask(page))
    return 1_000 * (time.perf_counter() - begun), server.spent - spent, size


@contextmanager
def writing(path: Path, count: int = WRITERS) -> Iterator[None]:
    """Let processes append while something else is done."""
    context = multiprocessing.get_context("spawn")
    begun, end = context.Semaphore(0), context.Event()
    writers = [
        context.Process(target=_write, args=(str(path), number, begun, end))
        for number in range(count)
    ]
    for writer in writers:
        writer.start()
    for _ in writers:
        begun.acquire()
    try:
        yield
    finally:
        end.set()
        for writer in writers:
            writer.join()


def _write(path: str, number: int, begun: Semaphore, end: Event) -> None:
    """Append to a session until the end."""
    with Store(path) as store:
        session_id = LONG if number == 0 else store.create_session(f"writer-{number}").id
        messages = iter(conversation(1_000_000, seed=number, small=True))
        store.append(session_id, next(messages))
        begun.release()
        while not end.wait(PAUSE):
            store.append(session_id, next(messages))


if __name__ == "__main__":
    sys.exit(main())
