"""Summarizers that are awaited: in the loop of the task that compacts, under asyncio and trio."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from store import AsyncStore, Policy, Store, Summary, SummaryRequest

LOOPS = ("asyncio", "trio")
LINE = [
    {"role": "user", "content": "word " * 50},
    {"role": "assistant", "content": "b"},
    {"role": "user", "content": "c"},
]


def compacted(
    loop: str, url: str, summarizer: Any, policy: Policy | None = None, **options: Any
) -> Any:
    """What a compaction of a new session comes to."""

    async def work() -> Any:
        async with AsyncStore(url) as store:
            await store.create_session("s")
            await store.append("s", LINE)
            return await store.compact("s", policy or Policy(), summarizer, **options)

    return anyio.run(work, backend=loop)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("wrap", [lambda made: made, lambda made: lambda request: made(request)])
def test_a_summary_is_awaited_in_the_loop_of_the_task(
    url: str, loop: str, wrap: Callable[[Any], Any]
) -> None:
    """Where clients that belong to the loop can be used, however it is written."""
    threads = []

    async def short(request: SummaryRequest) -> Summary:
        await anyio.lowlevel.checkpoint()
        threads.append(threading.current_thread())
        return Summary("awaited")

    made = compacted(loop, url, wrap(short))
    assert (made.outcome, made.summary) == ("applied", "awaited")
    assert threads == [threading.main_thread()]


@pytest.mark.parametrize("loop", LOOPS)
def test_what_it_raises_is_a_failure_like_any_other(url: str, loop: str) -> None:
    """The record says it."""

    async def broken(request: SummaryRequest) -> str:
        raise RuntimeError(request.max_chars)

    made = compacted(loop, url, broken)
    assert made.outcome == "failed"
    assert "RuntimeError" in made.error


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.slow
def test_one_that_takes_too_long_ends(url: str, loop: str) -> None:
    """For the compaction at its time, and in the loop a little later."""
    ended = anyio.Event()

    async def endless(request: SummaryRequest) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def work() -> Any:
        async with AsyncStore(url) as store:
            await store.create_session("s")
            await store.append("s", LINE)
            made = await store.compact("s", Policy(summary_timeout=0.1), endless)
            await ended.wait()
            return made

    made = anyio.run(work, backend=loop)
    assert made.outcome == "failed"
    assert "no summary within 0.1 s" in made.error


def test_a_plain_store_has_no_loop(url: str) -> None:
    """So what is to be awaited is no summary there."""

    async def short(request: SummaryRequest) -> str:
        return "never"

    def later(request: SummaryRequest) -> Awaitable[str]:
        return short(request)

    with Store(url) as store:
        store.create_session("s")
        store.append("s", LINE)
        made = store.compact("s", Policy(), later)
        assert made.outcome == "failed"
        assert "returned coroutine" in str(made.error)
