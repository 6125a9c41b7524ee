"""The state of a store, as a probe asks for it."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT, Run

from store import Store
from store.face import health


def test_a_store_that_can_be_used_is_well(url: str, tmp_path: Path) -> None:
    """It tells what to watch, too."""
    with Store(url) as store:
        found = store.health()
        assert found
        assert found.problems == ()
        assert (found.reachable, found.writable, found.behind) == (True, True, False)
        assert found.oldest_draft is None
        store.create_session("s")
        store.append("s", {"role": "user", "content": "hello"})
        assert store.health().behind == bool(store.database.path)  # a server writes entries at once
        store.index()
        assert not store.health().behind
        with store.streaming("s", {"role": "assistant"}, every_bytes=1) as answer:
            answer.write("half")
            assert store.health().oldest_draft is not None
        if store.database.path:
            copy = store.backup(tmp_path / "copy.db")
            assert store.health().last_backup == copy.made_at


def test_what_is_wrong_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is only read, a full disk, a store that is closed."""
    with Store(url) as store:
        pass
    closed = store.health()
    assert not closed
    assert "closed" in closed.problems[0]
    with Store(url, read_only=True) as store:
        assert not store.health().writable
    if store.database.path:
        full = SimpleNamespace(free=5)
        monkeypatch.setattr(health.shutil, "disk_usage", lambda _: full)
        with Store(url) as store:
            assert "the disk has 5 bytes left" in store.health().problems


@pytest.mark.sqlite_only
def test_waiting_writers_are_seen(path: Path) -> None:
    """While one is at work and another waits; the probe does not wait."""
    with Store(path) as store, Store(path) as other:
        store.create_session("s")
        assert not store.health().waiting
        thread = threading.Thread(target=other.create_session, args=("t",))
        with store.database.writing() as connection:
            connection.begin()
            thread.start()
            end = time.monotonic() + 30
            while not other.health().waiting and time.monotonic() < end:
                time.sleep(0.01)
            assert other.health().waiting
        thread.join()
        assert not store.health().waiting


@pytest.mark.sqlite_only
def test_a_probe_is_a_command(path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With status 0 or 1."""
    well = run("--db", path, "health", "--json")
    assert well.status == 0
    assert json.loads(well.out)["schema"]
    monkeypatch.setattr(health, "LEAST_ROOM", 10**18)
    unwell = run("--db", path, "health")
    assert unwell.status == 1
    assert "bytes left" in unwell.out


def test_a_probe_makes_and_upgrades_nothing(bare_url: str, run: Run, tmp_path: Path) -> None:
    """An empty database stays so, an older store keeps its schema; both are told, with status 1."""
    for _ in range(2):
        told = run("--db", bare_url, "health", "--json")
        assert (told.status, json.loads(told.out)["reachable"]) == (1, False)
    older = Path(shutil.copy(ROOT / "tests" / "databases" / "0002.db", tmp_path / "older.db"))
    before = older.read_bytes()
    told = run("--db", older, "health")
    assert told.status == 1
    assert "schema 0002" in told.out
    assert older.read_bytes() == before


@pytest.mark.sqlite_only
@pytest.mark.parametrize("target", ["none.db", "postgresql://ann:secret@127.0.0.1:1/chat", "a://b"])
def test_a_probe_tells_a_store_that_is_not_there(
    target: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON too, with status 1 and without the password."""
    monkeypatch.setenv("CONVOSTORE_DB", target)
    told = json.loads(run("health", "--json").out)
    assert (told["reachable"], told["writable"], len(told["problems"])) == (False, False, 1)
    unwell = run("health")
    assert unwell.status == 1
    assert told["problems"][0] in unwell.out
    assert "secret" not in unwell.out + unwell.err
