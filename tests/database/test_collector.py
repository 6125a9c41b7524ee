"""The garbage collector is paused for long reads, and only for them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from store import Store
from store.database.gc_pause import PAUSE_THRESHOLD, pause_gc


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """Leave the collector as it was."""
    yield
    gc.enable()


def test_it_runs_again_afterwards_whatever_happens() -> None:
    """An error in between is no reason to leave it off."""
    seen: list[bool] = []

    def read() -> None:
        with pause_gc(PAUSE_THRESHOLD):
            seen.append(gc.isenabled())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert (seen, gc.isenabled()) == ([False], True)


def test_a_few_messages_are_no_reason() -> None:
    """Nothing of the process is touched for a small read."""
    with pause_gc(PAUSE_THRESHOLD - 1):
        assert gc.isenabled()


def test_a_host_that_switched_it_off_keeps_it_off() -> None:
    """It is the host's."""
    gc.disable()
    with pause_gc(PAUSE_THRESHOLD):
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_overlapping_pauses_end() -> None:
    """As two threads would: the one that ends first ends both."""
    first, second = pause_gc(PAUSE_THRESHOLD), pause_gc(PAUSE_THRESHOLD)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_reads_leave_it_on(url: str) -> None:
    """Long ones too."""
    with Store(url, durability="normal") as store:
        session_id = store.create_session().id
        store.append(session_id, [{"role": "user", "content": "x"}] * PAUSE_THRESHOLD * 2)
        assert (
            len(store.messages(session_id))
            == len(store.view(session_id).messages)
            == PAUSE_THRESHOLD * 2
        )
        assert len(store.context(session_id).messages) == PAUSE_THRESHOLD * 2
    assert gc.isenabled()
