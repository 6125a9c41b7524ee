"""``python -m benchmarks.retention FOLDER``: a store of years is pruned and moved beside its users.

Recorded conversations of a folder are told again under new ids until there are so many messages;
every second session is 200 days old, every tenth old one has a fork that is in use, and each has
requests with costs. Then

- half of it is pruned while eight processes append: how long that takes, and how long they wait;
- the same is pruned once more, by a process that is killed at random moments and begun again:
  afterwards forks show what they showed, nothing is damaged, and the costs by month are the same;
- with ``--url`` it is copied to that server and back, by processes that are killed, too: all trees
  have to be equal, and views of a sample; then new messages are brought by one more copy.

Returns 1 where something was lost or a limit is missed. ``--limits no`` only looks for losses, on
a machine that does other things.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select

from store import Policy, Store
from store.copying import copy
from store.inspection.dump import DUMPED_TABLES

from . import alone
from .erasing import appending
from .recorded import Transcript, largest

DAY = 86_400_000
NOW = 1_790_000_000_000
"""When all of it happens (ms)."""
OLD_DAYS, IDLE_DAYS = 200, 90
EVERY_FORK = 10
MODELS = ("gpt-4.1-mini", "claude-sonnet-4-5")
BATCH = 500
LONGEST_PRUNE, LONGEST_COPY = 2.0, 10.0
"""Seconds after which a process is killed at the latest: a prune, a copy of 200,000 messages."""
MOST_PRUNE_SECONDS, MOST_WAIT_MS, MOST_SIZE_SECONDS = 60.0, 250.0, 1.0
MOST_COPY_SECONDS, MOST_COPY_MB = 5.0, 100.0
SAMPLE = 20
NOTHING = (0, 0, 0, 0.0)


class Waits(NamedTuple):
    """How long appends took: the longest and the 99th percentile in ms, and how many there were."""

    most: float
    p99: float
    number: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return 1 where something was lost, or a limit is missed."""
    options = _read_options(arguments)
    found, _ = largest(options.recordings, 10_000)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.folder) as folder:
        template = Path(folder, "template.db")
        begun = time.monotonic()
        messages = fill(template, found, options.messages)
        took, size = time.monotonic() - begun, template.stat().st_size / 1e6
        print(f"{messages:,} messages in {size:,.0f} MB, made in {took:.0f} s", flush=True)
        missed: list[str] = []
        if options.only != "copy":
            missed += prune_beside(Path(shutil.copy(template, Path(folder, "beside.db"))), options)
            missed += prune_killed(Path(shutil.copy(template, Path(folder, "killed.db"))), options)
        if options.url and options.only != "prune":
            missed += copy_killed(template, Path(folder, "back.db"), options)
    print(*missed or ["nothing is missed"], sep="\n")
    return int(bool(missed))


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retention", description=__doc__)
    parser.add_argument("recordings", type=Path, help="a folder of recorded conversations")
    parser.add_argument("--messages", type=int, default=200_000, help="about as many in the store")
    parser.add_argument("--writers", type=int, default=8, help="processes that append")
    parser.add_argument("--alone", type=float, default=10.0, help="seconds that they are alone")
    parser.add_argument("--kills", type=int, default=20, help="of a prune; of copies half of them")
    url = os.environ.get("CONVOSTORE_TEST_URL")
    parser.add_argument("--url", default=url, help="an empty database on a server")
    parser.add_argument("--only", choices=("prune", "copy"), help="one half of it")
    parser.add_argument("--limits", choices=("yes", "no"), default="yes", help="look at times, too")
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk to measure on")
    return parser.parse_args(arguments)


def fill(path: Path, found: list[Transcript], wanted: int) -> int:
    """Make a store of recordings under new ids; return how many messages it has."""
    stored = 0
    with Store(path, durability="normal") as store:
        for number in count():
            transcript = found[number % len(found)]
            if stored >= wanted:
                break
            days = OLD_DAYS if number % 2 else 1
            at = NOW - days * DAY - number * 60_000
            session = f"s{number}"
            store.create_session(session, owner=f"owner {number % 100}", now=at)
            for start in range(0, len(transcript.messages), BATCH):
                part = transcript.messages[start : start + BATCH]
                store.append(session, part, now=at)
                options = {"model": MODELS[number % 2], "now": at + start}
                store.record_usage(session, input=1_000 * len(part), output=90, **options)
            stored += len(transcript.messages)
            if days == OLD_DAYS and number // 2 % EVERY_FORK == 0 and transcript.messages:
                middle = max(1, len(transcript.messages) // 2)
                store.fork(session, at=middle, session_id=f"f{number}", now=NOW)
    return stored


def prune_beside(path: Path, options: argparse.Namespace) -> list[str]:
    """Prune while processes append; return the limits that are missed."""
    with Store(path) as store, appending(path, options.writers) as waits:
        before = sum_costs(store)
        time.sleep(options.alone)
        begun = time.monotonic()
        told = store.prune(IDLE_DAYS, dry_run=False, now=NOW)
        ended = time.monotonic()
        kept = sum_costs(store)
    alone = measure([took for at, took in waits if at + took < begun])
    beside = measure([took for at, took in waits if at < ended and at + took >= begun])
    with Store(path) as store:
        begun_size = time.monotonic()
        size = store.size()
        size_took = time.monotonic() - begun_size
    print(
        f"pruned {told.sessions:,} sessions, {told.messages:,} messages in {ended - begun:.1f} s;"
        f" {told.kept_for_forks:,} messages stay for forks\n"
        f"appends alone: at most {alone.most:.0f} ms, p99 {alone.p99:.0f} ms of {alone.number:,};"
        f" beside it: at most {beside.most:.0f} ms, p99 {beside.p99:.0f} ms of {beside.number:,}\n"
        f"size() took {size_took * 1000:.0f} ms: {size.used / 1e6:,.0f} MB are used,"
        f" {size.free / 1e6:,.0f} MB are free",
        flush=True,
    )
    late = sum(took * 1000 > 2 * alone.p99 for at, took in waits if begun <= at < ended)
    missed = compare_costs(before, kept)
    limits = {
        "the prune took too long": ended - begun > MOST_PRUNE_SECONDS,
        "an append waited too long": beside.most > alone.most + MOST_WAIT_MS,
        "too many appends waited for over twice their p99 alone": late > 0.05 * beside.number,
        "size() took too long": size_took > MOST_SIZE_SECONDS,
    }
    return missed + [each for each in limits if limits[each] and options.limits == "yes"]


def measure(waits: list[float]) -> Waits:
    """Return the longest and the 99th percentile of some seconds, in ms."""
    ordered = sorted(1000 * each for each in waits) or [0.0]
    return Waits(ordered[-1], ordered[len(ordered) * 99 // 100], len(ordered))


def prune_killed(path: Path, options: argparse.Namespace) -> list[str]:
    """Prune by processes that are killed; return what is wrong afterwards."""
    with Store(path) as store:
        before, shown = sum_costs(store), digest_forks(store)
    missed: list[str] = []
    kills, command = 0, ["prune", str(path)]
    for _ in run_killed(command, options.kills, LONGEST_PRUNE):
        kills += 1
        with Store(path) as store:
            if digest_forks(store) != shown:
                missed.append(f"after kill {kills} a fork shows something else")
    with Store(path) as store:
        left = store.prune(IDLE_DAYS, now=NOW).sessions
        missed += ["something old is left"] * bool(left)
        missed += ["a fork shows something else"] * (digest_forks(store) != shown)
        missed += compare_costs(before, sum_costs(store))
        missed += [f"{each.where}: {each.problem}" for each in store.verify()]
    print(f"the prune was killed {kills} times and ended; {len(shown):,} forks", flush=True)
    return missed


def run_killed(command: list[str], kills: int, longest: float) -> Iterator[None]:
    """Run a step of this program to its end, and yield after each time that it was killed.

    It lives for at most ``longest`` seconds after it has opened its stores.
    """
    chance = random.Random(1)
    for number in count():
        step = [sys.executable, "-m", __spec__.name, "--step", *command]
        with subprocess.Popen(step, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                patience = chance.uniform(0.3, longest) if number < kills else None
                if process.wait(patience):
                    raise RuntimeError(f"a step failed: {' '.join(command)}")
                return
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        yield


def copy_killed(path: Path, back: Path, options: argparse.Namespace) -> list[str]:
    """Copy to a server and back by processes that are killed; return what is wrong afterwards."""
    missed: list[str] = []
    longest = LONGEST_COPY * min(1, options.messages / 200_000) + 1
    for source, target in ((str(path), options.url), (options.url, str(back))):
        begun = time.monotonic()
        kills = sum(1 for _ in run_killed(["copy", source, target], options.kills // 2, longest))
        took = time.monotonic() - begun
        print(f"copied in {took:.0f} s, killed {kills} times", flush=True)
    with Store(path) as first, Store(back) as last, Store(options.url) as server:
        trees, *others = (digest_trees(each) for each in (first, server, last))
        for other in others:
            same = len(trees.items() & other.items())
            missed += [f"of {len(trees):,} trees {same:,} are equal"] * (other != trees)
        print(f"{len(trees):,} trees were compared", flush=True)
        chosen = random.Random(1).sample(first.sessions(limit=100_000), SAMPLE)
        for session in chosen:
            views = {digest_view(each, session.id) for each in (first, last, server)}
            missed += [f"the views of {session.id} differ"] * (len(views) > 1)
        first.create_session("new", now=NOW)
        said = {"role": "user", "content": "what is new " * 50}
        for _ in range(10):
            first.append("new", [said] * 100, now=NOW)
        begun = time.monotonic()
        copy(first, server)
        again = time.monotonic() - begun
    memory = max(json.loads(Path(f"{each}.memory").read_text("utf-8")) for each in (path, back))
    print(f"1,000 new messages took {again:.1f} s; a copy took {memory:.0f} MB of memory")
    if options.limits == "yes":
        missed += ["the second copy took too long"] * (again > MOST_COPY_SECONDS)
        missed += ["a copy took too much memory"] * (memory > MOST_COPY_MB)
    return missed


def sum_costs(store: Store) -> dict[Any, tuple[float, ...]]:
    """Return the totals of all usages by month."""
    return {
        each.name: (each.requests, each.input, each.output, each.cost or 0.0)
        for each in store.usage_totals(by="month")
    }


def compare_costs(
    before: dict[Any, tuple[float, ...]], after: dict[Any, tuple[float, ...]]
) -> list[str]:
    """Return what differs between totals, by more than rounding."""
    return [
        f"the totals of {month} differ"
        for month in before | after
        if any(
            abs(one - other) > 1e-9
            for one, other in zip(
                before.get(month, NOTHING), after.get(month, NOTHING), strict=True
            )
        )
    ]


def digest_forks(store: Store) -> dict[str, str]:
    """Return digests of what forks show."""
    return {
        each.id: digest_messages(store, each.id)
        for each in store.sessions(prefix="f", limit=100_000)
    }


def digest_trees(store: Store) -> dict[int, int]:
    """Return digests of all trees, each the sum of the digests of its rows, in whatever order."""
    digests: dict[int, int] = {}
    with store.database.reading() as connection:
        for table in DUMPED_TABLES.values():
            streamed = {"stream_results": True}
            for row in connection.execute(select(table), execution_options=streamed).mappings():
                told = sha256(repr((table.name, *row.values())).encode("utf-8", "surrogatepass"))
                tree_id = row["tree_id"]
                digests[tree_id] = digests.get(tree_id, 0) + int.from_bytes(told.digest())
    return digests


def digest_messages(store: Store, session_id: str) -> str:
    """Return a digest of the messages of a session."""
    said = [each.message for each in store.messages(session_id)]
    return sha256(json.dumps(said).encode()).hexdigest()


def digest_view(store: Store, session_id: str) -> str:
    """Return a digest of the view of a session."""
    sent = store.view(session_id, Policy.named("agent"), now=NOW).messages
    return sha256(json.dumps(sent).encode()).hexdigest()


def do_step(name: str, *places: str) -> None:
    """Do what may be killed: a prune of a store, or a copy to another one."""
    if name == "prune":
        with Store(places[0]) as store:
            print(flush=True)
            store.prune(IDLE_DAYS, dry_run=False, now=NOW)
        return
    source, target = places
    with Store(source) as old, Store(target) as new:
        print(flush=True)
        copy(old, new)
    most = alone.read_memory("VmHWM")  # other figures count the parent, too
    (file,) = (each for each in places if "://" not in each)
    Path(f"{file}.memory").write_text(json.dumps(most), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        do_step(*sys.argv[2:])
    else:
        sys.exit(main())
