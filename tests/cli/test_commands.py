"""The table of commands, and what a command imports."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from store import Store
from store.cli.commands import COMMANDS, import_command
from tests.conftest import ROOT

NAMES = [name for listed in COMMANDS.values() for name in listed]

#: What no command in daily use needs, and what only those need that are about a store.
SELDOM = {"alembic", "tiktoken", "anyio", "rich.progress", "store.transcripts", "store.importing"}
STORE = {*SELDOM, "sqlalchemy", "store.face", "store.database"}


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_listed_by_the_first_line_of_its_help(name: str) -> None:
    """The table says again what the function says, so that the list needs no function."""
    listed = next(group[name] for group in COMMANDS.values() if name in group)
    found = import_command(name)
    assert found.name in {name, ""}
    assert found.help is not None
    assert found.help.splitlines()[0] == listed.line


def test_a_command_is_listed_once() -> None:
    """Under one heading."""
    assert [name for name, count in Counter(NAMES).items() if count > 1] == []


def imported(folder: Path, *lines: str) -> set[str]:
    """Return the modules that a new process has imported when it has run these command lines."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from store.cli import main;"
        f" [main(line.split()) for line in {lines!r}]; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return {*done.stdout.splitlines()[-1].split()}


def test_whoever_asks_for_help_waits_for_no_store(tmp_path: Path) -> None:
    """Nor who asks for the version, errs, or looks at policies."""
    got = imported(tmp_path, "--help")
    assert "rich" in got
    assert got & {*STORE, "pydantic"} == set()
    got = imported(tmp_path, "--version", "polcy", "policy list")
    assert "pydantic" in got
    assert got & STORE == set()


def test_a_command_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    """No transcripts are read to list, to append and to show."""
    with Store(tmp_path / "convostore.db") as store:
        store.create_session("talk")
    got = imported(tmp_path, "sessions", "append talk Hello", "show talk", "view talk")
    assert "sqlalchemy" in got
    assert got & SELDOM == set()
