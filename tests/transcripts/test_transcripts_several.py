"""Files that hold more than one session, or more than one document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_transcripts_claude import Recorder, events_of, opened, split, text, told

from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff


@pytest.mark.parametrize("between", ["\n", "", "\n\n  \n"])
def test_documents_over_several_lines_may_follow_each_other(tmp_path: Path, between: str) -> None:
    """Each is a conversation of its own."""
    path = tmp_path / "talks.json"
    talks = [{"messages": [{"role": "user", "content": words}]} for words in "ab"]
    path.write_text(between.join(json.dumps(talk, indent=2) for talk in talks))
    assert sniff(path) == "openai"
    events = list(read(path))
    assert [event.session_id for event in events if isinstance(event, SessionEvent)] == [
        "talks",
        "talks-2",
    ]
    said = [event.message["content"] for event in events if isinstance(event, SessionMessage)]
    assert said == ["a", "b"]
    path.write_text(path.read_text() + '\n{"messages": [')
    with pytest.raises(Exception, match="not JSON"):
        sniff(path)


def session(name: str, day: int) -> Recorder:
    """Return a session of Claude Code with an id and uuids of its own."""
    recorder = Recorder()
    row: dict[str, Any] = {"type": "queue-operation", "operation": "dequeue", "sessionId": name}
    recorder.lines.append(row)
    for words, kind in (("go", "user"), ("gone", "assistant")):
        message = {"role": kind, "content": [text(f"{name} {words}")]}
        at = f"2026-01-{day:02}T00:00:0{len(recorder.lines)}Z"
        recorder.add(kind, message, sessionId=name, timestamp=at)
        line: Any = recorder.lines[-1]
        line["uuid"] = f"{name}-{line['uuid']}"
        line["parentUuid"] = line["parentUuid"] and f"{name}-{line['parentUuid']}"
    recorder.add("ai-title", aiTitle=f"Of {name}", sessionId=name, uuid=None, parentUuid=None)
    return recorder


def test_sessions_that_were_put_into_one_file_are_several(tmp_path: Path) -> None:
    """In whichever order; each has its own title."""
    one, other = session("one", 1), session("two", 2)
    for lines in (one.lines + other.lines, other.lines + one.lines):
        events = events_of(tmp_path, lines)
        assert {name: told(said) for name, said in split(events).items()} == {
            name: [f"u:{name} go", f"a:{name} gone"] for name in ("one", "two")
        }
        titles = {name: each.title for name, each in opened(events).items()}
        assert titles == {"one": "Of one", "two": "Of two"}


def test_a_session_that_goes_on_under_another_id_is_one(tmp_path: Path) -> None:
    """It hangs on what was there, or repeats it."""
    one = session("one", 1)
    linked = session("two", 2).lines
    first: Any = linked[1]
    first["parentUuid"] = "one-u2"
    assert list(split(events_of(tmp_path, one.lines + linked))) == ["two"]
    first["parentUuid"] = "unknown"
    repeated: Any = one.lines[1]
    copy = repeated | {"uuid": "copy", "sessionId": "two"}
    events = events_of(tmp_path, [*one.lines, copy, *linked])
    assert told(split(events)["two"]) == ["u:one go", "a:one gone", "u:two go", "a:two gone"]


def rollout(name: str, day: int, began: int) -> list[dict[str, Any]]:
    """Return a rollout of Codex."""
    at = {"timestamp": f"2026-01-{day:02}T00:00:01Z"}
    content = [{"type": "input_text", "text": f"{name} go"}]
    said = {"type": "message", "role": "user", "content": content}
    meta = {"id": name, "timestamp": f"2026-01-{began:02}T00:00:00Z", "cwd": "/p"}
    return [
        at | {"type": "session_meta", "payload": meta},
        at | {"type": "response_item", "payload": said},
    ]


@pytest.mark.parametrize(("began", "names"), [(2, ["one", "two"]), (1, ["one"])])
def test_rollouts_that_were_put_into_one_file_are_several(
    tmp_path: Path, began: int, names: list[str]
) -> None:
    """The head of one that is as old as what is there is of a copy, as before."""
    path = tmp_path / "f.jsonl"
    lines = rollout("one", 1, 1) + rollout("two", 3, began)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    events = list(read(path))
    assert [event.session_id for event in events if isinstance(event, SessionEvent)] == names
    assert len([event for event in events if isinstance(event, SessionMessage)]) == 2
    assert not any(event.broken for event in events if isinstance(event, NoteEvent))


def test_rollouts_may_come_newest_first(tmp_path: Path) -> None:
    """A copied session's head stands before what was said, and may be told again in the middle."""
    path = tmp_path / "f.jsonl"

    def sessions(*lines: dict[str, Any]) -> list[str]:
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return [event.session_id for event in read(path) if isinstance(event, SessionEvent)]

    new, old = rollout("two", 3, 3), rollout("one", 1, 1)
    assert sessions(*new, *old) == ["two", "one"]
    assert sessions(new[0], *old, old[0], new[1]) == ["two"]
