"""Sessions of Gemini CLI, made up after real files and its own source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff

HEAD = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}
TOKENS = {"input": 100, "output": 5, "cached": 80, "thoughts": 7, "tool": 3, "total": 115}


def record(name: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message's record."""
    return {
        "id": name,
        "timestamp": "2026-01-01T00:00:01Z",
        "type": kind,
        "content": content,
        **more,
    }


def call(name: str, *result: Any, **more: Any) -> dict[str, Any]:
    """Return a call with the response that it got."""
    fields = {"id": name, "name": "read_file", "args": {"path": "a"}, "status": "success"}
    return {**fields, "result": list(result), "timestamp": "2026-01-01T00:00:02Z", **more}


def response(said: dict[str, Any]) -> dict[str, Any]:
    """Return a function's response."""
    return {"functionResponse": {"id": "t", "name": "read_file", "response": said}}


ASKED = record("u1", "user", [{"text": "Read a."}])
THOUGHTS = [{"subject": "Plan", "description": "Read it.", "timestamp": "x"}]
CALLED = record("g1", "gemini", "", thoughts=THOUGHTS, model="gemini-2.5-pro")
DONE = CALLED | {"toolCalls": [call("t1", response({"output": "words"}))], "tokens": TOKENS}
MORE = record("u2", "user", "And?")
LAST = record("g2", "gemini", "Done.", model="gemini-2.5-pro", tokens=TOKENS)
TALK = (ASKED, DONE, MORE, LAST)


def lines(path: Path, *values: dict[str, Any]) -> Path:
    """Write values as lines."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def contents(path: Path) -> list[object]:
    """Return what the messages of a file say."""
    return [event.message["content"] for event in read(path) if isinstance(event, SessionMessage)]


def notes(path: Path) -> list[str]:
    """Return the notes of a file."""
    return [event.text for event in read(path) if isinstance(event, NoteEvent)]


@pytest.mark.parametrize("one_document", [True, False])
def test_a_session_is_a_document_or_lines(tmp_path: Path, one_document: bool) -> None:
    """Both say the same; a line that tells a message again counts in the place of the first."""
    path = tmp_path / "session.jsonl"
    if one_document:
        path.write_text(json.dumps(HEAD | {"messages": TALK, "summary": "Reading"}, indent=2))
    else:
        rows = (HEAD, ASKED, CALLED, {"$set": {"lastUpdated": "x"}}, DONE, MORE, LAST)
        lines(path, *rows, {"$set": {"summary": "Reading"}})
    assert sniff(path) == "gemini_cli"
    opened, *said = [event for event in read(path) if not isinstance(event, NoteEvent)]
    assert isinstance(opened, SessionEvent)
    assert (opened.session_id, opened.title) == ("s1", "Reading")
    assert opened.metadata["model"] == "gemini-2.5-pro"
    asked, answer, result, *_ = [
        event.message for event in said if isinstance(event, SessionMessage)
    ]
    assert asked == {
        "role": "user",
        "content": "Read a.",
        "id": "u1",
        "timestamp": 1_767_225_601_000,
    }
    assert (answer["content"], answer["reasoning_content"]) == (None, "Plan: Read it.")
    assert answer["tool_calls"] == [
        {
            "id": "t1",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path": "a"}'},
        }
    ]
    assert (result["tool_call_id"], result["content"]) == ("t1", "words")
    assert contents(path)[3:] == ["And?", "Done."]


def test_what_was_taken_back_is_a_branch(tmp_path: Path, url: str) -> None:
    """The line is rewound, also where the store had it; what is not known clears all."""
    path = lines(tmp_path / "f.jsonl", HEAD, *TALK)
    anew = record("u3", "user", "Or?")
    with Store(url) as store:
        import_file(store, path)
        lines(path, HEAD, *TALK, {"$rewindTo": "u2"}, anew)
        for _ in range(2):
            report = import_file(store, path)
            assert not [note for note in report.notes if note.broken]
        line = [stored.message["content"] for stored in store.messages("s1")]
        assert line == ["Read a.", None, "words", "Or?"]
        branch = [stored.message["content"] for stored in store.messages("s1/branch-u2")]
        assert branch == ["Read a.", None, "words", "And?", "Done."]
        assert not store.verify()
    lines(path, HEAD, *TALK, {"$rewindTo": "gone"}, anew)
    assert contents(path)[0] == "Or?"


def test_a_context_that_was_replaced_takes_nothing_away(tmp_path: Path) -> None:
    """It may say more, end earlier (a turn that was broken off), or be a summary."""
    path = tmp_path / "f.jsonl"
    masked = DONE | {"toolCalls": [call("t1", response({"output": ""}))]}
    lines(path, HEAD, ASKED, DONE, {"$set": {"messages": [ASKED, masked, MORE]}})
    assert contents(path) == ["Read a.", None, "words", "And?"]
    lines(path, HEAD, *TALK, {"$set": {"messages": [ASKED, DONE]}})
    names = [event.session_id for event in read(path) if isinstance(event, SessionEvent)]
    assert names == ["s1", "s1/branch-u2"]
    summary = record("x", "user", "So far: …")
    lines(path, HEAD, *TALK, {"$set": {"messages": [summary, LAST]}}, record("u3", "user", "On."))
    assert contents(path) == ["Read a.", None, "words", "And?", "Done.", "On."]
    opened = next(event for event in read(path) if isinstance(event, SessionEvent))
    context = {"after": 5, "messages": 2, "new": [summary]}
    assert opened.metadata["gemini_cli"]["contexts"] == [context]
    assert any("replaced after message 5" in note for note in notes(path))


def test_results_in_all_their_shapes(tmp_path: Path) -> None:
    """Errors, objects, parts beside a response, texts alone, and none."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    calls = [
        call("a", response({"error": "no"}), status="error", resultDisplay="No!"),
        call("b", response({"x": 1}), picture),
        call("c", "plain"),
        call("d", status="cancelled"),
    ]
    path = lines(tmp_path / "f.jsonl", HEAD, ASKED, record("g", "gemini", "", toolCalls=calls))
    results = [event.message for event in read(path) if isinstance(event, SessionMessage)][2:]
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert [each["content"] for each in results] == [
        "no",
        [{"type": "text", "text": '{"x": 1}'}, url],
        "plain",
    ]
    assert results[0]["messageStatus"] == "error"
    assert results[0]["gemini_cli"] == {"status": "error", "resultDisplay": "No!"}


def test_notices_are_counted_and_what_is_no_line_is_broken(tmp_path: Path) -> None:
    """The model saw neither."""
    notice = record("i", "info", "Update available")
    path = lines(tmp_path / "f.jsonl", HEAD, ASKED, notice, {"what": 1})
    assert contents(path) == ["Read a."]
    assert any("1 info message" in note for note in notes(path))
    assert [event.row for event in read(path) if isinstance(event, NoteEvent) and event.broken] == [
        4
    ]


def test_a_growing_file_and_its_usage(tmp_path: Path, url: str) -> None:
    """An answer that was still being written is taken again; its cost is counted once."""
    path = lines(tmp_path / "f.jsonl", HEAD, ASKED, CALLED)
    with Store(url) as store:
        for rows in ((ASKED, CALLED), (ASKED, CALLED, DONE), TALK, TALK):
            import_file(store, lines(path, HEAD, *rows))
        assert [stored.message["role"] for stored in store.messages("s1")] == [
            *("user", "assistant", "tool", "user", "assistant")
        ]
        usages = [(each.input, each.output, each.cached, each.model) for each in store.usages("s1")]
        assert usages == [(103, 12, 80, "gemini-2.5-pro")] * 2
        for form in ("openai", "responses", "anthropic", "gemini"):
            assert store.view("s1", format=form).messages
        assert not store.verify()


def test_a_session_is_not_called_by_the_context_that_it_begins_with(tmp_path: Path) -> None:
    """The first record of a user is the program's in newer versions; it is kept all the same."""
    context = record("u0", "user", "<session_context>\nThis is the Gemini CLI.\n</session_context>")
    path = lines(tmp_path / "session.jsonl", HEAD, context, *TALK)
    assert [event.title for event in read(path) if isinstance(event, SessionEvent)] == ["Read a."]
    assert contents(path)[0] == context["content"]
