"""Sessions that follow a growing file in what stands beside their messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import HeadMoved
from store.importing import import_file

DAY = 1_767_225_600_000
"""The first moment of 2026, in ms."""


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an empty store."""
    with Store(url) as opened:
        yield opened


def claude(number: int, content: object, **more: Any) -> dict[str, Any]:
    """Return a line of Claude Code, each a second after the one before."""
    kind = "assistant" if isinstance(content, list) else "user"
    line = {"type": kind, "uuid": f"u{number}", "sessionId": "s", "gitBranch": "main"}
    line["timestamp"] = f"2026-01-01T00:00:{number:02}Z"
    message_id = {"id": f"m{number}"} if kind == "assistant" else {}
    return line | {"message": {"role": kind, "content": content, **message_id}} | more


def taken(store: Store, path: Path, *lines: object, **options: Any) -> list[int]:
    """Import a file of some lines; return how many messages each session got."""
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return [each.appended for each in import_file(store, path, **options).sessions]


def test_who_appends_meanwhile_is_not_overtaken(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compared is not the end of the line any more, so nothing is put behind it."""
    path, lines = tmp_path / "talk.jsonl", [{"role": "user", "content": each} for each in "abc"]
    taken(store, path, *lines[:1])
    atomically = store.atomically

    def late(work: Any, **options: Any) -> Any:
        store.append("talk", lines[2])
        return atomically(work, **options)

    monkeypatch.setattr(store, "atomically", late)
    with pytest.raises(HeadMoved):
        taken(store, path, *lines[:2])
    assert [each.message["content"] for each in store.messages("talk")] == ["a", "c"]


def titled(kind: str, key: str, title: str) -> dict[str, Any]:
    """Return a line that gives a title."""
    return {"type": kind, key: title, "sessionId": "s"}


COMMAND = "<command-name>/clear</command-name><command-message>clear</command-message>"
AI = titled("ai-title", "aiTitle", "By a program")
CUSTOM = titled("custom-title", "customTitle", "By the user")
LINES = [claude(0, COMMAND), claude(1, "Mend it"), AI, CUSTOM, CUSTOM | {"customTitle": "Again"}]


def test_a_title_follows_the_file(store: Store, tmp_path: Path) -> None:
    """A command, then a prompt, then what a program and what the user called it."""
    titles = []
    for seen in range(1, len(LINES) + 1):
        taken(store, tmp_path / "s.jsonl", *LINES[:seen])
        titles.append(store.session("s").title)
    assert titles == ["/clear clear", "Mend it", "By a program", "By the user", "Again"]


def test_a_title_that_was_given_here_stays(store: Store, tmp_path: Path) -> None:
    """Whatever the file says later."""
    taken(store, tmp_path / "s.jsonl", *LINES[:3])
    store.rename_session("s", "Mine")
    taken(store, tmp_path / "s.jsonl", *LINES)
    assert store.session("s").title == "Mine"


def test_a_title_of_a_document_follows_it(store: Store, tmp_path: Path) -> None:
    """Metadata tell what the file called it before."""
    said = [{"role": "user", "content": "Mend it"}]
    titles = []
    for title in ({}, {"title": "New"}, {"title": "Newer"}):
        taken(store, tmp_path / "s.json", {"messages": said, **title})
        titles.append(store.session("s").title)
    assert titles == ["Mend it", "New", "Newer"]


def test_metadata_follow_the_file_and_lose_nothing(store: Store, tmp_path: Path) -> None:
    """Calls of subagents are added; keys of the store's own stay.

    So does what the first lines said the same: their messages do not say it.
    """
    call = {"type": "tool_use", "id": "c1", "name": "Task", "input": {}}
    result = [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]
    lines = [claude(0, "go"), claude(1, [call])]
    taken(store, tmp_path / "s.jsonl", *lines)
    store.set_metadata("s", {"rated": 5}, merge=True)
    lines.append(claude(2, result, type="user", toolUseResult={"agentId": "a1"}, gitBranch="new"))
    taken(store, tmp_path / "s.jsonl", *lines)
    metadata = store.session("s").metadata
    assert (metadata["agents"], metadata["rated"]) == ({"a1": "c1"}, 5)
    assert metadata["claude_code"]["gitBranch"] == "main"
    assert store.messages("s", 3)[0].message["claude_code"]["gitBranch"] == "new"


def rollout(kind: str, **payload: Any) -> dict[str, Any]:
    """Return a line of Codex."""
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def test_compactions_and_the_name_of_a_rollout_follow_it(store: Store, tmp_path: Path) -> None:
    """As if the file had been imported whole."""
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    lines = [rollout("session_meta", id="s", cwd="/p"), rollout("response_item", **said)]
    taken(store, tmp_path / "s.jsonl", *lines)
    assert store.session("s").title == "go"
    lines.append(rollout("compacted", message="It went."))
    lines.append(rollout("event_msg", type="thread_name_updated", thread_name="Named"))
    lines.append(rollout("turn_context", model="gpt", cwd="/p", summary=None))
    taken(store, tmp_path / "s.jsonl", *lines)
    taken(store, tmp_path / "whole.jsonl", *lines, session_id="whole")
    whole = store.session("whole")
    assert store.session("s").metadata == whole.metadata
    assert store.session("s").title == whole.title == "Named"
    assert len(whole.metadata["codex"]["compactions"]) == 1


def test_a_shorter_copy_of_a_file_takes_nothing_back(store: Store, tmp_path: Path) -> None:
    """And a second import of the same file changes nothing at all."""
    taken(store, tmp_path / "s.jsonl", *LINES)
    before = store.session("s")
    assert taken(store, tmp_path / "s.jsonl", *LINES) == [0]
    assert store.session("s") == before
    assert taken(store, tmp_path / "s.jsonl", LINES[0], AI) == [0]
    assert store.session("s") == before


def test_a_session_carries_the_times_of_its_messages(store: Store, tmp_path: Path) -> None:
    """It is listed where it belongs, however late it is imported; a rename of the file moves none."""
    store.create_session("later", now=DAY + 10_000)
    taken(store, tmp_path / "s.jsonl", claude(3, "go"))
    session = store.session("s")
    assert (session.created_at, session.updated_at) == (DAY + 3_000, DAY + 3_000)
    lines = [claude(3, "go"), claude(5, [{"type": "text", "text": "Gone."}]), AI]
    taken(store, tmp_path / "s.jsonl", *lines)
    session = store.session("s")
    assert (session.created_at, session.updated_at) == (DAY + 3_000, DAY + 5_000)
    assert session.title == "By a program"
    assert [each.id for each in store.sessions()] == ["later", "s"]
    assert store.messages("s")[-1].stored_at == DAY + 5_000


@pytest.mark.parametrize("told", [None, 0, "9999-01-01T00:00:00Z", "yesterday"])
def test_times_that_cannot_be_are_those_of_the_import(
    store: Store, tmp_path: Path, told: object
) -> None:
    """No message comes from the future, or from before there were any."""
    before = store.create_session("before").created_at
    taken(store, tmp_path / "s.jsonl", {"role": "user", "content": "go", "timestamp": told})
    created = store.session("s").created_at
    assert before <= created <= store.create_session("after").created_at


def test_the_first_message_may_tell_no_time(store: Store, tmp_path: Path) -> None:
    """A system prompt seldom does; one of the next messages is as good."""
    said = {"role": "user", "content": "go", "timestamp": DAY}
    taken(store, tmp_path / "s.jsonl", {"role": "system", "content": "You help."}, said)
    assert store.session("s").created_at == DAY
    assert [each.message for each in store.messages("s")][1] == said
