"""What a program kept beside its messages: counted, or on request notes beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from store import Store
from store.importing import import_file

Fields = dict[str, Any]


def row(kind: str, number: int, **fields: Any) -> Fields:
    """A row of a session."""
    above = f"u{number - 1}" if number > 1 else None
    at = f"2026-01-01T00:00:{number:02}Z"
    common = {"uuid": f"u{number}", "parentUuid": above, "sessionId": "c", "timestamp": at}
    return {"type": kind, **common, **fields}


def said(kind: str, number: int, text: str) -> Fields:
    """What one side says."""
    return row(kind, number, message={"role": kind, "content": text})


HOOK = row("system", 3, subtype="stop_hook_summary", hookCount=1)
COMMAND = row("system", 4, subtype="local_command", content="<command-name>/cost</command-name>")
MEMORY = row("attachment", 5, attachment={"type": "nested_memory", "content": "use tabs"})
PROGRESS = row("progress", 6, data={"type": "hook_progress", "hookEvent": "PostToolUse"})
STATE = row("system", 7, subtype="turn_duration", durationMs=5)
ROWS = [said("user", 1, "go"), said("assistant", 2, "gone"), HOOK, COMMAND, MEMORY, PROGRESS, STATE]
LATER = [said("user", 8, "on"), row("system", 9, subtype="local_command", content="/model")]


def write(path: Path, rows: list[Fields]) -> Path:
    """Write rows as lines."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    return path


def left_out(store: Store, path: Path, **options: Any) -> int:
    """How many rows were left out by an import."""
    return sum(note.left_out for note in import_file(store, path, **options).notes)


def test_what_stood_beside_is_counted_or_kept(url: str, tmp_path: Path) -> None:
    """The messages and what is sent of them are the same either way; a growing file adds notes."""
    path = write(tmp_path / "f.jsonl", ROWS)
    with Store(url, durability="normal") as store:
        assert left_out(store, path) == 5
        assert store.annotations("c") == []
        before = store.messages("c"), store.view("c").messages
        assert left_out(store, path, beside=True) == 1
        assert (store.messages("c"), store.view("c").messages) == before
        (note,) = store.annotations("c")
        assert (note.seq, note.key) == (2, "claude_code")
        assert note.value == [HOOK, COMMAND, MEMORY, PROGRESS]
        write(path, ROWS + LATER)
        assert left_out(store, path, beside=True) == 1
        assert [(each.seq, len(each.value)) for each in store.annotations("c")] == [(2, 4), (3, 1)]
        assert store.annotations("c")[0].at == note.at
        assert store.verify() == []


def test_what_stands_before_all_is_beside_the_first(url: str, tmp_path: Path) -> None:
    """And what cannot be kept is told."""
    first = {**COMMAND, "parentUuid": None}
    large = {
        **MEMORY,
        "parentUuid": "u2",
        "attachment": {"type": "nested_memory", "content": "x" * 2_000_000},
    }
    path = write(tmp_path / "f.jsonl", [first, *ROWS[:2], large])
    with Store(url, durability="normal") as store:
        report = import_file(store, path, beside=True)
        assert [note.broken for note in report.notes] == [True]
        (note,) = store.annotations("c")
        assert (note.seq, note.value) == (1, [first])
