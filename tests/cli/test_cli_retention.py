"""The commands prune and size, and delete for an owner."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from conftest import Run

from store import Store

pytestmark = pytest.mark.sqlite_only

DAY = 86_400_000


@pytest.fixture
def filled(path: Path) -> Path:
    """Give a store with an old session, an old one to keep, and a new one."""
    now = time.time_ns() // 1_000_000
    with Store(path) as store:
        for name, days in (("old", 100), ("kept", 100), ("new", 1)):
            store.create_session(name, now=now - days * DAY, owner="ann")
            message = {"role": "user", "content": "Hello"}
            store.append(name, message, now=now - days * DAY)
        store.set_metadata("kept", {"starred": True})
    return path


def test_it_tells_before_it_erases(filled: Path, run: Run) -> None:
    """In a line, and as JSON."""
    asked = ("--db", filled, "prune", "--older-than", "90d", "--keep", "starred=true")
    told = run(*asked)
    assert told.status == 0
    assert told.out.startswith("would be erased: 1 session, 1 message, 5 bytes of words")
    assert "--yes erases" in told.err
    done = run(*asked, "--yes", "--json")
    assert done.status == 0
    assert json.loads(done.out)["sessions"] == 1
    assert run(*asked, "--yes").out == "there is no session to erase\n"
    with Store(filled) as store:
        assert {each.id for each in store.sessions()} == {"kept", "new"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((), "--older-than AGE, --max-size SIZE"),
        (("--keep", "starred=true", "--yes"), "--older-than AGE, --max-size SIZE"),
        (("--older-than", "long"), "--older-than must be an age"),
        (("--max-size", "much"), "--max-size must be a size"),
        (("--older-than", "9d", "--keep", "starred"), "a tag is KEY=VALUE"),
    ],
)
def test_what_makes_no_sense_is_refused(
    filled: Path, run: Run, asked: tuple[str, ...], said: str
) -> None:
    """With status 2 and one line."""
    told = run("--db", filled, "prune", *asked)
    assert told.status == 2
    assert said in told.err


def test_sizes_fit_a_terminal(filled: Path, run: Run) -> None:
    """By tables and by owners."""
    told = run("--db", filled, "size")
    assert told.status == 0
    assert "bytes are used" in told.out
    assert "messages" in told.out
    assert max(map(len, told.out.splitlines())) <= 80
    parts = json.loads(run("--db", filled, "size", "--by", "owner", "--json").out)["parts"]
    assert parts == [{"name": "ann", "bytes": 15, "messages": 3}]
    assert run("--db", filled, "size", "--by", "colour").status == 2


def test_an_owner_goes_whole(filled: Path, run: Run) -> None:
    """Archived sessions too, after a yes; of an unknown one there is nothing."""
    with Store(filled) as store:
        store.archive("old")
        store.create_session("bobs", owner="bob")
    asked = ("--db", filled, "delete", "--owner", "ann")
    assert "use --yes" in run(*asked).err
    told = run(*asked, "--yes")
    assert (told.status, told.out) == (0, "ann: 3 sessions with 3 messages erased\n")
    assert json.loads(run(*asked, "--yes", "--json").out) == {
        "owner": "ann",
        "sessions": 0,
        "messages": 0,
        "purged": False,
    }
    assert run(*asked, "--purge", "--yes").status == 0
    assert "name either" in run(*asked, "old").err
    assert "name either" in run("--db", filled, "delete").err
    with Store(filled) as store:
        assert [each.id for each in store.sessions()] == ["bobs"]
