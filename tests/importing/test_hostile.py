"""Files of people who are not trusted: within bounds, by errors of the store, into their own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hostile
import pytest
from conftest import ROOT

from store import Policy, Store, StoreError
from store.errors import InvalidValue, LimitExceeded, SessionExists
from store.exporting import export_store
from store.face import Scoped
from store.importing import import_file

MOST_MEMORY = 512 * 1024
"""Kilobytes that the process may have at most, whatever it reads."""
MOST_SECONDS = 30
"""Seconds of the processor that a file may take."""
TALK = [{"role": "user", "content": "What?"}, {"role": "assistant", "content": "That."}]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store of its own for each test, as ids count in it."""
    with Store(url, durability="normal") as opened:
        yield opened


def run(program: str, folder: Path) -> str:
    """Run a program of this folder; return what it prints."""
    command = [sys.executable, str(Path(__file__).with_name(program)), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.no_cover  # a measurement takes memory, too
@pytest.mark.slow
def test_hostile_files_are_read_or_refused_within_bounds(tmp_path: Path) -> None:
    """In one process, one after the other; nothing of another owner is touched by any of them."""
    run("hostile.py", tmp_path)
    *files, (problems, owners, line) = map(json.loads, run("confined.py", tmp_path).splitlines())
    assert len(files) == len(hostile.files()) >= 60
    raw = [told for told in files if told[1].startswith("RAW")]
    slow = [told for told in files if told[2] > MOST_SECONDS]
    assert (raw, slow) == ([], [])
    assert max(peak for *_, peak in files) < MOST_MEMORY
    assert problems == []
    assert owners == ["alice", "bob"]
    assert line == {"s": [{"role": "user", "content": "Mine alone."}]}


def written(path: Path, *values: Any) -> Path:
    """Write a value a line."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in values))
    return path


def lines(face: Scoped) -> dict[str, list[dict[str, Any]]]:
    """Return what each session of an owner says."""
    return {each.id: [said.message for said in face.messages(each.id)] for each in face.sessions()}


def test_two_owners_import_a_file_and_neither_touches_the_other(
    store: Store, tmp_path: Path
) -> None:
    """The first has the file's id, the other one made of it; again, there is nothing new."""
    path = written(tmp_path / "plans.jsonl", {"owner": "carol"}, *TALK)
    alice, bob = store.scoped("alice"), store.scoped("bob")
    first = import_file(alice, path)
    assert [each.id for each in first.sessions] == ["plans"]
    before = lines(alice), alice.session("plans")
    (own,) = import_file(bob, path).sessions
    assert own.id.startswith("plans-")
    assert own.appended == len(TALK)
    for face, name in ((alice, "plans"), (bob, own.id)):
        (again,) = import_file(face, path).sessions
        assert (again.id, again.appended) == (name, 0)
    assert (lines(alice), alice.session("plans")) == before
    assert lines(bob) == {own.id: TALK}
    assert store.count_sessions(owner="carol") == 0


def test_an_id_that_became_free_is_not_taken_for_what_is_there_already(
    store: Store, tmp_path: Path
) -> None:
    """The owner's session goes on under the id that it has."""
    path = written(tmp_path / "plans.jsonl", *TALK)
    store.create_session("plans", owner="alice")
    (own,) = import_file(store.scoped("bob"), path).sessions
    store.delete_session("plans")
    (again,) = import_file(store.scoped("bob"), path).sessions
    assert (again.id, again.appended) == (own.id, 0)


def test_an_id_that_somebody_keeps_from_an_owner_is_passed_over(
    store: Store, tmp_path: Path
) -> None:
    """Also where it is the very one that would be made for them."""
    path = written(tmp_path / "plans.jsonl", *TALK)
    ids = []
    for _ in range(3):
        with Store(":memory:", durability="normal") as other:
            for name in ("plans", *ids):
                other.create_session(name, owner="alice")
            ids.append(import_file(other.scoped("bob"), path).sessions[0].id)
    for name in ("plans", *ids):
        store.create_session(name, owner="alice")
    (own,) = import_file(store.scoped("bob"), path).sessions
    assert own.id not in {"plans", *ids}
    assert lines(store.scoped("bob")) == {own.id: TALK}


def test_an_empty_session_of_another_is_not_filled(store: Store, tmp_path: Path) -> None:
    """Nor one that begins as the file does; those of nobody are another's, too."""
    for name, owner in (("a", "alice"), ("b", None)):
        store.create_session(name, owner=owner)
        store.append(name, TALK[:1])
    rows = [{"session_id": name, "messages": TALK} for name in "ab"]
    report = import_file(store.scoped("bob"), written(tmp_path / "f.jsonl", *rows))
    assert [each.appended for each in report.sessions] == [2, 2]
    assert not {each.id for each in report.sessions} & {"a", "b"}
    assert [store.session(name).head for name in "ab"] == [1, 1]


def test_branches_hang_on_the_owners_own_session(store: Store, tmp_path: Path) -> None:
    """Where the ids of a file are taken, what continues its sessions continues the new ones."""
    path = tmp_path / "export.json"
    tree = (
        hostile.node("n0", None, "n1", "n2"),
        hostile.node("n1", "n0"),
        hostile.node("n2", "n0"),
    )
    path.write_text(json.dumps(hostile.chatgpt(*tree, current="n1")))
    alice, bob = store.scoped("alice"), store.scoped("bob")
    theirs, own = import_file(alice, path), import_file(bob, path)
    assert [each.messages for each in theirs.sessions] == [each.messages for each in own.sessions]
    main, branch = own.sessions
    assert bob.session(branch.id).forked_from == main.id
    assert bob.session(branch.id).metadata["parent_session"] == main.id
    assert {each.appended for each in import_file(bob, path).sessions} == {0}
    assert store.verify() == []


def test_the_callers_own_id_is_used_or_refused(store: Store, tmp_path: Path) -> None:
    """It was chosen by the application, so it is not replaced without a word."""
    path = written(tmp_path / "f.jsonl", *TALK)
    store.create_session("mine", owner="alice")
    with pytest.raises(SessionExists):
        import_file(store.scoped("bob"), path, session_id="mine")
    (session,) = import_file(store.scoped("bob"), path, session_id="yours").sessions
    assert session.id == "yours"


def test_a_whole_store_is_no_upload(store: Store, tmp_path: Path) -> None:
    """It tells whose each session is; the whole store takes it."""
    path = tmp_path / "all.jsonl"
    with Store(":memory:", durability="normal") as other:
        other.create_session("s", owner="alice")
        export_store(other, path)
    with pytest.raises(InvalidValue, match="several owners"):
        import_file(store.scoped("bob"), path)
    assert store.sessions() == []


def test_owners_who_import_a_file_at_once_get_a_session_each(store: Store, tmp_path: Path) -> None:
    """Whoever is second to take an id gets another one."""
    rows = [{"session_id": f"s{number}", "messages": TALK} for number in range(8)]
    path = written(tmp_path / "f.jsonl", *rows)
    owners = [f"owner {number}" for number in range(4)]
    problems: list[BaseException] = []

    def work(owner: str) -> None:
        try:
            import_file(store.scoped(owner), path)
        except BaseException as problem:  # noqa: BLE001 - it is told at the end
            problems.append(problem)

    threads = [threading.Thread(target=work, args=[owner]) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [len(lines(store.scoped(owner))) for owner in owners] == [8] * 4
    assert all(line == TALK for owner in owners for line in lines(store.scoped(owner)).values())


def test_what_was_imported_for_an_owner_is_complete(store: Store, tmp_path: Path) -> None:
    """With its usages and its compactions, as it is without a scope."""
    path = tmp_path / "chat.jsonl"
    usage = {"input_tokens": 9, "output_tokens": 2}
    answer = {"role": "assistant", "id": "m", "model": "m", "usage": usage}
    rows = [
        hostile.claude(0, None),
        hostile.claude(1, "u0") | {"type": "assistant", "message": {**answer, "content": "So."}},
    ]
    written(path, *rows)
    bob = store.scoped("bob")
    (session,) = import_file(bob, path).sessions
    assert [(each.input, each.output) for each in bob.usages(session.id)] == [(9, 2)]
    assert [each["content"] for each in bob.view(session.id, Policy.named("raw")).messages]


def test_a_file_of_too_many_bytes_is_not_read(store: Store, tmp_path: Path) -> None:
    """By its size; the error says which limit it was."""
    path = written(tmp_path / "f.jsonl", *TALK)
    size = path.stat().st_size
    for face in (store, store.scoped("bob")):
        with pytest.raises(LimitExceeded, match="max_bytes") as refused:
            import_file(face, path, max_bytes=size - 1)
        assert (refused.value.limit, refused.value.allowed) == ("max_bytes", size - 1)
        assert store.sessions() == []
    assert import_file(store, path, max_bytes=size, max_seconds=60).sessions[0].appended == 2


def test_what_a_file_is_made_into_counts_like_its_bytes(store: Store, tmp_path: Path) -> None:
    """A text that is named twice is stored twice."""
    part = {"type": "text", "text": "attachment://a"}
    said = [{"role": "user", "content": [part]} for _ in range(9)]
    hostile.sample(*said, attachments={"a": "x" * 10_000})(tmp_path / "f.json")
    with pytest.raises(LimitExceeded, match="max_bytes"):
        import_file(store, tmp_path / "f.json", max_bytes=20_000)
    hostile.sample(*said * 300, attachments={"a": "x" * 10_000})(tmp_path / "f.json")
    with pytest.raises(LimitExceeded, match="the size of what they hold"):
        import_file(store, tmp_path / "f.json")


def test_time_that_is_over_ends_an_import(store: Store, tmp_path: Path) -> None:
    """Of rows and of databases; what was stored before stays sound."""
    rows = written(tmp_path / "rows", *TALK * 2_000)
    chats = tmp_path / "chats"
    hostile.files()["a chat in many rows"](chats)
    for path in (rows, chats):
        with pytest.raises(LimitExceeded, match="max_seconds"):
            import_file(store, path, max_seconds=0.01)
    assert store.verify() == []


@pytest.mark.parametrize("wrong", [0, -1, "1", True])
def test_a_limit_is_a_number_above_zero(store: Store, tmp_path: Path, wrong: Any) -> None:
    """Anything else is refused before the file is looked at."""
    for name in ("max_bytes", "max_seconds"):
        with pytest.raises(InvalidValue, match=name):
            import_file(store, tmp_path / "none", **{name: wrong})
    assert issubclass(LimitExceeded, StoreError)
