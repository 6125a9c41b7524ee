"""Subagents whose messages stand in rows of progress, what others cost, and resumed sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts

from store import Store
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read

Row = dict[str, Any]


def row(kind: str, number: int, content: Any, **more: Any) -> Row:
    """What somebody says."""
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"m{number}", "model": "claude-haiku-4-5", "usage": {"output_tokens": 7}}
    moment = f"2026-01-01T00:00:{number:02}Z"
    return {"type": kind, "uuid": f"u{number}", "timestamp": moment, "message": message, **more}


def own(kind: str, number: int, content: Any, **more: Any) -> Row:
    """A row of the main line."""
    above = f"u{number - 1}" if number > 1 else None
    place = {"sessionId": "S", "cwd": "/p", "parentUuid": above}
    return row(kind, number, content, **place | more)


def shown(kind: str, number: int, content: Any) -> Row:
    """A row of progress that holds what a subagent says."""
    data = {"type": "agent_progress", "agentId": "a1", "prompt": "look", "normalizedMessages": []}
    data["message"] = row(kind, number, content)
    place = {"uuid": f"p{number}", "parentUuid": "u2", "sessionId": "S", "cwd": "/p"}
    return {"type": "progress", "data": data, "parentToolUseID": "task", "toolUseID": "x", **place}


CALL = [{"type": "tool_use", "id": "task", "name": "Task", "input": {"prompt": "look"}}]
LOOK = [{"type": "tool_use", "id": "ls", "name": "Bash", "input": {"command": "ls"}}]
SEEN = [{"type": "tool_result", "tool_use_id": "ls", "content": "a.py"}]
DONE = [{"type": "tool_result", "tool_use_id": "task", "content": "one file"}]
AGENT = [("user", 11, "look"), ("assistant", 12, LOOK), ("user", 13, SEEN)]
COST = {"totalTokens": 90, "totalDurationMs": 5, "usage": {"output_tokens": 7}}
SESSION = [
    own("user", 1, "go"),
    own("assistant", 2, CALL),
    *(shown(*each) for each in AGENT),
    own("user", 3, DONE, parentUuid="p13", toolUseResult={**COST, "content": "one file"}),
    own("assistant", 4, [{"type": "text", "text": "One."}]),
]


def written(path: Path, rows: list[Row]) -> Path:
    """A file of these rows."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows), "utf-8")
    return path


def test_a_subagent_in_progress_is_a_session(url: str, tmp_path: Path) -> None:
    """With what it cost, linked to its call; the main line is as it was."""
    with Store(url, durability="normal") as store:
        report = import_file(store, written(tmp_path / "S.jsonl", SESSION))
        assert [each.id for each in report.sessions] == ["S", "S/agent-a1"]
        assert [each.message["role"] for each in store.messages("S")] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        agent = store.session("S/agent-a1")
        assert agent.metadata["parent_call"] == "task"
        assert [each.message["content"] for each in store.messages(agent.id)][::2] == [
            "look",
            "a.py",
        ]
        assert [each.output for each in store.usages(agent.id)] == [7]
        result = store.messages("S")[2].message
        assert result["claude_code"]["agent_cost"] == COST
        envelope = {"sessionId": "S", "cwd": "/p", "isSidechain": True, "agentId": "a1"}
        alone = [{**row(*each), "parentUuid": None, **envelope} for each in AGENT]
        again = import_file(store, written(tmp_path / "agent-a1.jsonl", alone))
        assert [(each.id, each.appended, each.differs_at) for each in again.sessions] == [
            ("S/agent-a1", 0, None)
        ]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_subagent_may_have_a_file_of_its_own_too(
    url: str, tmp_path: Path, is_first: bool
) -> None:
    """Whichever is read first, they do not differ, and what only one of them tells is there.

    Rows of progress have as a part what the subagent's own file has as a text.
    """
    parts = [{"type": "text", "text": "look"}]
    rows = [shown("user", 11, parts) if each == shown(*AGENT[0]) else each for each in SESSION]
    agent = {"isSidechain": True, "agentId": "a1"}
    ends = ("assistant", 14, [{"type": "text", "text": "one file"}])
    alone = [own(*each, **agent) for each in (*AGENT, ends)]
    alone[0]["parentUuid"] = None
    files = [written(tmp_path / "agent-a1.jsonl", alone), written(tmp_path / "S.jsonl", rows)]
    with Store(url, durability="normal") as store:
        for path in files if is_first else reversed(files):
            report = import_file(store, path)
            assert [each.differs_at for each in report.sessions if each.differs_at] == []
        assert store.session("S/agent-a1").head == 4
        assert store.session("S").head == 4


def test_a_row_of_progress_that_says_nothing_is_counted(tmp_path: Path) -> None:
    """As any that is no conversation; a result without a cost has none."""
    odd = shown("user", 5, "x")
    odd["data"]["message"]["type"] = "stream"
    rows = [*SESSION[:2], odd, own("user", 3, DONE, toolUseResult={"totalDurationMs": 5})]
    events = [*read(written(tmp_path / "S.jsonl", rows))]
    assert sum(isinstance(each, SessionEvent) for each in events) == 1
    assert next(each.text for each in events if isinstance(each, NoteEvent)) == (
        "left out 1 progress line (1 agent_progress)"
    )
    said = [each.message for each in events if isinstance(each, SessionMessage)]
    assert "agent_cost" not in said[-1]["claude_code"]


def test_a_subagent_grows_with_the_file(url: str, tmp_path: Path) -> None:
    """Imported after each line, it and the main line are what they are when imported at once."""
    with Store(url, durability="normal") as store:
        path = tmp_path / "S.jsonl"
        for end in range(1, len(SESSION) + 1):
            report = import_file(store, written(path, SESSION[:end]))
            assert [each.differs_at for each in report.sessions if each.differs_at] == []
        with Store(":memory:") as other:
            import_file(other, path)
            for name in ("S", "S/agent-a1"):
                found, whole = ([*each.messages(name)] for each in (store, other))
                assert [each.message for each in found] == [each.message for each in whole]
                spent, once = ([*each.usages(name)] for each in (store, other))
                assert [each.output for each in spent] == [each.output for each in once]
        assert store.session("S/agent-a1").metadata["parent_call"] == "task"


@needs_transcripts
def test_recorded_subagents_are_whole() -> None:
    """Each message that rows of progress tell is there once, with what it and its call cost."""
    counted = 0
    for path in sorted((TRANSCRIPTS / "claude_code_jsonl").iterdir()):
        lines = path.read_text("utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        agents = told_by_progress(rows)
        if not agents:
            continue
        with Store(":memory:") as store:
            main = import_file(store, path).sessions[0].id
            for agent, said in agents.items():
                answers = {
                    each["message"]["id"]: each["message"]["usage"]["output_tokens"]
                    for each in said
                    if each["type"] == "assistant"
                }
                asked = [each for each in said if each["type"] == "user"]
                session = store.session(f"{main}/agent-{agent}")
                assert session.head == len(asked) + len(answers)
                assert session.metadata["parent_call"]
                spent = [each.output for each in store.usages(session.id)]
                assert sum(spent) == sum(answers.values())
                counted += 1
            beside = [each.message["claude_code"] for each in store.messages(main)]
            costs = [each["agent_cost"] for each in beside if "agent_cost" in each]
            told = [row["toolUseResult"] for row in rows if "totalTokens" in result_of(row)]
            for key in ("totalTokens", "usage"):
                assert [each[key] for each in costs] == [each[key] for each in told]
    assert counted >= 4


def told_by_progress(rows: list[Row]) -> dict[str, list[Row]]:
    """What each subagent says in rows of progress."""
    agents: dict[str, list[Row]] = {}
    for row in rows:
        data = row.get("data") or {}
        if data.get("type") == "agent_progress":
            agents.setdefault(data["agentId"], []).append(data["message"])
    return agents


def result_of(row: Row) -> Row:
    """What a row says of a result beside it, where that is an object."""
    told = row.get("toolUseResult")
    return told if isinstance(told, dict) else {}


def test_a_resumed_session_is_linked_to_what_it_continues(url: str, tmp_path: Path) -> None:
    """With the rows that it copied, each once; the session that it continues stays as it was."""
    copied = [{**each, "sessionId": "S"} for each in SESSION[:2]]
    own_rows = [own("user", 21, "and now?", sessionId="T", parentUuid="u2")]
    with Store(url, durability="normal") as store:
        import_file(store, written(tmp_path / "S.jsonl", SESSION))
        before = store.messages("S")
        resumed = import_file(store, written(tmp_path / "T.jsonl", [*copied, *own_rows]))
        assert [each.id for each in resumed.sessions] == ["T"]
        assert store.session("T").metadata["parent_session"] == "S"
        assert [each.message["role"] for each in store.messages("T")] == [
            "user",
            "assistant",
            "user",
        ]
        assert store.messages("S") == before
        alone = [own("user", 31, "go on", sessionId="U", parentUuid="u2")]
        import_file(store, written(tmp_path / "U.jsonl", alone))
        assert store.session("U").metadata["continues"] == "u2"


def test_a_resumed_session_says_what_it_continues(tmp_path: Path) -> None:
    """By the id that its first rows have, and by the row that stands in another file."""
    rows = [own("user", 2, "go", sessionId="old"), own("assistant", 3, [], sessionId="new")]
    opened = next(iter(read(written(tmp_path / "new.jsonl", rows))))
    assert isinstance(opened, SessionEvent)
    assert (opened.session_id, opened.metadata["parent_session"]) == ("new", "old")
    assert opened.metadata["continues"] == "u1"
    whole = next(iter(read(written(tmp_path / "S.jsonl", SESSION))))
    assert isinstance(whole, SessionEvent)
    assert not {"parent_session", "continues"} & whole.metadata.keys()


def test_titles_that_were_taken_are_counted(tmp_path: Path) -> None:
    """As every line of a file is."""
    titles = [{"type": "custom-title", "customTitle": each, "sessionId": "S"} for each in "ab"]
    notes = [*read(written(tmp_path / "S.jsonl", [*SESSION, *titles]))]
    texts = [each.text for each in notes if isinstance(each, NoteEvent)]
    assert "took titles from 2 custom-title lines, the last counts" in texts
