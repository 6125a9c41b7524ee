"""Cancelled tasks, under asyncio and trio.

What only waited has not happened, and ends at once; what had begun is brought to its end, and says
so.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from conftest import ROOT
from sqlalchemy import text

from store import AsyncStore, Policy, Store, StoreBusy
from store.errors import HeadMoved, StoreClosed
from store.face.async_store import FAILED_NOTE, FINISHED_NOTE
from store.history import erasure_batches
from store.history.append import append_messages

LOOPS = ("asyncio", "trio")
SOON = 20.0
"""Seconds that count as at once on a busy machine; what is waited for lasts longer."""
LONG = 60.0

Work = Callable[[], Awaitable[Any]]


def run(loop: str, work: Work) -> Any:
    """Run a coroutine in a loop of its own."""

    async def within() -> Any:
        with anyio.fail_after(60):
            return await work()

    return anyio.run(within, backend=loop)


def said(content: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content}


def contents(url: str) -> list[Any]:
    """Return what the messages of the session say."""
    with Store(url) as store:
        return [each.message["content"] for each in store.messages("s")]


@contextmanager
def held(url: str) -> Iterator[None]:
    """Keep all other writers waiting."""
    with Store(url) as other, other.database.writing() as connection:
        connection.exec_driver_sql("UPDATE sessions SET title = title")
        yield


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    """Give the name of each kind of loop."""
    name: str = request.param
    return name


@pytest.fixture
def url(url: str) -> str:
    """Give the URL of a store with an empty session."""
    with Store(url) as store:
        store.create_session("s")
    return url


def test_every_kind_of_operation(url: str, loop: str) -> None:
    """Operations of one transaction, of several, and those that yield."""

    async def work() -> None:
        async with AsyncStore(url) as store:
            await store.append("s", [said("word " * 50), said("b")])
            made = await store.compact("s", Policy(), lambda _: "so far")
            assert (made.outcome, made.summary) == ("applied", "so far")
            assert [page async for page in store.pages("s")] == [await store.messages("s")]
            with pytest.raises(HeadMoved):
                await store.append("s", said("late"), expected_head=1)
            await store.delete_session("s")
        with pytest.raises(StoreClosed):
            await store.session("s")

    run(loop, work)


def test_a_waiting_append_ends_at_once(url: str, loop: str) -> None:
    """And has not happened, neither then nor later; the next one is as ever."""

    async def work() -> None:
        async with AsyncStore(url, timeout=LONG) as store:
            with held(url):
                begun = time.monotonic()
                with anyio.move_on_after(0.3) as scope:
                    await store.append("s", said("never"))
                assert scope.cancelled_caught
                assert time.monotonic() - begun < SOON
            await store.append("s", said("after"))

    run(loop, work)
    assert contents(url) == ["after"]


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["wait_for", "timeout"])
def test_asyncio_has_time_limits_of_its_own(url: str, limit: str) -> None:
    """They end a waiting append, too, and so do many at once, also those that have no thread."""

    async def limited(store: AsyncStore) -> None:
        if limit == "wait_for":
            await asyncio.wait_for(store.append("s", said("never")), 0.3)
        async with asyncio.timeout(0.3):
            await store.append("s", said("never"))

    async def work() -> list[Any]:
        async with AsyncStore(url, timeout=LONG, threads=4) as store:
            with held(url):
                begun = time.monotonic()
                tasks = (limited(store) for _ in range(10))
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                assert time.monotonic() - begun < SOON
            await store.append("s", said("after"))
            return ended

    assert {type(each) for each in asyncio.run(work())} == {TimeoutError}
    assert contents(url) == ["after"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["fork", "rewind", "delete_session", "compact"])
@pytest.mark.sampled(3)
def test_whatever_waits_to_write_ends_at_once(url: str, loop: str, name: str) -> None:
    """Operations of several transactions, too, as long as none has begun."""
    arguments: dict[str, tuple[Any, ...]] = {
        "rewind": ("s", 0),
        "compact": ("s", Policy(), lambda _: "never"),
    }
    with Store(url) as store:
        store.append("s", [said("word " * 50), said("b")])

    async def work() -> None:
        async with AsyncStore(url, timeout=LONG) as store:
            with held(url):
                begun = time.monotonic()
                with anyio.move_on_after(0.3) as scope:
                    await getattr(store, name)(*arguments.get(name, ("s",)))
                assert scope.cancelled_caught
                assert time.monotonic() - begun < SOON
            assert [each.id for each in await store.sessions()] == ["s"]
            assert (await store.session("s")).head == 2
            assert await store.compactions("s") == []

    run(loop, work)


@pytest.mark.sqlite_only
def test_a_waiting_purge_ends_at_once(url: str, loop: str) -> None:
    """It stands in the same line."""

    async def work() -> None:
        async with AsyncStore(url, timeout=LONG) as store:
            with held(url):
                begun = time.monotonic()
                with anyio.move_on_after(0.3) as scope:
                    await store.purge()
                assert scope.cancelled_caught
                assert time.monotonic() - begun < SOON
            await store.purge()

    run(loop, work)


INTERRUPTED = """
import signal
import sys
import anyio
from store import AsyncStore

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it

async def work():
    async with AsyncStore(sys.argv[1], timeout=120) as store:
        await store.session("s")
        print("ready", flush=True)
        await store.append("s", {"role": "user", "content": "never"})

try:
    anyio.run(work, backend=sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.sampled(2)
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no signals")
@pytest.mark.slow
def test_an_interrupt_ends_a_waiting_append(url: str, loop: str) -> None:
    """Ctrl-C ends the program at once; its append has not happened."""
    command = [sys.executable, "-c", INTERRUPTED, url, loop]
    with (
        held(url),
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=LONG) == ("interrupted\n", "")
    assert contents(url) == []


async def cancel_when(
    begun: threading.Event, scope: anyio.CancelScope, release: threading.Event
) -> None:
    """Cancel what runs in a scope when it has begun; let it go on half a second later."""
    await anyio.to_thread.run_sync(begun.wait)
    scope.cancel()
    threading.Timer(0.5, release.set).start()


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.sampled(2)
def test_what_has_begun_is_brought_to_its_end(url: str, loop: str, fails: bool) -> None:
    """The cancellation waits for it, and has a note that says how it ended."""
    begun, release = threading.Event(), threading.Event()

    def slow(store: Store) -> None:
        with store.database.writing() as connection:
            append_messages(connection, "s", said("begun"), now=1)
            begun.set()
            release.wait(SOON)
            if fails:
                raise StoreBusy("failed")

    async def work() -> BaseException:
        async with AsyncStore(url) as store:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(cancel_when, begun, scope, release)
                    try:
                        await store._run(partial(store._call, slow), waits=True)
                    except anyio.get_cancelled_exc_class() as stopped:
                        told = stopped
                        raise
        return told

    told = run(loop, work)
    note = FAILED_NOTE.format(StoreBusy("failed")) if fails else FINISHED_NOTE
    assert told.__notes__ == [note]
    assert contents(url) == ([] if fails else ["begun"])


@pytest.mark.slow
def test_what_has_committed_once_does_all_that_it_still_has_to(
    url: str, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion that nobody waits for any more erases the rows behind its first transaction."""
    begun, release, erase = threading.Event(), threading.Event(), erasure_batches._erase_tree

    def slow(*arguments: Any, **options: Any) -> None:
        begun.set()
        release.wait(SOON)
        erase(*arguments, **options)

    monkeypatch.setattr(erasure_batches, "_erase_tree", slow)
    with Store(url) as store:
        store.append("s", said("goes"))

    async def work() -> None:
        async with AsyncStore(url) as store:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(cancel_when, begun, scope, release)
                    await store.delete_session("s")
            [erased] = await store.erasures()
            assert erased.finished

    run(loop, work)


def at_rest(store: Store) -> None:
    """Fail where a connection is lost, or a server has one that is in a transaction."""
    database, pool = store.database, store.database._engine.pool
    idle = [lease for leases in database._idle.values() for lease in leases]
    assert pool.checkedout() == len(idle) > 0  # type: ignore[attr-defined]
    assert not any(lease.connection.in_transaction() for lease in idle)
    if database.dialect == "postgresql":
        with database.reading() as connection:
            states = Counter(connection.exec_driver_sql(STATES).scalars())
        assert {*states} <= {"idle", "active"}
        assert states["active"] <= 1
        assert states.total() <= len(idle) + pool.checkedin()  # type: ignore[attr-defined]


STATES = "SELECT state FROM pg_stat_activity WHERE datname = current_database()"


LIMITS = {0: LONG, 1: 0.0}
"""Seconds after which the first two tasks are cancelled, so that some are and some are not."""
LONGEST_LIMIT = 1.0
"""Seconds after which all other tasks are cancelled."""


def hold_session(url: str, held: threading.Event) -> None:
    """Let all appends to the session wait for half of the longest limit."""
    with Store(url) as other, other.database.writing() as connection:
        connection.execute(text("UPDATE sessions SET title = 'held' WHERE id = 's'"))
        held.set()
        time.sleep(LONGEST_LIMIT / 2)


@pytest.mark.parametrize("kind", [*LOOPS, "tasks of asyncio"])
@pytest.mark.slow
def test_many_tasks_cancelled_at_random(url: str, kind: str) -> None:
    """Of 200 appends, those are there as a whole that returned or say that they were finished.

    None of the others is. No connection is left in a transaction, and none is lost.
    """
    chance, happened = random.Random(kind), Counter[int]()

    async def append_one(store: AsyncStore, number: int) -> None:
        try:
            await store.append("s", [said([number, part]) for part in range(3)])
            happened[number] += 1
        except anyio.get_cancelled_exc_class() as stopped:
            happened[number] += FINISHED_NOTE in getattr(stopped, "__notes__", ())
            raise

    async def within_scopes(store: AsyncStore) -> None:
        async def limited(number: int) -> None:
            with anyio.move_on_after(LIMITS.get(number, chance.uniform(0, LONGEST_LIMIT))):
                await append_one(store, number)

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(limited, number)

    async def as_tasks(store: AsyncStore) -> None:
        tasks = [asyncio.create_task(append_one(store, number)) for number in range(200)]
        for number, task in enumerate(tasks):
            limit = LIMITS.get(number, chance.uniform(0, LONGEST_LIMIT))
            asyncio.get_running_loop().call_later(limit, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def work() -> None:
        async with AsyncStore(url, timeout=LONG) as store:
            held = threading.Event()
            holder = threading.Thread(target=hold_session, args=(url, held))
            holder.start()
            held.wait(LONG)
            await (as_tasks if kind not in LOOPS else within_scopes)(store)
            holder.join()
            await store.append("s", said("after"))
            await store._run(partial(store._call, at_rest))

    run(kind if kind in LOOPS else "asyncio", work)
    *found, last = contents(url)
    assert last == "after"
    stored = [found[at][0] for at in range(0, len(found), 3)]
    assert found == [[number, part] for number in stored for part in range(3)]
    assert sorted(stored) == sorted(number for number, times in happened.items() if times)
    assert 0 < len(stored) < 200
    with Store(url) as store:
        assert store.verify() == []
