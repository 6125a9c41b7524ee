from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from test_cli import failed

from store import Store
from store.records import Session

STARTED = 1_741_946_520_000


def said(text: str, role: str = "user") -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": text}


def talk(*texts: str) -> list[dict[str, Any]]:
    """Return messages, of which every second one is an answer."""
    return [said(text, ("user", "assistant")[number % 2]) for number, text in enumerate(texts)]


@pytest.fixture
def store(run: Run) -> Iterator[Store]:
    """Give a store of sessions of several owners, forks of forks, archived and empty ones."""
    with Store("convostore.db") as opened:
        _fill(opened)
        yield opened


def _fill(store: Store) -> None:
    store.create_session("zeta", title="A trip", owner="ann", metadata={"a": [1]}, now=STARTED)
    store.append("zeta", talk("a", "b", "c", "d", "e", "f"), now=STARTED + 5)
    store.fork("zeta", 4, "beta", title="Other")
    store.append("beta", talk("g", "h"))
    store.fork("beta", 5, "alpha/1 ü")
    store.set_metadata("alpha/1 ü", {"b": None})
    store.set_project_root("alpha/1 ü", "/there")
    store.fork("zeta", 5, "moved on")
    store.rewind("zeta", to=2)
    store.append("zeta", talk("i", "j", "k", "l"))
    store.create_session("Beta")
    store.append("Beta", talk("m"))
    store.archive("Beta")
    store.create_session("empty", owner="bob")
    store.fork("zeta", 3, "for bob", owner="bob")


def everything(path: str) -> dict[str, tuple[Session, list[Any]]]:
    """Return each session of a store and what its line says."""
    with Store(path) as store:
        found = [*store.sessions(), *store.sessions(archived=True)]
        return {
            each.id: (each, [stored.message for stored in store.messages(each.id)])
            for each in found
        }


def test_a_whole_store_comes_back(store: Store, run: Run) -> None:
    """Ids, lines, titles, metadata, owners, roots, times, archived ones; what is shared is again."""
    assert run("export", "--all", "-o", "out").out == "7 sessions written to out, 0 there already\n"
    assert run("--db", "copy.db", "import", "out").status == 0
    before, after = everything("convostore.db"), everything("copy.db")
    assert after.keys() == before.keys()
    for name, (session, messages) in before.items():
        copy, copied = after[name]
        assert copied == messages, name
        kept = copy._replace(
            revision=session.revision,
            branch=session.branch,
            forked_at=session.forked_at,
            updated_at=session.updated_at,
        )
        assert kept == session
    assert after["beta"][0].forked_at == 2  # what both lines still have
    assert after["for bob"][0].forked_at == 3
    with sqlite3.connect("copy.db") as stored:
        (rows,) = stored.execute("SELECT count(*) FROM messages").fetchone()
    stored.close()
    assert rows == 6 + 4 + 3 + 1
    with Store("copy.db") as copy_store:
        assert copy_store.verify() == []


def test_a_second_export_writes_what_changed(store: Store, run: Run) -> None:
    """Files of other sessions are not touched, and the second import has only what is new."""
    run("export", "--all", "-o", "out")
    written = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*.jsonl")}
    assert len(written) == 7
    for path in written:
        os.utime(path, ns=(1, 1))
    store.append("beta", said("new"))
    store.create_session("later")
    again = run("export", "--all", "-o", "out")
    assert again.out == "2 sessions written to out, 6 there already\n"
    changed = {path.name for path in Path("out").rglob("*.jsonl") if path.stat().st_mtime_ns > 1}
    assert changed == {"beta.jsonl", "later.jsonl"}
    store.delete_session("later")
    assert "1 file of sessions that are not" in run("export", "--all", "-o", "out").out


def test_an_export_that_is_imported_again_brings_what_is_new(store: Store, run: Run) -> None:
    """Twice the same brings nothing; what was appended meanwhile comes along."""
    assert brought(run) == 6 + 4 + 3 + 1
    assert brought(run) == 0
    store.append("empty", said("hello"))
    store.append("beta", said("new"))
    assert brought(run) == 2
    assert everything("copy.db")["empty"][1] == [said("hello")]


def brought(run: Run) -> int:
    """Export all, import that into a copy, and return how many messages were new there."""
    assert run("export", "--all", "-o", "out").status == 0
    ran = run("--db", "copy.db", "import", "out", "--json")
    assert ran.status == 0, ran
    sessions = [each for file in json.loads(ran.out) for each in file["sessions"]]
    return sum(each["appended"] for each in sessions)


def test_files_of_sessions_are_private_and_have_safe_names(store: Store, run: Run) -> None:
    """No id leads out of the folder or hides a file, whatever is in it; none is another's."""
    for name in ("../up", ".hidden", "a" * 200, "a" * 201, "CON", "x/y", "x?y"):
        store.create_session(name)
    run("export", "--all", "-o", "out")
    files = [path for path in Path("out").rglob("*") if path.is_file()]
    assert len(files) == 14
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(Path("out").stat().st_mode) == 0o700
    assert not any(path.name.startswith(".") for path in files)
    assert len({path.name.lower() for path in files}) == 14
    run("--db", "copy.db", "import", "out")
    assert everything("copy.db").keys() == everything("convostore.db").keys()


def test_a_session_that_is_there_already_is_no_fork_of_another(store: Store, run: Run) -> None:
    """Where a store has another session of the source's id, a fork still says what it said."""
    run("export", "--all", "-o", "out")
    with Store("copy.db") as other:
        other.create_session("zeta", owner="ann")
        other.append("zeta", talk("something", "else"))
    assert run("--db", "copy.db", "import", "out").status == 1
    after = everything("copy.db")
    assert after["zeta"][1] == talk("something", "else")
    assert after["beta"][1] == everything("convostore.db")["beta"][1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--all"], "--output"),
        (["zeta", "--all", "-o", "out"], "--all goes with"),
        (["--all", "-o", "out", "--view"], "--all goes with"),
        (["--all", "-o", "convostore.db"], "is no folder"),
        (["--all", "-o", "no/out"], "there is no folder 'no'"),
        ([], "--all"),
    ],
)
def test_what_cannot_be_exported_is_said(
    store: Store, run: Run, arguments: list[str], text: str
) -> None:
    """One line says what is wrong, and nothing is written."""
    failed(run("export", *arguments), text)
    assert not Path("out").exists()
