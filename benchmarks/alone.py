"""What needs a process of its own: imports, cold opening, peak memory, writers.

Each task prints one line of JSON.

``python -m benchmarks.alone TASK ARGUMENT…``; imports nothing at the top that a task might want to
time.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SLOW = ("alembic", "tiktoken", "typer", "rich")
"""What must not be imported to open a store and read from it."""


def run(*arguments: object) -> dict[str, Any]:
    """Run a task in a new process; return what it printed."""
    with start(*arguments) as process:
        answer, _ = process.communicate("\n")
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return dict(json.loads(answer.splitlines()[-1]))


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start a task in a new process.

    It keeps the bytecode of what it imports, as an installed package has it.
    """
    command = [sys.executable, "-m", "benchmarks.alone", *map(str, arguments)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def together(processes: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """Let processes that wait for a line begin at once; return what they printed."""
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [dict(json.loads(process.communicate()[0].splitlines()[-1])) for process in processes]


class Stopwatch:
    """Wall and CPU time since it was made, in ms."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """Return both."""
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        return {"wall": wall * 1000, "cpu": cpu * 1000}


def import_name(module: str, name: str = "__name__") -> dict[str, Any]:
    """Time an import, of a module or of what is in it."""
    watch = Stopwatch()
    getattr(importlib.import_module(module), name)
    return watch.read()


def use_ours(path: str, session: str) -> dict[str, Any]:
    """Time all that a short program does, its imports too: it says something, and has a view."""
    watch = Stopwatch()
    from store import Store

    with Store(path) as store:
        store.append(session, {"role": "user", "content": "hi"})
        store.messages(session, -20)
        store.view(session, at=20)
        return watch.read()


def open_ours(path: str, session: str) -> dict[str, Any]:
    """Time opening a store and reading the newest 20 messages."""
    from store import Store

    watch = Stopwatch()
    with Store(path) as store:
        found = store.messages(session, -20)
        times: dict[str, Any] = watch.read()
    return {**times, "found": len(found), "slow": [name for name in SLOW if name in sys.modules]}


def open_raw(path: str, session: str) -> dict[str, Any]:
    """Time the same by hand."""
    from benchmarks.rivals import Raw

    watch = Stopwatch()
    found = Raw(Path(path)).newest(session, 20)
    return {**watch.read(), "found": len(found)}


def pages_ours(path: str, session: str) -> dict[str, Any]:
    """Iterate a session in pages; say how much memory that took above what an open store takes."""
    from store import Store

    with Store(path) as store:
        idle = read_memory("VmRSS")
        count = sum(len(page) for page in store.pages(session))
    return {"mib": read_memory("VmHWM") - idle, "count": count}


def pages_raw(path: str, session: str) -> dict[str, Any]:
    """Do the same by hand."""
    from benchmarks.rivals import Raw

    raw = Raw(Path(path))
    idle = read_memory("VmRSS")
    count = sum(len(page) for page in raw.pages(session))
    return {"mib": read_memory("VmHWM") - idle, "count": count}


def read_memory(name: str) -> float:
    """Return a figure of this process's memory in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise LookupError(name)


def write_ours(path: str, session: str, worker: str, count: str) -> dict[str, Any]:
    """Append so many messages one by one as soon as a line comes in.

    One to a session of its own comes before, for what the first one imports.
    """
    from store import Store

    with Store(path) as store:
        store.append(worker, {"role": "user", "content": "first"}, create=True)
        return _write(lambda message: store.append(session, message), worker, int(count))


def write_raw(path: str, session: str, worker: str, count: str) -> dict[str, Any]:
    """Do the same by hand, waiting for other writers as SQLite does."""
    from benchmarks.rivals import Raw

    raw = Raw(Path(path))
    return _write(lambda message: raw.append(session, [message]), worker, int(count))


def _write(append: Any, worker: str, count: int) -> dict[str, Any]:
    print("ready", flush=True)
    sys.stdin.readline()
    errors, worst = 0, 0.0
    watch = Stopwatch()
    for number in range(count):
        begun = time.perf_counter()
        try:
            append({"role": "user", "content": f"{worker} {number}", "name": worker})
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
            errors += 1
            print(error, file=sys.stderr)
        worst = max(worst, time.perf_counter() - begun)
    return {**watch.read(), "errors": errors, "worst": worst * 1000}


TASKS = {
    task.__name__: task
    for task in (
        import_name,
        use_ours,
        open_ours,
        open_raw,
        pages_ours,
        pages_raw,
        write_ours,
        write_raw,
    )
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))
