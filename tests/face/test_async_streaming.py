"""Answers that are streamed by tasks: cancelled at any moment, in every loop, in generators."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest

from store import AsyncStore, Conflict, Store
from store.errors import InvalidValue

ANSWER = {"role": "assistant"}
NEVER = {"every_bytes": 2**40, "every_ms": 2**40}


@pytest.fixture
def asked(url: str) -> str:
    """The URL of a store with a session in which something was asked."""
    with Store(url, durability="normal") as store:
        store.create_session("s", owner="ann")
        store.append("s", {"role": "user", "content": "why?"})
    return url


@pytest.fixture(params=["asyncio", "trio"])
def loop(request: pytest.FixtureRequest) -> str:
    """Give each of the loops."""
    return str(request.param)


def run(loop: str, work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine in a loop of its own."""

    async def within() -> Any:
        with anyio.fail_after(60):
            return await work()

    return anyio.run(within, backend=loop)


def told(url: str) -> tuple[list[Any], list[Any]]:
    """What the messages of the session say, and what its drafts do."""
    with Store(url) as store:
        assert store.verify() == []
        said = [each.message.get("content") for each in store.messages("s")]
        return said, [each.message.get("content") for each in store.drafts("s")]


def test_an_answer_is_a_message_in_the_end(asked: str, loop: str) -> None:
    """The same awaited, scoped too; and what breaks off is a draft."""

    async def work() -> None:
        async with AsyncStore(asked) as store:
            async with store.streaming("s", ANSWER, every_bytes=3) as answer:
                for letter in "abcd":
                    await answer.write(letter)
                await answer.update({"x": 1})
                (draft,) = await store.drafts("s")
                assert draft.message["content"] == "abc"
                assert (answer.draft, answer.message["x"]) == (draft.draft, 1)
                with pytest.raises(InvalidValue):
                    await answer.update({"content": "e"})
            assert answer.stored == (await store.messages("s"))[-1]
            with pytest.raises(Conflict):
                await conflicting(store)
            async with store.scoped("ann").streaming("s", ANSWER) as answer:
                await answer.write("mine")
            (draft,) = await store.drafts()
            await store.discard_draft(draft)

    async def conflicting(store: AsyncStore) -> None:
        async with store.streaming("s", ANSWER, **NEVER) as answer:
            await answer.write("x")
            await store.append("s", {"role": "user", "content": "and?"})
            assert await store.drafts("s") != []

    run(loop, work)
    assert told(asked) == (["why?", "abcd", "and?", "mine"], [])


def test_an_answer_grows_inside_of_its_stream(asked: str, loop: str) -> None:
    """Neither before nor after it."""

    async def work() -> None:
        async with AsyncStore(asked) as store:
            answer = store.streaming("s", ANSWER)
            with pytest.raises(InvalidValue, match="inside of the `with`"):
                await answer.write("x")
            async with answer:
                await answer.write("yes")
            with pytest.raises(InvalidValue, match="inside of the `with`"):
                await answer.write(" and no")

    run(loop, work)
    assert told(asked)[0][-1] == "yes"


def test_a_cancelled_stream_is_a_draft(asked: str, loop: str) -> None:
    """With all that was written, however little was kept before."""

    async def work() -> None:
        async with AsyncStore(asked) as store:
            with anyio.move_on_after(0.2):
                async with store.streaming("s", ANSWER, **NEVER) as answer:
                    await answer.write("half")
                    await anyio.sleep(60)

    run(loop, work)
    assert told(asked) == (["why?"], ["half"])


@pytest.mark.parametrize("points", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_a_stream_cancelled_anywhere(asked: str, loop: str, points: int) -> None:
    """While it begins, writes, keeps or ends: what was written is in the draft or in the message,
    and in one of them only.
    """
    chance = random.Random(5)
    seen: list[str] = []

    async def stream(store: AsyncStore, number: int) -> None:
        async with store.streaming("s", {**ANSWER, "id": f"m{number}"}, every_bytes=2) as answer:
            for letter in "abcdefghij":
                await answer.write(letter)
                seen.append(f"m{number}{letter}")

    async def work() -> None:
        async with AsyncStore(asked) as store:
            for number in range(points):
                with anyio.move_on_after(chance.random() * 0.02):
                    await stream(store, number)

    run(loop, work)
    with Store(asked) as store:
        whole = {each.message["id"] for each in store.messages("s", 2)}
        assert {each.message["content"] for each in store.messages("s", 2)} <= {"abcdefghij"}
        drafts = {each.message["id"]: each.message.get("content", "") for each in store.drafts()}
        assert whole.isdisjoint(drafts)
        assert all("abcdefghij".startswith(each) for each in drafts.values())
        for each in seen:
            assert each[:-1] in whole or each[-1] in drafts[each[:-1]]
        assert store.verify() == []


def test_a_generator_that_nobody_goes_on_with(asked: str) -> None:
    """As a server has it whose reader is gone: closed, or left to the loop."""

    async def answered(store: AsyncStore) -> AsyncIterator[str]:
        async with store.streaming("s", ANSWER, **NEVER) as answer:
            for letter in "abcdef":
                await answer.write(letter)
                yield letter

    async def work() -> None:
        async with AsyncStore(asked) as store:
            generator = answered(store)
            await anext(generator)
            await generator.aclose()  # type: ignore[attr-defined]
            generator = answered(store)
            await anext(generator)
            await anext(generator)
            del generator
            while "'ab'" not in str(await store.drafts("s")):  # noqa: ASYNC110 - the loop does it
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(work(), 60))
    said, drafts = told(asked)
    assert (said, sorted(drafts)) == (["why?"], ["a", "ab"])
