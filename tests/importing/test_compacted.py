"""What a program took out of its model's sight is out of sight in the store, too, and comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store import Policy, Store
from store.importing import import_file

Row = dict[str, Any]
RAW = Policy.named("raw")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store of its own."""
    with Store(url, durability="normal") as opened:
        yield opened


def written(path: Path, rows: list[Row]) -> Path:
    """A file of these rows."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


class Claude:
    """Rows of Claude Code, one after the other."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, role: str, content: Any, **more: Any) -> None:
        """Add what somebody says."""
        number = len(self.rows)
        above = f"u{number - 1}" if number else None
        message = {"role": role, "content": content}
        row = {"type": role, "uuid": f"u{number}", "parentUuid": above, "sessionId": "c"}
        moment = f"2026-01-01T00:00:{number:02}Z"
        self.rows.append({**row, "timestamp": moment, "message": message, **more})

    def compacted(self, text: str, **metadata: Any) -> None:
        """Add what a compaction writes."""
        number = len(self.rows)
        boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "c"}
        above = {"uuid": f"u{number}", "parentUuid": None, "logicalParentUuid": f"u{number - 1}"}
        told = {"compactMetadata": {"trigger": "auto", "preTokens": 9, **metadata}}
        self.rows.append({**boundary, **above, **told})
        self.add("user", text, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def worked(self, name: str, *, whole: bool = True) -> None:
        """Add a question, a call, its result where it has one, an answer."""
        self.add("user", f"do {name}")
        call = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": "ls"}}
        self.add("assistant", [call])
        if whole:
            result = {"type": "tool_result", "tool_use_id": name, "content": f"result {name}"}
            self.add("user", [result])
        self.add("assistant", [{"type": "text", "text": f"did {name}"}])


def contents(store: Store, session: str = "c", **options: Any) -> list[Any]:
    """What a view says."""
    return [each["content"] for each in store.view(session, RAW, **options).messages]


def hidden(store: Store, session: str = "c") -> list[tuple[int, int] | None]:
    """The ranges that records name."""
    return [each.hidden for each in store.compactions(session) if each.outcome == "applied"]


def test_a_view_begins_with_the_summary(store: Store, tmp_path: Path) -> None:
    """As its program's requests did; all messages stay, and undoing brings them back."""
    told = Claude()
    told.worked("a")
    told.compacted("It did a.")
    told.worked("b")
    path = written(tmp_path / "c.jsonl", told.rows)
    import_file(store, path)
    assert contents(store)[:2] == ["It did a.", "do b"]
    assert hidden(store) == [(1, 4)]
    assert len(store.messages("c")) == 9
    assert contents(store, at=4)[0] == "do a"
    store.undo_compaction("c", store.compactions("c")[0].id)
    assert contents(store)[0] == "do a"
    import_file(store, path)
    assert contents(store)[0] == "do a"
    assert store.verify() == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("cut", range(1, 16))
def test_a_growing_file_is_compacted_once(store: Store, tmp_path: Path, cut: int) -> None:
    """Wherever it was imported first; the next summary stands for the one before, too."""
    told = Claude()
    told.worked("a")
    told.compacted("It did a.")
    told.worked("b")
    told.compacted("It did a and b.")
    told.add("user", "go on")
    path = written(tmp_path / "c.jsonl", told.rows[:cut])
    import_file(store, path)
    for _ in range(2):
        import_file(store, written(path, told.rows))
        assert contents(store) == ["It did a and b.", "go on"]
        assert hidden(store) == [(1, 4), (1, 9)]
    store.rewind("c", to=8)
    assert contents(store)[:2] == ["It did a.", "do b"]


def test_what_was_kept_in_sight_stays(store: Store, tmp_path: Path) -> None:
    """Newer programs say what that is; calls that nobody answered stay, too."""
    told = Claude()
    told.worked("a", whole=False)
    told.worked("b")
    told.worked("c")
    told.compacted("It did a.", preservedSegment={"headUuid": "u7"})
    import_file(store, written(tmp_path / "c.jsonl", told.rows))
    assert hidden(store) == [(1, 1), (3, 7)]
    said = contents(store, at=12)
    assert said[-1] == "It did a."
    assert "did c" in said
    assert "did b" not in said
    assert store.messages("c")[1].message["tool_calls"][0]["id"] == "a"


def rollout(*rows: Any) -> list[Row]:
    """Rows of Codex."""
    meta = {"type": "session_meta", "payload": {"id": "x", "timestamp": "2026-01-01T00:00:00Z"}}
    items = (row if "payload" in row else {"type": "response_item", "payload": row} for row in rows)
    return [
        {"timestamp": f"2026-01-01T00:00:{number:02}Z", **row}
        for number, row in enumerate([meta, *items])
    ]


def says(role: str, text: str) -> Row:
    """A message item."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def compacted(**payload: Any) -> Row:
    """A row that tells of a compaction."""
    return {"type": "compacted", "payload": payload}


def test_what_can_be_read_stands_for_a_rollout(store: Store, tmp_path: Path) -> None:
    """The latest question stays, and what the system says; the rest of the turn goes."""
    encrypted = {"type": "compaction", "encrypted_content": "x"}
    history = [says("developer", "be kind"), says("user", "why?"), encrypted]
    search = {"type": "web_search_call", "action": {"query": "x"}}
    rows = rollout(
        says("developer", "be kind"),
        says("user", "first"),
        says("assistant", "yes"),
        says("user", "why?"),
        search,
        says("user", "now?"),
        says("assistant", "because"),
        compacted(message="", replacement_history=history),
        says("assistant", "so"),
    )
    report = import_file(store, written(tmp_path / "x.jsonl", rows))
    assert not any(note.broken for note in report.notes)
    said = contents(store, "x")
    assert said[0] == "be kind"
    assert {"now?", "be kind\n\nwhy?", "so"} <= {*map(str, said)}
    assert not {"first", "yes", "because"} & {*map(str, said)}
    assert store.verify() == []


def test_a_summary_that_nobody_can_read_hides_nothing(store: Store, tmp_path: Path) -> None:
    """One that can be read stands for all; what was rolled back has none."""
    rows = rollout(says("user", "a"), says("assistant", "b"))
    sealed = compacted(message="", replacement_history=[{"type": "compaction"}])
    import_file(store, written(tmp_path / "x.jsonl", [*rows, sealed]))
    assert contents(store, "x") == ["a", "b"]
    told = [*rows, sealed, *rollout(says("user", "c"), says("assistant", "d"))[1:]]
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    path = tmp_path / "y.jsonl"
    import_file(store, written(path, [*told, compacted(message="It said.")]), session_id="y")
    assert contents(store, "y") == ["c", "It said."]
    import_file(store, written(path, [*told, compacted(message="It said."), back]), session_id="z")
    assert hidden(store, "z") == []
