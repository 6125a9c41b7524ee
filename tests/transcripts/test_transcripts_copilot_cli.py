"""Sessions of Copilot CLI: made up in the shape of real ones."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from store import Store
from store.importing import import_file
from store.transcripts import CompactionEvent, NoteEvent, SessionEvent, SessionMessage, read, sniff

START = {
    "sessionId": "s",
    "copilotVersion": "1.0.64",
    "selectedModel": "gpt-5-mini",
    "context": {"cwd": "/w", "branch": "main"},
}


def events(*told: tuple[str, dict[str, Any]], **envelope: Any) -> list[dict[str, Any]]:
    """Return events, the first of which begins a session; each follows the one before it."""
    names = count(1)
    rows: list[dict[str, Any]] = []
    for kind, data in (("session.start", START), *told):
        before = rows[-1]["id"] if rows else None
        row = {"type": kind, "data": data, "id": f"e{next(names)}", "parentId": before}
        rows.append({**row, "timestamp": "2026-01-01T00:00:01.5Z", **envelope})
    return rows


def asked(text: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """Return what a user typed."""
    sent = f"<current_datetime>now</current_datetime>\n\n{text}"
    return "user.message", {"content": text, "transformedContent": sent, "attachments": [], **more}


def answered(text: str, *calls: dict[str, Any], **more: Any) -> tuple[str, dict[str, Any]]:
    """Return an answer."""
    said = {"content": text, "toolRequests": list(calls), "model": "gpt-5", "outputTokens": 9}
    return "assistant.message", {"messageId": "m", **said, **more}


def call(name: str, arguments: Any) -> dict[str, Any]:
    """Return a request of a tool."""
    return {"toolCallId": name, "name": "bash", "arguments": arguments, "type": "function"}


def done(name: str, text: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """Return the result of a call."""
    result = {"content": text, "detailedContent": text}
    return "tool.execution_complete", {
        "toolCallId": name,
        "success": True,
        "result": result,
        **more,
    }


def write(path: Path, *rows: dict[str, Any]) -> Path:
    """Write events as lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in read(path) if isinstance(event, SessionMessage)]


def opened(path: Path) -> list[SessionEvent]:
    """Return the sessions of a file."""
    return [event for event in read(path) if isinstance(event, SessionEvent)]


TURN = (
    ("system.message", {"role": "system", "content": "You are a CLI."}),
    asked("List the files"),
    ("assistant.turn_start", {"turnId": "0"}),
    answered("", call("c1", {"command": "ls"}), call("c2", "ls -a"), reasoningText="Hm."),
    ("tool.execution_start", {"toolCallId": "c1"}),
    done("c1", "a.txt"),
    done("c2", "", success=False, result=None, error={"message": "denied", "code": "denied"}),
    ("assistant.reasoning", {"content": "All seen."}),
    answered("Done."),
)


def test_a_file_is_a_session(tmp_path: Path) -> None:
    """What was typed, said, called and thought, its head, and what is left out."""
    usage = {"modelMetrics": {"gpt-5": {"usage": {"inputTokens": 5}}}}
    rows = events(*TURN, ("session.shutdown", usage))
    path = write(tmp_path / "events.jsonl", *rows)
    assert sniff(path) == "copilot_cli"
    (session,) = opened(path)
    assert (session.session_id, session.title) == ("s", "List the files")
    assert (session.project_root, session.metadata["model"]) == ("/w", "gpt-5")
    facts = session.metadata["copilot_cli"]
    assert (facts["copilotVersion"], facts["shutdown"]) == ("1.0.64", usage)
    system, question, answer, result, failed, last = messages(path)
    assert (system["role"], question["content"], question["id"]) == (
        "system",
        "List the files",
        "e3",
    )
    assert question["copilot_cli"] == {"transformedContent": TURN[1][1]["transformedContent"]}
    arguments = [each["function"]["arguments"] for each in answer["tool_calls"]]
    assert (arguments, answer["content"]) == (['{"command": "ls"}', '{"input": "ls -a"}'], None)
    assert (answer["reasoning_content"], last["reasoning_content"]) == ("Hm.", "All seen.")
    assert last["copilot_cli"] == {"messageId": "m", "model": "gpt-5", "outputTokens": 9}
    assert (result["tool_call_id"], result["content"]) == ("c1", "a.txt")
    assert "copilot_cli" not in result
    assert (failed["content"], failed["messageStatus"]) == ("denied", "error")
    assert last["timestamp"] == 1767225601500
    notes = [event.text for event in read(path) if isinstance(event, NoteEvent)]
    assert notes == [
        "left out 1 assistant.turn_start event",
        "left out 1 tool.execution_start event",
    ]


def test_what_is_said_again_or_broken(tmp_path: Path) -> None:
    """A resumed session's prompt is said once; no event is noted, and ids are unique."""
    rows = events(*TURN, ("session.resume", {}), TURN[0], asked("Go on."))
    rows[-1]["id"] = rows[2]["id"]
    path = write(tmp_path / "f", *rows, {"type": "odd"})
    assert [each["role"] for each in messages(path)].count("system") == 1
    assert messages(path)[-1]["id"] not in (rows[2]["id"], None)
    broken = [event.text for event in read(path) if isinstance(event, NoteEvent) and event.broken]
    assert broken == ["an object with 'type' is no event of a session"]
    notes = [event.text for event in read(path) if isinstance(event, NoteEvent)]
    assert "left out 1 system.message event (1 said before)" in notes


def test_a_rewind_is_a_branch(tmp_path: Path, url: str) -> None:
    """What was taken back is a fork; a file that has grown rewinds its session."""
    first = events(*TURN, asked("Delete them"), answered("Gone."))
    path = write(tmp_path / "f", *first)
    with Store(url) as store:
        import_file(store, path)
        again = ("session.snapshot_rewind", {"upToEventId": "e11", "eventsRemoved": 2})
        title = ("session.title_changed", {"title": "Files"})
        rows = events(*TURN, asked("Delete them"), answered("Gone."), again, title, asked("Keep."))
        for _ in range(2):
            report = import_file(store, write(path, *rows))
            assert [each.differs_at for each in report.sessions] == [None, None]
        assert store.session("s").title == "Files"
        line = [each.message["content"] for each in store.messages("s")]
        assert line[-2:] == ["Done.", "Keep."]
        branch = store.messages("s/branch-e11")
        assert [each.message["content"] for each in branch][-3:] == [
            "Done.",
            "Delete them",
            "Gone.",
        ]


def test_a_compaction_hides_what_came_before_it_began(tmp_path: Path, url: str) -> None:
    """What is said while the summary is written stays in sight; without a summary, all does."""
    rows = events(
        *TURN[:2],
        answered("Yes."),
        ("session.compaction_start", {}),
        asked("Go on."),
        ("session.compaction_complete", {"success": True, "summaryContent": "They greeted."}),
        asked("Now?"),
        ("session.compaction_complete", {"success": False}),
    )
    path = write(tmp_path / "f", *rows)
    told = [event for event in read(path) if isinstance(event, SessionMessage | CompactionEvent)]
    assert told[4] == CompactionEvent(3, "They greeted.")
    assert len(told) == 6
    with Store(url) as store:
        import_file(store, path)
        view = json.dumps(store.view("s").messages)
    assert "They greeted." in view
    assert "Go on." in view
    assert "Yes." not in view


def test_subagents_are_sessions(tmp_path: Path) -> None:
    """Told by their call, or by an id of their own; what they say is not in the session."""
    begun = ("subagent.started", {"toolCallId": "c1", "agentDisplayName": "Explore"})
    inner = (answered("Looking.", parentToolCallId="c1"), done("x", "y", parentToolCallId="c1"))
    rows = events(*TURN, begun, *inner)
    own = {**rows[-1], "id": "z", "data": {"content": "Hi."}, "type": "user.message"}
    path = write(tmp_path / "f", *rows, {**own, "agentId": "agent-7"})
    main, agent, other = opened(path)
    assert (agent.session_id, agent.title) == ("s/agent-c1", "Explore")
    assert (agent.metadata["parent_session"], agent.metadata["parent_call"]) == ("s", "c1")
    assert (other.session_id, other.project_root) == ("s/agent-agent-7", main.project_root)
    said = [each["content"] for each in messages(path)]
    assert said[-3:] == ["Looking.", "y", "Hi."]


def test_sessions_one_behind_the_other(tmp_path: Path) -> None:
    """Each is its own; a notice of the program to its model is said, and arguments need no object."""
    notice = ("system.notification", {"content": "<system_notification>", "kind": {"type": "x"}})
    second = events(asked("Two"), notice, answered("", call("c", None)))
    second[0]["data"] = {"sessionId": "t", "version": 1}
    path = write(tmp_path / "f", *events(asked("One")), *second)
    assert [each.session_id for each in opened(path)] == ["s", "t"]
    assert [each["content"] for each in messages(path)] == [
        "One",
        "Two",
        "<system_notification>",
        None,
    ]
    assert messages(path)[-1]["tool_calls"][0]["function"]["arguments"] == "{}"


def started(name: str, tool: str) -> tuple[str, dict[str, Any]]:
    """Return the beginning of a call, as Copilot's extension of VS Code tells it."""
    return "tool.execution_start", {"toolCallId": name, "toolName": tool, "arguments": {}}


def test_a_transcript_of_vs_code_tells_subagents_by_running_calls(tmp_path: Path) -> None:
    """Of the shape of the extension's ``transcripts``: no event names the agent that it is of."""
    begun = {"toolCallId": "s1", "name": "runSubagent", "arguments": '{"prompt": "Look"}'}
    seen = [
        asked("Fix it"),
        answered("I ask.", begun),
        started("s1", "runSubagent"),
        answered("I look.", call("c1", '{"command": "ls"}')),
        started("c1", "run_in_terminal"),
        done("c1", "a.c"),
        answered("One file."),
        done("s1", "It is a.c."),
        answered("Fixed."),
    ]
    rows = [{**row, "data": {**row["data"]}} for row in events(*seen)]
    rows[0]["data"] = {"sessionId": "s", "producer": "copilot-agent", "vscodeVersion": "1.110.0"}
    path = write(tmp_path / "s.jsonl", *rows)
    assert sniff(path) == "copilot_cli"
    with Store(":memory:") as store:
        assert [each.id for each in import_file(store, path).sessions] == ["s", "s/agent-s1"]
        said = [each.message["content"] for each in store.messages("s")]
        assert said == ["Fix it", "I ask.", "It is a.c.", "Fixed."]
        below = [each.message["content"] for each in store.messages("s/agent-s1")]
        assert below == ["I look.", "a.c", "One file."]
        link = store.session("s/agent-s1").metadata
        assert (link["parent_session"], link["parent_call"]) == ("s", "s1")
        assert [each.appended for each in import_file(store, path).sessions] == [0, 0]
