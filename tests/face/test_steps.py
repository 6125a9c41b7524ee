"""Several steps, one commit: all are stored or none, by however many writers."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from store import AsyncStore, Steps, Store
from store.errors import (
    Conflict,
    InvalidMessage,
    InvalidValue,
    SessionExists,
    SessionNotFound,
    StoreBusy,
    StoreError,
)

NOW = 1_800_000_000_000
on_server = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="a file has one writer at a time"
)


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def contents(store: Store | Steps, session_id: str) -> list[Any]:
    """Return what the messages of a session say."""
    return [each.message["content"] for each in store.messages(session_id)]


@pytest.fixture
def chats(url: str) -> Any:
    """Return a store with two sessions, of two trees."""
    with Store(url, timeout=60) as store:
        for session_id in ("a", "b"):
            store.create_session(session_id, now=NOW)
        yield store


@pytest.mark.parametrize("owner", [None, "ann"])
def test_sessions_are_erased_by_a_step(url: str, owner: str | None) -> None:
    """With the other steps or not at all; an id is free again, and the rows go after the commit."""
    with Store(url, timeout=60) as store:
        for session_id in "abc":
            store.create_session(session_id, owner="ann", now=NOW)
            store.append(session_id, [said(1), said(2)])
        store.fork("b", 1, "fork")
        face: Any = store if owner is None else store.scoped(owner)

        def work(t: Any, fails: bool = False) -> list[Any]:
            erased = t.delete_session(["a", "none"], "b", missing="ignore")
            t.append("fork", said(3))
            t.create_session("a")
            t.append("a", said("new"))
            for wrong in ({"expected": "no"}, {"costs": "none"}):
                with pytest.raises((Conflict, InvalidValue)):
                    t.delete_session("c", **wrong)
            with pytest.raises(SessionNotFound):
                t.delete_session("c", "none")
            if fails:
                raise LookupError
            return list(erased)

        with pytest.raises(LookupError):
            face.atomically(lambda t: work(t, fails=True))
        assert (contents(store, "a"), store.erasures()) == ([1, 2], [])
        erased = face.atomically(work)
        assert [each[:3] for each in erased] == [("a", 2, 0), ("b", 1, 1)]
        assert [each.finished for each in store.erasures()] == [True, True]
        said_now = [contents(store, each) for each in ("a", "c", "fork")]
        assert said_now == [["new"], [1, 2], [1, 3]]
        assert store.verify() == []


def test_steps_are_one_commit(chats: Store) -> None:
    """What is done to two sessions is seen by others at once, and by the steps themselves."""

    def work(t: Steps) -> int:
        t.append("a", said(1))
        t.append("b", [said(2), said(3)])
        t.set_metadata("a", {"sum": 3})
        if chats.database.path:  # a reader of a file does not wait for its writer
            assert contents(chats, "a") == []
        return len(contents(t, "a") + contents(t, "b"))

    assert chats.atomically(work, now=NOW + 5) == 3
    assert contents(chats, "a") + contents(chats, "b") == [1, 2, 3]
    assert {each.stored_at for each in chats.messages("b")} == {NOW + 5}
    assert chats.session("a").metadata == {"sum": 3}


def test_a_step_that_fails_leaves_nothing_behind(chats: Store) -> None:
    """Not what it did before it failed, either; the host goes on."""

    def work(t: Steps) -> None:
        with pytest.raises(Conflict):
            t.append("new", said(1), create=True, expected_head=5)
        with pytest.raises(SessionNotFound):
            t.session("new")
        t.append("a", said(2))

    chats.atomically(work)
    assert {each.id for each in chats.sessions()} == {"a", "b"}
    assert contents(chats, "a") == [2]


@pytest.mark.parametrize("kind", [KeyError, ValueError, StoreError, KeyboardInterrupt])
def test_what_leaves_the_work_takes_back_all(chats: Store, kind: type[BaseException]) -> None:
    """An exception of the host's own comes out as it is, and nothing was stored."""
    before = chats.session("a")

    def work(t: Steps) -> None:
        t.append("a", said(1))
        t.create_session("c")
        raise kind("mine")

    with pytest.raises(kind, match="mine"):
        chats.atomically(work)
    assert chats.session("a") == before
    with pytest.raises(SessionNotFound):
        chats.session("c")


def test_a_step_that_fails_leaves_nothing_of_its_own(chats: Store) -> None:
    """The host goes on after it, with what the other steps did."""

    def work(t: Steps) -> None:
        t.append("a", said(1))
        with pytest.raises(SessionExists):
            t.fork("a", session_id="b")
        with pytest.raises(InvalidMessage):
            t.append("a", [said(2), {"role": 5}])
        with pytest.raises(Conflict):
            t.append("b", said(3), expected="no", create=True)
        t.append("b", said(4))

    chats.atomically(work)
    assert (contents(chats, "a"), contents(chats, "b")) == ([1], [4])
    assert chats.verify() == []


def test_every_operation_of_one_transaction_is_a_step() -> None:
    """What opens transactions of its own is none."""
    own = {name for name in vars(Store) if not name.startswith("_")}
    assert {"append", "view", "fork", "verify"} <= {*dir(Steps)}
    assert own.isdisjoint(dir(Steps))


def test_wrong_arguments_stay_the_hosts_own_error(chats: Store) -> None:
    """Nobody is told of damage because a call was wrong."""

    def work(t: Steps) -> None:
        t.append("a", said(1))
        t.append("a")  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="append"):
        chats.atomically(work)
    assert contents(chats, "a") == []


@pytest.mark.parametrize("work", [None, "append", 5])
def test_work_is_a_function(chats: Store, work: Any) -> None:
    """Anything else is refused, a coroutine too."""
    with pytest.raises(InvalidValue, match="a function of the steps"):
        chats.atomically(work)

    async def later(t: Steps) -> None:
        t.append("a", said(1))

    with pytest.raises(InvalidValue, match="plain function"):
        chats.atomically(later)


def test_the_store_itself_does_not_write_meanwhile(chats: Store) -> None:
    """It would wait for the end of what it is part of; it says so at once."""
    began = time.monotonic()
    with pytest.raises(StoreError, match="inside `atomically`"):
        chats.atomically(lambda _: chats.append("b", said(1)))
    assert time.monotonic() - began < 30
    chats.append("b", said(2))
    assert contents(chats, "b") == [2]


@pytest.mark.sqlite_only
def test_nothing_is_purged_meanwhile(chats: Store) -> None:
    """It tells so at once, and waits for nobody."""
    began = time.monotonic()
    purge = chats.atomically(lambda _: chats.purge())
    assert time.monotonic() - began < 30
    assert purge.problem is not None
    assert "inside `atomically`" in purge.problem


def test_other_threads_write_on(chats: Store) -> None:
    """They wait for the steps, as for any writer."""
    inside, order = threading.Event(), []

    def other() -> None:
        inside.wait(60)
        chats.append("a", said("other"))
        order.append("other")

    def work(t: Steps) -> None:
        t.append("a", said("steps"))
        inside.set()
        time.sleep(0.2)
        order.append("steps")

    thread = threading.Thread(target=other)
    thread.start()
    chats.atomically(work)
    thread.join(60)
    assert order == ["steps", "other"]
    assert contents(chats, "a") == ["steps", "other"]


def count_up(url: str, times: int, order: tuple[str, str]) -> None:
    """Read a number, write the next one, in two sessions; so many times."""

    def work(t: Steps) -> None:
        for session_id in order:
            number = t.session(session_id).metadata.get("number", 0)
            t.set_metadata(session_id, {"number": number + 1})
            t.append(session_id, said(number))

    with Store(url, timeout=60) as store:
        for _ in range(times):
            store.atomically(work)


def test_increments_by_processes_are_all_counted(
    chats: Store, url: str, fork: Callable[..., Any]
) -> None:
    """Two processes read, add one and write, in the two orders in which they can hold each other
    up; neither loses one, and neither is told of a deadlock.
    """
    times = 15 if chats.database.path else 4  # a server needs a second to notice a deadlock
    children = [fork(count_up, url, times, order) for order in (("a", "b"), ("b", "a"))]
    for child in children:
        child.result()
    for session_id in ("a", "b"):
        assert chats.session(session_id).metadata == {"number": 2 * times}
        assert contents(chats, session_id) == list(range(2 * times))
    assert chats.verify() == []


READS: dict[str, Callable[[Any], int]] = {
    "session": lambda t: int(t.session("a").head),
    "messages": lambda t: len(t.messages("a")),
    "metadata": lambda t: int(t.create_session("a", exist_ok=True).metadata.get("number", 0)),
    "branches": lambda t: int(t.branches("a")[0].head),
}
"""How steps may read how many messages a session has."""


def append_what_was_read(url: str, read: str, owner: str | None, times: int) -> None:
    """Append where a session's head was found to be, so many times, without saying so."""

    def work(t: Any) -> None:
        number = READS[read](t)
        t.append("a", said(number))
        t.set_metadata("a", {"number": number + 1})

    with Store(url, timeout=60, durability="normal") as store:
        face = store.scoped(owner) if owner else store
        for _ in range(times):
            face.atomically(work)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("owner", [None, "ann"])
@pytest.mark.parametrize("read", READS)
def test_what_a_step_has_read_holds(
    url: str, fork: Callable[..., Any], read: str, owner: str | None
) -> None:
    """Of 200 times that two processes read a number and write the next one, all 200 count."""
    with Store(url) as store:
        store.create_session("a", owner=owner)
        children = [fork(append_what_was_read, url, read, owner, 100) for _ in range(2)]
        for child in children:
            child.result()
        assert store.session("a").metadata == {"number": 200}
        assert contents(store, "a") == list(range(200))


@on_server
def test_lists_in_steps_hold_nothing(chats: Store, url: str) -> None:
    """Whoever looks through sessions keeps nobody from writing to them; one that is read is held."""

    def work(t: Steps) -> None:
        t.sessions(tree="a")
        t.usages()
        t.count_sessions()
        other.append("a", said("meanwhile"))
        t.messages("a")
        with pytest.raises(StoreBusy):
            other.append("a", said("too early"))
        other.append("b", said("meanwhile"))

    with Store(url, timeout=0.2) as other:
        chats.atomically(work)
        other.append("a", said("after"))
    assert contents(chats, "a") == ["meanwhile", "after"]


@on_server
def test_a_step_that_reads_waits_as_long_as_the_store_does(chats: Store, url: str) -> None:
    """Then it is told that the session is busy, and may go on with others."""

    def late(t: Steps) -> int:
        began = time.monotonic()
        with pytest.raises(StoreBusy):
            t.messages("a")
        assert time.monotonic() - began < 20
        return t.session("b").head

    with Store(url, timeout=0.3) as other:

        def work(t: Steps) -> None:
            t.session("a")
            in_thread = ThreadPoolExecutor(1)
            with in_thread:
                assert in_thread.submit(other.atomically, late).result() == 0

        chats.atomically(work)


def test_awaited_steps(chats: Store, url: str) -> None:
    """Work is a plain function that runs in a thread; the loop goes on."""

    async def main() -> int:
        async with AsyncStore(url) as store:
            ticks, ticked = 0, threading.Event()

            def work(t: Steps) -> int:
                t.append("a", said(1))
                assert ticked.wait(60)
                return t.session("a").head

            task = asyncio.ensure_future(store.atomically(work))
            while not task.done():
                ticks += 1
                if ticks > 2:
                    ticked.set()
                await asyncio.sleep(0.01)
            return task.result()

    assert asyncio.run(main()) == 1


def test_a_kill_in_the_midst_leaves_nothing(path: Path, fork: Callable[..., Any]) -> None:
    """The steps of a process that dies are taken back, and nobody waits for it."""
    with Store(path) as store:
        store.create_session("a")

    def die(pipe: Any = None) -> None:
        with Store(path) as store:

            def work(t: Steps) -> None:
                t.append("a", [said(number) for number in range(50)])
                time.sleep(60)

            store.atomically(work)

    child = fork(die)
    deadline = time.monotonic() + 50
    with Store(path, timeout=0.05) as store:
        while time.monotonic() < deadline:
            try:
                store.rename_session("a", "mine")
            except StoreError:
                break
        child.end(9)
    with Store(path) as store:
        store.append("a", said("after"))
        assert contents(store, "a") == ["after"]


def test_operations_are_typed(chats: Store) -> None:
    """A step gives back what the operation does."""
    assert isinstance(chats.atomically(lambda t: t.append("a", said(1))[0].seq), int)
