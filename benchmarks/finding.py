"""``python -m benchmarks.finding``: lists of sessions, and the calls and files of a long one.

A store of 100,000 sessions of 200 projects and four programs, and a session of 20,000 messages that
are calls and their results. Each question is asked some times. In a file the least CPU time counts;
on a server (``--url``, an empty database), which takes its own, the least time. Returns 1 where a
list takes more than 100 ms, or calls or files more than 20 (on a server: 100).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import text

from store import Store

from .workload import START

SESSIONS = 100_000
CALLS = 10_000
BATCH = 1_000
LONGEST_LIST, LONGEST_USE, LONGEST_SERVED = 100.0, 20.0, 100.0
"""Ms that a list may take, that calls and files may in a file, and on a server."""
MINUTE = 60_000
HALF = START + SESSIONS // 2 * MINUTE
"""When half of the sessions had been used."""
NUMBERS = f"""WITH RECURSIVE n (i) AS (
    SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < {SESSIONS})"""
BRANCHES = f"""INSERT INTO branches
    (tree_id, branch, parent_position, session_id, created_at)
    {NUMBERS} SELECT i * 7919, 1, 0, 's' || i, {START} + i * {MINUTE} FROM n"""
SESSION_ROWS = f"""INSERT INTO sessions
    (tree_id, id, head_branch, head, created_at, updated_at, updated_second, fold_case, title,
    project_root, owner, source)
    {NUMBERS} SELECT i * 7919, 's' || i, 1, 0, {START} + i * {MINUTE}, {START} + i * {MINUTE},
    ({START} + i * {MINUTE}) / 1000, 0, 'Chat ' || i, '/home/me/code/p' || (i % 200),
    'owner ' || (i % 2),
    CASE i % 5 WHEN 0 THEN 'claude_code' WHEN 1 THEN 'codex' WHEN 2 THEN 'pi' WHEN 3 THEN 'aider'
    END FROM n"""
LISTED: dict[str, dict[str, Any]] = {
    "the newest": {},
    "of a project": {"project": "/home/me/code/p7"},
    "of projects in a folder": {"project": "/home/me"},
    "of a program": {"source": "codex"},
    "of a day": {"since": HALF, "until": HALF + 1440 * MINUTE},
    "of all three": {"project": "/home/me/code/p11", "source": "codex", "until": HALF},
    "of all three, by creation": {
        "project": "/home/me/code/p11",
        "source": "codex",
        "until": HALF,
        "order": "created",
    },
    "of all three, none": {"project": "/home/me/code/p11", "source": "pi", "until": HALF},
    "of a part of a title": {"title": "hat 9999"},
}
"""What lists are asked for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.finding", description=__doc__)
    parser.add_argument("--runs", type=int, default=9, help="of which the best one counts")
    parser.add_argument("--url", help="an empty database on a server, instead of a file")
    parser.add_argument("--folder", type=Path, help="where the file is made")
    options = parser.parse_args(arguments)
    clock = time.perf_counter if options.url else time.process_time
    is_met = True
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder,
        Store(options.url or Path(folder, "chat.db"), durability="normal") as store,
    ):
        fill(store)
        for name, longest, ask in questions(store, LONGEST_SERVED if options.url else None):
            ms, found = _time(ask, options.runs, clock)
            is_met &= ms <= longest
            print(f"{name:40} {ms:8.1f} ms of {longest:4.0f} {found:7,} found", flush=True)
    return int(not is_met)


def fill(store: Store) -> None:
    """Make the sessions."""
    with store.database.writing() as connection:
        for statement in (BRANCHES, SESSION_ROWS):
            connection.execute(text(statement))
    store.create_session("long", owner="owner 1", project_root="/home/me/code/p7", now=START)
    for first in range(0, CALLS, BATCH):
        said = [each for number in range(first, first + BATCH) for each in _call(number)]
        store.append("long", said, now=START)


def _call(number: int) -> list[dict[str, Any]]:
    """Return a call of one of three tools, and its result; one of thirty fails."""
    path = {"file_path": f"/home/me/code/p7/file_{number % 400}.py"}
    name, given = (
        ("Bash", {"command": f"pytest -q tests/{number}"}),
        ("Read", path),
        ("Edit", {**path, "old_string": "a", "new_string": "b"}),
    )[number % 3]
    function = {"name": name, "arguments": json.dumps(given)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    content = "Exit code 1\nfailed" if number % 30 == 0 else "ok\n" * 200
    moment = START + number * 2_000
    return [
        {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": moment},
        {"role": "tool", "tool_call_id": call["id"], "content": content, "timestamp": moment + 700},
    ]


def questions(
    store: Store, served: float | None
) -> Iterator[tuple[str, float, Callable[[], Sized]]]:
    """Yield what is asked, the ms it may take, and what asks it: of all, and of an owner."""
    longest = served or LONGEST_USE
    owned = store.scoped("owner 1")
    for name, options in LISTED.items():
        yield name, LONGEST_LIST, partial(store.sessions, **options)
        yield f"{name}, of an owner", LONGEST_LIST, partial(owned.sessions, **options)
    for name, asked in {"": store, ", of an owner": owned}.items():
        yield f"calls{name}", longest, partial(asked.calls, "long")
        yield f"calls that failed{name}", longest, partial(asked.calls, "long", failed=True)
        yield f"files{name}", longest, partial(asked.files, "long")


def _time(ask: Callable[[], Sized], runs: int, clock: Callable[[], float]) -> tuple[float, int]:
    """Return the least ms of some runs, and how many were found."""
    times = []
    for _ in range(runs):
        began = clock()
        found = ask()
        times.append((clock() - began) * 1000)
    return min(times), len(found)


if __name__ == "__main__":
    sys.exit(main())
