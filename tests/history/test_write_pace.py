"""The pace of long work beside other writers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from store import Store
from store.database import has_waiting_writers
from store.errors import StoreFull
from store.history import write_pace
from store.history.write_pace import WritePace

pytestmark = pytest.mark.sqlite_only
SAID = {"role": "user", "content": "x"}


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store with a session."""
    with Store(url, durability="normal") as opened:
        opened.create_session("s")
        yield opened


def test_slices_are_shorter_while_others_wait(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody waits they grow."""
    pace = WritePace(store.database, 1, longest=1)
    with Store(url) as other:
        waiting = threading.Thread(target=other.append, args=("s", SAID))
        with pace.writing() as connection:
            connection.execute(text("UPDATE sessions SET title = 'busy'"))
            waiting.start()
            while not has_waiting_writers(str(store.database.path)):
                time.sleep(0.01)
            time.sleep(2 * write_pace.HELD_SECONDS)
        waiting.join()
    shorter = pace.seconds
    assert shorter < 1
    with pace.writing() as connection:
        connection.execute(text("UPDATE sessions SET title = 'alone'"))
    assert pace.seconds > shorter


@pytest.mark.parametrize(("seconds", "folds"), [(0, 4), (0.05, 2), (60, 0)])
def test_a_log_is_folded_in_after_some_slices(
    store: Store, monkeypatch: pytest.MonkeyPatch, seconds: float, folds: int
) -> None:
    """Before a writer who waits has to, and not after each slice."""
    ticks, folded = count(step=0.01), list[float | None]()

    def fold(patience: float | None) -> float:
        folded.append(patience)
        return 0.0

    monkeypatch.setattr(write_pace, "has_waiting_writers", lambda _: True)
    monkeypatch.setattr(write_pace, "FOLD_SECONDS", seconds)
    monkeypatch.setattr(
        write_pace, "time", SimpleNamespace(monotonic=lambda: next(ticks), sleep=time.sleep)
    )
    monkeypatch.setattr(store.database, "fold_log", fold)
    pace = WritePace(store.database, 1, longest=1)
    for _ in range(4):
        with pace.writing() as connection:
            next(ticks)
            next(ticks)
            connection.execute(text("UPDATE sessions SET title = 'busy'"))
    assert len(folded) == folds


def test_a_log_that_is_not_folded_in_ends_no_erasure(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a slice has erased is committed by then; what follows goes on."""

    def fail(_: float | None) -> None:
        raise StoreFull("no room")

    monkeypatch.setattr(write_pace, "has_waiting_writers", lambda _: True)
    monkeypatch.setattr(store.database, "fold_log", fail)
    store.create_session("t")
    for name in ("s", "t"):
        store.append(name, [SAID] * 3)
    assert [each.finished for each in store.delete_session("s", "t")] == [True, True]
    assert store.verify() == []


def test_a_log_is_folded_in_up_to_an_older_state(store: Store) -> None:
    """A reader of one is not waited for; when it has ended, the log begins anew."""
    with store.database.reading() as connection:
        connection.execute(text("SELECT count(*) FROM sessions")).scalar()
        store.append("s", SAID)
        store.database.fold_log()
    store.database.fold_log()
    with store.database.reading() as connection:
        state = connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").one()
    assert state[1] == state[2]
