from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kind_checks import check_prefixes, write_rows
from test_transcripts_claude import Recorder, call, events_of, opened, split, text, told

from store import Store
from store.importing import import_file
from store.transcripts import NoteEvent


def queue(session: Recorder, operation: str, content: str | None = None, **more: Any) -> None:
    """Add a row of the queue, which has no uuid and no place in the tree."""
    row = {"type": "queue-operation", "operation": operation, "sessionId": "S"}
    row["timestamp"] = f"2026-01-01T00:10:{len(session.lines):02d}.000Z"
    session.lines.append(row | ({"content": content} if content else {}) | more)


def attach(session: Recorder, prompt: object, **more: Any) -> str:
    """Add an attachment that holds a prompt; the next line hangs on it."""
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"} | more
    return session.add("attachment", attachment=attachment)


def begun() -> Recorder:
    """Return a session whose model is at work."""
    session = Recorder()
    session.user("go")
    session.answer("m1", call("c1"))
    session.result("c1")
    return session


def said_in(tmp_path: Path, session: Recorder) -> list[str]:
    """Return the messages of the session, in short."""
    return told(split(events_of(tmp_path, session.lines))["S"])


def test_a_prompt_in_an_attachment_is_a_message_in_its_place(tmp_path: Path) -> None:
    """Newer programs keep it so; nothing else in the file says it."""
    session = begun()
    uuid = attach(session, "use port 8080", origin={"kind": "human"})
    session.answer("m2", text("Port 8080 it is."))
    events = events_of(tmp_path, session.lines)
    messages = split(events)["S"]
    assert told(messages)[3:] == ["u:use port 8080", "a:Port 8080 it is."]
    assert messages[3]["id"] == uuid
    queued = {"commandMode": "prompt", "origin": {"kind": "human"}}
    assert messages[3]["claude_code"]["queued"] == queued
    assert [event for event in events if isinstance(event, NoteEvent)] == []


def test_an_attachment_may_hold_blocks(tmp_path: Path) -> None:
    """A picture that is sent meanwhile comes with its words."""
    source = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    session = begun()
    attach(session, [text("like this"), {"type": "image", "source": source}])
    content = split(events_of(tmp_path, session.lines))["S"][-1]["content"]
    assert content == [
        text("like this"),
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]


@pytest.mark.parametrize("told_again", [{}, {"reason": "absorbed_mid_turn"}])
def test_a_prompt_that_left_the_queue_within_a_turn_is_a_message(
    tmp_path: Path, told_again: dict[str, Any]
) -> None:
    """Older programs name neither words nor reason there: the first that waits has left."""
    session = begun()
    queue(session, "enqueue", "draft PR please")
    queue(session, "enqueue", "<task-notification>done</task-notification>")
    again = {"content": "draft PR please"} if told_again else {}
    queue(session, "remove", **again, **told_again)
    queue(session, "remove", **told_again)
    session.answer("m2", text("Pushed."))
    events = events_of(tmp_path, session.lines)
    messages = split(events)["S"]
    assert told(messages)[3:] == [
        "u:draft PR please",
        "u:<task-notification>done</task-notification>",
        "a:Pushed.",
    ]
    assert messages[3]["timestamp"] - messages[0]["timestamp"] == 604_000
    assert messages[3]["claude_code"]["queued"]["enqueued"] == "2026-01-01T00:10:03.000Z"
    assert opened(events)["S"].metadata["claude_code"]["cwd"] == "/p"


def test_what_the_queue_and_an_attachment_say_is_said_once(tmp_path: Path) -> None:
    """In whichever order they are written; twice typed is twice said."""
    session = begun()
    queue(session, "enqueue", "yes")
    queue(session, "remove", "yes")
    attach(session, "yes")
    session.answer("m2", text("One."))
    queue(session, "enqueue", "yes")
    attach(session, "yes")
    queue(session, "remove", "yes")
    session.answer("m3", text("Two."))
    assert said_in(tmp_path, session)[3:] == ["u:yes", "a:One.", "u:yes", "a:Two."]


def test_what_leaves_the_queue_as_a_line_is_said_by_that_line(tmp_path: Path) -> None:
    """A prompt that waited for the end of the turn has a line of its own."""
    session = begun()
    queue(session, "enqueue", "and now?")
    queue(session, "dequeue")
    session.user("and now?")
    queue(session, "enqueue", "late")
    queue(session, "remove")
    session.user("late")
    assert said_in(tmp_path, session)[3:] == ["u:and now?", "u:late"]


def test_what_was_taken_back_or_waits_still_is_no_message(tmp_path: Path) -> None:
    """The model never saw it; what waits in the end is noted."""
    session = begun()
    for words in ("edit me", "and me", "not this", "still here"):
        queue(session, "enqueue", words)
    queue(session, "popAll", "edit me")
    queue(session, "remove", "and me", reason="cleared")
    queue(session, "remove", "never queued")
    queue(session, "popAll")
    queue(session, "enqueue", '{"task_id":"b1","task_type":"local_bash"}')
    queue(session, "remove")
    queue(session, "enqueue", "too late")
    events = events_of(tmp_path, session.lines)
    assert told(split(events)["S"]) == ["u:go", "a:c1", "t:c1"]
    notes = [event.text for event in events if isinstance(event, NoteEvent)]
    assert "left out 1 queued prompt that the model was never given" in notes


def test_a_session_whose_queue_goes_on_can_be_imported_at_any_time(
    url: str, tmp_path: Path
) -> None:
    """However much of the file was there, in the end it is as if it had been imported once."""
    session = begun()
    queue(session, "enqueue", "yes")
    queue(session, "remove", "yes")
    attach(session, "yes")
    queue(session, "enqueue", "no")
    queue(session, "remove")
    session.answer("m2", text("One."))
    with Store(url) as store:
        for seen in range(1, len(session.lines) + 1):
            events_of(tmp_path, session.lines[:seen])
            report = import_file(store, tmp_path / "file.jsonl")
            assert report.sessions[0].differs_at is None
        stored = [each.message for each in store.messages("S")]
    assert told(stored)[3:] == ["u:yes", "u:no", "a:One."]


def left_again() -> Recorder:
    """Return a session whose queued prompt hangs where it was typed; the line goes on elsewhere."""
    session = begun()
    place = session.answer("m2", text("Two are at work."))
    queue(session, "enqueue", "are they done?")
    session.user("/publish")
    end = session.answer("m3", text("Published."))
    session.last = place
    session.user("are they done?")
    session.user("[Request interrupted by user]")
    session.last = end
    session.answer("m4", text("Both are done."))
    return session


def test_a_prompt_that_waited_since_before_another_does_not_take_it_back(tmp_path: Path) -> None:
    """The file says so at once, whatever follows; so each of its states is on the line."""
    rows = left_again().lines
    path = write_rows(tmp_path / "talk" / "file.jsonl", rows)
    check_prefixes(path, "claude_code", rows)
    *_, answer = said_in(tmp_path, left_again())
    assert answer == "a:Both are done."


@pytest.mark.parametrize("back", [None, "are they done?"])
def test_a_prompt_that_came_back_from_the_queue_takes_another_back(
    tmp_path: Path, back: str | None
) -> None:
    """Its user had it in hand again, so it was typed in place of the other."""
    session = left_again()
    queue(session, "popAll", back)
    session.lines.insert(6, session.lines.pop())
    names = [*split(events_of(tmp_path, session.lines[:-1]))]
    assert names == ["S", "S/branch-u5"]
