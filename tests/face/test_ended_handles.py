"""Handles that end: steps, streams and pages do nothing afterwards, nor for another thread."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, text

from store import AsyncStore, Owned, Policy, Steps, Store, Streaming
from store.database.lease import Lease, get_lease
from store.errors import InvalidValue, SessionNotFound, StoreClosed, StoreError

NOW = 1_800_000_000_000
TURNS = Policy.named("turns")


def said(content: object, **keys: object) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": content, **keys}


def methods(face: type) -> set[str]:
    """Return the names of the public methods of a face."""
    return {
        name
        for name in dir(face)
        if not name.startswith("_") and not isinstance(inspect.getattr_static(face, name), property)
    }


CALLS: dict[str, tuple[Any, ...]] = {
    "create_session": ("new",),
    "session": ("s",),
    "title": ("s",),
    "sessions": (),
    "count_sessions": (),
    "archive": ("s",),
    "delete_session": ("s",),
    "forget": ("s",),
    "unarchive": ("s",),
    "rename_session": ("s", "later"),
    "set_metadata": ("s", {"later": 1}),
    "set_project_root": ("s", "/later"),
    "append": ("s", said("later")),
    "messages": ("s",),
    "message": ("s", 1),
    "calls": ("s",),
    "open_calls": ("s",),
    "prices": (),
    "set_prices": ("prices.toml",),
    "files": ("s",),
    "find": ("one",),
    "turns": ("s",),
    "fork": ("s",),
    "rewind": ("s", 0),
    "switch": ("s", 1, 1),
    "branches": ("s",),
    "siblings": ("s", 1),
    "replace": ("s", 0, said("later")),
    "pop": ("s",),
    "drafts": (),
    "finish_draft": ("0" * 32,),
    "discard_draft": ("0" * 32,),
    "undo_rewind": ("s",),
    "head_moves": ("s",),
    "view": ("s",),
    "view_sql": ("s",),
    "requests": ("s",),
    "request": ("s", 1),
    "check": ("s", TURNS),
    "usages": (),
    "usage_totals": (),
    "annotate": ("s", 1, "later", True),
    "annotations": ("s",),
    "compactions": ("s",),
    "hidden": ("s",),
    "recall": ("s", "one"),
    "replaced": ("s",),
    "hide": ("s", 1, 1, "later"),
    "plan_clearing": ("s", TURNS),
    "plan_compaction": ("s", TURNS),
    "undo_compaction": ("s", 1),
    "redact": ("s", 1, "later"),
    "redactions": ("s",),
    "record_usage": ("s",),
    "record_usages": ("s", []),
    "set_origin": ("s", "codex"),
    "file_state": ("later",),
    "set_file_state": ("later", "later"),
    "erasures": (),
    "copies": (),
    "verify": (),
    "size": (),
}
"""Arguments with which each operation of steps would do something."""
OPTIONS: dict[str, dict[str, Any]] = {"record_usage": {"input": 5, "output": 1}}


@pytest.fixture
def chats(url: str) -> Iterator[Store]:
    """Give a store with a session of an owner."""
    with Store(url, timeout=60) as store:
        store.create_session("s", owner="ann", now=NOW)
        store.append("s", [said("one", id="one"), said("two")], now=NOW)
        yield store


def kept(store: Store) -> list[Any]:
    """Return all that the steps of these tests could change."""
    sessions = store.sessions()
    reads = (store.messages, store.compactions, store.annotations, store.usages, store.redactions)
    return [sessions, *([read(each.id) for read in reads] for each in sessions)]


def refuses(steps: object, told: str) -> None:
    """Assert that each public method raises StoreError, and says why."""
    for name in sorted(methods(type(steps))):
        with pytest.raises(StoreError, match=told):
            getattr(steps, name)(*CALLS[name], **OPTIONS.get(name, {}))


def in_thread(work: Callable[[], object]) -> None:
    """Do work in another thread; raise here what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    if raised:
        raise raised[0]


def test_every_method_of_steps_is_tried() -> None:
    """A new operation has to be given its arguments here."""
    assert methods(Steps) | methods(Owned) == {*CALLS}


@pytest.mark.parametrize("outcome", ["committed", "taken back"])
def test_steps_that_have_ended_do_nothing(chats: Store, outcome: str) -> None:
    """Kept steps, plain, scoped and awaited, refuse each operation, and write nothing."""
    steps: list[Any] = []

    def keep(t: object) -> None:
        steps.append(t)
        if outcome == "taken back":
            raise KeyError("mine")

    async def awaited() -> None:
        opened = AsyncStore(chats)
        for face in (opened, opened.scoped("ann")):
            await _ended(face.atomically(keep), outcome)
        await opened.close()

    for face in (chats, chats.scoped("ann")):
        if outcome == "committed":
            face.atomically(keep)
        else:
            with pytest.raises(KeyError):
                face.atomically(keep)
    asyncio.run(awaited())
    assert [type(each) for each in steps] == [Steps, Owned, Steps, Owned]
    before = kept(chats)
    for each in steps:
        refuses(each, "have ended")
    assert kept(chats) == before


async def _ended(work: Any, outcome: str) -> None:
    if outcome == "committed":
        await work
    else:
        with pytest.raises(KeyError):
            await work


def test_steps_do_nothing_for_another_thread(chats: Store) -> None:
    """While they go on, too; what the thread that they are of does is stored."""

    def work(t: Any) -> None:
        t.append("s", said("mine"))
        in_thread(lambda: refuses(t, "the thread that began them"))
        t.append("s", said("mine, too"))

    for face in (chats, chats.scoped("ann")):
        face.atomically(work)
    assert [each.message["content"] for each in chats.messages("s")][2:] == [
        "mine",
        "mine, too",
    ] * 2
    assert len(chats.sessions()) == 1
    assert chats.verify() == []


def test_ended_steps_stay_out_of_anothers_transaction(chats: Store) -> None:
    """What is kept of one `atomically` gets nothing into the next one, which has its connection."""
    steps: list[Any] = []
    chats.atomically(steps.append)

    def work(t: Steps) -> None:
        t.append("s", said("mine"))
        for each in steps[:1]:
            with pytest.raises(StoreError, match="have ended"):
                each.append("s", said("stray"))

    chats.atomically(work)
    assert [each.message["content"] for each in chats.messages("s")] == ["one", "two", "mine"]


def test_a_thread_that_comes_late_writes_nothing(chats: Store) -> None:
    """A thread that was started by the steps is told so, whenever it comes."""
    begun, told = threading.Event(), []

    def late(t: Steps) -> None:
        begun.wait(60)
        try:
            t.append("s", said("late"))
        except StoreError as error:
            told.append(error)

    def work(t: Steps) -> threading.Thread:
        thread = threading.Thread(target=late, args=(t,))
        thread.start()
        return thread

    thread = chats.atomically(work)
    begun.set()
    thread.join(60)
    assert len(told) == 1
    assert len(chats.messages("s")) == 2


def test_steps_do_nothing_in_a_forked_process(path: Any, fork: Callable[..., Any]) -> None:
    """A child that goes on within the work has its parent's connection, and leaves it alone."""

    def refused(t: Steps) -> str:
        try:
            t.append("s", said("child"))
        except StoreError as error:
            return str(error)
        return "it was stored"

    def work(t: Steps) -> str:
        t.append("s", said("parent"))
        return str(fork(refused, t).result())

    with Store(path) as store:
        store.create_session("s")
        assert "parent process" in store.atomically(work)
        assert [each.message["content"] for each in store.messages("s")] == ["parent"]


STREAMED: dict[str, Callable[[Streaming], object]] = {
    "write": lambda answer: answer.write("more"),
    "update": lambda answer: answer.update({"name": "other"}),
    "take": lambda answer: answer.take({"choices": []}),
    "keep": lambda answer: answer.keep(),
}


def test_every_method_of_a_stream_is_tried() -> None:
    """A new one has to be called here."""
    assert methods(Streaming) == {*STREAMED}


@pytest.mark.parametrize("owner", [None, "ann"])
def test_a_stream_does_nothing_outside_of_its_with_or_its_thread(
    chats: Store, owner: str | None
) -> None:
    """Before it, after it, from another thread; it is entered once, and left once."""
    face = chats.scoped(owner) if owner else chats
    answer = face.streaming("s", {"role": "assistant"}, every_bytes=0)
    for call in STREAMED.values():
        with pytest.raises(StoreError, match="inside of the `with`"):
            call(answer)
    with answer:
        answer.write("said")
        for call in STREAMED.values():
            with pytest.raises(StoreError, match="the thread that began them"):
                in_thread(lambda: call(answer))  # noqa: B023 - called at once
        with pytest.raises(InvalidValue, match="entered once"):
            answer.__enter__()
    before = kept(chats)
    for call in (*STREAMED.values(), lambda it: it.__exit__(None, None)):
        with pytest.raises(StoreError, match="inside of the `with`"):
            call(answer)
    with pytest.raises(InvalidValue, match="entered once"):
        answer.__enter__()
    assert (kept(chats), chats.drafts()) == (before, [])
    assert answer.stored is not None
    assert chats.messages("s")[-1].message == {"role": "assistant", "content": "said"}


def test_a_stream_that_another_thread_leaves_stays_a_draft(chats: Store) -> None:
    """Nothing that came is lost, and no message is made of it."""
    answer = chats.streaming("s", {"role": "assistant"}, every_bytes=2**40, every_ms=2**40)
    answer.__enter__()
    answer.write("said")
    with pytest.raises(StoreError, match="the thread that began them"):
        in_thread(lambda: answer.__exit__(None, None))
    (draft,) = chats.drafts("s")
    assert draft.message["content"] == "said"
    assert len(chats.messages("s")) == 2


def test_an_awaited_stream_does_nothing_outside_of_its_with(chats: Store) -> None:
    """Whatever thread does its work, it ends with its `async with`."""

    async def work() -> None:
        store = AsyncStore(chats)
        answer = store.streaming("s", {"role": "assistant"}, every_bytes=0)
        async with answer:
            await answer.write("said")
        for call in STREAMED.values():
            with pytest.raises(StoreError, match="inside of the `with`"):
                await call(answer)  # type: ignore[arg-type, misc]
        with pytest.raises(StoreError, match="entered once"):
            await answer.__aenter__()
        await store.close()

    asyncio.run(work())
    assert [each.message["content"] for each in chats.messages("s")] == ["one", "two", "said"]
    assert chats.drafts() == []


def test_pages_give_nothing_after_they_were_closed(chats: Store, url: str) -> None:
    """An error, not an end: whoever goes on takes no part of a line for the whole."""
    pages: Any = chats.pages("s", size=1)
    assert [each.seq for each in next(pages)] == [1]
    pages.close()
    for _ in range(2):
        with pytest.raises(StoreError, match="are closed"):
            next(pages)
    scoped: Any = chats.scoped("ann").pages("s")
    scoped.close()
    with pytest.raises(StoreError, match="are closed"):
        next(scoped)
    whole: Any = chats.pages("s")
    assert [len(each) for each in whole] == [2]
    assert next(whole, None) is None

    async def awaited() -> None:
        async with AsyncStore(url) as store:
            pages: Any = store.pages("s", size=1)
            assert [each.seq for each in await anext(pages)] == [1]
            await pages.aclose()
            with pytest.raises(StoreError, match="are closed"):
                await anext(pages)

    asyncio.run(awaited())


def test_pages_give_nothing_after_the_store_was_closed(url: str, chats: Store) -> None:
    """The first page that is asked for says so; awaited likewise."""
    store = Store(url)
    pages = store.pages("s", size=1)
    next(pages)
    store.close()
    with pytest.raises(StoreClosed):
        next(pages)

    async def awaited() -> None:
        opened = AsyncStore(url)
        pages: Any = opened.pages("s", size=1)
        await anext(pages)
        await opened.close()
        with pytest.raises(StoreClosed):
            await anext(pages)

    asyncio.run(awaited())


def test_a_connection_that_was_given_back_begins_nothing(chats: Store) -> None:
    """Whoever kept it is told so at the first statement."""
    with chats.database.reading() as connection:
        get_lease(connection).begin()
    with pytest.raises(StoreError, match="has ended"):
        get_lease(connection).begin()


def test_what_follows_a_commit_is_a_transaction_of_its_own(chats: Store) -> None:
    """SQLAlchemy may commit, as migrations do, and what comes after it is taken back by an error."""
    rename = text("UPDATE sessions SET title = :title WHERE id = 's'")

    def work(connection: Connection) -> None:
        connection.execute(rename, {"title": "first"})
        connection.commit()
        connection.execute(rename, {"title": "second"})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        chats.database.write(work)
    assert chats.session("s").title == "first"
    chats.append("s", said("after"))


@pytest.mark.sqlite_only
def test_no_connection_is_given_back_inside_a_transaction(chats: Store) -> None:
    """It is closed instead, and the bug that left it so is not passed over."""
    leases: list[Lease] = []

    def forget(connection: Connection) -> None:
        leases.append(get_lease(connection))
        leases[0].driver.execute("BEGIN")

    with pytest.raises(AssertionError, match="inside a transaction"):
        chats.database.read(forget)
    assert all(leases[0] not in idle for idle in chats.database._idle.values())
    chats.append("s", said("after"))
    assert len(chats.messages("s")) == 3


def test_nobody_finds_an_unknown_session_by_an_ended_handle(chats: Store) -> None:
    """The end is told before anything that would be read."""
    steps: list[Any] = []
    chats.scoped("bob").atomically(steps.append)
    with pytest.raises(StoreError, match="have ended") as told:
        steps[0].messages("s")
    assert not isinstance(told.value, SessionNotFound)
