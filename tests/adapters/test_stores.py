"""The store that adapters work on."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from store import Store
from store.adapters.stores import StoreUser

pytestmark = pytest.mark.sqlite_only


def test_the_awaited_store_is_kept_and_shared(path: Path) -> None:
    """So that its threads are not begun anew with each call."""
    with Store(path) as store:
        first, second = StoreUser(store), StoreUser(store)
        kept = weakref.ref(first.awaited)
        gc.collect()
        assert kept() is first.awaited
        assert first.awaited is second.awaited


def test_a_given_store_stays_open(path: Path) -> None:
    """One that was opened by its path is given back."""
    with Store(path) as store:
        StoreUser(store).close()
        store.create_session("s")
    user = StoreUser(path)
    user.store.session("s")
    user.close()
    user.close()
