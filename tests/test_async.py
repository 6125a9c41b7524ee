"""The awaited face.

The same names, help and errors as `Store`, safe under many tasks and under cancellation.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import Child

from store import AsyncStore, Policy, Store
from store.errors import (
    HeadMoved,
    InvalidMessage,
    NotAStore,
    SessionNotFound,
    StoreClosed,
    StoreError,
)
from store.face.threads import StorePools
from store.summaries import SummaryRequest

HOLD = "UPDATE sessions SET title = title"
"""What keeps other writers waiting until its transaction ends."""


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def names(face: type) -> set[str]:
    """Return the public names of a face."""
    return {name for name in dir(face) if not name.startswith("_")}


def contents(url: str, session_id: str = "s") -> list[Any]:
    """Return what the messages of a session say."""
    with Store(url) as store:
        return [each.message["content"] for each in store.messages(session_id)]


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine, failing on whatever it leaves behind."""
    return asyncio.run(asyncio.wait_for(work(), 60))


BOUND = sorted(names(Store) & names(AsyncStore) - {"scoped", "streaming"})


def test_the_faces_have_the_same_names() -> None:
    """Whatever can be called can be awaited, but for what opens a store; nothing else is public."""
    assert names(AsyncStore) == names(Store) - {"shared"} | {"call"}


def test_what_only_names_sessions_is_not_awaited() -> None:
    """`scoped` asks nothing of the database, and `streaming` only where it is entered."""
    assert not inspect.iscoroutinefunction(AsyncStore.scoped)
    assert not inspect.iscoroutinefunction(AsyncStore.streaming)
    assert inspect.getdoc(AsyncStore.streaming) == inspect.getdoc(Store.streaming)


@pytest.mark.parametrize("name", BOUND)
def test_the_faces_say_the_same(name: str) -> None:
    """Help and parameters of an awaited operation are those of the plain one."""
    plain, awaited = getattr(Store, name), getattr(AsyncStore, name)
    assert inspect.iscoroutinefunction(awaited) or name in (
        "pages",
        "follow",
    )  # each part is awaited
    assert not inspect.iscoroutinefunction(plain)
    assert plain.__doc__
    if name == "close":  # what they wait for differs
        return
    assert inspect.getdoc(awaited) == inspect.getdoc(plain)
    assert inspect.signature(awaited).parameters == inspect.signature(plain).parameters
    assert awaited.__name__ == plain.__name__


def test_operations_need_no_event_loop_to_be_understood() -> None:
    """The plain face's parameters are the operation's, without the connection that the face
    provides.
    """
    parameters = list(inspect.signature(Store.append).parameters)
    assert parameters[1:3] == ["session_id", "messages"]


def test_the_same_answers(url: str) -> None:
    """A conversation through the awaited face reads the same through the plain one."""

    async def work() -> list[Any]:
        async with AsyncStore(url) as store:
            await store.create_session("s", title="t", now=10**12 + 5)
            await store.append("s", [said(1), said(2), said(3)], now=10**12 + 6)
            await store.rewind("s", 2, now=10**12 + 7)
            await store.fork("s", 1, "f", now=10**12 + 8)
            await store.undo_rewind("s", now=10**12 + 9)
            await store.create_session("gone", now=10**12 + 9)
            await store.delete_session("gone", now=10**12 + 9)
            return [
                await store.session("s"),
                await store.sessions(),
                await store.messages("s"),
                await store.view("f", now=10**12 + 10),
                await store.head_moves("s"),
                await store.verify(),
            ]

    awaited = run(work)
    with Store(url) as store:
        session, everything, line = store.session("s"), store.sessions(), store.messages("s")
        plain = [
            session,
            everything,
            line,
            store.view("f", now=10**12 + 10),
            store.head_moves("s"),
            store.verify(),
        ]
    assert awaited == plain
    assert [each.message["content"] for each in line] == [1, 2, 3]


def test_many_tasks(url: str) -> None:
    """Twenty tasks append twenty messages each to one session.

    None lost, none doubled, each task's in order.
    """

    async def work() -> None:
        async with AsyncStore(url) as store:
            await store.create_session("s")

            async def append(name: int) -> None:
                for number in range(20):
                    (stored,) = await store.append("s", said([name, number]))
                    assert (await store.messages("s", stored.seq, stored.seq))[0].message[
                        "content"
                    ] == [name, number]

            await asyncio.gather(*(append(name) for name in range(20)))

    run(work)
    found = contents(url)
    assert sorted(found) == [[name, number] for name in range(20) for number in range(20)]
    assert [[number for who, number in found if who == name] for name in range(20)] == [
        list(range(20))
    ] * 20


def test_the_loop_goes_on_while_an_operation_waits(url: str) -> None:
    """An append that waits for another writer holds up no other task, and reads go on."""

    async def work() -> None:
        async with AsyncStore(url) as store:
            await store.create_session("s")
            with Store(url) as other, other.database.writing() as connection:
                connection.exec_driver_sql(HOLD)
                waiting = asyncio.create_task(store.append("s", said("late")))
                for _ in range(5):
                    await asyncio.sleep(0.01)
                    assert await store.messages("s") == []
                assert not waiting.done()
            assert (await waiting)[0].seq == 1

    run(work)


def test_waiting_writers_leave_threads_to_readers(url: str) -> None:
    """However many appends wait for another writer, a read finds a thread at once."""

    async def work() -> None:
        async with AsyncStore(url, threads=2) as store:
            await store.create_session("s")
            with Store(url) as other, other.database.writing() as connection:
                connection.exec_driver_sql(HOLD)
                waiting = [asyncio.create_task(store.append("s", said(n))) for n in range(8)]
                await asyncio.sleep(0.05)
                assert await asyncio.wait_for(store.messages("s"), 60) == []
                assert not any(each.done() for each in waiting)
            await asyncio.gather(*waiting)
            assert (await store.session("s")).head == 8

    run(work)


def test_calls_one_after_the_other_have_one_thread(url: str) -> None:
    """Whatever they do; a call that comes while it is at work has another one."""
    entered, gate = threading.Event(), threading.Event()

    def wait(_: Any) -> str:
        entered.set()
        assert gate.wait(30)
        return threading.current_thread().name

    async def work() -> None:
        async with AsyncStore(url) as store:
            names = {
                await call(lambda _: threading.current_thread().name)
                for call in (store.atomically, store.reading) * 10
            }
            assert len(names) == 1
            waiting = asyncio.create_task(store.reading(wait))
            await asyncio.to_thread(entered.wait, 30)
            name = await store.atomically(lambda _: threading.current_thread().name)
            gate.set()
            assert {await waiting} == names != {name}

    run(work)


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003])
def test_a_cancelled_append_is_whole_or_not_there(url: str, delay: float) -> None:
    """Tasks cancelled at any moment leave whole batches, all those that were acknowledged, and a
    store that works.
    """
    acknowledged: list[int] = []

    async def append(store: AsyncStore, name: int) -> None:
        for number in range(100):
            await store.append("s", [said([name, number, part]) for part in range(3)])
            acknowledged.append(1000 * name + number)

    async def work() -> None:
        async with AsyncStore(url, threads=3) as store:
            await store.create_session("s")
            for name in range(0, 40, 4):
                tasks = [asyncio.create_task(append(store, name + each)) for each in range(4)]
                await asyncio.sleep(delay)
                for task in tasks:
                    task.cancel()
                assert {
                    type(each) for each in await asyncio.gather(*tasks, return_exceptions=True)
                } == {asyncio.CancelledError}
            await store.append("s", said("end"))

    run(work)
    found = contents(url)
    found.remove("end")  # a cancelled append that had begun may have come after it
    batches = [found[at : at + 3] for at in range(0, len(found), 3)]
    assert all(
        [part for *_, part in batch] == [0, 1, 2] and batch[0][:2] == batch[2][:2]
        for batch in batches
    )
    stored = [1000 * name + number for (name, number, _), *_ in batches]
    assert len(set(stored)) == len(stored)
    assert {*acknowledged} <= {*stored}


@pytest.mark.parametrize("impatient", [False, True])
@pytest.mark.slow
def test_a_cancelled_compaction_waits_for_no_summary(
    url: str, impatient: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends as failed, at once, so that the next one need not wait.

    What comes of the summarizer is nobody's.
    """
    begun, release = threading.Event(), threading.Event()

    def hanging(request: SummaryRequest) -> str:
        begun.set()
        release.wait(60)
        return "too late"

    async def work() -> None:
        async with AsyncStore(url, threads=1) as store:
            await store.create_session("s")
            await store.append("s", [said("word " * 50), said("b")])
            task = asyncio.create_task(store.compact("s", Policy(summary_timeout=60), hanging))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            if impatient:
                await asyncio.sleep(0)
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not release.is_set()
            [record] = await store.compactions("s")
            while impatient and record.outcome == "running":  # a second time it is not waited for
                await asyncio.sleep(0.01)
                [record] = await store.compactions("s")
            assert (record.outcome, record.error) == ("failed", "stopped by Cancelled")
            release.set()
            made = await store.compact("s", Policy(), lambda request: "in time")
            assert (made.outcome, made.summary) == ("applied", "in time")

    run(work)
    gc.collect()
    assert "asyncio" not in [each.name for each in caplog.records], (
        "an error that was never retrieved"
    )


def test_operations_see_the_context_of_their_task(url: str) -> None:
    """Context variables, such as tracing uses, reach a summarizer."""
    variable = contextvars.ContextVar("variable", default="unset")

    async def work() -> None:
        variable.set("set")
        async with AsyncStore(url) as store:
            await store.create_session("s")
            await store.append("s", [said("word " * 50), said("b")])
            assert (
                await store.compact("s", Policy(), lambda request: variable.get())
            ).summary == "set"

    run(work)


def test_errors_pass_through(url: str) -> None:
    """Errors are the plain face's, with what they carry."""

    async def work() -> None:
        async with AsyncStore(url) as store:
            await store.create_session("s")
            with pytest.raises(SessionNotFound, match="'t'"):
                await store.messages("t")
            with pytest.raises(HeadMoved) as moved:
                await store.append("s", said("x"), expected_head=3)
            assert (moved.value.expected, moved.value.head) == (3, 0)
            with pytest.raises(InvalidMessage) as invalid:
                await store.append("s", [said("x"), {"role": 5}])
            assert (invalid.value.index, invalid.value.key) == (1, "role")
            with pytest.raises(TypeError):
                await store.append("s", said("x"), no_such_option=True)
            assert await store.messages("s") == []

    run(work)


@pytest.mark.sqlite_only
def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    """The reason is told on entering and on every operation, and closing is harmless."""

    async def work() -> None:
        store = AsyncStore(tmp_path)
        with pytest.raises(NotAStore):
            await store.messages("s")
        with pytest.raises(NotAStore):
            async with store:
                pass
        await store.close()

    run(work)


@pytest.mark.sqlite_only
def test_leaving_closes(tmp_path: Path) -> None:
    """After ``async with`` everything is in the one file, also when its body fails."""

    async def work() -> None:
        async with AsyncStore(tmp_path / "chat.db") as store:
            await store.create_session("s")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(work)
    assert {each.name for each in tmp_path.iterdir()} == {"chat.db", "chat.db-lock"}
    with Store(tmp_path / "chat.db") as store:
        assert store.session("s").head == 0


def test_a_closed_store_refuses(url: str) -> None:
    """Operations after closing say so, and closing again is harmless."""

    async def work() -> None:
        store = AsyncStore(url)
        await store.create_session("s")
        await store.close()
        with pytest.raises(StoreClosed):
            await store.messages("s")
        await store.close()

    run(work)


def test_closing_waits_for_what_runs(url: str) -> None:
    """Appends under way when the store is closed are stored and acknowledged, or refused."""

    async def work() -> list[Any]:
        store = AsyncStore(url, threads=4)
        await store.create_session("s")
        tasks = [asyncio.create_task(store.append("s", said(number))) for number in range(40)]
        await asyncio.sleep(0.005)
        await store.close()
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = run(work)
    acknowledged = [
        number for number, each in enumerate(outcomes) if not isinstance(each, BaseException)
    ]
    assert {type(each) for each in outcomes if isinstance(each, BaseException)} <= {StoreClosed}
    assert sorted(contents(url)) == acknowledged


def test_closing_is_not_cancelled_half_way(url: str) -> None:
    """It goes on by itself, and closing again waits for its end."""

    async def work() -> None:
        store = AsyncStore(url)
        await store.create_session("s")
        task = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.close()
        with pytest.raises(StoreClosed):
            store._opened.result().session("s")

    run(work)


def test_two_loops_one_after_the_other(url: str) -> None:
    """A store is bound to no event loop: what one began the next may go on with."""
    store = AsyncStore(url)

    async def first() -> None:
        await store.create_session("s")

    async def second() -> int:
        await store.append("s", said("x"))
        head = (await store.session("s")).head
        await store.close()
        return head

    run(first)
    assert run(second) == 1


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the child has the parent's loop
def test_a_forked_child_uses_the_store(url: str, fork: Callable[..., Child]) -> None:
    """It has none of the threads that were at work before; the parent goes on with these."""
    store = AsyncStore(url)

    async def append() -> None:
        await asyncio.gather(*(store.append("s", said(os.getpid())) for _ in range(3)))

    async def begin() -> None:
        await store.create_session("s")
        await append()

    async def end() -> None:
        await store.close()
        with pytest.raises(StoreClosed):
            await store.session("s")

    run(begin)
    child = fork(lambda: (run(append), run(end)))
    run(append)
    child.result(30)
    run(end)
    fork(run, end).result(30)
    assert sorted(contents(url)) == sorted([os.getpid()] * 6 + [child.pid] * 3)


def test_a_child_forked_during_the_opening(url: str, fork: Callable[..., Child]) -> None:
    """It opens the store for itself, before anything else that its threads have to do."""
    parent, gate = os.getpid(), threading.Event()

    def open_late() -> Store:
        assert os.getpid() != parent or gate.wait(30)
        return Store(url)

    def use() -> None:
        with pools.open().result(30) as opened:
            opened.create_session("s")
        pools.end()

    pools = StorePools(open_late, 1)
    fork(use).result(30)
    gate.set()
    with pools.open().result(30) as opened:
        assert opened.session("s").head == 0
    pools.end()


def test_errors_are_store_errors() -> None:
    """One ``except`` catches whatever a store has to say, in both faces."""
    assert all(
        issubclass(each, StoreError)
        for each in (SessionNotFound, HeadMoved, InvalidMessage, StoreClosed)
    )


def test_idle_connections_keep_nobody_waiting(url: str) -> None:
    """However many wait for their next write, there is one for each reader, and the other way
    round.
    """
    with Store(url, durability="normal") as store:
        for kind in (store.database.writing, store.database.reading):
            with ExitStack() as opened:
                for _ in range(12):
                    opened.enter_context(kind())
        assert store.sessions() == []
