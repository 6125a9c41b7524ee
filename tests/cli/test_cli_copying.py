"""The command copy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run

from store import Store, copying

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def filled(path: Path) -> Path:
    """Give a store with two sessions."""
    with Store(path) as store:
        for name in ("a", "b"):
            store.create_session(name)
            store.append(name, {"role": "user", "content": f"Hello {name}"})
    return path


def test_it_copies_what_is_lacking(filled: Path, run: Run) -> None:
    """And says so, also beforehand; deletions are told, not repeated."""
    done = run("copy", filled, "there.db")
    assert (done.status, done.out) == (
        0,
        "2 sessions with forks: 2 copied, 0 brought up to date, 0 the same\n",
    )
    with Store(filled) as store:
        store.append("a", {"role": "user", "content": "More"})
        store.delete_session("b")
    checked = run("copy", filled, "there.db", "--check", "--json")
    assert checked.status == 1
    told = json.loads(checked.out)
    assert (told["grown"], told["deleted"], len(told["left"])) == (1, ["b"], 1)
    again = run("copy", filled, "there.db")
    assert again.status == 1
    assert "1 brought up to date" in again.out
    assert "left: a session that was deleted" in again.out
    assert again.out.endswith("deleted from the source, still in the target: b\n")
    with Store("there.db") as store:
        assert {each.id: each.head for each in store.sessions()} == {"a": 2, "b": 1}


def test_a_stopped_copy_says_how_to_go_on(
    filled: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the status of Ctrl-C; what was copied is whole, and stays."""
    counted = copying._copy_tree

    def stop(*given: object, check: bool) -> object:
        if stopped.append(given) or len(stopped) == 2:
            raise KeyboardInterrupt
        return counted(*given, check=check)  # type: ignore[arg-type]

    stopped: list[object] = []
    with monkeypatch.context() as patched:
        patched.setattr(copying, "_copy_tree", stop)
        told = run("copy", filled, "there.db")
    assert told.status == 130
    assert "stopped after 1 of 2 sessions with their forks; the same command goes on" in told.err
    assert "1 copied, 0 brought up to date, 1 the same" in run("copy", filled, "there.db").out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("copy", "nowhere.db", "there.db"), "there is no store"),
        (("copy", "chat.db", "there.db", "--check"), "there is no store"),
        (("copy", "chat.db", "chat.db"), "the same store"),
        (("--db", "x.db", "copy", "chat.db", "there.db"), "leave --db out"),
    ],
)
def test_what_cannot_be_copied_is_refused(
    filled: Path, run: Run, asked: tuple[str, ...], said: str
) -> None:
    """With status 2, and no file is made."""
    told = run(*(str(filled) if each == "chat.db" else each for each in asked))
    assert told.status == 2
    assert said in told.err
    assert not Path("there.db").exists()
