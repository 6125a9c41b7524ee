"""Appends that wait for the same file are one transaction, and each has its own outcome."""

from __future__ import annotations

import resource
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import Connection, text

from store import AsyncStore, Store
from store.database import group_commit
from store.database.lease import Lease, get_lease
from store.database.writer_queue import TURN_SECONDS
from store.errors import (
    HeadMoved,
    InvalidMessage,
    SessionNotFound,
    StoreBusy,
    StoreError,
    StoreFull,
)

Fork = Callable[..., Any]
Append = Callable[[Store], Any]
PATIENCE = 30

pytestmark = pytest.mark.sqlite_only


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def contents(store: Store, session_id: str = "s") -> list[Any]:
    """Return what the messages of a session say."""
    return [each.message["content"] for each in store.messages(session_id)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a closed store with the empty sessions "s" and "t"."""
    with Store(tmp_path / "chat.db") as store:
        store.create_session("s")
        store.create_session("t")
    return tmp_path / "chat.db"


@pytest.fixture(autouse=True)
def long_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a group take all that wait, however busy the machine is."""
    monkeypatch.setattr(group_commit, "TURN_SECONDS", PATIENCE)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the turn to write, as another writer of the file."""
    with Store(path) as other, other.database.writing() as connection:
        connection.execute(text("UPDATE sessions SET title = title"))
        yield


def count_waiting(store: Store) -> int:
    """Return how many appends are in line, the one that leads included."""
    assert store.database._group
    return len(store.database._group._line)


def wait_for_line(store: Store, count: int) -> None:
    """Wait until so many appends are in line."""
    end = time.monotonic() + PATIENCE
    while count_waiting(store) != count:
        assert time.monotonic() < end
        time.sleep(0.001)


@contextmanager
def grouped(path: Path, *appends: Append) -> Iterator[tuple[Store, list[Future[Any]]]]:
    """Let appends get into line, in order, while another writer is at work; yield their futures.

    They are done when the block ends: the writer holds its turn inside of it.
    """
    with Store(path) as store, ThreadPoolExecutor(len(appends)) as threads:
        with held(path):
            futures: list[Future[Any]] = []
            for append in appends:
                futures.append(threads.submit(append, store))
                wait_for_line(store, len(futures))
            yield store, futures
        for each in futures:
            each.exception(PATIENCE)


def outcomes(path: Path, *appends: Append) -> list[Any]:
    """Let appends be one group; return of each its positions, or its error."""
    with grouped(path, *appends) as (_, futures):
        pass
    return [each.exception() or [stored.seq for stored in each.result()] for each in futures]


def append(*messages: Any, to: str = "s", **options: Any) -> Append:
    """Return an append."""
    return lambda store: store.append(to, list(messages), **options)


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[Lease]:
    """Give a list of the commits."""
    counted: list[Lease] = []
    commit = Lease.commit

    def count(lease: Lease) -> None:
        counted.append(lease)
        commit(lease)

    monkeypatch.setattr(Lease, "commit", count)
    return counted


def test_what_waits_is_one_transaction(path: Path, commits: list[Lease]) -> None:
    """Twenty appends to two sessions: a commit, and each has its positions, in the order of asking."""
    works = [append(said(number), said(-number), to="st"[number % 2]) for number in range(20)]
    with grouped(path, *works) as (store, futures):
        before = len(commits)
    assert len(commits) == before + 2  # that of the writer they waited for, and theirs
    told = [[each.seq for each in future.result()] for future in futures]
    assert told == [[number // 2 * 2 + 1, number // 2 * 2 + 2] for number in range(20)]
    with Store(path) as store:
        assert contents(store) == [each for n in range(0, 20, 2) for each in (n, -n)]
        assert store.verify() == []


def test_a_group_ends_with_the_turn(
    path: Path, commits: list[Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who still waits then leads the next one."""
    monkeypatch.setattr(group_commit, "TURN_SECONDS", 0.0)
    assert outcomes(path, *(append(said(number)) for number in range(4))) == [[1], [2], [3], [4]]
    assert len(commits) == 5


def test_a_writer_alone_has_no_savepoint(path: Path) -> None:
    """It runs the statements that it ran before there were groups."""
    with Store(path) as store:
        store.append("s", said("first"))
        (lease,) = store.database._idle[store.database._writer]
        run: list[str] = []
        lease.driver.set_trace_callback(run.append)
        store.append("s", said("second"))
        lease.driver.set_trace_callback(None)
    assert [run[0], run[-1]] == ["BEGIN IMMEDIATE", "COMMIT"]
    assert not any("SAVEPOINT" in each for each in run)


def test_an_error_of_one_leaves_the_others(path: Path) -> None:
    """Wherever in the group it is: nothing of that one is stored, and the others are."""
    refused = [
        append(said("lost"), to="missing"),
        append(said("lost"), expected_head=7),
        append(said("lost", id="a"), said("other", id="b")),
        append(said("lost"), expected_head="one"),
    ]
    kinds = [SessionNotFound, HeadMoved, InvalidMessage, StoreError]
    works = [append(said("first", id="a"), said("kept", id="b"))]
    for number, each in enumerate(refused):
        works += [each, append(said(number))]
    found = outcomes(path, *works)
    assert found[::2] == [[1, 2], [3], [4], [5], [6]]
    assert [isinstance(each, kind) for each, kind in zip(found[1::2], kinds, strict=True)]
    assert [str(each) for each in found[1::2] if not isinstance(each, StoreError)] == []
    with Store(path) as store:
        assert contents(store) == ["first", "kept", 0, 1, 2, 3]
        assert store.verify() == []


def test_an_error_of_the_leader_leaves_the_others(path: Path) -> None:
    """The next in line leads."""
    found = outcomes(path, append(said("lost"), expected_head=7), append(said(1)), append(said(2)))
    assert isinstance(found[0], HeadMoved)
    assert found[1:] == [[1], [2]]


def test_ids_are_keys_within_a_group(path: Path) -> None:
    """A message that two append is stored once; another one under its id is refused."""
    same = [append(said("same", id="m")) for _ in range(3)]
    found = outcomes(path, append(said(0)), *same, append(said("different", id="m")))
    assert found[:4] == [[1], [2], [2], [2]]
    assert isinstance(found[4], InvalidMessage)
    with Store(path) as store:
        assert contents(store) == [0, "same"]


def test_an_id_of_a_refused_append_is_free(path: Path) -> None:
    """What a member of the group took back is not found by the next."""
    unstorable = append(said("taken", id="m"), metadata={"a": object()})
    found = outcomes(path, append(said(0)), unstorable, append(said("other", id="m")))
    assert isinstance(found[1], StoreError)
    assert [found[0], found[2]] == [[1], [2]]


def test_of_two_with_one_head_the_first_wins(path: Path) -> None:
    """The second sees the head that the first has moved, in the same transaction."""
    both = [append(said(number), expected_head=0) for number in range(2)]
    found = outcomes(path, append(said("x"), to="t"), *both)
    assert found[1] == [1]
    assert isinstance(found[2], HeadMoved)
    assert "1" in str(found[2])


def test_owners_are_grouped_too(path: Path, commits: list[Lease]) -> None:
    """Each stays within its own sessions."""
    ann = partial(Store.scoped, owner="ann")
    works: list[Append] = [
        lambda store: ann(store).append("a", said(1), create=True),
        lambda store: ann(store).append("s", said("not ours")),
        append(said(2)),
        lambda store: ann(store).append("a", said(3)),
    ]
    found = outcomes(path, *works)
    assert len(commits[-2:]) == 2
    assert [found[0], *found[2:]] == [[1], [1], [2]]
    assert isinstance(found[1], SessionNotFound)


def test_a_full_disk_is_told_to_all(path: Path, fork: Fork) -> None:
    """The files cannot grow: nothing of the group is stored; with room, the same calls succeed."""

    def fill() -> tuple[list[str], list[Any]]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        with grouped(path, *LONG_APPENDS) as (_, futures):
            resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))
        told = [type(each.exception(PATIENCE)).__name__ for each in futures]
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        with Store(path) as store:
            return told, contents(store)

    assert fork(fill).result() == (["StoreFull"] * len(LONG_APPENDS), [])
    assert outcomes(path, *LONG_APPENDS) == [[seq] for seq in range(1, len(LONG_APPENDS) + 1)]


LONG_APPENDS = [append(said(f"{number} " + "x" * 9000, id=f"m{number}")) for number in range(12)]


def test_an_error_that_ends_the_transaction_is_told_to_all_in_it(path: Path) -> None:
    """SQLite has rolled back what came before, too; those that it had not come to go on."""
    with grouped(path, *LONG_APPENDS) as (store, futures):
        assert store.database._group
        store.database._group._line[5].work = end_transaction
    told = [type(each.exception(PATIENCE)) for each in futures]
    assert told == [StoreFull] * 6 + [type(None)] * 6
    with Store(path) as store:
        assert contents(store) == [f"{number} " + "x" * 9000 for number in range(6, 12)]
        assert store.verify() == []


def end_transaction(connection: Connection) -> None:
    """Fail as a disk does that takes no more writes."""
    get_lease(connection).driver.execute("ROLLBACK")
    raise make_disk_error()


def make_disk_error() -> sqlite3.OperationalError:
    """Return the error of a disk that takes no more writes."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_WRITE"
    return error


def test_an_error_at_the_commit_is_told_to_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has an error of its own, with the driver's as its cause; all of them can be repeated."""
    works = [append(said(number)) for number in range(4)]
    commit = Lease.commit

    def fail(lease: Lease) -> None:
        if contents_of(lease) < 4:
            commit(lease)
            return
        raise make_disk_error()

    monkeypatch.setattr(Lease, "commit", fail)
    found = outcomes(path, *works)
    monkeypatch.undo()
    assert [type(each) for each in found] == [StoreFull] * 4
    assert len({*map(id, found)}) == 4
    assert {type(each.__cause__) for each in found} == {sqlite3.OperationalError}
    assert outcomes(path, *works) == [[1], [2], [3], [4]]


def contents_of(lease: Lease) -> int:
    """Return how many messages a transaction sees."""
    (count,) = lease.driver.execute("SELECT count(*) FROM messages").fetchone()
    return int(count)


def test_who_waits_gives_up_at_its_deadline(path: Path) -> None:
    """Both the leader, which waits for another writer, and who waits behind it."""
    with Store(path, timeout=0.2) as store, ThreadPoolExecutor(3) as threads, held(path):
        works = [threads.submit(store.append, "s", said(number)) for number in range(3)]
        for each in works:
            with pytest.raises(StoreBusy, match="until the deadline; nothing was written"):
                each.result(PATIENCE)
        assert count_waiting(store) == 0
    with Store(path) as store:
        assert store.append("s", said("after"))[0].seq == 1


def test_other_writes_have_a_turn_of_their_own(path: Path, commits: list[Lease]) -> None:
    """A new session that waits too is a transaction of its own."""
    with ThreadPoolExecutor(1) as threads:
        with grouped(path, append(said(1)), append(said(2))) as (store, _):
            made = threads.submit(store.create_session, "u")
            commits.clear()
        assert made.result(PATIENCE).id == "u"
    assert len(commits) == 3


def test_a_host_inside_of_steps_is_told(path: Path) -> None:
    """An append on the store itself, which would wait for its own thread."""

    def work(_: object) -> None:
        store.append("s", said("never"))

    with Store(path) as store:
        with pytest.raises(StoreError, match="inside `atomically`"):
            store.atomically(work)
        assert store.append("s", said("after"))[0].seq == 1


def test_awaited_appends_are_grouped(path: Path, commits: list[Lease]) -> None:
    """Whoever is cancelled in line has not happened; the others are one transaction."""
    found: dict[int, int] = {}

    async def work() -> None:
        async with AsyncStore(path, threads=2) as store:
            await store.session("s")
            opened = store._opened.result()

            async def add(number: int) -> None:
                (stored,) = await store.append("s", said(number))
                found[number] = stored.seq

            async with anyio.create_task_group() as tasks:
                with held(path):
                    scope = anyio.CancelScope()

                    async def cancelled() -> None:
                        with scope:
                            await add(99)

                    for number in range(7):
                        tasks.start_soon(cancelled if number == 3 else partial(add, number))
                        while count_waiting(opened) <= number:  # noqa: ASYNC110
                            await anyio.sleep(0.001)
                    scope.cancel()
                    while count_waiting(opened) > 6:  # noqa: ASYNC110
                        await anyio.sleep(0.001)
                    commits.clear()
            assert len(commits) == 2

    anyio.run(work)
    assert found == {0: 1, 1: 2, 2: 3, 4: 4, 5: 5, 6: 6}
    with Store(path) as store:
        assert contents(store) == [0, 1, 2, 4, 5, 6]


def test_errors_of_a_group_keep_nothing_alive(path: Path) -> None:
    """A write that has failed in another thread is let go of with its error."""
    import gc
    import weakref

    with grouped(path, append(said(1)), append(said(2), expected_head=7)) as (store, futures):
        assert store.database._group
        last = weakref.ref(store.database._group._line[1])
    del store, futures
    gc.collect()
    assert last() is None


@pytest.mark.slow
def test_groups_leave_turns_to_other_processes(
    path: Path, fork: Fork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single writer in another process writes all the time beside sixteen threads."""
    monkeypatch.setattr(group_commit, "TURN_SECONDS", TURN_SECONDS)
    begin, seconds = time.monotonic() + 1, 1.5

    def write_alone() -> int:
        done = 0
        with Store(path) as store:
            time.sleep(max(0.0, begin - time.monotonic()))
            while time.monotonic() < begin + seconds:
                store.append("t", said(done))
                done += 1
        return done

    child = fork(write_alone)
    counted = [0] * 16

    def write(store: Store, name: int) -> None:
        time.sleep(max(0.0, begin - time.monotonic()))
        while time.monotonic() < begin + seconds:
            store.append("s", said([name, counted[name]]))
            counted[name] += 1

    with Store(path) as store:
        threads = [threading.Thread(target=write, args=(store, name)) for name in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        alone = child.result()
        assert alone >= 10
        assert min(counted) >= max(counted) / 4
        assert contents(store, "t") == list(range(alone))
        found = contents(store)
        assert sorted(found) == [[name, n] for name in range(16) for n in range(counted[name])]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_stores_of_one_file_share_a_line(path: Path, commits: list[Lease]) -> None:
    """Those that commit alike: what is "normal" is never committed for what is "full"."""
    with Store(path) as one, Store(path) as other, Store(path, durability="normal") as third:
        assert one.database._group is other.database._group is not third.database._group
        with ThreadPoolExecutor(3) as threads:
            with held(path):
                futures = []
                for number, each in enumerate((one, other, third)):
                    futures.append(threads.submit(each.append, "s", said(number)))
                    wait_for_line(each, number % 2 + 1)
                commits.clear()
            assert sorted(each.result()[0].seq for each in futures) == [1, 2, 3]
    assert len(commits) == 3
