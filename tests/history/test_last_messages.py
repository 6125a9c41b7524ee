"""The newest messages of a line, counted as messages: whatever positions they take."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from conftest import Run
from hypothesis import given
from hypothesis import strategies as st

from store import AsyncStore, InvalidValue, PositionOutOfRange, Store
from store.history.raw_messages import MAX_NEWEST_ROWS

Message = dict[str, Any]


def result(call_id: str) -> Message:
    """Return the block of a result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": f"of {call_id}"}


def said(results: int) -> Message:
    """Return a message that takes a position for each of its results, and one for its text."""
    blocks = [result(f"c{number}") for number in range(results)]
    return {"role": "user", "content": [*blocks, {"type": "text", "text": f"after {results}"}]}


@given(st.lists(st.integers(0, 4), max_size=12), st.data())
def test_the_newest_messages_are_the_end_of_all(store: Store, sizes: list[int], data: Any) -> None:
    """Of any line, as of any position, also one in the middle of a message; on forks, too."""
    session = store.create_session().id
    for size in sizes:
        store.append(session, said(size), format="anthropic")
    head = store.session(session).head
    fork = store.fork(session, data.draw(st.integers(0, head))).id
    store.append(fork, [said(size) for size in sizes[:3]], format="anthropic")
    for line in (session, fork):
        at = data.draw(st.none() | st.integers(0, store.session(line).head))
        whole = store.messages(line, at=at)
        for count in range(len(whole) + 2):
            assert store.messages(line, at=at, last=count) == whole[max(0, len(whole) - count) :]


def test_positions_and_messages_are_counted_apart(store: Store) -> None:
    """A line whose last message holds two results and a text."""
    session = store.create_session().id
    store.append(session, [said(0), said(2)], format="anthropic")
    assert [each.seq for each in store.messages(session, -2)] == [4]
    assert [each.seq for each in store.messages(session, last=2)] == [1, 4]


def test_many_messages_of_many_positions(store: Store) -> None:
    """More than are kept in memory; again they are the same."""
    session = store.create_session().id
    store.append(session, [said(9)] * 3 * MAX_NEWEST_ROWS, format="anthropic")
    whole = store.messages(session)
    for count in (
        1,
        MAX_NEWEST_ROWS,
        2 * MAX_NEWEST_ROWS,
        2 * MAX_NEWEST_ROWS,
        3 * MAX_NEWEST_ROWS,
        10**30,
    ):
        assert store.messages(session, last=count) == whole[-count:]


@pytest.mark.parametrize(
    "options",
    [
        *({"last": wrong} for wrong in (-1, True, 1.0, "2")),
        {"last": 1, "start": 2},
        {"last": 1, "start": -1},
        {"last": 1, "stop": 1},
    ],
)
def test_what_cannot_be_counted_is_refused(store: Store, options: dict[str, Any]) -> None:
    """A number of messages goes with no range of positions."""
    session = store.create_session().id
    with pytest.raises(InvalidValue, match="last"):
        store.messages(session, **options)
    with pytest.raises(PositionOutOfRange):
        store.messages(session, last=1, at=7)


def test_every_face_counts_messages(url: str) -> None:
    """Of an owner, in a step, awaited, and of a line that the session has left."""

    async def awaited() -> list[int]:
        async with AsyncStore(url) as store:
            found = await store.messages("s", last=2)
            of_owner = await store.scoped("ada").messages("s", last=2)
            assert found == of_owner
            return [each.seq for each in found]

    with Store(url) as store:
        store.create_session("s", owner="ada")
        store.append("s", [said(0), said(1), said(2)], format="anthropic")
        assert [each.seq for each in store.scoped("ada").messages("s", last=2)] == [3, 6]
        newest = store.atomically(lambda steps: steps.messages("s", last=1))
        assert [each.seq for each in newest] == [6]
        store.rewind("s", to=1)
        store.append("s", said(0), format="anthropic")
        left = min(each.branch for each in store.branches("s"))
        assert [each.seq for each in store.messages("s", branch=left, last=2)] == [3, 6]
    assert asyncio.run(awaited()) == [1, 2]


def test_the_command_shows_the_newest_messages(run: Run) -> None:
    """By --last, which goes with no range."""
    with Store("convostore.db") as store:
        store.create_session("s")
        store.append("s", [said(0), said(2)], format="anthropic")
    shown = json.loads(run("show", "s", "--last", "1", "--json").out)
    assert [each["seq"] for each in shown] == [4]
    assert "start" in run("show", "s", "--last", "1", "--from", "2").err
