"""``python -m benchmarks.tool_costs``: the CPU time of each tool that agents ask their past by.

A store of coding sessions, 100 messages each, in 50 projects: requests, edits, commands of which a
tenth fails with an error and later succeeds. Its words are as frequent as those of a language. Each
tool is asked different questions, and the median of its CPU times counts, after one call that is
not counted. Returns 1 where a tool takes more than 30 ms, or 100 ms in a store of more than
100,000 messages, or where the server takes more than 1.5 s until it has answered its first call.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client, StdioServerParameters, stdio_client

from store import Store
from store.mcp import History

LONGEST, LONGEST_OF_MANY = 30.0, 100.0
"""Ms of CPU time that a call may take in a small store, and in one with more messages."""
MANY = 100_000
LONGEST_START = 1.5
"""Seconds of CPU time from the start of the server to its first answer."""
SESSION, PROJECTS, STEPS = 100, 50, 6
VOCABULARY = 20_000
BEGIN, MINUTE = 1_760_000_000_000, 60_000
FAILURES = (
    "{path}:{number}: fatal error: {word}/{other}.h not found",
    "ModuleNotFoundError: No module named '{word}_{other}'",
    "E   AssertionError: assert {number} == {word}.{other}()",
    "error: cannot find symbol {word} in package {other} at line {number}",
    "psycopg.OperationalError: connection to server {word} failed, port {number} refused",
)


class Corpus:
    """Makes what is said, always the same, and the questions about it."""

    def __init__(self, messages: int) -> None:
        self._chance = random.Random(32)
        letters = "aeioubcdfgklmnprst"
        self._words = ["".join(self._chance.choices(letters, k=7)) for _ in range(VOCABULARY)]
        self.sessions = max(1, messages // SESSION)

    def fill(self, store: Store) -> None:
        """Make the sessions, an hour apart."""
        for number in range(self.sessions):
            at = BEGIN + number * 60 * MINUTE
            name = f"s{number}"
            root = f"/srv/project_{number % PROJECTS}"
            title = self.say(5)
            store.create_session(name, title=title, project_root=root, now=at)
            store.append(name, [*self._work(at)], now=at)
            store.set_origin(name, "claude_code")

    def _work(self, at: int) -> Iterator[dict[str, Any]]:
        for number in range(SESSION):
            step, moment = number % (2 * STEPS + 2), at + number * MINUTE // 4
            told: dict[str, Any] = {"timestamp": moment}
            if step == 0:
                yield told | {"role": "user", "content": self.say(40)}
            elif step == 2 * STEPS + 1:
                yield told | {"role": "assistant", "content": self.say(80)}
            elif step % 2:
                call = {"id": f"c{number}", "type": "function", "function": self._call(step)}
                yield told | {"role": "assistant", "content": self.say(8), "tool_calls": [call]}
            else:
                result = {"role": "tool", "tool_call_id": f"c{number - 1}"}
                yield told | result | self._result(step)

    def _call(self, step: int) -> dict[str, str]:
        word = self.word()
        if step % 4 == 1:
            return {"name": "Bash", "arguments": f'{{"command": "make {word} && ./run {word}"}}'}
        path = f"src/{word}.py"
        return {"name": "Edit", "arguments": f'{{"file_path": "{path}", "new_string": "{word}"}}'}

    def _result(self, step: int) -> dict[str, str]:
        if step % 4 == 2 and self._chance.random() < 0.1:
            return {"content": f"{self.say(30)}\n{self.error()}", "messageStatus": "error"}
        return {"content": self.say(90), "messageStatus": "completed"}

    def word(self) -> str:
        """Return a word, as rare as it may be."""
        return self._words[int(self._chance.paretovariate(0.6)) % VOCABULARY]

    def say(self, count: int) -> str:
        """Return some words in lines of ten."""
        words = [self.word() for _ in range(count)]
        return "\n".join(" ".join(words[at : at + 10]) for at in range(0, count, 10))

    def error(self) -> str:
        """Return a line that tells an error."""
        word, number = self.word(), self._chance.randrange(10_000)
        shape = self._chance.choice(FAILURES)
        return shape.format(path=f"src/{word}.c", number=number, word=word, other=self.word())

    def session(self) -> str:
        """Return one of the sessions."""
        return f"s{self._chance.randrange(self.sessions)}"

    def day(self) -> str:
        """Return a day on which something was done."""
        at = BEGIN + self._chance.randrange(self.sessions) * 60 * MINUTE
        return time.strftime("%Y-%m-%d", time.localtime(at / 1000))


QUESTIONS: dict[str, Callable[[Corpus], dict[str, Any]]] = {
    "sessions": lambda _: {"project": "project_7"},
    "search": lambda corpus: {"text": f"why did we change {corpus.say(4)}?"},
    "remember": lambda corpus: {"text": f"why did we change {corpus.say(4)}?"},
    "recall": lambda corpus: {"session": corpus.session(), "text": corpus.say(2)},
    "read": lambda corpus: {"session": corpus.session(), "seq": 40},
    "files": lambda corpus: {"session": corpus.session()},
    "touched": lambda corpus: {"path": f"src/{corpus.word()}.py"},
    "commands": lambda _: {"failed": True},
    "commands text": lambda corpus: {"text": f"make {corpus.word()}"},
    "mended": lambda corpus: {"text": corpus.error()},
    "day": lambda corpus: {"day": corpus.day()},
    "fork": lambda corpus: {"session": corpus.session(), "seq": 40},
    "note": lambda corpus: {"session": corpus.session(), "seq": 4, "text": "as it was"},
}
"""By tool, with a word behind it where it is asked in several ways: what is asked."""


class Cost(NamedTuple):
    """The median CPU time (ms) of a tool, and its longest."""

    tool: str
    usual: float
    longest: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a limit is missed."""
    options = _options(arguments)
    kept = nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory()
    with kept as folder:
        path = Path(folder, f"past-{options.messages}.db")
        corpus = Corpus(options.messages)
        began = time.perf_counter()
        with Store(path, durability="normal") as store:
            if not store.sessions(limit=1):
                corpus.fill(store)
                store.index()
                print(f"made and indexed in {time.perf_counter() - began:.0f} s")
            costs = [measure_tool(store, corpus, tool, options.calls) for tool in QUESTIONS]
        start = measure_start(path)
    longest = LONGEST_OF_MANY if options.messages > MANY else LONGEST
    print(f"{options.messages:,} messages, CPU ms of a call: the median, the longest")
    for tool, usual, most in costs:
        print(f"{tool:14} {usual:7.1f} {most:7.1f}{'' if usual <= longest else '  NO'}")
    print(f"start to first answer: {start:.2f} s of CPU{'' if start <= LONGEST_START else '  NO'}")
    return int(start > LONGEST_START or any(each.usual > longest for each in costs))


def measure_tool(store: Store, corpus: Corpus, tool: str, calls: int) -> Cost:
    """Return what a tool takes, by different questions."""
    ask = getattr(History(store), tool.split(maxsplit=1)[0])
    times = []
    for arguments in [QUESTIONS[tool](corpus) for _ in range(calls + 1)]:
        began = time.thread_time()
        ask(**arguments)
        times.append((time.thread_time() - began) * 1000)
    return Cost(tool, statistics.median(times[1:]), max(times[1:]))


def measure_start(path: Path) -> float:
    """Return the CPU time of the server, from its start to its end after one call (s)."""
    started = StdioServerParameters(command=sys.executable, args=["-m", "store", "mcp", str(path)])

    async def call() -> None:
        async with Client(stdio_client(started)) as client:
            await client.call_tool("sessions", {"limit": 5})

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    asyncio.run(call())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tool_costs", description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000, help="in the store")
    parser.add_argument("--calls", type=int, default=15, help="of each tool")
    parser.add_argument("--folder", type=Path, help="where the store is made, and kept")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
