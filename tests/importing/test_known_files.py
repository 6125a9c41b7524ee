"""A file that has not changed since its import is known by a look at its end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store import Scoped, Store
from store.importing import ImportReport, import_file, transcript

TALK = [
    {"role": "user", "content": "list the files"},
    {"role": "assistant", "content": "a.py and b.py"},
    {"role": "user", "content": "thanks"},
]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a file that holds the chat."""
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in TALK))
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the files that were read by imports."""
    found: list[str] = []
    read = transcript.open_transcript

    def opened(path: Path, **options: object) -> object:
        found.append(path.name)
        return read(path, **options)  # type: ignore[arg-type] # as import_file passes them

    monkeypatch.setattr(transcript, "open_transcript", opened)
    return found


def forgotten(store: Store, file: Path) -> ImportReport:
    """Return the report of an import that reads the file, whatever is remembered."""
    store.set_file_state(str(file), None)
    return import_file(store, file)


def test_an_unchanged_file_is_not_read_again(store: Store, file: Path, reads: list[str]) -> None:
    """The report is that of reading it, and the progress is complete."""
    first, told = import_file(store, file), []
    again = import_file(store, file, progress=lambda *done: told.append(done))
    assert reads == ["talk.jsonl"]
    assert told == [(file.stat().st_size, file.stat().st_size)]
    assert first.sessions[0].appended == 3
    assert again == forgotten(store, file)
    assert again.sessions[0] == first.sessions[0]._replace(appended=0)


def test_several_sessions_and_their_notes_are_known(
    store: Store, tmp_path: Path, reads: list[str]
) -> None:
    """All sessions of a file are reported, and what could not be read."""
    file = tmp_path / "several.jsonl"
    rows = [{"id": each, "messages": TALK} for each in ("one", "two")]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "no JSON\n")
    import_file(store, file)
    again = import_file(store, file)
    assert len(reads) == 1
    assert (len(again.sessions), len(again.notes)) == (2, 1)
    assert again == forgotten(store, file)
    store.delete_session(again.sessions[1].id)
    assert [each.appended for each in import_file(store, file).sessions] == [0, 3]


CHANGES: dict[str, Callable[[Store, Path], object]] = {
    "rewound": lambda store, _: store.rewind("talk", to=1),
    "appended to": lambda store, _: store.append("talk", TALK[0]),
    "erased": lambda store, _: store.delete_session("talk"),
    "redacted": lambda store, _: store.redact("talk", 2, "a secret"),
    "renamed": lambda store, _: store.rename_session("talk", "Files"),
    "of another file": lambda store, _: store.set_origin("talk", "openai", "other.jsonl"),
    "longer": lambda _, file: file.write_text(f"{file.read_text()}{json.dumps(TALK[0])}\n"),
    "touched": lambda _, file: os.utime(file, ns=(1, 1)),
    "another file": lambda _, file: (
        file.with_suffix(".new").write_bytes(file.read_bytes())
        and file.with_suffix(".new").replace(file)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_read_again(
    store: Store, file: Path, reads: list[str], change: str
) -> None:
    """A session or a file that changed is imported as if nothing were remembered."""
    import_file(store, file)
    CHANGES[change](store, file)
    import_file(store, file)
    assert len(reads) == 2
    lines = len(file.read_text().splitlines())
    assert len(store.messages("talk", stop=lines)) == lines


def test_other_options_read_the_file_again(store: Store, file: Path, reads: list[str]) -> None:
    """Limits are kept, too."""
    import_file(store, file)
    import_file(store, file, kind="openai")
    import_file(store, file, session_id="other")
    import_file(store, file, max_bytes=1_000_000)
    assert len(reads) == 4


def test_a_hidden_range_is_hidden_again(store: Store, tmp_path: Path, reads: list[str]) -> None:
    """A compaction of the file that was undone in the store is no unchanged session."""
    file = tmp_path / "codex.jsonl"
    said = [
        {"role": "user", "content": [{"type": "input_text", "text": "list the files"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "a.py"}]},
    ]
    rows = [
        {"type": "session_meta", "payload": {"id": "c", "timestamp": "2026-01-01T00:00:00Z"}},
        *({"type": "response_item", "payload": {"type": "message", **each}} for each in said),
        {"type": "compacted", "payload": {"message": "there is a.py"}},
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    [session] = import_file(store, file).sessions
    [hidden] = store.compactions(session.id)
    import_file(store, file)
    assert len(reads) == 1
    assert hidden.id is not None
    store.undo_compaction(session.id, hidden.id)
    import_file(store, file)
    assert len(reads) == 2


def test_an_owner_knows_only_own_files(store: Store, file: Path, reads: list[str]) -> None:
    """Whether another owner has imported a file cannot be told; a scoped import is known again."""
    import_file(store, file)
    scoped: Scoped = store.scoped("ann")
    first, again = import_file(scoped, file), import_file(scoped, file)
    assert len(reads) == 2
    assert first.sessions[0].appended == 3
    assert again.sessions[0] == first.sessions[0]._replace(appended=0)
    assert scoped.file_state(str(file)) != store.file_state(str(file))


def test_nothing_is_remembered_of_an_erased_session(store: Store, file: Path) -> None:
    """What is remembered may quote the file."""
    import_file(store, file)
    assert store.file_state(str(file))
    store.delete_session("talk")
    assert store.file_state(str(file)) is None


@pytest.mark.parametrize("state", ["", "no json", "[]", "{}", '{"mark": 1, "asked": 2}', "null"])
def test_another_text_is_no_memory(store: Store, file: Path, state: str) -> None:
    """Anybody may set one; the file is read then."""
    import_file(store, file)
    store.set_file_state(str(file.absolute()), state)
    assert [each.appended for each in import_file(store, file).sessions] == [0]
