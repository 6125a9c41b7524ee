"""Rows about processes: many at once, killed ones, suspended ones."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import alembic.command
import sqlalchemy
from alembic.config import Config
from conftest import ROOT, Child, database

from store import Store
from store.database import Database, find_folder
from store.errors import StoreBusy

from .rows import Count, Row, contents, said

WRITERS, EACH = 16, 100


def one_session(url: str, _: Path) -> Count:
    """Let 16 processes append to one session; count the messages that are there once, in order."""
    with Store(url) as store:
        store.create_session("s")

    def write(name: int) -> None:
        with Store(url) as store:
            for number in range(EACH):
                store.append("s", said([name, number]))

    children = [Child(write, name) for name in range(WRITERS)]
    for child in children:
        child.result()
    with Store(url) as store:
        found = contents(store)
    held = sum(
        [number for who, number in found if who == name] == list(range(EACH))
        for name in range(WRITERS)
    )
    return held * EACH, len(found)


class Told:
    """Numbers that a process tells one by one, and that outlive its being killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def tell(self, number: int) -> None:
        """Add a number."""
        with self._path.open("a") as file:
            file.write(f"{number}\n")

    @property
    def numbers(self) -> list[int]:
        """All that were told."""
        return [int(line) for line in self._path.read_text().split()]


ROUNDS = 12


def killed_writers(url: str, folder: Path) -> Count:
    """Kill four mixed writers at any moment, again and again; count kills that lost nothing."""
    chance, sessions = random.Random(4), [f"s{number}" for number in range(4)]
    with Store(url) as store:
        for session in sessions:
            store.create_session(session)
    held = 0
    for round_ in range(ROUNDS):
        told = {session: Told(folder / f"{round_}.{session}") for session in sessions}
        children = [Child(write_mixed, url, session, told[session]) for session in sessions]
        for child in children:
            time.sleep(chance.uniform(0.05, 0.3))
            child.end()
        with Store(url) as store:
            whole = [is_whole(store, session, told[session].numbers) for session in sessions]
            held += sum(whole) if store.verify() == [] else 0
    return held, ROUNDS * len(sessions)


def write_mixed(url: str, session: str, told: Told) -> None:
    """Append numbers and tell each, with forks, rewinds and their undoing in between."""
    with Store(url) as store:
        for number in range(len(contents(store, session)), 100_000):
            store.append(session, said(number))
            told.tell(number)
            if number % 5 == 4:
                store.fork(session, session_id=f"{session} {number} {time.time_ns()}")
            if number % 7 == 6:
                store.rewind(session, number - 3)
                store.undo_rewind(session)


def is_whole(store: Store, session: str, told: list[int]) -> bool:
    """Tell whether a session has all that was told, in order; undo a rewind that was killed."""
    moves = store.head_moves(session)
    if moves and moves[-1].kind == "rewind":
        store.undo_rewind(session)
    line = contents(store, session)
    return line == list(range(len(line))) and len(line) > max(told, default=-1)


def killed_racers(url: str, folder: Path) -> Count:
    """Kill four that race for one session, one after the other; count kills that lost nothing."""
    chance, held = random.Random(9), 0
    with Store(url) as store:
        store.create_session("s")
    for round_ in range(ROUNDS):
        told = [Told(folder / f"{round_}.{name}") for name in range(4)]
        children = [Child(race, url, f"{round_}.{name}", told[name]) for name in range(4)]
        for child in children:
            time.sleep(chance.uniform(0.05, 0.3))
            child.end()
        with Store(url) as store:
            line = contents(store)
            kept = [in_order(line, f"{round_}.{name}", told[name].numbers) for name in range(4)]
            held += sum(kept) if store.verify() == [] else 0
    return held, ROUNDS * 4


def race(url: str, name: str, told: Told) -> None:
    """Append numbers to the one session, and tell each."""
    with Store(url) as store:
        for number in range(100_000):
            store.append("s", said([name, number]))
            told.tell(number)


GROUPS, THREADS = 48, 16


def killed_groups(url: str, folder: Path) -> Count:
    """Kill a process whose threads share their commits; count kills that lost nothing."""
    chance, held = random.Random(12), 0
    with Store(url) as store:
        store.create_session("s")
    for round_ in range(GROUPS):
        told = [Told(folder / f"{round_}.{name}") for name in range(THREADS)]
        child = Child(race_in_threads, url, f"{round_}", told)
        end = time.monotonic() + 60
        while not told[-1].numbers and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.1))
        child.end()
        with Store(url) as store:
            line = contents(store)
            kept = [
                in_order(line, f"{round_}.{name}", each.numbers) for name, each in enumerate(told)
            ]
            held += all(kept) and store.verify() == []
    return held, GROUPS


def race_in_threads(url: str, name: str, told: list[Told]) -> None:
    """Append numbers to the one session in many threads, and tell each."""
    with Store(url) as store:

        def write(thread: int) -> None:
            for number in range(100_000):
                store.append("s", said([f"{name}.{thread}", number]))
                told[thread].tell(number)

        with ThreadPoolExecutor(len(told)) as threads:
            list(threads.map(write, range(len(told))))


def in_order(line: list[Any], name: str, told: list[int]) -> bool:
    """Tell whether all that a racer told is on a line once, in order; one more may be."""
    own = [number for who, number in line if who == name]
    return own == list(range(len(own))) and len(own) - len(told) in (0, 1)


MESSAGES = 500


def repeated_writes(url: str, folder: Path) -> Count:
    """Kill a writer whenever it is at work, go on with what it had not been told of.

    Count the messages that are there once, at their place.
    """
    chance, told = random.Random(5), Told(folder / "told")
    with Store(url) as store:
        store.create_session("s")

    def write(first: int) -> None:
        with Store(url) as store:
            for number in range(first, MESSAGES):
                store.append("s", said(number, id=f"m{number}"))
                told.tell(number)

    end = time.monotonic() + 240
    while len({*told.numbers}) < MESSAGES and time.monotonic() < end:
        known = max(told.numbers, default=-1) + 1
        child = Child(write, max(0, known - 2))
        until = time.monotonic() + 60
        while max(told.numbers, default=-1) < known and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.1))
        child.end()
    with Store(url) as store:
        found = contents(store)
    return sum(at == number for at, number in enumerate(found)), max(MESSAGES, len(found))


def suspended_writers(url: str, _: Path) -> Count:
    """Suspend a writer in its transaction; count the others that end in time, and go on after."""
    with Store(url) as store:
        store.create_session("s")
    held = 0
    for number in range(5):
        child = Child(suspended, url)
        os.waitpid(child.pid, os.WUNTRACED)
        with Store(url, timeout=1) as store:
            begun = time.monotonic()
            told = refusal(store)
            in_time = time.monotonic() - begun < 30
            child.send(signal.SIGCONT)
            child.result()
            store.append("s", said(number))
            is_named = url.startswith("postgresql") or f"process {child.pid}" in told
            held += bool(told) and is_named and in_time and len(contents(store)) == number + 1
    return held, 5


def suspended(url: str) -> None:
    """Stop in a transaction."""
    with Store(url) as store, store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE sessions SET title = title")
        os.kill(os.getpid(), signal.SIGSTOP)


def refusal(store: Store) -> str:
    """Return how an append is refused."""
    try:
        store.append("s", said("too early"))
    except StoreBusy as busy:
        return str(busy)
    return ""


# --- Upgrades -------------------------------------------------------------------------------------

PLACES = 10
"""Statements of an upgrade at which it is killed, spread over all of them."""


def killed_upgrades(url: str, folder: Path) -> Count:
    """Kill the upgrade of what each release has left; count where the next opening has all of it."""
    held = total = 0
    for saved in sorted((ROOT / "tests" / "databases").glob("*.db")):
        for place, old in as_it_was(url, saved, folder):
            wanted = raw(old)
            with _copy(place / "whole", old) as copy:
                statements: int = Child(opened, copy, -1).result()
            for at in range(1, statements + 1, max(1, statements // PLACES)):
                total += 1
                with _copy(place / str(at), old) as copy:
                    with suppress(AssertionError):
                        Child(opened, copy, at).result()
                    sound = raw(copy) == wanted
                    with Store(copy) as store:
                        sound &= store.verify() == []
                    held += sound and raw(copy) == wanted
    return held, total


def _copy(folder: Path, old: str) -> Any:
    folder.mkdir()
    return database(folder, old)


def opened(url: str, last: int) -> int:
    """Open a store; be killed at its statement of that number. Return how many there were."""
    seen = 0

    def count(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", count)
    Store(url).close()
    return seen


def as_it_was(url: str, saved: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """Give a folder for copies, and a store as a release left it: a file, or its rows on a server."""
    place = folder / saved.stem
    place.mkdir()
    if url.startswith("sqlite"):
        yield place, f"sqlite:///{saved}"
        return
    (place / "old").mkdir()
    with database(place / "old") as old:
        fill(old, saved)
        yield place, old


def fill(url: str, saved: Path) -> None:
    """Put the rows of a file into an empty database of a server, under the schema that it had."""
    with closing(Database(url)) as own, own.writing() as connection:
        settings = Config(attributes={"connection": connection})
        settings.set_main_option("script_location", str(find_folder("migrations")))
        alembic.command.upgrade(settings, saved.stem)
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        tables = sqlalchemy.MetaData()
        tables.reflect(connection)
        with closing(sqlite3.connect(saved)) as source:
            source.row_factory = sqlite3.Row
            for name, table in tables.tables.items():
                connection.execute(table.delete())
                rows = [dict(row) for row in source.execute(f'SELECT * FROM "{name}"')]
                if rows:
                    connection.execute(table.insert(), rows)


def raw(url: str) -> list[tuple[Any, ...]]:
    """Return the raw rows of a store, by whichever release."""
    names = "tree_id, branch, seq, role, content, extra, message_id"
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        found = connection.exec_driver_sql(f"SELECT {names} FROM messages ORDER BY 1, 2, 3")
        return [tuple(row) for row in found]


ROWS: dict[str, Row] = {
    "C1": Row("16 processes append to one session", "any", one_session),
    "C9": Row("a writer suspended in its transaction", "any", suspended_writers),
    "D4": Row("four writers killed at any moment", "any", killed_writers),
    "D4 group": Row(
        "a process of 16 threads that share their commits killed at any moment",
        "sqlite",
        killed_groups,
    ),
    "D4 race": Row("four writers of one session killed at any moment", "any", killed_racers),
    "D5": Row("writes of unknown outcome repeated", "any", repeated_writes),
    "M1": Row("upgrades of earlier releases killed at their statements", "any", killed_upgrades),
}
