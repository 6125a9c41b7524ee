"""Chats of VS Code, made up after its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from store import Store
from store.importing import import_file
from store.transcripts import (
    TRANSCRIPT_KINDS,
    NoteEvent,
    RequestUsage,
    SessionEvent,
    SessionMessage,
    UsageTokens,
    parse_message_usage,
    read,
    sniff,
)


def request(name: str, text: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """Return a request with the parts of its answer."""
    asked = {"message": {"text": text, "parts": []}, "variableData": {"variables": []}}
    known = {"requestId": name, **asked, "response": list(parts), "modelId": "copilot/gpt-5"}
    agent = {"agent": {"id": "github.copilot.agent", "description": "long"}}
    return {**known, **agent, "timestamp": 1767225601500, "modelState": {"value": 1}, **more}


def chat(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a chat."""
    known = {"version": 3, "sessionId": "s", "responderUsername": "GitHub Copilot"}
    return {**known, "creationDate": 1, "requests": list(requests), **more}


def markdown(text: str) -> dict[str, Any]:
    """Return a text of the screen."""
    return {"value": text, "supportThemeIcons": False}


def used(name: str, **more: Any) -> dict[str, Any]:
    """Return a tool that was used."""
    known = {"kind": "toolInvocationSerialized", "toolId": "run", "toolCallId": name}
    return {**known, "isComplete": True, "pastTenseMessage": markdown("Ran it"), **more}


def whole(path: Path, value: Any) -> Path:
    """Write a document."""
    path.write_text(json.dumps(value, indent=1))
    return path


def log(path: Path, *entries: dict[str, Any]) -> Path:
    """Write entries of a log as lines."""
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    return path


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in read(path) if isinstance(event, SessionMessage)]


def opened(path: Path) -> list[SessionEvent]:
    """Return the sessions of a file."""
    return [event for event in read(path) if isinstance(event, SessionEvent)]


def notes(path: Path) -> list[str]:
    """Return the notes on a file."""
    return [event.text for event in read(path) if isinstance(event, NoteEvent)]


PIECES = [{"type": 2, "text": "one"}, {"type": 2, "text": "two", "lineBreakBefore": True}]
CALL = {"name": "read_file", "arguments": '{"path": "a"}', "id": "c1"}
ROUNDS = [
    {"id": "r", "response": "", "toolCalls": [CALL], "thinking": {"text": ["Hm"], "id": "t"}},
    {"id": "q", "response": "Done.", "toolCalls": [], "timestamp": 1767225602500},
]
RESULTS = {"c1": {"$mid": 20, "content": [{"$mid": 23, "value": {"node": {"children": PIECES}}}]}}
USAGE = {"promptTokens": 100, "completionTokens": 9}


def agent() -> dict[str, Any]:
    """Return a request that an agent answered in rounds."""
    metadata = {"toolCallRounds": ROUNDS, "toolCallResults": RESULTS, "modelMessageId": "m"}
    result = {"timings": {"totalElapsed": 5}, "usage": USAGE, "metadata": metadata}
    return request("q1", "Read a.", markdown("Done."), result=result)


def test_the_rounds_of_an_agent(tmp_path: Path) -> None:
    """Calls and results are as the model had them; the rest of the request is kept."""
    folder = tmp_path / "a b" / "chatSessions"
    folder.mkdir(parents=True)
    (folder.parent / "workspace.json").write_text('{"folder": "file:///home/me/my%20app"}')
    path = whole(folder / "f.json", chat(agent(), customTitle="Mine"))
    assert sniff(path) == "vscode_chat"
    (session,) = opened(path)
    assert (session.session_id, session.title) == ("s", "Mine")
    assert (session.project_root, session.metadata["model"]) == ("/home/me/my app", "copilot/gpt-5")
    question, call, result, last = messages(path)
    assert (question["content"], question["id"]) == ("Read a.", "q1")
    extra = question["vscode_chat"]
    assert (extra["agent"], extra["result"]["metadata"]) == (
        "github.copilot.agent",
        {"modelMessageId": "m"},
    )
    assert call["tool_calls"][0]["function"] == {
        "name": "read_file",
        "arguments": '{"path": "a"}',
    }
    assert (call["content"], call["reasoning_content"]) == (None, "Hm")
    assert (result["tool_call_id"], result["content"]) == ("c1", "one\ntwo")
    assert (last["content"], last["id"], last["timestamp"]) == ("Done.", "q1-3", 1767225602500)
    told = RequestUsage(UsageTokens(100, 9), "copilot/gpt-5", None, USAGE)
    assert [parse_message_usage(each) for each in messages(path)] == [[], [], [], [told]]


def test_what_the_screen_showed(tmp_path: Path) -> None:
    """Without rounds, texts, thoughts and tools are read in their order."""
    details = {"input": '{"command": "ls"}', "output": [{"value": "a.txt"}], "isError": True}
    file = {"kind": "inlineReference", "inlineReference": {"path": "/w/a.txt", "scheme": "file"}}
    line = {"kind": "terminal", "commandLine": {"original": "pwd"}}
    parts = [
        {"kind": "thinking", "value": "Hm"},
        markdown("See "),
        file,
        used("c1", resultDetails=details),
        {"kind": "undoStop", "id": "u"},
        used("c2", toolSpecificData=line, isConfirmed={"type": 0}),
        {"kind": "markdownContent", "content": markdown("Done.")},
        used("", resultDetails={"input": "raw", "output": "plain"}),
    ]
    path = whole(tmp_path / "f", chat(request("q1", "List", *parts), request("q2", "Bye")))
    question, first, one, two, second, three, bye = messages(path)
    assert (question["content"], bye["content"]) == ("List", "Bye")
    assert (first["content"], first["reasoning_content"]) == ("See `a.txt`", "Hm")
    arguments = [call["function"]["arguments"] for call in first["tool_calls"]]
    assert arguments == ['{"command": "ls"}', '{"command": "pwd"}']
    assert (one["content"], one["messageStatus"]) == ("a.txt", "error")
    assert (two["content"], two["messageStatus"]) == ("Ran it", "error")
    assert (second["content"], three["content"]) == ("Done.", "plain")
    assert second["tool_calls"][0]["id"] == three["tool_call_id"] == "q1-call-3"
    assert second["tool_calls"][0]["function"]["arguments"] == '{"input": "raw"}'
    assert notes(path) == ["left out 1 undoStop part"]


def test_a_log_is_replayed(tmp_path: Path) -> None:
    """It is what its states came to; an entry that does not fit is noted, the rest is kept."""
    path = log(
        tmp_path / "f.jsonl",
        {"kind": 0, "v": chat()},
        {"kind": 2, "k": ["requests"], "v": [request("q1", "One", modelState={"value": 0})]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [markdown("A"), markdown("?")]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [markdown("nswer")], "i": 1},
        {"kind": 1, "k": ["requests", 7, "response"], "v": []},
        {"kind": 1, "k": ["customTitle"], "v": "Old"},
        {"kind": 3, "k": ["customTitle"]},
    )
    assert sniff(path) == "vscode_chat"
    assert [each["content"] for each in messages(path)] == ["One"]
    assert any("still being written" in note for note in notes(path))
    assert any("no change of one" in note for note in notes(path))
    with path.open("a") as file:
        entry = {"kind": 1, "k": ["requests", 0, "modelState"], "v": {"value": 1}}
        file.write(json.dumps(entry) + "\n")
    assert [each["content"] for each in messages(path)] == ["One", "Answer"]
    assert opened(path)[0].title == "One"


def test_what_was_taken_back_is_a_branch(tmp_path: Path, url: str) -> None:
    """Requests that left the list, and those that are to leave it, are forks of the session."""
    first, second = request("q1", "One", markdown("A")), request("q2", "Two", markdown("B"))
    begin = {"kind": 0, "v": chat(first, second)}
    path = log(tmp_path / "f.jsonl", begin)
    with Store(url) as store:
        import_file(store, path)
        again = [request("q3", "Deux", markdown("C"))]
        undone = request("q4", "Trois", markdown("D"), shouldBeRemovedOnSend={"requestId": "q4"})
        entries = [
            begin,
            {"kind": 2, "k": ["requests"], "v": again, "i": 1},
            {"kind": 2, "k": ["requests"], "v": [undone]},
        ]
        for _ in range(2):
            report = import_file(store, log(path, *entries))
            assert {each.differs_at for each in report.sessions} == {None}
        line = [each.message["content"] for each in store.messages("s")]
        assert line == ["One", "A", "Deux", "C"]
        branch = [each.message["content"] for each in store.messages("s/branch-q2")]
        assert branch == ["One", "A", "Two", "B"]
        assert len(store.messages("s/branch-q4")) == 6


def test_several_chats_and_old_ones(tmp_path: Path) -> None:
    """Documents side by side are sessions; old requests are a text, and have no ids."""
    old = {"responderUsername": "GitHub Copilot", "requests": [{"message": "Hi", "response": []}]}
    old["requests"][0]["response"] = [{"value": "Hello"}, {"kind": "x"}]
    path = tmp_path / "old"
    path.write_text(json.dumps(old) + json.dumps(chat(agent())) + json.dumps({"odd": 1}))
    assert [each.session_id for each in opened(path)] == ["old", "s"]
    assert [each["content"] for each in messages(path)][:2] == ["Hi", "Hello"]
    assert notes(path)[-1] == "an object with 'odd' is no chat, and no change of one"
    asked = {"message": {"text": "Hi"}, "response": [{"value": "Hello"}]}
    path.write_text(json.dumps({"requesterUsername": "dev", "requests": [asked]}))
    assert [each["content"] for each in messages(path)] == ["Hi", "Hello"]
    assert opened(whole(tmp_path / "empty", chat()))[0].title is None


def test_chats_are_found_where_the_program_keeps_them() -> None:
    """Those of each folder that was open, and those without one; nothing else that lies there."""
    (home, *_) = TRANSCRIPT_KINDS["vscode_chat"].homes
    user = Path("/home/me/.config/Code/User")
    assert home.holds(user / "workspaceStorage/0f/chatSessions/a.jsonl")
    assert home.holds(user / "globalStorage/emptyWindowChatSessions/a.json")
    assert home.holds(user / "workspaceStorage/0f/workspace.json") is False
