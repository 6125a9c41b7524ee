"""Ctrl-C in long work: how far it came, and how to go on."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Run

from store import Store
from store.database import Database, engine
from store.inspection import integrity
from store.search import index

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def filled(path: Path) -> Path:
    """Give the path of a store with two sessions."""
    with Store(path) as store:
        for name in "ab":
            store.create_session(name)
            store.append(name, [{"role": "user", "content": f"word {n}"} for n in range(200)])
    return path


def interrupt(*_: object, **__: object) -> Any:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


def test_long_work_that_is_stopped_says_how_to_go_on(
    filled: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the status of Ctrl-C; afterwards it ends as if it had never been stopped."""
    steps = iter((index.index_step, interrupt))
    with monkeypatch.context() as patched:
        patched.setattr(index, "index_step", lambda connection: next(steps)(connection))
        told = run("--db", filled, "index")
    assert told.status == 130
    assert "stopped after 256 of 400 messages and summaries; `convostore index`" in told.err
    assert "400 rows in the index" in run("--db", filled, "index").out
    with monkeypatch.context() as patched:
        first, (name, _), *others = integrity.CHECKS
        patched.setattr(integrity, "CHECKS", (first, (name, interrupt), *others))
        told = run("--db", filled, "verify")
    assert told.status == 130
    assert "stopped after 1 of 8 checks; nothing was changed" in told.err
    with monkeypatch.context() as patched:
        patched.setattr(Database, "purge", interrupt)
        told = run("--db", filled, "purge")
    assert told.status == 130
    assert "stopped after 1 of 3 steps; the file is whole; the same command goes on" in told.err
    assert run("--db", filled, "purge").status == run("--db", filled, "verify").status == 0


def test_a_purge_that_is_interrupted_is_not_called_too_long(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite swallows what a signal raises while it writes the file anew."""
    moments = iter((time.monotonic, interrupt))
    clock = SimpleNamespace(monotonic=lambda: next(moments, time.monotonic)())
    seen: list[tuple[int, int]] = []
    with Store(filled) as store:
        store.delete_session("a")
        with monkeypatch.context() as patched:
            patched.setattr(engine, "STEPS_PER_CHECK", 1)
            patched.setattr(engine, "time", clock)
            stopped = store.purge()
        assert "was interrupted; the file is whole" in str(stopped.problem)
        assert store.purge(progress=lambda *told: seen.append(told))
        assert store.verify() == []
    assert seen == [(1, 3), (2, 3), (3, 3)]
