"""A long list of conversations is read item by item, and says what it says as a whole."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from store import StoreError, transcripts
from store.transcripts import source

READING = """
import sys
sys.path.append(sys.argv[2])
from confined import peak_memory
from store import transcripts
before = peak_memory()
sessions = sum(isinstance(each, transcripts.SessionEvent) for each in transcripts.read(sys.argv[1]))
print(sessions, (peak_memory() - before) * 1024)
"""
"""A program that prints the sessions of a file, and the bytes that reading it took at most."""

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def conversation(number: int, words: str = "hello") -> dict[str, Any]:
    """A conversation of ChatGPT with one question."""
    message = {
        "id": f"n{number}",
        "author": {"role": "user"},
        "content": {"content_type": "text", "parts": [f"{words} {number} 你好 ]}}{{["]},
    }
    nodes = {
        "root": {"id": "root", "message": None, "parent": None, "children": ["n"]},
        "n": {"id": "n", "message": message, "parent": "root", "children": []},
    }
    return {"conversation_id": f"c{number}", "mapping": nodes, "current_node": "n"}


@given(st.lists(JSON_VALUES), st.sampled_from((None, 1)), st.integers(1, 12))
def test_items_are_those_of_the_whole_list(
    values: list[Any], indent: int | None, chunk: int
) -> None:
    """However the text is cut into chunks."""
    text = f" {json.dumps(values, indent=indent)}\n "
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "LIST_CHUNK", chunk)
        assert [*source._decode_list_items(io.StringIO(text))] == values


@pytest.mark.parametrize(
    "text", ["", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "[1] x", "1", "[1}", '["a]']
)
def test_what_is_no_list_is_refused(text: str) -> None:
    """As a whole document it is refused, too."""
    with pytest.raises(ValueError, match=r"Expecting|Extra data|Unterminated"):
        [*source._decode_list_items(io.StringIO(text))]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short lists be long ones."""
    monkeypatch.setattr(source, "LONG_DOCUMENT", 1)
    monkeypatch.setattr(source, "LIST_CHUNK", 64)


def write(path: Path, values: object, packed: bool) -> Path:
    """Write a document, in an archive where it shall be packed."""
    text = json.dumps(values, indent=1)
    if packed:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("conversations.json", text)
    else:
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_events_are_those_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    """Sessions, messages and notes; values that are no conversation too."""
    values = [conversation(1), {"title": "nothing in it"}, *map(conversation, range(2, 40))]
    path = write(tmp_path / "conversations.json", values, packed)
    whole = [*transcripts.read(path)]
    monkeypatch.setattr(source, "LONG_DOCUMENT", 1)
    monkeypatch.setattr(source, "LIST_CHUNK", 64)
    counted: list[int] = []
    assert [*transcripts.read(path, lines=counted.append)] == whole
    assert (transcripts.sniff(path), counted) == ("chatgpt", [1])


@pytest.mark.usefixtures("short")
def test_a_list_that_ends_early_is_refused_whole(tmp_path: Path) -> None:
    """Nothing of it is taken for the whole, and the place is told."""
    path = write(tmp_path / "conversations.json", [*map(conversation, range(9))], packed=False)
    path.write_text(path.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    with pytest.raises(StoreError, match=r"not JSON: Expecting .* at line"):
        [*transcripts.read(path)]


@pytest.mark.usefixtures("short")
def test_a_list_of_other_kinds_is_read_whole(tmp_path: Path) -> None:
    """A conversation that is a list of messages stays one."""
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}] * 30
    path = write(tmp_path / "chat.json", said, packed=False)
    kinds = [type(event).__name__ for event in transcripts.read(path)]
    assert kinds.count("SessionMessage") == len(said)
    assert kinds.count("SessionEvent") == 1


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.parametrize("indent", [None, 1])
def test_memory_is_that_of_a_part(tmp_path: Path, indent: int | None) -> None:
    """A list of 20 MB takes less than half of that, whether on one row or on many."""
    values = [conversation(number, "word " * 4_000) for number in range(1_000)]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(values, indent=indent))
    child = subprocess.run(
        [sys.executable, "-c", READING, path, ROOT / "tests/importing"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    sessions, taken = map(int, child.stdout.split())
    size = path.stat().st_size
    assert (sessions, size > 20_000_000, taken < size / 2) == (1_000, True, True), taken
