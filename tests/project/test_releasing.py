"""The script that makes a release: what it refuses, and a dry run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.sqlite_only


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with the Python of the tests, and its own author of commits."""
    named = {
        f"GIT_{who}_{what}": "a@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    given = {**os.environ, **named, "PATH": path}
    return subprocess.run(
        command, cwd=folder, env=given, capture_output=True, text=True, check=False
    )


def commit_files(folder: Path, **changed: str) -> None:
    """Make a repository of the files that the script looks at."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/release", folder / ".ci/release")
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 – 2026-01-02\n", "utf-8")
    for name, content in changed.items():
        (folder / name.replace("_", ".")).write_text(content, "utf-8")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        assert run(["git", *command], folder).returncode == 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"CHANGELOG_md": "## 1.2.0 – unreleased\n"}, "the date of the release"),
        ({"CHANGELOG_md": "## 1.1.0 – 2026-01-02\n"}, "no heading '## 1.2.0"),
        ({"pyproject_toml": "[project]\n"}, "no version"),
    ],
    ids=("undated", "unwritten", "no version"),
)
def test_an_unready_release_is_refused(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    """Before anything is built."""
    commit_files(tmp_path, **changed)
    done = run([".ci/release"], tmp_path)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_a_tagged_release_and_changed_files_are_refused(tmp_path: Path) -> None:
    """Also by a dry run."""
    commit_files(tmp_path)
    run(["git", "tag", "v1.2.0"], tmp_path)
    assert "v1.2.0 is tagged" in run([".ci/release", "--dry-run"], tmp_path).stderr
    (tmp_path / "new.txt").touch()
    assert "commit first" in run([".ci/release", "--dry-run"], tmp_path).stderr
    assert run([".ci/release", "--wet"], tmp_path).returncode == 2


@pytest.mark.slow
def test_a_dry_run_builds_and_checks_and_leaves_nothing(tmp_path: Path) -> None:
    """The distributions of the project itself."""
    for module in ("build", "hatchling", "twine"):
        pytest.importorskip(module)
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone of the repository")
    clone = tmp_path / "clone"
    assert run(["git", "clone", "-q", "--no-tags", str(ROOT), str(clone)], tmp_path).returncode == 0
    done = run([".ci/release", "--dry-run"], clone)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("PASSED") == 2
    assert "would be tagged: v" in done.stdout
    assert run(["git", "tag"], clone).stdout == ""
    assert run(["git", "status", "--porcelain", "--ignored"], clone).stdout == ""
