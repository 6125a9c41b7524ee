"""Files of one name in several folders: what a kind tells no id of is named after its file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_up import SAMPLES

from store import Store
from store.importing import import_file
from store.messages import extract_content_text
from store.transcripts import SessionEvent, SessionMessage, read

NAMED_BY_FILE = {
    *("mini_swe_agent", "openai", "anthropic", "exchanges", "tau_bench", "swe_agent"),
    *("responses", "openhands", "sharegpt", "toolbench", "moatless"),
    *("moss", "agent_bench"),
    "grok_build",
    "kimi",
}

NAMED_BY_FOLDER = {"aider"}
"""Its history has one name everywhere, and is a project's."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give a store."""
    with Store(tmp_path / "chat.db", durability="normal") as opened:
        yield opened


def sample(folder: Path, kind: str) -> Path:
    """Write a file of a kind, of the same name in each folder."""
    folder.mkdir()
    SAMPLES[kind](folder / "chat")
    return next(folder.iterdir())


def names(path: Path) -> list[str]:
    """Return what the sessions of a file are called."""
    return [event.session_id for event in read(path) if isinstance(event, SessionEvent)]


def lines(store: Store) -> dict[str, list[Any]]:
    """Return what each session says."""
    return {each.id: [*store.messages(each.id)] for each in store.sessions()}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", sorted(SAMPLES.keys() - NAMED_BY_FOLDER))
def test_the_same_file_elsewhere_is_the_same_session(
    store: Store, tmp_path: Path, kind: str
) -> None:
    """In another folder nothing is new; under another name what is named after its file is."""
    one, other = (sample(tmp_path / name, kind) for name in "ab")
    import_file(store, one)
    before = lines(store)
    assert {each.appended for each in import_file(store, other).sessions} == {0}
    assert lines(store) == before
    renamed = one.rename(one.with_name(f"renamed{one.suffix}"))
    assert (names(renamed) != names(other)) is (kind in NAMED_BY_FILE)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", sorted(NAMED_BY_FILE))
def test_another_file_of_that_name_is_another_session(
    store: Store, tmp_path: Path, kind: str
) -> None:
    """It is told, and neither is written over; by a name of its own it comes in."""
    one, other = (sample(tmp_path / name, kind) for name in "ab")
    said = (event.message for event in read(one) if isinstance(event, SessionMessage))
    words = next(filter(None, (extract_content_text(each.get("content")) for each in said)))
    text = other.read_text()
    other.write_text(text.replace(json.dumps(words)[1:-1], "Other words."))
    assert other.read_text() != text
    import_file(store, one)
    before = lines(store)
    report = import_file(store, other)
    assert [note.broken for note in report.notes if "differs" in note.text]
    assert lines(store) == before
    import_file(store, other, session_id="mine")
    after = lines(store)
    assert {name: after[name] for name in before} == before
    assert "mine" in after
