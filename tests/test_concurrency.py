"""Many processes on one store.

Nothing is lost, doubled or reordered, and nobody sees an error for being slower.
"""

from __future__ import annotations

import os
import pickle
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select, text

from store import Store, errors
from store.database.schema import messages
from store.errors import HeadMoved, NothingToUndo, PositionOutOfRange, StoreError
from store.history import erasure, lines
from store.history.sessions import create_session
from store.messages import encode

Fork = Callable[..., Any]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()")


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def contents(store: Store, session_id: str = "s") -> list[Any]:
    """Return what the messages of a session say."""
    return [each.message["content"] for each in store.messages(session_id)]


def together(fork: Fork, count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run work in so many processes that begin at one moment; return what each returned."""
    wait, go = os.pipe()

    def run(name: int) -> Any:
        os.close(go)
        os.read(wait, 1)  # ends when the parent lets go
        return work(name)

    children = [fork(run, name) for name in range(count)]
    os.close(go)
    os.close(wait)
    return [child.result() for child in children]


# --- Opening --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_first_openings_at_once(tmp_path: Path, fork: Fork) -> None:
    """Eight processes open each of twelve new files at the same moment.

    All succeed, on the same store (C3).
    """

    def work(name: int) -> int:
        for number in range(12):
            with Store(tmp_path / f"{number}.db") as store:
                store.create_session(f"s{name}")
        return 12

    import alembic.command  # noqa: F401 - what the children share

    assert together(fork, 8, work) == [12] * 8
    for number in range(12):
        with closing(sqlite3.connect(tmp_path / f"{number}.db")) as connection:
            assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (8,)
            assert connection.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_first_openings_of_one_database(bare_url: str, fork: Fork) -> None:
    """The same on whatever engine the tests run.

    One process makes the tables, the others wait for it.
    """

    def work(name: int) -> str:
        with Store(bare_url) as store:
            return store.create_session(f"s{name}").id

    assert together(fork, 6, work) == [f"s{name}" for name in range(6)]
    with Store(bare_url) as store:
        assert len(store.sessions()) == 6


@pytest.mark.sqlite_only
def test_a_first_opening_while_somebody_reads(tmp_path: Path) -> None:
    """A new file changes to write-ahead logging when those who read it have ended."""
    path = tmp_path / "chat.db"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
        ThreadPoolExecutor(1) as threads,
    ):
        reader.execute("VACUUM")  # an empty database, but of a page
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM sqlite_schema").fetchall()
        opening = threads.submit(Store, path, timeout=60)
        assert not wait([opening], timeout=0.1).done
        reader.execute("ROLLBACK")
        with opening.result() as store:
            assert store.sessions() == []


@pytest.mark.sqlite_only
@pytest.mark.parametrize("rounds", [3, pytest.param(250, marks=pytest.mark.slow)])
def test_first_openings_beside_a_killed_one(tmp_path: Path, fork: Fork, rounds: int) -> None:
    """Of three that open a new file one is killed on the way; the others make the store."""
    import alembic.command  # noqa: F401 - what the children share

    chance = random.Random(7)
    for number in range(rounds):
        path = tmp_path / f"{number}.db"

        def work(name: int, path: Path = path) -> str:
            with Store(path, timeout=60) as store:
                return store.create_session(f"s{name}").id

        killed, *others = [fork(work, name) for name in range(3)]
        time.sleep(chance.uniform(0, 0.03))
        killed.end()
        assert [each.result() for each in others] == ["s1", "s2"]


@pytest.mark.sqlite_only
@pytest.mark.slow
def test_a_foreign_writer_beside_us(tmp_path: Path, fork: Fork) -> None:
    """A program that writes to the file without standing in the queue spoils no append.

    We begin as writers.
    """
    path = tmp_path / "chat.db"
    with Store(path) as store:
        store.create_session("s")

    def write(_: int) -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as foreign:
            for number in range(150):
                foreign.execute("UPDATE sessions SET title = ?", [str(number)])

    def append(_: int) -> int:
        with Store(path) as store:
            return [store.append("s", said(number))[0].seq for number in range(150)][-1]

    assert together(fork, 2, lambda name: (write, append)[name](name)) == [None, 150]


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_opening_and_closing_all_the_time(tmp_path: Path, fork: Fork) -> None:
    """The last one to close folds the log in and removes it while the next one opens.

    Nothing gets lost (C3).
    """
    path = tmp_path / "chat.db"
    with Store(path) as store:
        store.create_session("s")

    def work(name: int) -> int:
        for number in range(30):
            with Store(path) as store:
                store.append("s", said([name, number]))
        return 30

    assert together(fork, 6, work) == [30] * 6
    with Store(path) as store:
        assert sorted(contents(store)) == [
            [name, number] for name in range(6) for number in range(30)
        ]


# --- Appending ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_appends_to_one_session(url: str, fork: Fork, count: int) -> None:
    """Eight processes append messages to one session.

    All there once, gapless, in each one's order.
    """
    with Store(url) as store:
        store.create_session("s")

    def work(name: int) -> list[int]:
        with Store(url) as store:
            return [store.append("s", said([name, number]))[0].seq for number in range(count)]

    positions = together(fork, 8, work)
    with Store(url) as store:
        line = store.messages("s")
        assert [each.seq for each in line] == list(range(1, 8 * count + 1))
        assert sorted(each.message["content"] for each in line) == [
            [n, m] for n in range(8) for m in range(count)
        ]
        at = {
            (name, number): each.seq for each in line for name, number in [each.message["content"]]
        }
        assert positions == [[at[name, number] for number in range(count)] for name in range(8)]
        assert all(each == sorted(each) for each in positions)
        assert store.verify() == []


@pytest.mark.slow
def test_appends_to_many_sessions(url: str, fork: Fork) -> None:
    """Eight processes on sessions of their own and each other's: every line is whole."""
    with Store(url) as store:
        for number in range(10):
            store.create_session(f"s{number}")

    def work(name: int) -> None:
        with Store(url) as store:
            for number in range(50):
                store.append(
                    f"s{(name + number) % 10}", [said([name, number]), said([name, number, "too"])]
                )

    together(fork, 8, work)
    with Store(url) as store:
        found = [contents(store, f"s{number}") for number in range(10)]
    assert [len(line) for line in found] == [80] * 10
    assert all(line[at + 1] == [*line[at], "too"] for line in found for at in range(0, 80, 2))


@pytest.mark.slow
def test_one_message_from_many_processes(url: str, fork: Fork) -> None:
    """Six processes send the same messages with the same ids.

    Each is stored once, and all are told the same place.
    """
    with Store(url) as store:
        store.create_session("s")

    def work(name: int) -> list[tuple[str, int]]:
        order = random.Random(name).sample(range(40), 40)
        with Store(url) as store:
            return sorted((f"m{n}", store.append("s", said(n, id=f"m{n}"))[0].seq) for n in order)

    told = together(fork, 6, work)
    assert told == [told[0]] * 6
    with Store(url) as store:
        assert sorted(contents(store)) == list(range(40))
        assert sorted((each.message["id"], each.seq) for each in store.messages("s")) == told[0]


def test_one_session_id_from_many_processes(url: str, fork: Fork) -> None:
    """Of eight who create a session under one id, one does; the others are told that it exists."""
    Store(url).close()

    def work(name: int) -> list[str]:
        outcomes = []
        with Store(url) as store:
            for number in range(10):
                try:
                    store.create_session(f"s{number}", title=str(name))
                    outcomes.append("made")
                except StoreError as error:
                    outcomes.append(type(error).__name__)
        return outcomes

    outcomes = together(fork, 8, work)
    assert [Counter(each) for each in zip(*outcomes, strict=True)] == [
        {"made": 1, "SessionExists": 7}
    ] * 10


@pytest.mark.slow
def test_compare_and_set(url: str, fork: Fork) -> None:
    """Of those who append at the head they have seen, one gets each place, and the others learn
    where the head is.
    """
    with Store(url) as store:
        store.create_session("s")

    def work(name: int) -> list[tuple[int, int]]:
        won = []
        with Store(url) as store:
            head = 0
            while len(won) < 25:
                try:
                    (put,) = store.append("s", said([name, len(won)]), expected_head=head)
                    won.append((head, put.seq))
                    head = put.seq
                except HeadMoved as moved:
                    head = max(head + 1, moved.head)
        return won

    won = sorted(place for each in together(fork, 4, work) for place in each)
    assert won == [(head, head + 1) for head in range(100)]


# --- Everything at once ---------------------------------------------------------------------------


class Done(NamedTuple):
    """An acknowledged operation of one process."""

    kind: str
    session: str
    content: Any = None
    seq: int = 0


def mix(url: str, name: int, rounds: int) -> list[Done]:
    """Append, fork, rewind and undo at random on shared sessions; return what was acknowledged."""
    chance = random.Random(name)
    done: list[Done] = []
    with Store(url) as store:
        for number in range(rounds):
            session = chance.choice([each.id for each in store.sessions(limit=6)])
            head = store.session(session).head
            try:
                done.append(step(store, chance, session, head, [name, number]))
            except (HeadMoved, PositionOutOfRange, NothingToUndo):
                continue  # another process was quicker
    return done


def step(store: Store, chance: random.Random, session: str, head: int, content: Any) -> Done:
    """Do one random operation at the head that was seen."""
    kind = chance.choice(("append", "append", "append at", "append at", "fork", "rewind", "undo"))
    if kind == "append":
        return Done(kind, session, content, store.append(session, said(content))[0].seq)
    if kind == "append at":
        (put,) = store.append(session, said(content), expected_head=head)
        assert put.seq == head + 1
        return Done(kind, session, content, put.seq)
    if kind == "fork":
        at = chance.randint(0, head)
        assert store.fork(session, at, f"fork {content}").head == at
    elif kind == "rewind":
        to = chance.randint(max(0, head - 5), head)
        assert store.rewind(session, to).head == to
    else:
        store.undo_rewind(session)
    return Done(kind, session)


@pytest.mark.slow
def test_a_mix_of_everything(url: str, fork: Fork) -> None:
    """Processes append, fork, rewind and undo on the same sessions.

    Every acknowledged step shows, none twice (C4).

    The log of head moves says where each head was before and after each move: between two moves it
    can only have gone forward, by the appends that were acknowledged.
    """
    with Store(url) as store:
        for session in ("a", "b"):
            store.create_session(session)
            store.append(session, [said([session, number]) for number in range(5)])
    done = [
        each for process in together(fork, 4, lambda name: mix(url, name, 60)) for each in process
    ]
    assert {each.kind for each in done} == {"append", "append at", "fork", "rewind", "undo"}
    with Store(url) as store:
        said_before = [encode([session, number]) for session in ("a", "b") for number in range(5)]
        assert stored(store) == Counter(
            [encode(each.content) for each in done if each.content] + said_before
        )
        for session in store.sessions():
            line = store.messages(session.id)
            assert [each.seq for each in line] == list(range(1, session.head + 1))
            appended = sum(each.session == session.id for each in done if each.content)
            assert appended + (0 if session.forked_from else 5) == sum(strides(store, session.id))
        assert store.verify() == []


def stored(store: Store) -> Counter[str]:
    """Return how often each content is stored, whether a line still shows it or not."""
    with store.database.reading() as connection:
        return Counter(connection.scalars(select(messages.c.content)).all())


def strides(store: Store, session_id: str) -> Iterator[int]:
    """Yield how far a session's head went forward between its moves, and since the last."""
    at = 0
    for move in store.head_moves(session_id):
        if move.kind != "fork":
            assert move.from_position is not None
            assert move.from_position >= at
            yield move.from_position - at
        at = move.to_position
    yield store.session(session_id).head - at


@pytest.mark.slow
def test_forks_at_once(url: str, fork: Fork) -> None:
    """Processes that fork and append below one tree get branches of their own.

    No line shows another's messages.
    """
    with Store(url) as store:
        store.create_session("s")
        store.append("s", [said(number) for number in range(10)])

    def work(name: int) -> None:
        with Store(url) as store:
            for number in range(15):
                store.fork("s", number % 11, f"{name} {number}")
                store.append(f"{name} {number}", said([name, number]))

    together(fork, 6, work)
    with Store(url) as store:
        assert contents(store) == list(range(10))
        for name in range(6):
            for number in range(15):
                assert contents(store, f"{name} {number}") == [*range(number % 11), [name, number]]


def test_sessions_of_one_tree_are_counted_at_once(url: str, fork: Fork) -> None:
    """The messages that they share are counted by whoever is first.

    The others find them counted.
    """
    with Store(url) as store:
        store.create_session("0")
        store.append("0", [said(number) for number in range(1500)])
        for name in range(1, 4):
            store.fork("0", session_id=str(name))

    def work(name: int) -> int:
        with Store(url) as store:
            return store.count_tokens(str(name), "third_of_length").messages

    assert together(fork, 4, work) == [1500] * 4


@pytest.mark.skipif(not os.environ.get("CONVOSTORE_TEST_URL"), reason="a file has one lock for all")
@pytest.mark.parametrize(
    ("lock", "table"), [(lines.lock_session, "sessions"), (lines.lock_tree, "branches")]
)
def test_a_lock_is_of_the_session_that_is_there(
    url: str, lock: Callable[..., Any], table: str
) -> None:
    """Also where the one that was waited for is gone in the end, and another has its id."""
    with Store(url) as store, ThreadPoolExecutor(1) as pool:
        store.create_session("s")

        def others_find() -> list[Any]:
            with store.database.writing() as connection, store.database.writing() as other:
                lock(connection, "s")
                return list(other.execute(text(f"SELECT * FROM {table} FOR UPDATE SKIP LOCKED")))

        with store.database.writing() as connection:
            erasure.begin_erasure(connection, "s", now=0)
            create_session(connection, "s", now=0)
            waiting = pool.submit(others_find)
            assert not wait([waiting], timeout=0.3).done
        assert waiting.result() == []


@pytest.mark.slow
def test_erasing_while_others_append(url: str, fork: Fork) -> None:
    """A session erased under the hands of others is either there with all its rows or gone with
    all.
    """
    with Store(url) as store:
        for number in range(10):
            store.create_session(f"s{number}")
            store.append(f"s{number}", said("first"))
            store.fork(f"s{number}", 1, f"f{number}")

    def work(name: int) -> list[str]:
        met = set()
        with Store(url) as store:
            for number in range(10):
                try:
                    for again in range(5):
                        store.append(f"s{number}", said([name, number, again]))
                    if name % 2:
                        store.delete_session(f"s{number}")
                except StoreError as error:
                    met.add(type(error).__name__)
        return sorted(met)

    for met in together(fork, 4, work):
        assert met in ([], ["SessionNotFound"])
    with Store(url) as store:
        assert sorted(each.id for each in store.sessions()) == [
            f"f{number}" for number in range(10)
        ]
        assert [contents(store, f"f{number}") for number in range(10)] == [["first"]] * 10
        assert len(store.erasures()) == 10
        assert stored(store) == {"first": 10}


# --- Errors travel --------------------------------------------------------------------------------

ERRORS = [
    errors.SessionNotFound("s"),
    errors.SessionExists("s"),
    errors.HeadMoved("s", 1, 2),
    errors.PositionOutOfRange("s", 9, 2),
    errors.InvalidMessage(0, "role", "missing"),
    errors.SchemaTooNew("9", "1"),
    errors.StoreBusy("busy"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_reaches_another_process_as_it_was(error: StoreError) -> None:
    """An error pickles.

    One that did not would break the pool of processes in which it was raised.
    """
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there), vars(there)) == (type(error), str(error), vars(error))
