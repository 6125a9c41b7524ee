from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff

Lines = list[dict[str, Any] | str]


class Recorder:
    """Write lines as Claude Code does: each with its own uuid, hanging on the one before it."""

    def __init__(self) -> None:
        self.lines: Lines = []
        self.last: str | None = None
        self._count = itertools.count(1)

    def add(self, kind: str, message: dict[str, Any] | None = None, **envelope: Any) -> str:
        """Add a line and return its uuid."""
        number = next(self._count)
        line = {
            "type": kind,
            "uuid": f"u{number}",
            "parentUuid": self.last,
            "sessionId": "S",
            "cwd": "/p",
        }
        line |= {
            "version": "2.1.0",
            "isSidechain": False,
            "timestamp": f"2026-01-01T00:00:{number:02d}.000Z",
        }
        self.lines.append(line | ({"message": message} if message else {}) | envelope)
        self.last = self.lines[-1]["uuid"]
        return self.last

    def user(self, content: object, **envelope: Any) -> str:
        """Add what a user said."""
        return self.add("user", {"role": "user", "content": content}, **envelope)

    def answer(self, message_id: str | None, *blocks: object, **envelope: Any) -> str:
        """Add one line of an answer."""
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": list(blocks),
        }
        message |= {"stop_reason": None, "usage": {"output_tokens": len(self.lines)}}
        return self.add("assistant", message, **{"requestId": f"req_{message_id}"} | envelope)

    def result(self, call_id: str, content: object = "done", **envelope: Any) -> str:
        """Add the result of a tool call."""
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return self.user([block | envelope.pop("block", {})], **envelope)


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def call(call_id: str, **given: Any) -> dict[str, Any]:
    """Return a tool call's block."""
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": given}


def events_of(tmp_path: Path, lines: Lines, *, end: str = "\n") -> list[Any]:
    """Write lines, read them, return the events."""
    path = tmp_path / "file.jsonl"
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end
    )
    return list(read(path, kind="claude_code"))


def split(events: list[Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the messages of each session."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if isinstance(event, SessionEvent):
            found[event.session_id] = []
        elif isinstance(event, SessionMessage):
            found[list(found)[-1]].append(event.message)
    return found


def opened(events: list[Any]) -> dict[str, SessionEvent]:
    """Return the sessions by id."""
    return {event.session_id: event for event in events if isinstance(event, SessionEvent)}


def told(messages: list[dict[str, Any]]) -> list[str]:
    """Return a short form of messages: role and text, or the ids of calls and results."""
    short = []
    for message in messages:
        calls = [each["id"] for each in message.get("tool_calls", ())]
        content = message["content"]
        shown = (
            content
            if isinstance(content, str)
            else "+".join(part.get("text", "") for part in content or ())
        )
        short.append(
            f"{message['role'][0]}:{message.get('tool_call_id') or shown or ','.join(calls)}"
        )
    return short


def test_lines_of_one_api_message_are_one_message(tmp_path: Path) -> None:
    """Blocks spread over lines, with results between them, make one answer.

    Text, calls, thinking, the last usage.
    """
    session = Recorder()
    session.user("do it")
    thinking = {"type": "thinking", "thinking": "", "signature": "s=="}
    session.answer("m1", thinking)
    session.answer("m1", text("I run two"))
    session.answer("m1", call("t1", command="é"))
    session.result("t1")
    session.add("progress", data={"type": "bash_progress"})
    session.answer("m1", call("t2") | {"caller": {"type": "direct"}}, gitBranch="b")
    session.result("t2", block={"is_error": True})
    _, answer, first, second = split(events_of(tmp_path, session.lines))["S"]
    assert answer["id"] == "m1"
    assert answer["content"] == "I run two"
    assert answer["thinking_blocks"] == [thinking]
    function = {"name": "Bash", "arguments": '{"command": "é"}'}
    assert answer["tool_calls"][0] == {"id": "t1", "type": "function", "function": function}
    assert answer["tool_calls"][1]["caller"] == {"type": "direct"}
    assert answer["timestamp"] == 1_767_225_602_000
    facts = answer["claude_code"]
    assert facts["uuids"] == ["u2", "u3", "u4", "u7"]
    assert (facts["model"], facts["usage"], facts["requestId"]) == (
        "m",
        {"output_tokens": 6},
        "req_m1",
    )
    assert facts["later_lines"][2] == {
        "parentUuid": "u6",
        "timestamp": "2026-01-01T00:00:07.000Z",
        "gitBranch": "b",
    }
    assert (first["tool_call_id"], first["content"], first.get("messageStatus")) == (
        "t1",
        "done",
        None,
    )
    assert (second["id"], second["messageStatus"]) == ("u8", "error")


def test_content_keeps_its_shape(tmp_path: Path) -> None:
    """Strings stay strings; texts, images and blocks without a counterpart are parts, in order."""
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "QUI="},
    }
    search = {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}}
    reference = {"type": "tool_reference", "tool_name": "T"}
    session = Recorder()
    session.user([text("see"), image])
    session.answer("m1", text("a"), search, text("b"))
    session.answer("m2", call("t1"))
    session.result("t1", [text("r"), image, reference])
    session.answer(
        "m3",
        {"type": "redacted_thinking", "data": "zz"},
        call("t2"),
        {"type": "thinking", "thinking": "t"},
    )
    said, answer, silent, result, thought = split(events_of(tmp_path, session.lines))["S"]
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUI="}}
    assert said["content"] == [text("see"), url]
    assert answer["content"] == [text("a"), search, text("b")]
    assert silent["content"] is None
    assert result["content"] == [text("r"), url, reference]
    assert [block["type"] for block in thought["thinking_blocks"]] == [
        "redacted_thinking",
        "thinking",
    ]
    assert thought["claude_code"]["block_order"] == [
        "thinking_blocks",
        "tool_calls",
        "thinking_blocks",
    ]


def test_results_and_text_of_one_line_are_two_messages(tmp_path: Path) -> None:
    """A line with results and text gives the results, then the text, with ids of their own."""
    session = Recorder()
    session.answer("m1", call("t1"), call("t2"))
    mixed = [
        {"type": "tool_result", "tool_use_id": each, "content": each, "cache_control": 1}
        for each in ("t1", "t2")
    ]
    session.user([mixed[0], text("and this"), mixed[1]])
    messages = split(events_of(tmp_path, session.lines))["S"]
    assert told(messages) == ["a:t1,t2", "t:t1", "t:t2", "u:and this"]
    assert [message["id"] for message in messages] == ["m1", "u2", "u2#1", "u2#2"]
    assert messages[1]["claude_code"]["tool_result"] == {"cache_control": 1}


def test_what_is_the_same_on_every_line_is_said_once(tmp_path: Path) -> None:
    """Envelope keys that never change are the session's.

    Others stay with their message, known or not.
    """
    session = Recorder()
    session.user("a", gitBranch="x", slug="s", newKey=[1])
    session.user("b", gitBranch="y", slug="s", isMeta=True)
    events = events_of(tmp_path, session.lines)
    metadata = opened(events)["S"].metadata["claude_code"]
    assert metadata == {
        "sessionId": "S",
        "cwd": "/p",
        "version": "2.1.0",
        "isSidechain": False,
        "slug": "s",
    }
    first, second = split(events)["S"]
    assert first["claude_code"]["newKey"] == [1]
    assert (second["claude_code"]["gitBranch"], second["claude_code"]["isMeta"]) == ("y", True)
    assert opened(events)["S"].project_root == "/p"


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    """Lines that are no messages are counted by their type.

    ToolUseResult is counted with its size.
    """
    session = Recorder()
    session.answer("m1", call("t1"))
    for _ in range(2):
        session.add("progress", data={"type": "bash_progress"})
    session.lines += [
        {"type": "file-history-snapshot", "messageId": "x"},
        {"type": "brand-new"},
        {"no": "type"},
    ]
    session.result("t1", toolUseResult={"stdout": "é"})
    events = events_of(tmp_path, session.lines)
    notes = [event.text for event in events if isinstance(event, NoteEvent) and not event.broken]
    assert notes == [
        "left out 1 brand-new line",
        "left out 1 file-history-snapshot line",
        "left out 2 progress lines (2 bash_progress)",
        "left out 1 untyped line",
        "left out toolUseResult of 1 result line: most of it repeats the tool results",
    ]
    assert "toolUseResult" not in json.dumps(split(events)["S"])


def test_broken_lines_are_reported_and_the_rest_kept(tmp_path: Path) -> None:
    """Comments are skipped, joined lines parted; cut and odd lines are noted with their number."""
    session = Recorder()
    session.user("a")
    session.answer("m1", text("b"))
    session.user("c")
    first, second, third = map(json.dumps, session.lines)
    odd = [{"type": "user", "sessionId": "S"}, {"type": "user", "message": {"content": 5}}, 7]
    lines = ["// a comment", "// another", first + second, *odd, third, second[:-9]]
    events = events_of(tmp_path, lines, end="")
    assert told(split(events)["S"]) == ["u:a", "a:b", "u:c"]
    assert [event.row for event in events if isinstance(event, NoteEvent) and event.broken] == [
        4,
        5,
        6,
        8,
    ]


def test_compaction_keeps_the_older_lines(tmp_path: Path) -> None:
    """A boundary's summary is a user message that says what it is; nothing before it is lost."""
    session = Recorder()
    session.user("before")
    session.answer("m1", text("old"))
    facts = {"trigger": "auto", "preTokens": 9}
    session.add("system", subtype="compact_boundary", parentUuid=None, compactMetadata=facts)
    session.user("what was", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    session.answer("m2", text("after"))
    messages = split(events_of(tmp_path, session.lines))["S"]
    assert told(messages) == ["u:before", "a:old", "u:what was", "a:after"]
    kept = messages[2]["claude_code"]
    assert (kept["isCompactSummary"], kept["compactMetadata"]) == (True, facts)
    (alone,) = split(events_of(tmp_path, session.lines[3:4]))["S"]
    assert alone["claude_code"]["isCompactSummary"] is True


def test_titles(tmp_path: Path) -> None:
    """A title the user gave, one a program gave, this session's own summary, the first real prompt,
    a command.
    """
    session = Recorder()
    session.user("Caveat: this is no prompt", isMeta=True)
    session.user("<command-name>/init</command-name> <command-args>x</command-args>")
    titles = [lambda: opened(events_of(tmp_path, session.lines))["S"].title]
    assert titles[0]() == "/init x"
    session.user([text("<ide_opened_file>f</ide_opened_file>"), text("real  prompt\n" + "x" * 99)])
    assert titles[0]() == "real prompt " + "x" * 67 + "…"
    session.lines += [{"type": "summary", "summary": "another's", "leafUuid": "elsewhere"}]
    assert str(titles[0]()).startswith("real prompt")
    session.lines.insert(0, {"type": "summary", "summary": "Own summary", "leafUuid": session.last})
    assert titles[0]() == "Own summary"
    session.lines += [{"type": "ai-title", "aiTitle": "AI", "sessionId": "S"}]
    assert titles[0]() == "AI"
    session.lines.insert(0, {"type": "custom-title", "customTitle": "Mine", "sessionId": "S"})
    assert titles[0]() == "Mine"


def test_ids_of_a_session_are_its_last_and_unique(tmp_path: Path) -> None:
    """A resumed session's id is its last line's; synthetic answers go by their uuid.

    Equal message ids do not clash.
    """
    session = Recorder()
    session.user("a", sessionId="old")
    session.answer("same", text("one"), requestId=None)
    session.user("b")
    session.answer("same", text("two"), requestId=None)
    session.add(
        "assistant",
        {"id": "x", "role": "assistant", "model": "<synthetic>", "content": [text("error")]},
    )
    events = events_of(tmp_path, session.lines)
    messages = split(events)["S"]
    assert [message["id"] for message in messages] == ["u1", "same", "u3", "u4", "u5"]
    assert messages[4]["claude_code"]["message_id"] == "x"


def test_a_file_without_messages_has_no_session(tmp_path: Path) -> None:
    """A file of other lines is known by them, has no session, and says so."""
    (tmp_path / "f").write_text('{"type": "summary", "summary": "s", "leafUuid": "l"}\n')
    assert sniff(tmp_path / "f") == "claude_code"
    events = list(read(tmp_path / "f"))
    assert not split(events)
    assert events[0] == NoteEvent(None, "no message in this file", False)


ids = st.sampled_from(["a", "b", "c", "", None]) | st.integers()
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
junk = (
    scalars
    | st.lists(scalars, max_size=2)
    | st.dictionaries(st.text(max_size=2), scalars, max_size=2)
)
kinds = st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image", "other"])
block = junk | st.fixed_dictionaries(
    {"type": kinds | junk},
    optional={
        "text": junk,
        "id": ids,
        "tool_use_id": ids,
        "name": ids,
        "input": junk,
        "content": junk,
        "source": junk,
    },
)
message = junk | st.fixed_dictionaries(
    {"content": junk | st.lists(block, max_size=3)}, optional={"id": ids, "role": ids}
)
flags = {key: st.booleans() | junk for key in ("isSidechain", "isMeta", "isCompactSummary")}
links = dict.fromkeys(
    ("uuid", "parentUuid", "logicalParentUuid", "sessionId", "agentId", "requestId", "leafUuid"),
    ids,
)
facts = dict.fromkeys(
    ("timestamp", "toolUseResult", "compactMetadata", "customTitle", "attachment", "cwd"), junk
)
line = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["user", "assistant", "system", "custom-title", "attachment"]),
        "message": message,
    },
    optional=flags | links | facts,
)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(line, max_size=8))
def test_no_lines_break_the_parser(tmp_path: Path, lines: Lines) -> None:
    """Whatever the lines say, parents in circles and all, each session's ids are unique and the
    reading repeats.
    """
    events = events_of(tmp_path, lines)
    assert repr(events) == repr(events_of(tmp_path, lines))
    sessions = [event.session_id for event in events if isinstance(event, SessionEvent)]
    assert len(sessions) == len(set(sessions))
    for messages in split(events).values():
        given_ids = [each["id"] for each in messages if "id" in each]
        assert len(given_ids) == len(set(given_ids))
