"""Waiting until a session has changed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from store import AsyncStore, Store
from store.errors import InvalidValue, SessionNotFound


@pytest.fixture
def chat(url: str) -> Any:
    """Return a store with a session `s` and another one."""
    with Store(url) as store:
        store.create_session("s")
        store.create_session("other")
        yield store


def said(content: object) -> dict[str, object]:
    """Return a user's message."""
    return {"role": "user", "content": content}


def test_what_has_changed_already_comes_at_once(chat: Store) -> None:
    """No time passes, and no revision at all is another one than any."""
    began = chat.session("s")
    chat.append("s", said(1))
    assert chat.wait("s", began.revision, 0) == chat.session("s")
    assert chat.wait("s", None, 0) == chat.session("s")


@pytest.mark.parametrize("timeout", [0, 0.15])
def test_nothing_comes_of_nothing(chat: Store, timeout: float) -> None:
    """After the time there is none, whatever happened to other sessions."""
    revision = chat.session("s").revision
    timer = threading.Timer(timeout / 2, chat.append, ("other", said(1)))
    timer.start()
    began = time.monotonic()
    assert chat.wait("s", revision, timeout) is None
    assert time.monotonic() - began >= timeout
    timer.join()


CHANGES: dict[str, Callable[[Store], object]] = {
    "append": lambda store: store.append("s", said(1)),
    "title": lambda store: store.rename_session("s", "t"),
    "metadata": lambda store: store.set_metadata("s", {"a": 1}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_change_ends_the_wait(chat: Store, url: str, change: str, elsewhere: bool) -> None:
    """By this store, on the very connection that looks, or by another one."""
    revision = chat.session("s").revision
    changed: list[object] = []

    def later() -> None:
        time.sleep(0.1)
        if elsewhere:
            with Store(url) as other:
                changed.append(CHANGES[change](other))
        else:
            changed.append(CHANGES[change](chat))

    thread = threading.Thread(target=later)
    thread.start()
    found = chat.wait("s", revision, 30)
    thread.join()
    assert found is not None
    assert found == chat.session("s")
    assert found.revision != revision


def append_slowly(url: str, times: int) -> None:
    """Append message after message."""
    with Store(url) as store:
        for number in range(times):
            store.append("s", said(number))
            time.sleep(0.002)


def test_no_change_is_missed(chat: Store, url: str, fork: Callable[..., Any]) -> None:
    """Who waits for one change after the other sees the last one, by another process."""
    child = fork(append_slowly, url, 100)
    session = chat.session("s")
    while session.head < 100:
        changed = chat.wait("s", session.revision, 30)
        assert changed is not None
        assert changed.head > session.head
        session = changed
    child.result()
    assert chat.wait("s", session.revision, 0.1) is None


def test_a_session_that_goes_ends_the_wait(chat: Store) -> None:
    """With the error of a session that is not there."""
    revision = chat.session("s").revision
    timer = threading.Timer(0.1, chat.delete_session, ("s",))
    timer.start()
    with pytest.raises(SessionNotFound):
        chat.wait("s", revision, 30)
    timer.join()
    with pytest.raises(SessionNotFound):
        chat.wait("s", revision, 0)


@pytest.mark.parametrize("wrong", [-1, None, "1", float("nan")])
def test_a_time_is_in_seconds(chat: Store, wrong: Any) -> None:
    """What is none is refused, and so is what is no revision."""
    with pytest.raises(InvalidValue, match="seconds"):
        chat.wait("s", "x", wrong)
    with pytest.raises(InvalidValue, match="revision"):
        chat.wait("s", 5, 1)  # type: ignore[arg-type]


def test_many_tasks_wait_in_no_thread(chat: Store, url: str) -> None:
    """Forty wait with two threads; all are told, and a cancelled one ends at once."""
    revision = chat.session("s").revision

    async def main() -> list[Any]:
        async with AsyncStore(url, threads=2) as store:
            waiting = [asyncio.ensure_future(store.wait("s", revision, 60)) for _ in range(40)]
            stopped = asyncio.ensure_future(store.wait("s", revision, 60))
            await asyncio.sleep(0.1)
            stopped.cancel()
            began = time.monotonic()
            await asyncio.wait([stopped])
            assert time.monotonic() - began < 30
            await store.append("s", said(1))
            return await asyncio.gather(*waiting)

    assert {each.head for each in asyncio.run(main())} == {1}


def test_a_file_that_nobody_writes_to_is_not_read(chat: Store) -> None:
    """Only its version is looked at: the session itself is read once."""
    if chat.database.path is None:
        pytest.skip("a server has no version of all that it holds")
    revision, asked = chat.session("s").revision, []
    session = Store.session

    def counted(self: Store, session_id: str) -> Any:
        asked.append(session_id)
        return session(self, session_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "session", counted)
        assert chat.wait("s", revision, 0.3) is None
    assert asked == ["s"]
