"""Each program goes on with a session; `python -m tests.programs` tries ten."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from store import Store
from tests.mcp.real_agents import install_packages
from tests.programs import newest
from tests.programs.resuming import PROGRAMS, compare, resume_moved_session, resume_session
from tests.programs.sessions import KINDS, list_sessions, made_up

pytestmark = pytest.mark.sqlite_only


class Made(NamedTuple):
    """A folder with the programs, and a store with the sessions."""

    programs: Path
    store: Path


def make_store(folder: Path) -> Path:
    """Fill a store with the ten sessions."""
    project = folder / "parcel"
    project.mkdir()
    with Store(folder / "made.db") as store:
        names = [what for what, _ in list_sessions(store, folder, project)]
    assert len(names) == 10
    return folder / "made.db"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Give the programs, from npm, and the sessions."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("resumed")
    try:
        install_packages(folder, [each.package for each in PROGRAMS.values()])
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot install: {str(error)[:100]}")
    yield Made(folder, make_store(folder))
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("program", KINDS)
def test_a_program_goes_on_with_a_session(program: str, made: Made) -> None:
    """Its request has each text, each call, each result and each picture."""
    outcome = resume_session(program, made.programs, made.store, "talk")
    assert (outcome.missing, outcome.found) == ([], 11), outcome.printed


@pytest.mark.slow
@pytest.mark.parametrize("program", ["opencode", "codex"])
def test_a_program_goes_on_with_a_moved_session(program: str, made: Made) -> None:
    """One has a command that takes it, the other its file; moved again, nothing was lost."""
    for outcome in resume_moved_session(program, made.programs, made.store, "talk"):
        assert (outcome.missing, outcome.found) == ([], 11), outcome.printed


def test_what_a_request_lacks_is_told(tmp_path: Path) -> None:
    """A text, a call with other arguments, a picture; a text without its middle was shortened."""
    with Store(make_store(tmp_path)) as store:
        said = store.view("failures", format="anthropic").messages
        asked = {"messages": [*said, {"role": "user", "content": "Go on with the quinoa."}]}
        whole = compare(store, "failures", [asked], PROGRAMS["codex"], "")
        assert (whole.found, whole.missing, whole.cut) == (10, [], [])
        long = "line of a file that is long\n" * 700
        short = f"{long[:500]}…12000 chars truncated…{long[-500:]}"
        asked["messages"][4]["content"][0]["content"] = short
        asked["messages"][1]["content"] = []
        lacking = compare(store, "failures", [asked], PROGRAMS["codex"], "")
        assert len(lacking.missing) == 2
        assert len(lacking.cut) == 1
        assert len(compare(store, "failures", [asked], PROGRAMS["pi"], "").missing) == 3


def test_what_a_new_release_writes_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys and types that are new or gone; what of the session an import lacks."""
    path = tmp_path / "rollout-2026.jsonl"
    made_up.SAMPLES["codex"](path)
    shape = sorted(newest.describe_file(path))
    assert "<response_item>.payload<message>.role: str" in shape
    problems = [*newest.find_import_problems("codex", [path])]
    assert "no 'quinoa-4711' of the tool" in problems
    assert not [each for each in problems if "broken" in each or "second" in each]
    seen = newest.Seen("2", ["a: str", "b: str"], ["no call"], "")
    monkeypatch.setattr(newest, "see_program", lambda *_: seen)
    known = {"codex": {"version": "1", "shape": ["b: str", "c: number"]}}
    assert newest.report_newest("codex", tmp_path, known) == seen
    told = "codex 2 (before 1): NOT imported whole; 1 new, 1 gone"
    assert capsys.readouterr().out.splitlines() == [
        told,
        "  ! no call",
        "  + a: str",
        "  - c: number",
    ]
    assert json.loads(newest.SHAPES.read_text("utf-8")).keys() == PROGRAMS.keys()
