"""Deleting and purging by the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run

from store import Store

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def path(path: Path) -> Path:
    """Give the path of a store with two sessions."""
    with Store(path) as store:
        for name in ("s", "t"):
            store.create_session(name)
            store.append(name, {"role": "user", "content": "SECRET" * 900})
    return path


def erased(path: Path) -> list[bool]:
    """Return of each erasure whether it was purged."""
    with Store(path) as store:
        return [each.purged for each in store.erasures()]


def test_one_purge_for_all(run: Run, path: Path) -> None:
    """Deleting leaves it to a purge, unless told."""
    assert json.loads(run("--db", path, "delete", "s", "--yes", "--json").out)["purged"] is False
    assert erased(path) == [False]
    ran = run("--db", path, "purge")
    assert (ran.status, ran.out) == (0, "the file holds nothing any more of what was erased\n")
    assert erased(path) == [True]
    ran = run("--db", path, "delete", "t", "--yes", "--purge", "--json")
    assert (json.loads(ran.out)["purged"], ran.err) == (True, "")
    assert b"SECRET" not in path.read_bytes()


def test_a_beginning_of_an_id_suffices_if_it_is_unique(run: Run, path: Path) -> None:
    """A doubtful one erases nothing, and is told with the sessions that it may mean."""
    with Store(path) as store:
        for name in ("tau", "zeta-1"):
            store.create_session(name)
    doubtful = run("--db", path, "delete", "ta…", "--yes")
    assert (doubtful.status, doubtful.out) == (0, "tau: 0 messages erased\n")
    with Store(path) as store:
        store.create_session("zeta-2")
    doubtful = run("--db", path, "delete", "zeta", "--yes")
    assert doubtful.status == 2
    assert "zeta-1, zeta-2" in doubtful.err or "zeta-2, zeta-1" in doubtful.err
    assert len(erased(path)) == 1


def test_copies_go_too_if_told(run: Run, path: Path, tmp_path: Path) -> None:
    """Those that may hold what was erased; others stay."""
    run("--db", path, "backup", "old.db")
    run("--db", path, "delete", "s", "--yes")
    run("--db", path, "backup", "new.db")
    assert json.loads(run("--db", path, "purge", "--json").out)["removed"] == []
    told = run("--db", path, "purge", "--backups").out.splitlines()
    assert told[1:] == [f"{tmp_path / 'old.db'}: removed"]
    assert not (tmp_path / "old.db").exists()
    assert (tmp_path / "new.db").exists()


@pytest.mark.slow
def test_a_reader_is_told_of(run: Run, path: Path) -> None:
    """Nothing is purged while somebody reads an older state; the session is gone all the same."""
    with Store(path) as store, store.database.reading() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM messages").all()
        ran = run("--db", path, "delete", "s", "--yes", "--purge")
        assert (ran.status, "could not be purged" in ran.err) == (0, True)
        for options in ([], ["--idle"], ["--longest", "60"]):
            ran = run("--db", path, "purge", *options)
            assert (ran.status, ran.out) == (2, "nothing was purged\n")
            assert "reads an older state" in ran.err
    assert erased(path) == [False]
    assert run("--db", path, "purge", "--idle").status == 0


def test_a_purge_makes_no_store(run: Run, tmp_path: Path) -> None:
    """Where there is none, that is an error."""
    ran = run("--db", tmp_path / "none.db", "purge")
    assert (ran.status, ran.out) == (2, "")
    assert not (tmp_path / "none.db").exists()
