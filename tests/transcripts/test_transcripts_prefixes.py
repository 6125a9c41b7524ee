"""Files that grow: each of their states, then the whole, is the whole at once; twice adds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts
from kind_checks import told as tell
from made_up import SAMPLES

from store import Policy, Store, StoreError
from store.exporting import export_session
from store.importing import import_file
from store.importing.comparison import remove_extra_keys
from store.transcripts import sniff

pytestmark = pytest.mark.sqlite_only

GROWING = (
    *("aider", "amp", "anthropic", "claude_code", "codex", "copilot_cli", "droid", "gemini_cli"),
    *("grok_build", "kimi", "kiro", "openai", "openhands", "pi", "qwen_code", "responses"),
    *("sharegpt", "stream_json", "traces", "vscode_chat"),
)
"""Kinds whose files a program writes on, or which are lists of lines."""
LINE_PROGRAMS = ("claude_code", "codex", "gemini_cli", "qwen_code", "pi")
"""Programs that write on a file of lines."""
MOST_EXPORTED = 30
"""Recordings that are written for each of them."""
LEFT_OUT = {
    "Resources_Fixtures": "made up by another project, which changes a session's id in the middle",
}
"""Parts of the names of recordings that are not the whole in the end, and why."""
MOST_STATES = 40
"""States of a recorded file, at most; of a shorter one every line ends one."""


def told(store: Store, name: str) -> list[Any]:
    """Return a session's title, its messages, its costs, and what would be sent.

    What a program says of a message beside it is as it was when the message came in.
    """
    title, messages, *spent = tell(store, name)
    sent = store.view(name, Policy.named("raw")).messages
    return [title, [remove_extra_keys(each) for each in messages], *spent, sent]


def list_states(lines: list[bytes], most: int) -> Iterator[bytes]:
    """Yield the beginnings of a file, each also with half of its next line, and the whole."""
    count = len(lines)
    ends = sorted({round(count * part / most) for part in range(most + 1)} | {1, count})
    for end in filter(None, ends):
        yield b"".join(lines[:end])
        if end < count and len(lines[end]) > 2:
            yield b"".join([*lines[:end], lines[end][: len(lines[end]) // 2]])


def check_states(path: Path, folder: Path, most: int) -> int:
    """Import each state of a file, and the whole; return the number of states."""
    kind, data = sniff(path), path.read_bytes()
    grown_path = folder / path.name
    states = [*list_states(data.splitlines(keepends=True), most)]
    with (
        Store(":memory:", durability="normal") as grown,
        Store(":memory:", durability="normal") as whole,
    ):
        for state in states:
            grown_path.write_bytes(state)
            try:
                import_file(grown, grown_path, kind=kind)
            except StoreError:
                continue  # nothing was said yet
        report = import_file(whole, path, kind=kind)
        last = import_file(grown, grown_path, kind=kind)
        assert [each.appended for each in last.sessions] == [0] * len(report.sessions)
        names = [each.id for each in report.sessions]
        assert {each.id for each in grown.sessions(limit=10_000)} == {*names}
        for name in names:
            assert told(grown, name) == told(whole, name), name
        again = import_file(whole, path, kind=kind)
        assert [each.appended for each in again.sessions] == [0] * len(names)
    return len(states)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", GROWING)
def test_a_growing_file_is_the_whole_in_the_end(tmp_path: Path, kind: str) -> None:
    """Of each kind, in the shape of its program; a line may be there in part."""
    path, grown = (tmp_path / name / "talk" / "sample.jsonl" for name in ("whole", "grown"))
    for each in (path, grown):  # some programs name a session after the folder
        each.parent.mkdir(parents=True)
    SAMPLES[kind](path)
    check_states(path, grown.parent, MOST_STATES)


def list_recordings() -> list[Path]:
    """Return the recorded files of lines."""
    found = sorted(TRANSCRIPTS.glob("*/*.jsonl"))
    return [path for path in found if not any(each in path.name for each in LEFT_OUT)]


def export_recordings(folder: Path) -> Iterator[Path]:
    """Yield recorded sessions as the programs with files of lines keep them."""
    for number, path in enumerate(sorted(TRANSCRIPTS.glob("c*/*.jsonl"))[:MOST_EXPORTED]):
        with Store(":memory:", durability="normal") as store:
            first = import_file(store, path).sessions[0].id
            for shape in LINE_PROGRAMS:
                file = folder / f"{shape}-{number}.jsonl"
                export_session(store, first, file, shape=shape)
                yield file


@needs_transcripts
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_recorded_files_that_grow_are_the_whole_in_the_end(tmp_path: Path, part: int) -> None:
    """Each recording, and recorded sessions as five programs keep theirs: more than 200 files."""
    grown, written = tmp_path / "grown", tmp_path / "written"
    for each in (grown, written):
        each.mkdir()
    recorded = [(path, MOST_STATES) for path in list_recordings()]
    exported = [(path, MOST_STATES // 4) for path in export_recordings(written)]
    files = [*recorded, *exported]
    assert len(files) > 200
    states = sum(check_states(path, grown, most) for path, most in files[part::4])
    print(len(files[part::4]), "files,", states, "states")
