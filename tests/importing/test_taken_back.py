"""Prompts that are taken back: rewinds of the store, and sessions that continue what was left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.importing import ImportReport, import_file

Line = dict[str, Any]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url) as opened:
        yield opened


def said(uuid: str, parent: str | None, **more: Any) -> Line:
    """Return a line of Claude Code; an answer's uuid begins with "a"."""
    role = "assistant" if uuid.startswith("a") else "user"
    message = {"role": role, "content": [{"type": "text", "text": uuid}]}
    if role == "assistant":
        message["id"] = f"m-{uuid}"
    line = {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s"}
    return line | {"timestamp": "2026-01-01T00:00:00Z", "message": message} | more


NESTED = [
    said("u1", None),
    said("a1", "u1"),
    said("u2", "a1"),
    said("a2", "u2"),
    said("u3", "a2"),
    said("a3", "u3"),
    said("u4", "a2"),
    said("a4", "u4"),
    said("u5", "a1"),
    said("a5", "u5"),
]
"""The third prompt is taken back, then the second with all that followed."""

LINES = {
    "s": ["u1", "a1", "u5", "a5"],
    "s/branch-u2": ["u1", "a1", "u2", "a2", "u4", "a4"],
    "s/branch-u3": ["u1", "a1", "u2", "a2", "u3", "a3"],
}
"""What each session's line says in the end."""


def taken(store: Store, path: Path, lines: list[Line], **options: Any) -> ImportReport:
    """Import a file of some lines."""
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return import_file(store, path, **options)


def words(store: Store, session_id: str) -> list[str]:
    """Return what each message of a line says."""
    found = []
    for each in store.messages(session_id):
        content = each.message["content"]
        found.append(content if isinstance(content, str) else content[0]["text"])
    return found


def lines_of(store: Store) -> dict[str, list[str]]:
    """Return what each session's line says."""
    return {each.id: words(store, each.id) for each in store.sessions()}


def test_a_branch_is_a_fork_at_its_position(store: Store, tmp_path: Path) -> None:
    """So its view has what came before; nothing of that is stored again."""
    report = taken(store, tmp_path / "s.jsonl", NESTED)
    assert lines_of(store) == LINES
    assert [(each.id, each.appended) for each in report.sessions] == [
        ("s", 4),
        ("s/branch-u2", 4),
        ("s/branch-u3", 2),
    ]
    branch = store.session("s/branch-u3")
    assert (branch.forked_from, branch.forked_at, branch.title) == ("s/branch-u2", 4, "u3")
    assert branch.metadata["forked_after"] == "m-a2"
    assert [each.appended for each in import_file(store, tmp_path / "s.jsonl").sessions] == [0] * 3


def test_a_session_can_be_imported_before_and_after_what_is_taken_back(
    store: Store, tmp_path: Path
) -> None:
    """Line by line: it is never left alone, and nothing is stored twice."""
    appended = 0
    for seen in range(1, len(NESTED) + 1):
        report = taken(store, tmp_path / "s.jsonl", NESTED[:seen])
        assert all(each.differs_at is None for each in report.sessions)
        assert not any(note.broken for note in report.notes)
        appended += sum(each.appended for each in report.sessions)
    assert lines_of(store) == LINES
    assert appended == len(NESTED)


@pytest.mark.parametrize("first", [4, 6, 8])
def test_what_was_left_is_the_beginning_of_its_session(
    store: Store, tmp_path: Path, first: int
) -> None:
    """The rewind can be undone, and tells of itself."""
    taken(store, tmp_path / "s.jsonl", NESTED[:first])
    report = taken(store, tmp_path / "s.jsonl", NESTED)
    assert lines_of(store) == LINES
    assert sum(each.appended for each in report.sessions) == len(NESTED) - first
    assert "position 2 of 's' was taken back" in " ".join(note.text for note in report.notes)


def test_what_was_said_in_the_store_is_not_taken_back(store: Store, tmp_path: Path) -> None:
    """A line that went on here differs from its file, as before."""
    taken(store, tmp_path / "s.jsonl", NESTED[:4])
    store.append("s", {"role": "user", "content": "here"})
    report = taken(store, tmp_path / "s.jsonl", NESTED)
    assert report.sessions[0].differs_at == 3
    assert words(store, "s") == ["u1", "a1", "u2", "a2", "here"]


def test_names_that_are_asked_for_hang_together(store: Store, tmp_path: Path) -> None:
    """Branches continue the session under its new name."""
    taken(store, tmp_path / "s.jsonl", NESTED, session_id="mine")
    expected = {name.replace("s", "mine", 1): line for name, line in LINES.items()}
    assert lines_of(store) == expected


def test_the_first_prompt_may_be_taken_back(store: Store, tmp_path: Path) -> None:
    """Nothing stands before it: its session begins anew, or is what was left."""
    lines = [said("a0", None), *(said(uuid, "a0") for uuid in ("u1", "a1", "u2"))]
    lines[2]["parentUuid"] = "u1"
    for seen in (3, 4):
        taken(store, tmp_path / "s.jsonl", lines[:seen])
    assert lines_of(store) == {"s": ["a0", "u2"], "s/branch-u1": ["a0", "u1", "a1"]}


def item(role: str, text: str) -> Line:
    """Return an item of a rollout."""
    payload = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}


def back(turns: int) -> Line:
    """Return a line that takes turns back."""
    payload = {"type": "thread_rolled_back", "num_turns": turns}
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "event_msg", "payload": payload}


ROLLOUT = [
    {"timestamp": "t", "type": "session_meta", "payload": {"id": "s", "cwd": "/p"}},
    item("user", "u1"),
    item("assistant", "a1"),
    item("user", "u2"),
    item("assistant", "a2"),
    item("user", "u3"),
    back(1),
    item("user", "u4"),
    item("assistant", "a4"),
    back(2),
    item("user", "u5"),
    item("assistant", "a5"),
]
"""The same as above in a rollout, whose messages have no ids."""


def test_a_rollout_can_be_imported_before_and_after_it_is_rolled_back(
    store: Store, tmp_path: Path
) -> None:
    """Line by line, also where nothing follows the rollback yet."""
    for seen in range(2, len(ROLLOUT) + 1):
        report = taken(store, tmp_path / "s.jsonl", ROLLOUT[:seen])
        assert all(each.differs_at is None for each in report.sessions), seen
        if ROLLOUT[seen - 1] == back(1):
            assert words(store, "s") == ["u1", "a1", "u2", "a2"]
    assert lines_of(store) == {
        "s": ["u1", "a1", "u5", "a5"],
        "s/branch-2": ["u1", "a1", "u2", "a2", "u4", "a4"],
        "s/branch-1": ["u1", "a1", "u2", "a2", "u3"],
    }


def test_a_result_that_was_written_before_its_call_is_put_behind_it(
    store: Store, tmp_path: Path
) -> None:
    """An import between the two lines does not hold the session up."""
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "done"}
    lines = [said("u1", None), said("u2", "a1"), said("a1", "u1"), said("u3", "u2")]
    lines[1]["message"]["content"] = [result]
    lines[2]["message"]["content"] = [call]
    for seen in range(1, len(lines) + 1):
        report = taken(store, tmp_path / "s.jsonl", lines[:seen])
        assert report.sessions[0].differs_at is None
    roles = [each.message["role"] for each in store.messages("s")]
    assert roles == ["user", "assistant", "tool", "user"]
