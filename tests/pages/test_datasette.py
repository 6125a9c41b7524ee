"""The metadata for Datasette, with Datasette itself, installed in an environment of its own."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from browse_pictures import fill

from store.cli import main

DATASETTE = os.environ.get("CONVOSTORE_DATASETTE") or shutil.which("datasette")

pytestmark = [
    pytest.mark.sqlite_only,
    pytest.mark.slow,
    pytest.mark.skipif(
        DATASETTE is None,
        reason="needs the command datasette, on PATH or named by CONVOSTORE_DATASETTE",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and its metadata."""
    made = tmp_path_factory.mktemp("datasette")
    fill(made / "chat.db")
    assert main(["--db", str(made / "chat.db"), "datasette", "-o", str(made / "told.json")]) == 0
    return made


def ask(folder: Path, address: str) -> str:
    """Return what Datasette answers to an address."""
    command = [str(DATASETTE), "chat.db", "--metadata", "told.json", "--get", address]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_a_view_is_described(folder: Path) -> None:
    """Its page has what it is, what its columns mean, and its facets."""
    told = json.loads((folder / "told.json").read_text("utf-8"))["databases"]["chat"]
    view = told["tables"]["session_log"]
    page = html.unescape(ask(folder, "/chat/session_log"))
    for text in (view["description"], *view["columns"].values()):
        assert text in page
    assert [name for name in view["facets"] if f'data-column="{name}"' not in page] == []


def test_ready_queries_are_answered(folder: Path) -> None:
    """Each by its name, under its question."""
    told = json.loads((folder / "told.json").read_text("utf-8"))["databases"]["chat"]
    for name, query in told["queries"].items():
        answer = json.loads(ask(folder, f"/chat/{quote(name)}.json"))
        assert answer["query"]["sql"] == query["sql"]
        assert answer.get("error") is None
        assert answer["columns"]
