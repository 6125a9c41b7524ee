"""Answers under way: who writes them, who follows them, and what becomes of them when one dies."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from store import AsyncStore, Conflict, Store
from store.database import heartbeat
from store.errors import DraftBusy, DraftEnded, DraftNotFound, InvalidValue

ANSWER = {"role": "assistant"}
AT_ONCE = {"every_bytes": 0}


@pytest.fixture
def chat(url: str) -> Iterator[Store]:
    """A store with a session in which something was asked."""
    with Store(url, durability="normal") as store:
        store.create_session("s", owner="ann")
        store.append("s", {"role": "user", "content": "why?"})
        yield store


def stream_slowly(url: str, texts: list[str], pause: float, quiet: float) -> str:
    """Stream texts with a pause after each, and say nothing for a while; return the whole."""
    with (
        Store(url, durability="normal") as store,
        store.streaming("s", ANSWER, every_bytes=0) as answer,
    ):
        for text in texts:
            answer.write(text)
            time.sleep(pause)
        time.sleep(quiet)
        answer.write(".")
    return str(answer.message["content"])


def await_draft(store: Store, says: str = "") -> Any:
    """Wait for the draft of the session, with some text, and return it."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        for draft in store.drafts("s"):
            if draft.message.get("content", "").startswith(says):
                return draft
        time.sleep(0.01)
    raise AssertionError("no draft came")


def await_death(store: Store) -> float:
    """Wait until the draft of the session is not live; return how many seconds it took."""
    began = time.monotonic()
    while store.drafts("s")[0].live:
        assert time.monotonic() - began < 30
        time.sleep(0.01)
    return time.monotonic() - began


# --- live, or not ---------------------------------------------------------------------------------


def test_a_draft_is_live_as_long_as_it_is_written(chat: Store, url: str) -> None:
    """For every reader; what broke off is not, whatever else the process streams."""
    with chat.streaming("s", ANSWER), Store(url) as other:
        with suppress(ZeroDivisionError), chat.streaming("s", ANSWER, **AT_ONCE) as answer:
            answer.write("half")
            assert [each.live for each in other.drafts("s")] == [True, True]
            raise ZeroDivisionError
        for store in (chat, other, chat.scoped("ann")):
            by_text = {each.message.get("content"): each.live for each in store.drafts("s")}
            assert by_text == {None: True, "half": False}
    assert [each.live for each in chat.drafts("s")] == [False]


@pytest.mark.slow
def test_a_quiet_stream_stays_live(chat: Store, url: str, fork: Callable[..., Any]) -> None:
    """However long no text comes, and however busy other readers are."""
    child = fork(stream_slowly, url, ["a"], 0, heartbeat.LEASE_SECONDS + 3)
    await_draft(chat, "a")
    ends = time.monotonic() + heartbeat.LEASE_SECONDS + 2
    while time.monotonic() < ends:
        assert [each.live for each in chat.drafts("s")] == [True]
        time.sleep(0.2)
    assert child.result() == "a."
    assert chat.drafts("s") == []


def test_a_killed_process_leaves_a_dead_draft(
    chat: Store, url: str, fork: Callable[..., Any]
) -> None:
    """After five seconds at most, with what was saved; anybody may finish it then."""
    child = fork(stream_slowly, url, ["half"], 0, 60)
    draft = await_draft(chat, "half")
    assert draft.live
    for refused in (chat.finish_draft, chat.discard_draft):
        with pytest.raises(DraftBusy, match=str(child.pid)):
            refused(draft)
    child.end(signal.SIGKILL)
    assert await_death(chat) <= 5
    assert chat.finish_draft(draft).message["content"] == "half"
    assert chat.verify() == []


@pytest.mark.slow
def test_a_stopped_process_takes_its_draft_again(
    chat: Store, url: str, fork: Callable[..., Any]
) -> None:
    """If nobody has done anything with it; it is not live while the process stands still."""
    child = fork(stream_slowly, url, ["a"] * 20, 0.1, 0.5)
    await_draft(chat, "a")
    child.send(signal.SIGSTOP)
    assert await_death(chat) <= heartbeat.LEASE_SECONDS + 2
    time.sleep(max(0.0, 10 - heartbeat.LEASE_SECONDS))
    child.send(signal.SIGCONT)
    ends = time.monotonic() + 30
    while not chat.drafts("s")[0].live:
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert child.result() == "a" * 20 + "."
    assert chat.messages("s")[-1].message["content"] == "a" * 20 + "."


def stream_until_refused(url: str) -> str:
    """Stream until a save fails; return the error's name and what the message held."""
    answer = None
    with Store(url, durability="normal") as store:
        try:
            with store.streaming("s", ANSWER, every_bytes=0) as answer:
                while True:
                    answer.write("a")
                    time.sleep(0.05)
        except Conflict as error:
            assert answer is not None
            assert answer.message["content"].startswith("aa")
            return type(error).__name__


@pytest.mark.slow
def test_a_stopped_process_learns_of_the_end(
    chat: Store, url: str, fork: Callable[..., Any]
) -> None:
    """Somebody kept the half answer meanwhile: nothing is stored twice."""
    child = fork(stream_until_refused, url)
    await_draft(chat, "aa")
    child.send(signal.SIGSTOP)
    await_death(chat)
    (draft,) = chat.drafts("s")
    chat.finish_draft(draft)
    child.send(signal.SIGCONT)
    assert child.result() == "DraftEnded"
    assert [each.message["content"] for each in chat.messages("s")] == [
        "why?",
        draft.message["content"],
    ]
    assert chat.drafts() == []


@pytest.mark.parametrize("end", ["finish_draft", "discard_draft"])
def test_a_live_draft_is_ended_by_force(chat: Store, end: str) -> None:
    """Its stream raises Conflict, and has all of the text; the draft is as good as not found."""
    answer = chat.streaming("s", ANSWER)

    def stream() -> None:
        with answer:
            answer.write("half")
            answer.keep()
            with pytest.raises(DraftBusy, match="force"):
                getattr(chat.scoped("ann"), end)(answer.draft)
            getattr(chat, end)(answer.draft, force=True)
            answer.write(" more")

    with pytest.raises(DraftEnded) as raised:
        stream()
    assert isinstance(raised.value, Conflict)
    assert isinstance(raised.value, DraftNotFound)
    assert answer.message["content"] == "half more"
    assert chat.drafts() == []


def test_a_forked_child_does_not_keep_it_alive(
    chat: Store, url: str, fork: Callable[..., Any]
) -> None:
    """The child has the files of its parent, and none of its answers."""

    def stream_and_fork() -> None:
        with Store(url, durability="normal") as store:
            answer = store.streaming("s", ANSWER)
            answer.__enter__().keep()
            if os.fork() == 0:
                time.sleep(10)
                os._exit(0)
            time.sleep(60)

    child = fork(stream_and_fork)
    assert await_draft(chat).live
    child.end(signal.SIGKILL)
    assert await_death(chat) <= 5


def test_without_locks_a_lease_is_renewed(
    chat: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a server; it ends some seconds after the last beat, by the clock of the database."""
    monkeypatch.setattr(heartbeat, "lock_range", lambda *_: False)
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.05)
    with chat.streaming("s", ANSWER) as answer:
        with chat.database.reading() as connection:
            ask = "SELECT live_until FROM drafts"
            (before,) = connection.exec_driver_sql(ask).fetchone() or (0,)
        assert [each.live for each in chat.drafts("s")] == [True]
        ends, until = time.monotonic() + 30, before
        while until <= before and time.monotonic() < ends:
            time.sleep(0.05)
            with chat.database.reading() as connection:
                (until,) = connection.exec_driver_sql(ask).fetchone() or (0,)
        assert until > before
        with chat.database.writing() as connection:
            connection.exec_driver_sql("UPDATE drafts SET live_until = 1")
        answer.write("back")
        answer.keep()
        assert [each.live for each in chat.drafts("s")] == [True]
    assert chat.drafts() == []


@pytest.mark.slow
def test_the_heart_holds_nothing(url: str) -> None:
    """A stream that nobody refers to dies with its store, and the thread ends with the last."""
    store = Store(url)
    store.create_session("s")
    answer = store.streaming("s", ANSWER)
    answer.__enter__()
    thread = heartbeat._HEART._thread
    assert thread is not None
    with Store(url) as other:
        assert [each.live for each in other.drafts()] == [True]
        known = weakref.ref(store)
        answer.__exit__(None, ZeroDivisionError(), None)
        del answer, store
        gc.collect()
        assert known() is None
        assert [each.live for each in other.drafts()] == [False]
    thread.join(30)
    assert not thread.is_alive()


# --- alone ----------------------------------------------------------------------------------------


def test_one_answer_at_a_time(chat: Store, url: str) -> None:
    """Where that is asked for: a second one is refused, and so is a question meanwhile."""
    chat.create_session("other")
    more = {"role": "user", "content": "and?"}
    with Store(url) as other, chat.streaming("s", ANSWER, alone=True) as answer:
        for refused in (
            lambda: other.streaming("s", ANSWER, alone=True).__enter__(),
            lambda: other.append("s", more, alone=True),
            lambda: other.scoped("ann").append("s", more, alone=True),
        ):
            with pytest.raises(DraftBusy) as raised:
                refused()
            assert isinstance(raised.value, Conflict)
            assert raised.value.draft == answer.draft
        other.append("other", more, alone=True)
        with other.streaming("other", ANSWER, alone=True) as beside:
            beside.write("yes")
        answer.write("because")
    chat.append("s", more, alone=True)
    assert [each.message["content"] for each in chat.messages("s")] == ["why?", "because", "and?"]
    assert chat.drafts() == []


def test_what_broke_off_is_no_answer_under_way(chat: Store) -> None:
    """Its draft stays, and the next answer begins."""
    with suppress(ZeroDivisionError), chat.streaming("s", ANSWER, alone=True):
        raise ZeroDivisionError
    with chat.streaming("s", ANSWER, alone=True) as answer:
        answer.write("yes")
    assert chat.messages("s")[-1].message["content"] == "yes"


def stream_alone(url: str, go: float) -> bool:
    """Try to begin an answer at a moment; tell whether it was let."""
    with Store(url, durability="normal") as store:
        time.sleep(max(0.0, go - time.time()))
        try:
            with store.streaming("s", ANSWER, alone=True):
                time.sleep(1)
                raise ZeroDivisionError
        except ZeroDivisionError:
            return True
        except DraftBusy:
            return False


@pytest.mark.slow
def test_of_many_at_once_one_begins(chat: Store, url: str, fork: Callable[..., Any]) -> None:
    """In as many processes."""
    go = time.time() + 0.3
    children = [fork(stream_alone, url, go) for _ in range(5)]
    assert sum(each.result() for each in children) == 1


# --- followed -------------------------------------------------------------------------------------

TEXTS = ["So", " it", " is", " 因为", " 🎈"]


def test_an_answer_is_followed_in_another_process(
    chat: Store, url: str, fork: Callable[..., Any]
) -> None:
    """From the beginning to the last text, which is stored with the message only."""
    child = fork(stream_slowly, url, TEXTS, 0.05, 0)
    draft = await_draft(chat, "So")
    texts = list(chat.follow(draft))
    assert "".join(texts) == "".join(TEXTS) + "."
    assert len(texts) > 2
    child.result()
    with pytest.raises(DraftNotFound):
        chat.follow(draft.draft)


def test_two_windows_see_the_same(chat: Store, url: str) -> None:
    """One by its owner's face, one awaited; whatever was there comes first."""

    def follow(draft: str, seen: list[str]) -> None:
        with Store(url) as store:
            seen.extend(store.scoped("ann").follow(draft))

    async def follow_awaited(draft: str, seen: list[str]) -> None:
        async with AsyncStore(url) as store:
            seen.extend([text async for text in store.scoped("ann").follow(draft)])

    one: list[str] = []
    other: list[str] = []
    begun = {**ANSWER, "content": "Well. ", "reasoning": "hm"}
    with chat.streaming("s", begun, every_ms=20) as answer:
        answer.write("So")
        answer.keep()
        windows = [
            threading.Thread(target=follow, args=(answer.draft, one)),
            threading.Thread(target=lambda: asyncio.run(follow_awaited(answer.draft, other))),
        ]
        for each in windows:
            each.start()
        for text in TEXTS:
            time.sleep(0.03)
            answer.write(text)
            answer.write("…", key="reasoning")
    for each in windows:
        each.join(30)
    assert "".join(one) == "".join(other) == "Well. So" + "".join(TEXTS)


def test_a_broken_answer_is_followed_to_its_end(chat: Store) -> None:
    """Of any key; afterwards the draft is there, and not live."""
    with suppress(ZeroDivisionError), chat.streaming("s", ANSWER) as answer:
        answer.write("half")
        answer.write("hm", key="reasoning")
        raise ZeroDivisionError
    assert list(chat.follow(answer.draft)) == ["half"]
    assert list(chat.follow(answer.draft, "reasoning")) == ["hm"]
    assert list(chat.follow(answer.draft, "none")) == []
    with pytest.raises(InvalidValue, match="key"):
        chat.follow(answer.draft, 5)  # type: ignore[arg-type]


def test_following_ends_with_the_process(chat: Store, url: str, fork: Callable[..., Any]) -> None:
    """Killed in the middle of an answer: who follows it gets what was saved, and an end."""
    child = fork(stream_slowly, url, TEXTS, 0, 60)
    draft = await_draft(chat, "".join(TEXTS))
    following = chat.follow(draft)
    assert next(following) == "So"
    child.end(signal.SIGKILL)
    assert "So" + "".join(following) == "".join(TEXTS)
    assert not chat.drafts("s")[0].live


def test_others_are_not_followed(chat: Store) -> None:
    """An owner sees only what is theirs."""
    with chat.streaming("s", ANSWER) as answer, pytest.raises(DraftNotFound):
        chat.scoped("bob").follow(answer.draft)


def test_a_wait_ends_with_each_step_of_a_draft(chat: Store, url: str) -> None:
    """It begins, grows, breaks off; without being asked for, none of it ends a wait."""
    revision = chat.session("s").revision
    steps = ExitStack()
    answers: list[Any] = []

    def begin() -> None:
        answers.append(steps.enter_context(other.streaming("s", ANSWER)))

    def grow() -> None:
        answers[0].write("more")
        answers[0].keep()

    def break_off() -> None:
        with suppress(ZeroDivisionError), steps:
            raise ZeroDivisionError

    with Store(url) as other:
        for step in (begin, grow, break_off):
            threading.Timer(0.15, step).start()
            found = chat.wait("s", revision, 30, drafts=True)
            assert found is not None
            assert found.revision == revision
        assert chat.wait("s", revision, 0) is None


@pytest.mark.slow
def test_a_wait_ends_when_a_draft_dies(chat: Store, url: str, fork: Callable[..., Any]) -> None:
    """Which is written nowhere; awaited, too."""
    child = fork(stream_slowly, url, ["half"], 0, 60)
    await_draft(chat, "half")
    revision = chat.session("s").revision

    async def wait() -> Any:
        async with AsyncStore(url) as store:
            waiting = asyncio.ensure_future(store.wait("s", revision, 30, drafts=True))
            await asyncio.sleep(0.2)
            child.end(signal.SIGKILL)
            return await waiting

    assert asyncio.run(wait()) is not None
    assert not chat.drafts("s")[0].live
