from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
from conftest import ROOT, Run

from store import Store
from store.cli import imports
from store.errors import StoreBusy, StoreFull
from store.importing import GrowingFiles, ImportReport, TranscriptFile, files, import_file

HELLO = '{"role": "user", "content": "hello"}\n'


def ended(looks: Iterator[int]) -> None:
    """Interrupt whoever looks too often."""
    if next(looks, None) is None:
        raise KeyboardInterrupt


def names(growing: GrowingFiles) -> list[str]:
    """Return the names of the files that have changed."""
    return [file.path.name for file in growing.look()]


def test_what_grows_or_is_new_is_told_once(tmp_path: Path) -> None:
    """Also in folders that are new or were empty; a file that goes and comes back is told again."""
    (tmp_path / "empty").mkdir()
    first = tmp_path / "a.jsonl"
    first.write_text(HELLO)
    growing = GrowingFiles([tmp_path])
    assert names(growing) == ["a.jsonl"]
    assert names(growing) == []
    with first.open("a") as file:
        file.write(HELLO)
    (tmp_path / "empty/b.jsonl").write_text(HELLO)
    assert names(growing) == ["a.jsonl", "b.jsonl"]
    (tmp_path / "new").mkdir()
    assert names(growing) == []
    (tmp_path / "new/c.jsonl").write_text(HELLO)
    assert names(growing) == ["c.jsonl"]
    first.unlink()
    assert names(growing) == []
    first.write_text(HELLO)
    assert names(growing) == ["a.jsonl"]


def test_what_is_written_over_is_told(tmp_path: Path) -> None:
    """Though it is as long as it was."""
    file = tmp_path / "a.jsonl"
    file.write_text(HELLO)
    growing = GrowingFiles([tmp_path])
    assert names(growing) == ["a.jsonl"]
    os.utime(file, ns=(0, 0))
    assert names(growing) == ["a.jsonl"]


@pytest.mark.sqlite_only
def test_what_the_store_did_not_take_is_read_again(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is busy or full when a file grows for the last time loses nothing of it."""
    (tmp_path / "talk.jsonl").write_text(HELLO)
    refusals = iter([StoreBusy("another writer"), StoreFull("the disk"), KeyboardInterrupt()])

    def refusing(store: Store, path: Path, **options: Any) -> ImportReport:
        report = import_file(store, path, **options) if len(tried) == 2 else None
        tried.append(path.name)
        if report is None:
            raise next(refusals)
        (tmp_path / "talk.jsonl").write_text(2 * HELLO)
        return report

    tried: list[str] = []
    monkeypatch.setattr(imports, "import_file", refusing)
    looks = iter(range(10))
    clock = SimpleNamespace(thread_time=lambda: 0.0, sleep=lambda _: ended(looks))
    monkeypatch.setattr(files, "time", clock)
    assert run("--db", "chat.db", "import", "talk.jsonl", "--watch").status == 0
    assert tried == 4 * ["talk.jsonl"]
    with Store(tmp_path / "chat.db") as store:
        assert [each.head for each in store.sessions()] == [1]


@pytest.mark.sqlite_only
def test_a_full_disk_is_told_once(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many files that the store did not take the first is named, and the others are counted."""
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(HELLO)

    def refuse(*_: Any, **__: Any) -> ImportReport:
        raise StoreFull("the disk is full")

    monkeypatch.setattr(imports, "import_file", refuse)
    Store(tmp_path / "chat.db").close()
    told = run("--db", "chat.db", "import", tmp_path)
    assert told.status == 2
    assert "3 files: 0 read, 3 refused" in told.out
    assert told.err.count("the disk is full") == 1
    assert "0.jsonl: the disk is full (2 more files like this)" in told.err


def test_a_line_that_is_being_written_is_not_told_as_broken(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look later it is whole; without --watch it is all that there is, and broken."""
    path = tmp_path / "talk.jsonl"
    path.write_text(HELLO + HELLO[:9])
    assert run("--db", "other.db", "import", "talk.jsonl").status == 1

    def wait(_: float) -> None:
        if path.read_text().endswith("\n"):
            raise KeyboardInterrupt
        path.write_text(HELLO * 2)

    clock = SimpleNamespace(thread_time=lambda: 0.0, sleep=wait)
    monkeypatch.setattr(files, "time", clock)
    ran = run("--db", "chat.db", "import", "talk.jsonl", "--watch")
    assert (ran.status, "left out" in ran.out + ran.err) == (0, False)
    with Store(tmp_path / "chat.db") as store:
        assert [each.head for each in store.sessions()] == [2]


def test_what_is_no_session_of_its_program_is_not_followed(tmp_path: Path) -> None:
    """Beside the sessions of a program other files grow all the time, and so does the store."""
    sessions = tmp_path / ".codex/sessions"
    sessions.mkdir(parents=True)
    for path in (sessions / "rollout-1.jsonl", tmp_path / ".codex/log.jsonl", tmp_path / "s.db"):
        path.write_text(HELLO)
    assert names(GrowingFiles([tmp_path], tmp_path / "s.db")) == ["rollout-1.jsonl"]


def test_a_database_grows_in_the_log_beside_it(tmp_path: Path) -> None:
    """Its own file is written later, when the program has time."""
    path, log = tmp_path / "state.vscdb", tmp_path / "state.vscdb-wal"
    path.write_text("x")
    growing = GrowingFiles([path])
    assert names(growing) == ["state.vscdb"]
    log.write_text("x")
    assert names(growing) == ["state.vscdb"]
    assert names(growing) == []
    log.unlink()
    assert names(growing) == ["state.vscdb"]


def told(stream: IO[str]) -> dict[str, Any]:
    """Return what the command says next of a file."""
    return dict(json.loads(stream.readline()))


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_the_command_follows_a_folder_until_it_is_interrupted(tmp_path: Path) -> None:
    """It says what each file has gained, goes on after a bad one, and ends well with Ctrl-C."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "talk.jsonl").write_text(HELLO)
    command = [sys.executable, "-m", "store", "--db", "chat.db", "import", "in"]
    with subprocess.Popen(
        [*command, "--watch", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert told(process.stdout)["sessions"][0]["appended"] == 1
        (folder / "bad.jsonl").write_text("no transcript")
        assert told(process.stdout)["skipped"] is True
        with (folder / "talk.jsonl").open("a") as file:
            file.write(HELLO * 2)
        assert told(process.stdout)["sessions"][0]["appended"] == 2
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=30)
    assert (process.returncode, rest, error) == (0, "", "")


@pytest.mark.sqlite_only
def test_the_command_tells_only_news(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note is told once, and a look that brings nothing says nothing."""
    path = tmp_path / "talk.jsonl"
    path.write_text(HELLO + "{'broken'\n")

    def rounds(_: GrowingFiles) -> Iterator[list[TranscriptFile]]:
        file = TranscriptFile(path, asked=True)
        yield [file]
        path.touch()
        yield [file]
        with path.open("a") as growing:
            growing.write(HELLO)
        yield [file]

    monkeypatch.setattr(GrowingFiles, "rounds", rounds)
    told = run("import", "--watch", path)
    assert told.status == 0
    first, note, second = told.out.splitlines()
    assert first == second == f"{path}: 1 new message"
    assert "line 2 is left out" in note
