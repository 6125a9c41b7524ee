"""Sessions that are moved into other programs: written where these look, and over nothing."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run
from test_cli import failed

from store import Store, StoreError
from store.exporting import PROGRAM_NAMES, put_session, session_lines

pytestmark = pytest.mark.sqlite_only

HOMES = {
    "claude_code": ".claude/projects",
    "codex": ".codex/sessions",
    "gemini_cli": ".gemini/tmp",
    "qwen_code": ".qwen/projects",
    "pi": ".pi/agent/sessions",
}
TAKES = "#!/bin/sh\ncp \"$2\" taken.json\necho Imported session: $(sed 's/.*\\(ses_[0-9a-f]*\\).*/\\1/' $2)\n"
"""A program that takes a file, and names its session."""


@pytest.fixture
def store(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Give a store with a session of a project that is here, in a home of its own."""
    monkeypatch.setenv("HOME", str(Path.cwd()))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "QWEN_HOME"):
        monkeypatch.delenv(name, raising=False)
    Path("parcel").mkdir()
    with Store("convostore.db") as opened:
        opened.create_session("talk", title="Zones", project_root=str(Path("parcel").absolute()))
        for number in range(4):
            asked = {"role": "user", "content": f"Zone {number}?"}
            opened.append("talk", [asked, {"role": "assistant", "content": f"{number}."}])
        yield opened


def put_on_path(folder: Path, text: str) -> Path:
    """Write a program that is found first."""
    folder.mkdir(exist_ok=True)
    program = folder / "opencode"
    program.write_text(text)
    program.chmod(0o755)
    return folder


def list_files(folder: str) -> list[Path]:
    """Return the files below a folder."""
    return sorted(each for each in Path(folder).rglob("*") if each.is_file())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", HOMES)
def test_a_session_is_written_where_the_program_looks(
    store: Store, run: Run, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an export writes it, for its owner alone; a second time nothing is written."""
    monkeypatch.setenv("COLUMNS", "80")
    run("export", "talk", "--as", program, "-o", "exported")
    told = json.loads(run("move", "talk", "--to", program, "--yes", "--json").out)
    (file,) = list_files(HOMES[program])
    assert (told["file"], told["messages"]) == (str(file.absolute()), 8)
    assert told["next"].startswith(f"in {Path('parcel').absolute()}: ")
    assert file.read_bytes() == Path("exported").read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("gone on with")
    failed(run("move", "talk", "--to", program, "--yes"), "is there already", told["next"])
    assert [each.read_text() for each in list_files(HOMES[program])] == ["gone on with"]
    store.append("talk", {"role": "user", "content": "more"})
    assert run("move", "talk", "--to", program, "--yes").out.endswith("\n")
    assert len(list_files(HOMES[program])) == 2


def test_what_a_model_would_be_sent_is_moved(store: Store, run: Run) -> None:
    """With a policy of its own, or a part of the line."""
    moved = run("move", "talk", "--to", "pi", "--view", "--policy", "raw", "--at", 2, "--yes")
    assert moved.out.startswith("2 messages written to "), moved
    assert "Zone 1" not in list_files(HOMES["pi"])[0].read_text("utf-8")


def test_a_program_takes_the_file_itself(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the project's folder; it has to name the session, and it may be missing."""
    folder = put_on_path(Path("bin"), TAKES).absolute()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    ran = run("move", "talk", "--to", "opencode", "--yes")
    assert ran.out.startswith("8 messages written to `opencode import`\nin "), ran
    assert len(json.loads(Path("parcel/taken.json").read_text("utf-8"))["messages"]) == 8
    put_on_path(folder, "#!/bin/sh\necho File not found\n")
    failed(run("move", "talk", "--to", "opencode", "--yes"), "File not found")
    put_on_path(folder, "#!/bin/sh\nexit 3\n")
    failed(run("move", "talk", "--to", "opencode", "--yes"), "it ended with 3")
    put_on_path(folder, "no program")
    (folder / "opencode").unlink()
    failed(run("move", "talk", "--to", "opencode", "--yes"), "opencode is not on the PATH")


def test_what_cannot_be_moved_is_refused(store: Store, run: Run) -> None:
    """Nothing is written: no consent, no such program, no folder for it to work in."""
    failed(run("move", "talk", "--to", "codex"), "no terminal to ask on", "--yes")
    failed(run("move", "talk", "--to", "html", "--yes"), "'html'", *PROGRAM_NAMES)
    failed(run("move", "none", "--to", "codex", "--yes"), "none")
    failed(run("move", "talk", "--to", "codex", "--policy", "raw", "--yes"), "add --view")
    assert run("move", "talk", "--yes").status == 2
    store.set_project_root("talk", "/not/here")
    failed(run("move", "talk", "--to", "codex", "--yes"), "'/not/here'", "convostore project")
    store.set_project_root("talk", str(Path("parcel").absolute()))
    Path(".codex").write_text("no folder")
    failed(run("move", "talk", "--to", "codex", "--yes"), "cannot make the folder")
    assert not any(map(list_files, HOMES.values()))


def test_a_file_that_appears_meanwhile_stays(store: Store) -> None:
    """A session never takes the place of a file, nor leaves anything beside it."""
    written = session_lines(store, "talk", shape="codex")
    place = written.resumption.place if written.resumption else None
    assert place

    def lines() -> Iterator[str]:
        yield from written.lines
        place.write_text("of another program")

    with pytest.raises(StoreError, match="exists already"):
        put_session(store, written._replace(lines=lines()))
    assert [each.absolute() for each in list_files(HOMES["codex"])] == [place]
    assert place.read_text() == "of another program"
