from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from test_cli import failed

from store import Store

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


def exported(path: str) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def test_a_whole_store_comes_back(store: Store, run: Run) -> None:
    """What is exported of the copy is the same file, to the byte; the copy is sound."""
    out = run("export", "--all", "-o", "all.jsonl").out
    assert out == "7 sessions with 13 messages written to all.jsonl\n"
    ran = run("--db", "copy.db", "import", "all.jsonl")
    assert ran.status == 0, ran
    run("--db", "copy.db", "export", "--all", "-o", "again.jsonl")
    assert Path("again.jsonl").read_bytes() == Path("all.jsonl").read_bytes()
    with Store("copy.db") as copy:
        assert copy.verify() == []
        before = [*store.sessions(), *store.sessions(archived=True)]
        assert [*copy.sessions(), *copy.sessions(archived=True)] == before
        assert copy.session("beta").forked_at == 4


@pytest.mark.slow
def test_a_store_that_has_it_all_takes_nothing(store: Store, run: Run) -> None:
    """The same again changes nothing; what says something else is left as it is, and told."""
    run("export", "--all", "-o", "all.jsonl")
    assert brought(run) == (0, 13)
    assert brought(run) == (0, 0)
    store.append("empty", said("hello"))
    store.create_session("later")
    run("export", "--all", "-o", "all.jsonl", "--force")
    ran = run("--db", "copy.db", "import", "all.jsonl")
    assert ran.status == 1
    assert "exist already, and differ" in ran.out
    with Store("copy.db") as copy:
        assert copy.session("empty").head == 0
        assert copy.session("later").head == 0


def brought(run: Run) -> tuple[int, int]:
    """Import what was exported into a copy; return the status, and how many messages were new."""
    ran = run("--db", "copy.db", "import", "all.jsonl", "--json")
    sessions = [each for file in json.loads(ran.out) for each in file["sessions"]]
    return ran.status, sum(each["appended"] for each in sessions)


def test_an_export_is_private_and_counted(store: Store, run: Run) -> None:
    """It is readable by its owner alone, is not written over, and goes to standard output, too."""
    ran = run("export", "--all", "-o", "all.jsonl", "--json")
    assert json.loads(ran.out) == {"file": "all.jsonl", "sessions": 7, "messages": 13}
    assert stat.S_IMODE(Path("all.jsonl").stat().st_mode) == 0o600
    failed(run("export", "--all", "-o", "all.jsonl"), "all.jsonl")
    told = [json.loads(line) for line in run("export", "--all").out.splitlines()]
    assert told == exported("all.jsonl")


def damaged(rows: list[dict[str, Any]], how: str) -> list[dict[str, Any]]:
    """Return the rows of a store with something wrong in the tree of zeta."""
    at = next(i for i, row in enumerate(rows) if row.get("messages", {}).get("content") == "b")
    row = dict(rows[at]["messages"])
    changes: dict[str, list[dict[str, Any]]] = {
        "missing": [],
        "twice": [rows[at], rows[at]],
        "changed": [{"messages": {**row, "content": "B"}}],
        "other columns": [{"messages": {**row, "colour": "red"}}],
        "no digits": [{"messages": {**row, "digest": "xyz"}}],
        "a list": [{"messages": {**row, "content": ["b"]}}],
        "other table": [{"alembic_version": {"version_num": "0003"}}],
        "cut": [],
    }
    end = next(i for i in range(at, len(rows)) if "end" in rows[i])
    if how == "missing":
        rows[end] = {"end": {"rows": rows[end]["end"]["rows"] - 1}}
    if how == "cut":
        return rows[:at]
    return [*rows[:at], *changes[how], *rows[at + 1 :]]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "how",
    ["missing", "twice", "changed", "other columns", "no digits", "a list", "other table", "cut"],
)
def test_a_damaged_tree_is_left_out_and_told(store: Store, run: Run, how: str) -> None:
    """Nothing of it is stored; the trees beside it are, but for what a cut took away."""
    run("export", "--all", "-o", "all.jsonl")
    rows = damaged(exported("all.jsonl"), how)
    Path("all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    ran = run("--db", "copy.db", "import", "all.jsonl")
    assert ran.status == 1, ran
    assert "is left out" in ran.out
    with Store("copy.db") as copy:
        assert copy.verify() == []
        names = {each.id for each in [*copy.sessions(), *copy.sessions(archived=True)]}
    assert names.isdisjoint({"zeta", "beta", "moved on", "alpha/1 ü", "for bob"})
    assert how == "cut" or names == {"Beta", "empty"}


def test_a_session_of_the_same_id_keeps_a_tree_out(store: Store, run: Run) -> None:
    """What the store has under an id stays what it is."""
    run("export", "--all", "-o", "all.jsonl")
    with Store("copy.db") as other:
        other.create_session("beta")
    ran = run("--db", "copy.db", "import", "all.jsonl")
    assert ran.status == 1
    assert "another session 'beta'" in ran.out
    with Store("copy.db") as other:
        assert {each.id for each in other.sessions()} == {"beta", "empty"}


def test_rows_of_a_newer_release_are_taken_if_they_say_nothing_new(store: Store, run: Run) -> None:
    """A column without a value is nothing; a tree with one, or a new table, is left out and named."""
    run("export", "--all", "-o", "all.jsonl")
    lines = exported("all.jsonl")
    lines[0]["convostore"]["schema"] = "0099"
    for line in lines:
        for fields in (line[name] for name in ("sessions", "messages") if name in line):
            fields["color"] = None
    Path("newer.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for _ in range(2):  # what is there already is the same
        assert run("--db", "back.db", "import", "newer.jsonl").status == 0
    before = [*store.sessions(), *store.sessions(archived=True)]
    with Store("back.db") as back:
        assert [*back.sessions(), *back.sessions(archived=True)] == before
        assert all(back.messages(each.id) == store.messages(each.id) for each in before)
        assert back.verify() == []
    (colored,) = (x["sessions"] for x in lines if x.get("sessions", {}).get("id") == "Beta")
    colored["color"] = "red"
    Path("newer.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = run("--db", "other.db", "import", "newer.jsonl")
    assert ran.status == 1
    assert "a row of sessions has other columns: ['color']" in ran.out
    with Store("other.db") as other:
        assert {each.id for each in before} - {
            each.id for archived in (False, True) for each in other.sessions(archived=archived)
        } == {"Beta"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["zeta", "--all"], "--all cannot be combined with SESSION, --view, --at, --as"),
        (["--all", "--view"], "--all cannot be combined with SESSION, --view, --at, --as"),
        (["--all", "-o", "convostore.db", "--force"], "is the store itself"),
        (["--all", "-o", "no/out"], "there is no folder 'no'"),
        ([], "--all"),
    ],
)
def test_what_cannot_be_exported_is_said(
    store: Store, run: Run, arguments: list[str], text: str
) -> None:
    """One line says what is wrong, and nothing is written."""
    failed(run("export", *arguments), text)
    assert not Path("no").exists()


@pytest.mark.parametrize(
    ("head", "options", "text"),
    [
        ({"schema": "0003", "trees": 0}, [], "'0003'"),
        ({"schema": "newest", "trees": 0}, [], "'newest'"),
        ({"schema": "0003", "trees": 0}, ["--id", "x"], "unchanged"),
        ({"schema": "0003", "trees": 0}, ["--project-root", "/x"], "unchanged"),
    ],
)
def test_what_is_no_store_of_this_release_is_refused(
    run: Run, head: dict[str, Any], options: list[str], text: str
) -> None:
    """Exit status 2, and a line that says why."""
    Path("all.jsonl").write_text(json.dumps({"convostore": head}) + "\n")
    ran = run("import", "all.jsonl", *options)
    assert ran.status == 2
    assert text in ran.err
