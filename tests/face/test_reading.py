"""Several reads of one state."""

from __future__ import annotations

import asyncio

import pytest

from store import AsyncStore, InvalidValue, SessionNotFound, Snapshot, Store, StoreError

SAID = {"role": "user", "content": "Hi"}


def test_all_reads_see_one_state(store: Store) -> None:
    """What is written between two of them is in neither, and nobody waits."""
    store.create_session("s")
    store.append("s", SAID)

    def work(t: Snapshot) -> tuple[int, int]:
        before = t.session("s").head
        store.append("s", SAID)
        return before, len(t.messages("s"))

    assert store.reading(work) == (1, 1)
    assert store.session("s").head == 2


def test_it_writes_nothing_and_ends(store: Store) -> None:
    """An operation that writes is refused; one that is kept does nothing."""
    store.create_session("w")
    with pytest.raises(InvalidValue, match="cannot append messages"):
        store.reading(lambda t: t.append("w", SAID))
    kept: list[Snapshot] = []
    store.reading(kept.append)
    with pytest.raises(StoreError, match="have ended"):
        kept[0].messages("w")
    with pytest.raises(InvalidValue, match="function"):
        store.reading(None)  # type: ignore[arg-type]


def test_an_owner_reads_what_is_theirs(store: Store) -> None:
    """The others' sessions are not there; the awaited one reads likewise."""
    store.create_session("a", owner="ann")
    store.create_session("b", owner="bob")
    ann = store.scoped("ann")
    assert [each.id for each in ann.reading(lambda t: t.sessions())] == ["a"]
    with pytest.raises(SessionNotFound):
        ann.reading(lambda t: t.messages("b"))

    async def read() -> str | None:
        async with AsyncStore(store) as chats:
            return await chats.reading(lambda t: t.session("a").owner)

    assert asyncio.run(read()) == "ann"
