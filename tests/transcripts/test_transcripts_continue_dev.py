"""Sessions of Continue, made up in the shapes of its extension 1.2 and its command ``cn`` 1.5."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kind_checks import Counts, bring, check_counts, check_growth

from store import Policy, Store
from store.errors import UnknownTranscript
from store.importing import import_file
from store.transcripts import sniff

NAME = "3d0f6a52-9a0e-4f0b-8f57-0d7a3f1f2c11"
PICTURE = {"type": "imageUrl", "imageUrl": {"url": "data:image/png;base64,AA=="}}
USAGE = {"promptTokens": 900, "completionTokens": 40, "promptTokensDetails": {"cachedTokens": 800}}
BESIDE = {"promptTokens": 7, "completionTokens": 5, "promptTokensDetails": {"cachedTokens": 900}}


def item(role: str, content: Any, *, message: Any = None, **more: Any) -> dict[str, Any]:
    """Return an item of a history."""
    told = {"role": role, "content": content, **(message or {})}
    return {"message": told, "contextItems": [], **more}


def call(name: str) -> dict[str, Any]:
    """Return a call."""
    function = {"name": "read_file", "arguments": '{"filepath": "a.py"}'}
    return {"id": name, "type": "function", "function": function}


def state(name: str, status: str, *outputs: str) -> dict[str, Any]:
    """Return the state of a call."""
    given = [{"name": "Read", "description": "d", "content": each} for each in outputs]
    told = {"toolCallId": name, "toolCall": call(name), "status": status, "parsedArgs": {}}
    return {**told, "output": given}


LOG = {"modelTitle": "Claude 4.5 Sonnet", "modelProvider": "anthropic", "prompt": "<user>"}
BESIDE_QUESTION = {"name": "a.py", "description": "a.py", "content": "print(1)", "id": {}}
EDITOR = [
    item("user", [{"type": "text", "text": "Mend it."}, PICTURE], editorState={"type": "doc"})
    | {"contextItems": [BESIDE_QUESTION]},
    item("thinking", "Look.", message={"signature": "sig"}),
    item(
        "assistant",
        "Reading.",
        message={"id": "a-1", "toolCalls": [call("c1"), call("c2")], "usage": USAGE},
        toolCallStates=[state("c1", "done", "one"), state("c2", "errored", "No such file.")],
        promptLogs=[LOG | {"completion": "Reading."}],
    ),
    item("tool", "one", message={"toolCallId": "c1"}),
    item("tool", "No such file.", message={"toolCallId": "c2"}),
    item("assistant", "Done.", reasoning={"text": "Plainly.", "active": False}),
    item("user", "Thanks."),
]
COMMAND = [
    item("system", "Be brief."),
    item("user", "Read it."),
    item(
        "assistant",
        "",
        message={"toolCalls": [call("c1"), call("c2")], "usage": BESIDE},
        toolCallStates=[state("c1", "done", "one", "two"), state("c2", "canceled")],
    ),
    item("assistant", "It says two."),
    item("user", "And now?"),
]
SUMMARIZED = [*COMMAND[:3], COMMAND[3] | {"conversationSummary": "Read a.py: two."}, COMMAND[4]]


def session(path: Path, history: list[Any] = EDITOR, **more: Any) -> Path:
    """Write a session."""
    told = {"sessionId": NAME, "title": "Mending", "workspaceDirectory": "file:///home/ada/a%20b"}
    path.write_text(json.dumps({**told, "history": history, "mode": "agent", **more}, indent=2))
    return path


def count(history: list[Any]) -> Counts:
    """Count what items say: thoughts go with the answer, results may be told by a state alone."""
    told = [each["message"] for each in history]
    calls = [each["id"] for message in told for each in message.get("toolCalls", ())]
    spoken = [each for each in told if each["role"] not in ("thinking", "tool")]
    return Counts(1, len(spoken) + len(calls), len(calls), len(calls))


def test_a_session_of_the_extension(tmp_path: Path) -> None:
    """Thoughts, calls, results once, what was put beside the question, and the cost."""
    brought = bring(session(tmp_path / f"{NAME}.json"), "continue_dev")
    check_counts(brought, count(EDITOR))
    (opened,), (line,) = brought.sessions, brought.messages
    assert (opened.id, opened.title, opened.project_root) == (NAME, "Mending", "/home/ada/a b")
    assert opened.metadata["model"] == "Claude 4.5 Sonnet"
    asked, reading, one, failed, done, _ = line
    beside, typed, picture = asked["content"]
    assert (beside["text"], typed["text"]) == (
        '<context name="a.py">\nprint(1)\n</context>',
        "Mend it.",
    )
    assert picture["image_url"]["url"] == PICTURE["imageUrl"]["url"]
    assert (reading["id"], reading["thinking_blocks"]) == (
        "a-1",
        [{"type": "thinking", "thinking": "Look.", "signature": "sig"}],
    )
    assert (one["content"], "messageStatus" in one) == ("one", False)
    assert (failed["content"], failed["messageStatus"]) == ("No such file.", "error")
    assert (done["content"], done["reasoning_content"]) == ("Done.", "Plainly.")
    assert [(each.input, each.output, each.cached) for each in brought.usages] == [(900, 40, 800)]
    assert [note.left_out for note in brought.report.notes] == [1]


def test_a_session_of_the_command(tmp_path: Path) -> None:
    """States tell the results; what a summary replaced is a compaction."""
    path = session(tmp_path / "s.json", COMMAND, title="Untitled Session")
    brought = bring(path, "continue_dev")
    check_counts(brought, count(COMMAND))
    (opened,), (line,) = brought.sessions, brought.messages
    assert opened.title == "Read it."
    assert [each["content"] for each in line if each["role"] == "tool"] == [
        "one\n\ntwo",
        "[canceled]",
    ]
    assert [(each.input, each.output, each.cached) for each in brought.usages] == [(907, 5, 900)]
    with Store(":memory:") as store:
        import_file(store, session(path, COMMAND[:4]))
        import_file(store, session(path, SUMMARIZED))
        (compaction,) = store.compactions(NAME)
        assert compaction.summary == "Read a.py: two."
        sent = json.dumps(store.view(NAME, format="openai").messages)
        assert ("read_file" in sent, "And now?" in sent) == (False, True)


@pytest.mark.slow
def test_growing_sessions(tmp_path: Path) -> None:
    """After any item, then whole, they are what they are at once."""
    for number, history in enumerate((EDITOR, COMMAND, SUMMARIZED)):
        states = [
            lambda at, told=history[:end]: session(at, told) for end in range(1, len(history) + 1)
        ]
        check_growth(tmp_path / f"{number}.json", "continue_dev", states)


def test_a_summary_of_older_messages_that_comes_later(tmp_path: Path) -> None:
    """The view is that of the whole at once; what was undone since stays so."""
    path = tmp_path / "s.json"
    with Store(":memory:") as grown, Store(":memory:") as whole:
        for history in (COMMAND, SUMMARIZED):
            import_file(grown, session(path, history))
        import_file(whole, path)
        views = [store.view(NAME, Policy.named("raw")).messages for store in (grown, whole)]
        assert views[0] == views[1]
        (compaction,) = grown.compactions(NAME)
        grown.undo_compaction(NAME, compaction.id)
        import_file(grown, session(path, [*SUMMARIZED, item("assistant", "Now it is.")]))
        assert [each.outcome for each in grown.compactions(NAME)] == ["undone"]


def test_what_is_no_session_of_it(tmp_path: Path) -> None:
    """A call of an older version; an item that is none; a session of Kiro's, whose answers miss."""
    old = item("assistant", "", toolCallState=state("c1", "done", "one"))
    brought = bring(session(tmp_path / "a.json", [item("user", "Hi"), old, 7]), "continue_dev")
    assert [each["role"] for each in brought.messages[0]] == ["user", "assistant", "tool"]
    assert [note.text for note in brought.report.notes if note.broken] == [
        "item 3 is no item of a history, this is 7"
    ]
    kiro = session(tmp_path / "b.json", [item("assistant", "On it.", executionId="e")])
    with pytest.raises(UnknownTranscript, match=r"Kiro before 1\.0"):
        sniff(kiro)
