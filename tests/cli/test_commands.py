"""The table of commands, and what a command imports."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from store import Store
from store.cli.commands import COMMANDS, command
from tests.conftest import ROOT

NAMES = [name for listed in COMMANDS.values() for name in listed]

#: What no command in daily use needs; those that keep no store need less.
SELDOM = {"alembic", "tiktoken", "openai", "store.transcripts", "store.importing"}
STORE = {*SELDOM, "sqlalchemy", "anyio", "store.face", "store.database"}


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_listed_by_the_first_line_of_its_help(name: str) -> None:
    """The table says again what the function says, so that the list needs no function."""
    listed = next(group[name] for group in COMMANDS.values() if name in group)
    found = command(name)
    assert found.name in {name, ""}
    assert found.help is not None
    assert found.help.splitlines()[0] == listed.line


def test_a_command_is_listed_once() -> None:
    """Under one heading."""
    assert [name for name, count in Counter(NAMES).items() if count > 1] == []


@pytest.mark.parametrize(
    ("arguments", "lacking"),
    [
        (["--help"], {*STORE, "pydantic"}),
        (["--version"], {*STORE, "rich.progress"}),
        (["polcy"], STORE),
        (["policy", "list"], STORE),
        (["--db", "chat.db", "sessions"], SELDOM),
        (["--db", "chat.db", "append", "talk", "Hello"], SELDOM),
        (["--db", "chat.db", "show", "talk"], SELDOM),
    ],
)
def test_a_command_imports_what_it_needs(
    tmp_path: Path, arguments: list[str], lacking: set[str]
) -> None:
    """Whoever asks for help waits for no store, and for a store nobody reads transcripts."""
    with Store(tmp_path / "chat.db") as store:
        store.create_session("talk")
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from store.cli import main;"
        f" main({arguments!r}); print(*{lacking!r} & {{*sys.modules}})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == ""
