"""Waiting for a server: it tells of changes, and is hardly asked."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import sqlalchemy
from proxies import CountingProxy, open_behind

from store import AsyncStore, Store
from store.database import Database, listener

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(
    not os.environ.get("CONVOSTORE_TEST_URL"), reason="CONVOSTORE_TEST_URL names no server"
)
SAID = {"role": "user", "content": "Hi"}
SOON = 2.0
"""Seconds within which a change is told on a busy machine; without it a look takes 5."""


@pytest.fixture
def chat(url: str) -> Iterator[Store]:
    """A store with a session."""
    with Store(url) as store:
        store.create_session("s")
        yield store


def count_listeners(url: str) -> int:
    """Return how many connections to the database of a store listen."""
    at = sqlalchemy.make_url(url).set(drivername="postgresql")
    with psycopg.connect(at.render_as_string(hide_password=False)) as connection:
        query = (
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND query ~ 'advisory_lock_shared|LISTEN' AND pid <> pg_backend_pid()"
        )
        row = connection.execute(query).fetchone()
        return int(row[0]) if row else 0


def await_truth(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something is so."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def hears(store: Store) -> bool:
    """Tell whether the store hears of changes of its session."""
    heard, tree_id = store.database.listener, store.database.cache.trees.get("s")
    assert heard
    return tree_id is not None and bool(heard._held) and heard.hears(tree_id)


@contextmanager
def waiting(store: Store, **options: Any) -> Iterator[list[Any]]:
    """Wait for the session in a thread, from when changes are heard; give what came and when."""
    found: list[Any] = []
    revision = store.session("s").revision

    def wait() -> None:
        found.append(store.wait("s", revision, 60, **options))
        found.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    await_truth(lambda: hears(store))
    time.sleep(0.05)  # the look that follows
    yield found
    thread.join()


def append_once(url: str) -> float:
    """Append in another process; return when it was done."""
    with Store(url) as store:
        store.append("s", SAID)
        return time.monotonic()


def test_a_change_by_another_process_is_told(
    chat: Store, url: str, fork: Callable[..., Any]
) -> None:
    """Long before the next look; and closing the store frees the connection."""
    with waiting(chat) as found:
        done = fork(append_once, url).result()
    assert found[0].head == 1
    assert found[1] - done < SOON
    assert count_listeners(url) == 1
    chat.close()
    await_truth(lambda: count_listeners(url) == 0)


def test_a_task_is_told(chat: Store, url: str) -> None:
    """And so is one that follows an answer, of each text before the next second."""

    async def follow(store: AsyncStore, draft: str) -> list[tuple[str, float]]:
        return [(text, time.monotonic()) async for text in store.follow(draft)]

    async def main() -> tuple[float, list[tuple[str, float]], list[float]]:
        async with AsyncStore(url) as store:
            revision = (await store.session("s")).revision
            task = asyncio.ensure_future(store.wait("s", revision, 60))
            opened = await store.call(lambda each: each)
            await asyncio.to_thread(await_truth, lambda: hears(opened))
            await asyncio.sleep(0.05)
            begun = time.monotonic()
            await asyncio.to_thread(chat.append, "s", SAID)
            await task
            took, written = time.monotonic() - begun, []
            with chat.streaming("s", {"role": "assistant"}, every_bytes=0) as answer:
                following = asyncio.ensure_future(follow(store, answer.draft))
                for text in ("a", "b"):
                    await asyncio.sleep(0.1)
                    answer.write(text)
                    written.append(time.monotonic())
            return took, await following, written

    took, texts, written = asyncio.run(main())
    assert took < SOON
    assert "".join(text for text, _ in texts) == "ab"
    assert all(came - at < 1.0 for (_, came), at in zip(texts, written, strict=True))


def test_a_draft_is_told(chat: Store, url: str) -> None:
    """When it begins, with `drafts`."""
    with Store(url) as other, waiting(chat, drafts=True) as found:
        begun = time.monotonic()
        with other.streaming("s", {"role": "assistant"}) as answer:
            answer.write("a")
            await_truth(lambda: len(found) == 2)
    assert found[1] - begun < SOON


@pytest.mark.slow
@pytest.mark.parametrize("drafts", [False, True])
def test_an_idle_second_takes_few_round_trips(url: str, drafts: bool) -> None:
    """Three at most, on all connections together."""
    with open_behind(CountingProxy, url) as (proxy, store):
        store.create_session("s")
        with waiting(store, drafts=drafts):
            time.sleep(0.5)
            begun, at = proxy.count, time.monotonic()
            time.sleep(6)
            seconds = math.ceil(time.monotonic() - at)  # the last one has begun
            assert proxy.count - begun <= 3 * seconds
            store.append("s", SAID)


@pytest.mark.slow
def test_a_lost_connection_heals(chat: Store, url: str) -> None:
    """A change is seen meanwhile, and told again afterwards."""
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE '%advisory_lock_shared%'"
        " AND pid <> pg_backend_pid()"
    )
    at = sqlalchemy.make_url(url).set(drivername="postgresql")
    with (
        psycopg.connect(at.render_as_string(hide_password=False), autocommit=True) as other,
        waiting(chat),
    ):
        other.execute(ended)
        await_truth(lambda: not hears(chat))
        await_truth(lambda: hears(chat))
        other.execute(ended)
        await_truth(lambda: not hears(chat))
        begun = time.monotonic()
        chat.append("s", SAID)
    assert time.monotonic() - begun < SOON
    with waiting(chat) as found:
        begun = time.monotonic()
        chat.append("s", SAID)
    assert found[1] - begun < SOON


def wait_in_child(store: Store) -> int:
    """Wait for a change in a forked process, and make it."""
    with waiting(store) as found:
        store.append("s", SAID)
    assert found[0]
    store.close()
    return int(found[0].head)


def test_a_forked_process_has_a_connection_of_its_own(
    chat: Store, url: str, fork: Callable[..., Any]
) -> None:
    """And leaves that of its parent alone."""
    with waiting(chat) as found:
        child = fork(wait_in_child, chat)
        assert child.result() == 1
    assert found[0].head == 1
    with waiting(chat):
        assert count_listeners(url) == 1
        chat.append("s", SAID)


def test_nobody_listens_where_a_server_tells_nothing(
    chat: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a pooler, or on a standby, it is asked often."""
    with closing(Database(url, pooler=True)) as pooled:
        assert pooled.listener is None
    monkeypatch.setattr(listener, "_TELLS_NOTHING", "SELECT true")
    timer = threading.Timer(0.1, chat.append, ("s", SAID))
    timer.start()
    begun = time.monotonic()
    assert chat.wait("s", chat.session("s").revision, 60)
    assert time.monotonic() - begun < SOON
    assert count_listeners(url) == 0
    timer.join()


def test_a_connection_ends_when_nobody_waits(
    chat: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while, and is made anew for whoever waits next."""
    monkeypatch.setattr(listener, "LINGER_SECONDS", 0.05)
    for _ in range(2):
        with waiting(chat) as found:
            chat.append("s", SAID)
        assert found[0]
        await_truth(lambda: count_listeners(url) == 0)
