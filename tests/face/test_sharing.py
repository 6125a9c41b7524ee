"""Stores that a process shares, and awaited faces of open ones."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from store import AsyncStore, Store
from store.errors import InvalidValue, NotAStore, StoreClosed


def test_a_process_shares_one_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is named, and until its last user has closed it."""
    monkeypatch.chdir(path.parent)
    first = Store.shared(path)
    with Store.shared(path.name) as second, Store.shared(f"sqlite:///{path}") as third:
        assert first is second is third
        first.create_session("s")
    assert first.session("s").id == "s"
    first.close()
    with pytest.raises(StoreClosed):
        first.session("s")
    with Store.shared(path) as anew:
        assert anew is not first
        assert anew.session("s").id == "s"


def test_other_settings_are_another_store(path: Path) -> None:
    """Nobody gets less than was asked for."""
    with Store.shared(path) as full, Store.shared(path, durability="normal") as normal:
        assert full is not normal


def test_wrong_settings_are_refused_as_by_a_store_of_ones_own(path: Path) -> None:
    """Also those that are no key of anything."""
    with pytest.raises(InvalidValue, match="cache_bytes"):
        Store.shared(path, cache_bytes=[])  # type: ignore[arg-type]


def test_a_store_that_is_not_shared_is_closed_at_once(path: Path) -> None:
    """Beside a shared one, too."""
    with Store.shared(path) as shared:
        own = Store(path)
        own.close()
        own.close()
        with pytest.raises(StoreClosed):
            own.sessions()
        assert shared.sessions() == []


def test_one_in_memory_is_shared(bare_url: str) -> None:
    """It has no path, and is one for all the same."""
    with Store.shared(":memory:") as one, Store.shared(":memory:") as other:
        one.create_session("s")
        assert other.session("s").id == "s"
    with Store.shared(":memory:") as anew:
        assert anew.sessions() == []


def test_threads_open_it_once(path: Path) -> None:
    """All who come at once get the one that the first has opened."""
    with ThreadPoolExecutor(16) as pool:
        found = [*pool.map(lambda _: Store.shared(path), range(64))]
    assert len({id(each) for each in found}) == 1
    for each in found[:-1]:
        each.close()
    assert found[-1].sessions() == []
    found[-1].close()


def test_what_cannot_be_opened_is_not_kept(tmp_path: Path) -> None:
    """The next one tries again."""
    wrong = tmp_path / "chat.db"
    wrong.write_text("no database, but a text that is longer than nothing\n" * 100)
    with pytest.raises(NotAStore):
        Store.shared(wrong)
    wrong.unlink()
    with Store.shared(wrong) as store:
        assert store.sessions() == []


def test_an_awaited_face_of_an_open_store(url: str) -> None:
    """It uses the store that it is given, and leaves it open."""

    async def work(plain: Store) -> Any:
        async with AsyncStore(plain) as store:
            await store.create_session("s")
            return await store.session("s")

    with Store(url) as plain:
        assert asyncio.run(work(plain)) == plain.session("s")
        assert asyncio.run(work(Store.shared(":memory:"))).id == "s"
    Store.shared(":memory:").close()
    Store.shared(":memory:").close()


def test_an_open_store_has_its_settings(url: str) -> None:
    """Others are refused, not passed over."""

    async def work(plain: Store) -> None:
        async with AsyncStore(plain, timeout=1) as store:
            await store.sessions()

    with Store(url) as plain, pytest.raises(InvalidValue, match="open store"):
        asyncio.run(work(plain))
