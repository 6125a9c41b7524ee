"""The rows of the table of faults: what is done to a store, how often, and how often it held.

``python -m tests.faults`` runs them and prints the table; the tests marked slow run them one by one.
Each row is a function that is given the URL of an empty database and a folder to work in, and
returns how many times it held, of how many.
"""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy
from conftest import ROOT, Child

from store import Policy, Store, StoreError, inspection
from store.clock import SECONDS_LIMIT
from store.database import Database, upgrade_schema

from . import disk, processes, values
from .rows import Count, Row, Work, contents, said


def of_disk(name: str) -> Work:
    """Return the row of an operation under faults of the disk."""

    def work(_: str, folder: Path) -> Count:
        result = disk.run(name, folder)
        for problem in result.wrong[:20]:
            print(problem)
        failed = {each.partition("): ")[0] for each in result.wrong}
        return result.total - len(failed), result.total

    return work


def writers_without_pause(url: str, _: Path) -> Count:
    """Let 16 processes append for four seconds; count those that saw no error and got a fair share."""
    with Store(url) as store:
        store.create_session("s")
    begin = time.monotonic() + 3  # until when all of them have opened the store, on a busy machine

    def write() -> int:
        done = 0
        with Store(url) as store:
            time.sleep(max(0, begin - time.monotonic()))
            while time.monotonic() < begin + 4:
                store.append("s", said(done))
                done += 1
        return done

    children = [Child(write) for _ in range(16)]
    shares = [child.result() for child in children]
    return sum(4 * share > max(shares) for share in shares), 16


def copies_under_writers(url: str, folder: Path) -> Count:
    """Copy a store twenty times while two write; each copy has what was acknowledged before."""
    with Store(url) as store:
        store.create_session("s")

    def write() -> None:
        with Store(url) as writing:
            for number in range(100_000):
                writing.append("s", said(number))

    held = 0
    children = [Child(write) for _ in range(2)]
    with Store(url) as store:
        for number in range(20):
            before = store.session("s").head
            store.backup(folder / f"{number}.db")
            with Store(folder / f"{number}.db") as copy:
                held += copy.session("s").head >= before
    for child in children:
        child.end()
    return held, 20


LEAST = SECONDS_LIMIT + 1_000
"""Clocks go back no farther: an earlier moment would count as seconds."""


def clock_steps(url: str, _: Path) -> Count:
    """Append a thousand messages while the clock jumps; count those at their place."""
    chance, now, name = random.Random(3), 10**12, "s"
    with Store(url, durability="normal") as store:
        store.create_session("s", now=now)
        for number in range(1000):
            step = chance.choice((-3_600_000, 3_600_000, 0, 1, -94_608_000_000))
            now = max(now + step, LEAST)
            store.append(name, said(number), now=now)
            if number % 50 == 25:
                store.rewind(name, 3, now=now - 5)
                store.undo_rewind(name, now=now - 10)
            if number % 100 == 60:
                store.fork(name, session_id=f"s{number}", now=now - 5)
                name = f"s{number}"
        found = contents(store, name)
        assert store.verify() == []
    return sum(at == content for at, content in enumerate(found)), 1000


def interrupted_writers(url: str, folder: Path) -> Count:
    """Interrupt writers that wait in line; count after how many everybody can write."""
    with Store(url) as store:
        store.create_session("s")
    held = 0
    for number in range(8):
        place = folder / str(number)
        place.mkdir()
        children = [Child(hold_the_line, url, place), Child(wait_in_line, url, place)]
        with suppress(AssertionError):
            for child in children:
                child.result()
            held += 1
    return held, 8


def hold_the_line(url: str, place: Path) -> None:
    """Write until another has been interrupted in its waiting."""
    with Store(url) as store, store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE sessions SET title = title")
        (place / "held").touch()
        await_file(place / "interrupted")


def wait_in_line(url: str, place: Path) -> None:
    """Be interrupted in waiting for another writer, then write all the same."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    with Store(url, timeout=60) as store:
        await_file(place / "held")
        with suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            store.append("s", said("never"))
        (place / "interrupted").touch()
        store.append("s", said("after"))


def await_file(path: Path) -> None:
    """Wait for another process to make a file, for a minute at most."""
    end = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.005)


def ways_back(_: str, folder: Path) -> Count:
    """Upgrade what each release has left, put the copy back; count where every row is as it was."""
    held = 0
    saved = sorted((ROOT / "tests" / "databases").glob("*.db"))
    for each in saved:
        path = Path(shutil.copy(each, folder))
        with closing(Database(path)) as database:
            upgrade_schema(database, copy_to=folder / f"before-{each.name}")
        inspection.restore(folder / f"before-{each.name}", path, replace=True)
        held += rows(path) == rows(each)
    return held, len(saved)


def rows(path: Path) -> dict[str, list[Any]]:
    """Return every row of every table of a file."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {
            name: sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)
            for (name,) in sorted(names)
        }


SESSIONS, PROCESSES, STEPS = 6, 4, 2500


class Seen(NamedTuple):
    """What one process did and saw: its appends in order, and every list that it read."""

    appended: dict[str, list[str]]
    read: list[tuple[str, int, list[str]]]
    forked: list[tuple[str, str, int]]


def mixed(url: str, name: int) -> Seen:
    """Append, read, fork and compact at random, and tell all of it."""
    chance = random.Random(name)
    seen = Seen({f"s{each}": [] for each in range(SESSIONS)}, [], [])
    with Store(url, durability="normal") as store:
        for step in range(STEPS):
            session = f"s{chance.randrange(SESSIONS)}"
            kind = chance.random()
            if kind < 0.6:
                store.append(session, said(f"{name}.{step}"))
                seen.appended[session].append(f"{name}.{step}")
            elif kind < 0.9:
                at = len(seen.appended[session])
                seen.read.append((session, at, contents(store, session)))
            elif kind < 0.98:
                made = store.fork(session, session_id=f"f{name}.{step}")
                seen.forked.append((session, made.id, made.head))
            else:
                store.compact(session, Policy(keep_turns=2), lambda _: "so far")
    return seen


def histories(url: str, _: Path) -> Count:
    """Check what 10,000 operations of four processes saw, as Elle does for lists.

    Of every session there must be one order: each list that was read or forked is a beginning of
    the final one, holds all that its reader had appended before, and nothing stands there twice.
    """
    with Store(url, durability="normal") as store:
        for number in range(SESSIONS):
            store.create_session(f"s{number}")
    children = [Child(mixed, url, name) for name in range(PROCESSES)]
    told: list[Seen] = [child.result() for child in children]
    wrong = 0
    with Store(url, durability="normal") as store:
        final = {f"s{number}": contents(store, f"s{number}") for number in range(SESSIONS)}
        for session, line in final.items():
            wrong += sum(more - 1 for more in Counter(line).values())
            expected = [each.appended[session] for each in told]
            wrong += len(line) != sum(map(len, expected))
            for own in expected:
                wrong += [each for each in line if each in {*own}] != own
        for seen in told:
            for session, at, found in seen.read:
                own = seen.appended[session][:at]
                wrong += found != final[session][: len(found)] or not {*own} <= {*found}
            for session, fork, head in seen.forked:
                wrong += contents(store, fork) != final[session][:head]
        wrong += len(store.verify())
    return PROCESSES * STEPS - wrong, PROCESSES * STEPS


def broken_connections(url: str, _: Path) -> Count:
    """End all connections on the server ten times; count the reads that notice nothing."""
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    held = 0
    with Store(url) as store:
        store.create_session("s")
        for number in range(10):
            with engine.connect() as other:
                other.execute(sqlalchemy.text(f"{end} AND datname = current_database()"))
            with suppress(StoreError):
                held += len(contents(store)) == number
            for _ in range(3):  # whose outcome is not known is repeated, by its id
                with suppress(StoreError):
                    store.append("s", said(number, id=f"m{number}"))
                    break
    return held, 10


_ROWS: dict[str, Row] = {
    **{
        f"D3 {name}": Row(
            f"each access to files by `{name}` fails, comes short or kills",
            "sqlite",
            of_disk(name),
        )
        for name in disk.OPERATIONS
    },
    "C2": Row("16 processes write without pause", "sqlite", writers_without_pause),
    "C4": Row("10,000 mixed operations of 4 processes, one order", "any", histories),
    "C7": Row("copies while two processes write", "sqlite", copies_under_writers),
    "I1": Row("writers interrupted in line", "sqlite", interrupted_writers),
    "M3": Row("the way back after an upgrade", "sqlite", ways_back),
    "N1": Row("connections that the server ends", "postgresql", broken_connections),
    "X3": Row("1,000 appends while the clock jumps", "any", clock_steps),
    **processes.ROWS,
    **values.ROWS,
}
ROWS = {name: _ROWS[name] for name in sorted(_ROWS)}


def skipped(row: Row, url: str) -> str | None:
    """Return why a row cannot be tried here, if so."""
    engine = sqlalchemy.make_url(url).get_backend_name()
    if row.engine not in ("any", engine):
        return f"only on {row.engine}"
    if row.fault.startswith("each access") and not disk.compiler():
        return "no C compiler to make the faults with"
    if row.fault.startswith("each access") and not Path("/proc/self/fd").exists():
        return "the faults are made for Linux"
    return None
