"""Exports of claude.ai, made up after their description."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.errors import UnknownTranscript
from store.importing import import_file
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff

ROOT = "00000000-0000-4000-8000-000000000000"
AT = "2026-01-02T03:04:05.678Z"


def said(name: str, sender: str, content: Any = None, **more: Any) -> dict[str, Any]:
    """Return a message; a text is its only block."""
    blocks = [text(content)] if isinstance(content, str) else content
    message = {"uuid": name, "sender": sender, "text": "", "content": blocks, "created_at": AT}
    return {**message, "attachments": [], "files": [], **more}


def text(words: str) -> dict[str, Any]:
    """Return a block of text with what an export has beside it."""
    return {"type": "text", "text": words, "start_timestamp": AT, "flags": None, "citations": []}


def conversation(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a conversation."""
    known = {"uuid": "c1", "name": "Talk", "summary": "", "account": {"uuid": "me"}}
    return {**known, "chat_messages": list(messages), **more}


def write(path: Path, value: object) -> Path:
    """Write an export."""
    path.write_text(json.dumps(value))
    return path


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of an export."""
    return [event.message for event in read(path) if isinstance(event, SessionMessage)]


TALK = (said("u1", "human", "Hi."), said("a1", "assistant", "Hello."))


def test_a_conversation_is_a_session(tmp_path: Path) -> None:
    """Its messages follow each other where none tells what it follows."""
    path = write(tmp_path / "conversations.json", [conversation(*TALK, model="m")])
    assert sniff(path) == "claude_ai"
    opened = next(event for event in read(path) if isinstance(event, SessionEvent))
    assert (opened.session_id, opened.title) == ("c1", "Talk")
    assert opened.metadata == {"model": "m", "claude_ai": {"account": {"uuid": "me"}}}
    moment = 1_767_323_045_678
    beside = {"blocks": [{"start_timestamp": AT}]}
    assert messages(path) == [
        {"role": "user", "content": "Hi.", "id": "u1", "timestamp": moment, "claude_ai": beside},
        {
            "role": "assistant",
            "content": "Hello.",
            "id": "a1",
            "timestamp": moment,
            "claude_ai": beside,
        },
    ]


def test_what_was_edited_is_a_branch(tmp_path: Path) -> None:
    """Parents tell; the present leaf does, too, else it is the last message."""
    tree = [
        said("u1", "human", "One?", parent_message_uuid=ROOT),
        said("a1", "assistant", "1", parent_message_uuid="u1"),
        said("u2", "human", "Two?", parent_message_uuid=ROOT),
        said("a2", "assistant", "2", parent_message_uuid="u2"),
        said("a3", "assistant", "two", parent_message_uuid="u2"),
    ]
    path = write(tmp_path / "f.json", [conversation(*tree)])
    links = [
        (each.session_id, each.metadata.get("parent_session"), each.metadata.get("forked_at"))
        for each in read(path)
        if isinstance(each, SessionEvent)
    ]
    assert links == [
        ("c1", None, None),
        ("c1/branch-u1", "c1", 0),
        ("c1/branch-a2", "c1", 1),
    ]
    write(path, conversation(*tree, current_leaf_message_uuid="a1"))
    contents = [message["content"] for message in messages(path)]
    assert contents == ["One?", "1", "Two?", "2", "two"]


def use(**more: Any) -> dict[str, Any]:
    """Return a call with what an export has beside it."""
    return {"type": "tool_use", "name": "search", "input": {"q": 1}, "message": "Search", **more}


def result(words: str, **more: Any) -> dict[str, Any]:
    """Return a result."""
    content = [{"type": "text", "text": words}]
    return {"type": "tool_result", "name": "search", "content": content, **more}


@pytest.mark.parametrize("named", [True, False])
def test_calls_and_results_of_an_answer_are_messages(tmp_path: Path, named: bool) -> None:
    """With the ids of the file, or else by their order."""
    ids = ["t1", "t2"] if named else ["a1-call-1", "a1-call-2"]
    calls = [use(id=each if named else None) for each in ids]
    results = [result(each, tool_use_id=each if named else None) for each in ids]
    results[1]["is_error"] = True
    thinking = {"type": "thinking", "thinking": "Hm.", "summaries": [{"summary": "s"}]}
    blocks = [thinking, text("Let me."), *calls, *results, text("Done.")]
    path = write(tmp_path / "f.json", conversation(TALK[0], said("a1", "assistant", blocks)))
    answer, one, two, last = messages(path)[1:]
    assert [call["id"] for call in answer["tool_calls"]] == ids
    assert answer["tool_calls"][0]["function"] == {"name": "search", "arguments": '{"q": 1}'}
    assert answer["thinking_blocks"] == [{"type": "thinking", "thinking": "Hm."}]
    assert [one["tool_call_id"], two["tool_call_id"]] == ids
    assert two["messageStatus"] == "error"
    assert [each["id"] for each in (answer, one, two, last)] == ["a1", "a1-2", "a1-3", "a1-4"]
    assert (answer["content"], last["content"]) == ("Let me.", "Done.")
    assert answer["claude_ai"]["blocks"][2] == {"message": "Search"}


def test_attachments_are_read_and_files_are_named(tmp_path: Path) -> None:
    """A question may be an attachment alone; an older export has a text and no blocks."""
    pasted = {"file_name": "a.txt", "extracted_content": "long words"}
    alone = said("u1", "human", [], attachments=[pasted], files=[{"file_name": "b.png"}])
    older = {"uuid": "a1", "sender": "assistant", "text": "Old."}
    both = said("u2", "human", "See:", attachments=[pasted])
    empty = said("a2", "assistant", [])
    path = write(tmp_path / "f.json", conversation(alone, older, both, empty))
    contents = [message["content"] for message in messages(path)]
    parts = [{"type": "text", "text": "See:"}, {"type": "text", "text": "long words"}]
    assert contents == ["long words", "Old.", parts, None]
    assert messages(path)[0]["claude_ai"] == {
        "attachments": [{"file_name": "a.txt"}],
        "files": [{"file_name": "b.png"}],
    }


def test_what_cannot_be_read_is_broken_and_no_words_are_refused(tmp_path: Path) -> None:
    """The rest is kept."""
    strange = said("x", "robot", "?")
    path = write(tmp_path / "f.json", [conversation(*TALK, strange), {"uuid": "c2"}])
    broken = [event.text for event in read(path) if isinstance(event, NoteEvent) and event.broken]
    assert len(broken) == 2
    assert broken[0].startswith("message 3 of c1")
    assert len(messages(path)) == 2
    with pytest.raises(UnknownTranscript):
        sniff(write(path, [conversation(strange)]))


def test_the_zip_is_imported_again_and_grows(tmp_path: Path, url: str) -> None:
    """Views are valid in all formats."""
    path = tmp_path / "export.zip"
    more = said("u2", "human", "And?")
    calls = [use(id="t1"), result("r", tool_use_id="t1"), text("Done.")]
    grown = (*TALK, more, said("a2", "assistant", calls))
    with Store(url) as store:
        for given, appended in ((TALK, 2), (grown, 4), (grown, 0)):
            with zipfile.ZipFile(path, "w") as packed:
                packed.writestr("conversations.json", json.dumps([conversation(*given)]))
                packed.writestr("users.json", "[]")
            report = import_file(store, path)
            assert (report.kind, report.sessions[0].appended) == ("claude_ai", appended)
        for form in ("openai", "responses", "anthropic", "gemini"):
            assert len(store.view("c1", format=form).messages) >= 5
        assert not store.verify()


def test_an_answer_made_anew_after_an_import_moves_the_line_there(tmp_path: Path, url: str) -> None:
    """The store had the first answer on its line: it is a fork now, and stored once."""
    asked = said("u1", "human", "One?", parent_message_uuid=ROOT)
    first = said("a1", "assistant", "1", parent_message_uuid="u1")
    again = said("a2", "assistant", "one", parent_message_uuid="u1")
    path = tmp_path / "f.json"
    with Store(url) as store:
        import_file(store, write(path, [conversation(asked, first)]))
        for _ in range(2):
            report = import_file(store, write(path, [conversation(asked, first, again)]))
            assert not [note for note in report.notes if note.broken]
        for name, answer in (("c1", "one"), ("c1/branch-a1", "1")):
            line = [stored.message["content"] for stored in store.messages(name)]
            assert line == ["One?", answer]
        assert not store.verify()
