"""The changes that CONTRIBUTING shows as diffs fit the code of today, and their tests pass."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT

PAGE = ROOT / "CONTRIBUTING.md"
MOST_FILES = {
    "a rule": 3,
    "a kind of transcript": 2,
    "a variant of a wire format": 1,
    "a column": 4,
}
"""Each exercise by the end of its heading, and the most files that it touches besides its test."""
Hunk = list[str]


class Change(NamedTuple):
    """The change of one file: its path, whether it is new, and its hunks."""

    path: str
    is_new: bool
    hunks: list[Hunk]

    @property
    def is_test(self) -> bool:
        """Whether the file is a test."""
        return self.path.startswith("tests/")

    def applied(self, text: str) -> str:
        """Return the changed text of the file; every hunk fits at exactly one place."""
        for hunk in self.hunks:
            before = "".join(line[1:] for line in hunk if line[0] in " -")
            after = "".join(line[1:] for line in hunk if line[0] in " +")
            assert self.is_new or text.count(before) == 1, f"{self.path} has not once:\n{before}"
            text = after if self.is_new else text.replace(before, after)
        return text


def exercises() -> dict[str, list[Change]]:
    """Return the changes of the diff under each heading that has one."""
    sections = re.split(r"^##+ ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    found = {}
    for section in sections:
        blocks = re.findall(r"^```diff\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        if blocks:
            found[section.partition("\n")[0]] = [*map(change, files_of("".join(blocks)))]
    return found


def files_of(diff: str) -> list[str]:
    """Return the part of a diff about each file."""
    return re.split(r"^(?=--- )", diff, flags=re.MULTILINE)[1:]


def change(part: str) -> Change:
    """Return the change of one file."""
    old, new, *lines = part.splitlines(keepends=True)
    hunks: list[Hunk] = []
    for line in lines:
        if line.startswith("@@"):
            hunks.append([])
        else:
            hunks[-1].append(line if line.strip() else " \n")
    return Change(new.removeprefix("+++ b/").strip(), "/dev/null" in old, hunks)


def test_each_exercise_is_shown_and_touches_few_files() -> None:
    """A newcomer sees all that is to be changed, and a test of it."""
    found = exercises()
    assert len(found) == len(MOST_FILES)
    for name, most in MOST_FILES.items():
        (changes,) = (each for heading, each in found.items() if heading.endswith(name))
        assert len([each for each in changes if not each.is_test]) <= most, name
        assert any(each.is_test for each in changes), name


@pytest.mark.parametrize("heading", exercises())
def test_a_diff_fits_the_code(heading: str) -> None:
    """The lines around a change are those of its file; a new file is not there yet."""
    for each in exercises()[heading]:
        path = ROOT / each.path
        assert path.exists() != each.is_new, each.path
        changed = each.applied("" if each.is_new else path.read_text("utf-8"))
        if path.suffix == ".py":
            compile(changed, each.path, "exec")


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.parametrize("heading", exercises())
def test_an_exercise_works(heading: str, tmp_path: Path) -> None:
    """Made in a copy of the project, the change passes its own test."""
    changes = exercises()[heading]
    for folder in ("store", "migrations", "prompts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.pyc"))
    (tmp_path / "tests").mkdir()
    for name in ("pyproject.toml", "README.md", *shared_modules()):
        shutil.copy(ROOT / name, tmp_path / name)
    for each in changes:
        path = tmp_path / each.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(each.applied("" if each.is_new else path.read_text("utf-8")), "utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n0", "--tb=short"),
            *(each.path for each in changes if each.is_test),
        ],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def shared_modules() -> list[str]:
    """Return the modules that tests share."""
    return [
        f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py") if "test_" not in path.name
    ]
