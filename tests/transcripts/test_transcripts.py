from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.errors import StoreError, UnknownTranscript
from store.transcripts import (
    TRANSCRIPT_KINDS,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    measure_file_size,
    read,
    sniff,
)
from store.transcripts.parser_events import find_title

HELLO = {"role": "user", "content": "hello\nthere"}
ANSWER = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{"}}],
    "x": [1, {"é": "😀 \ud83d"}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}]}
TALK = [HELLO, ANSWER, RESULT]


def write(path: Path, *lines: object) -> Path:
    """Write values as lines of JSON; texts and bytes as they are."""
    texts = [line if isinstance(line, bytes | str) else json.dumps(line) for line in lines]
    path.write_bytes(b"\n".join(text.encode() if isinstance(text, str) else text for text in texts))
    return path


def messages(path: Path, **options: Any) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in read(path, **options) if isinstance(event, SessionMessage)]


def sessions(path: Path) -> list[SessionEvent]:
    """Return the sessions of a file."""
    return [event for event in read(path) if isinstance(event, SessionEvent)]


def notes(path: Path, *, broken: bool) -> list[NoteEvent]:
    """Return the notes of a file, those on what was broken or those on what was left out."""
    return [
        event for event in read(path) if isinstance(event, NoteEvent) and event.broken is broken
    ]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([TALK], id="a list"),
        pytest.param([{"messages": TALK, "model": "m"}], id="an object"),
        pytest.param(TALK, id="a message a line"),
        pytest.param([{"messages": TALK}], id="a conversation a line"),
        pytest.param([[{"messages": TALK}]], id="a list of conversations"),
        pytest.param([[TALK]], id="a list of lists"),
        pytest.param([json.dumps({"messages": TALK}, indent=2)], id="pretty-printed"),
        pytest.param([json.dumps(TALK, indent=2)], id="a pretty-printed list"),
        pytest.param(
            ["[", *(json.dumps(each) + "," for each in TALK[:-1]), json.dumps(TALK[-1]), "]"],
            id="a list in lines",
        ),
    ],
)
def test_openai_messages_come_out_as_they_are(tmp_path: Path, value: list[object]) -> None:
    """In each way of keeping them, under a suffix that lies, messages come out equal."""
    path = write(tmp_path / "talk.jsonl", *value)
    assert sniff(path) == "openai"
    assert messages(path) == TALK
    assert [(one.session_id, one.title) for one in sessions(path)] == [("talk", "hello there")]


def test_conversations_of_one_file_get_ids_of_their_own(tmp_path: Path) -> None:
    """A conversation's own id is used.

    Where it has none, or one taken before, the file's name and a number.
    """
    ids: list[dict[str, Any]] = [
        {},
        {"session_id": "a"},
        {},
        {"session_id": "a"},
        {"session_id": "f-3"},
    ]
    path = write(tmp_path / "f.jsonl", *({"messages": TALK, **each} for each in ids))
    assert [one.session_id for one in sessions(path)] == ["f", "a", "f-3", "a-4", "f-3-5"]
    assert messages(path) == TALK * 5
    ids = [{"session_id": "f-3"}, {}, {}]
    path = write(tmp_path / "f.jsonl", *({"messages": TALK, **each} for each in ids))
    assert [one.session_id for one in sessions(path)] == ["f-3", "f", "f-3+"]


def test_what_stands_beside_the_messages_is_metadata(tmp_path: Path) -> None:
    """Other keys of a conversation become metadata.

    One that is too big for it is left out, and noted.
    """
    path = write(
        tmp_path / "f.json", {"messages": TALK, "title": "T", "tools": [1], "big": "x" * 200_000}
    )
    (session,) = sessions(path)
    assert (session.title, session.metadata) == ("T", {"title": "T", "tools": [1]})
    (note,) = notes(path, broken=False)
    assert "'big'" in note.text


def test_a_broken_line_is_reported_and_the_rest_kept(tmp_path: Path) -> None:
    """Cut lines, bad UTF-8 and lines that hold no message are noted with their number.

    All others are read.
    """
    path = write(
        tmp_path / "f.jsonl",
        HELLO,
        '{"role": "us',
        b'{"role": "\xff"}',
        [1],
        ANSWER,
        {"a": 1},
        '{"role"',
    )
    assert messages(path) == [HELLO, ANSWER]
    broken = notes(path, broken=True)
    assert [note.row for note in broken] == [2, 3, 4, 6, 7]
    assert "UTF-8" in broken[1].text
    assert "'a'" in broken[3].text


def test_a_first_line_that_is_cut_does_not_hide_the_others(tmp_path: Path) -> None:
    """A file whose first line broke off, in a string or elsewhere, is still read line by line."""
    for cut in ('{"role": "user", "content": "hel', '{"role": "user", "content":'):
        path = write(tmp_path / "f.jsonl", cut, HELLO, ANSWER)
        assert messages(path) == [HELLO, ANSWER]
        assert [note.row for note in notes(path, broken=True)] == [1]


def test_two_values_on_a_line_are_both_read(tmp_path: Path) -> None:
    """Two objects side by side are two messages; what follows them and is no JSON is noted."""
    path = write(
        tmp_path / "f.jsonl",
        json.dumps(HELLO) + json.dumps(ANSWER) + "  " + json.dumps(RESULT) + "{",
    )
    assert messages(path) == TALK
    assert [note.row for note in notes(path, broken=True)] == [1]


def test_marks_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    """A byte order mark, CRLF, blank lines, comments at the top, U+2028 in a string.

    Nothing is lost.
    """
    strange = {"role": "user", "content": "a\u2028b"}
    raw = json.dumps(strange, ensure_ascii=False).encode()
    path = write(
        tmp_path / "f.jsonl",
        b"\xef\xbb\xbf// a comment\r",
        b"\r",
        raw + b"\r",
        b"",
        b"",
        json.dumps(HELLO),
    )
    assert messages(path) == [strange, HELLO]
    assert notes(path, broken=True) == []
    pretty = tmp_path / "g.json"
    pretty.write_bytes(b"\xef\xbb\xbf" + json.dumps(TALK, indent=1).replace("\n", "\r\n").encode())
    assert messages(pretty) == TALK


def test_numbers_json_does_not_have_pass_through(tmp_path: Path) -> None:
    """NaN is read as it is: the store says what it thinks of it.

    Of a repeated key the last counts.
    """
    path = write(
        tmp_path / "f.json", '[{"role": "user", "content": "a", "content": "b", "x": NaN}]'
    )
    (message,) = messages(path)
    assert message["x"] != message["x"]
    assert message["content"] == "b"


def test_tau_bench_records_are_sessions(tmp_path: Path) -> None:
    """Each record is a session with the record's facts as metadata, in a list or alone."""
    trial = {"task_id": 3, "reward": 1.0, "info": {"cost": 2}, "traj": TALK, "trial": 0}
    path = write(tmp_path / "air.json", [trial, trial | {"trial": 1}, trial, 7])
    assert sniff(path) == "tau_bench"
    assert [one.session_id for one in sessions(path)] == [
        "air-task-3-trial-0",
        "air-task-3-trial-1",
        "air-task-3-trial-0-3",
    ]
    assert sessions(path)[0].metadata == {
        "task_id": 3,
        "reward": 1.0,
        "info": {"cost": 2},
        "trial": 0,
    }
    assert messages(path) == TALK * 3
    assert len(notes(path, broken=True)) == 1
    alone = write(tmp_path / "one.json", json.dumps(trial, indent=1))
    assert (sniff(alone), messages(alone), sessions(alone)[0].title) == (
        "tau_bench",
        TALK,
        "hello there",
    )


def test_swe_agent_history_comes_out_as_it_is(tmp_path: Path) -> None:
    """The history is the session; info and environment are metadata.

    The trajectory is left out, and noted.
    """
    history = [
        {"role": "system", "content": "s", "agent": "main"},
        {"role": "user", "content": "a demo", "is_demo": True},
        {"role": "user", "content": "the task"},
        {"role": "assistant", "content": "t", "thought": "t", "action": "ls", "tool_calls": None},
        {"role": "tool", "content": "o", "tool_call_ids": ["c1"]},
    ]
    step = {"action": "ls", "observation": "o"}
    record = {
        "environment": "e",
        "history": history,
        "trajectory": [step],
        "info": {"exit_status": "x"},
    }
    path = write(tmp_path / "a.traj", json.dumps(record, indent=2))
    assert sniff(path) == "swe_agent"
    assert sessions(path) == [
        SessionEvent("a", "the task", None, {"environment": "e", "info": {"exit_status": "x"}})
    ]
    assert messages(path) == history
    (note,) = notes(path, broken=False)
    assert "1 steps" in note.text


def test_swe_agent_without_history_is_built_from_the_last_step(tmp_path: Path) -> None:
    """Where only the steps kept their prompts, the last prompt and its answer are the session.

    Else it is refused.
    """
    step = {"action": "ls", "observation": "o", "response": "I list", "query": [HELLO]}
    path = write(
        tmp_path / "a.traj",
        {"trajectory": [{"action": "", "observation": ""}, step, {"action": 1}]},
    )
    assert messages(path) == [HELLO, {"role": "assistant", "content": "I list"}]
    bare = write(tmp_path / "b.traj", {"trajectory": [{"action": "ls", "observation": "o"}]})
    assert sessions(bare) == []
    assert "history" in notes(bare, broken=True)[0].text


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["just text"],
        ["42"],
        [{}],
        [[]],
        [b"\xff\xfd{\x00}\x00"],
        ['{"messages": [', "broken"],
        [{"type": "session", "payload": {}, "timestamp": "t"}],
        [{"messages": [{"type": "user", "content": "no role"}]}],
        ["[" * 100_000],
        ["[" * 900 + "]" * 900],
    ],
)
def test_an_unknown_file_is_refused_by_name(tmp_path: Path, lines: list[object]) -> None:
    """What is no transcript of these kinds is refused, with the file's name, what was found, what
    was expected.
    """
    path = write(tmp_path / "talk.jsonl", *lines)
    for attempt in (lambda: sniff(path), lambda: read(path)):
        with pytest.raises(
            UnknownTranscript, match=r"talk\.jsonl .*docs/transcripts\.md"
        ) as refused:
            attempt()
        assert len(str(refused.value)) < len(str(path)) + 250


def test_a_file_that_cannot_be_read_is_a_store_error(tmp_path: Path) -> None:
    """A missing file and a folder are refused with our own error, and so is a kind that does not
    exist.
    """
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(StoreError, match="cannot read"):
            sniff(path)
    with pytest.raises(StoreError, match="cannot read"):
        measure_file_size(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "zeros"):
        with pytest.raises(StoreError, match="may never end"):
            sniff(path)
    with pytest.raises(StoreError, match=r"no kind of transcript 'irc'; the kinds are .*openai"):
        read(write(tmp_path / "f", HELLO), kind="irc")


def test_progress_reaches_the_size(tmp_path: Path) -> None:
    """Progress only grows and ends at the file's size, for lines and for documents."""
    long = {"role": "user", "content": "x" * 100_000}
    for name, lines in (("a", [long] * 20), ("b", [json.dumps([long] * 20, indent=1)])):
        path, seen = write(tmp_path / name, *lines), list[int]()
        assert len(messages(path, progress=seen.append)) == 20
        assert seen == sorted(seen)
        assert seen[-1] == measure_file_size(path)


def test_lines_are_streamed(tmp_path: Path) -> None:
    """The first messages of a file arrive before its later lines were read."""
    path, seen = (
        write(tmp_path / "f.jsonl", *[{"role": "user", "content": "x" * 100_000}] * 60),
        list[int](),
    )
    events = read(path, progress=seen.append)
    assert isinstance(next(events), SessionEvent)
    assert isinstance(next(events), SessionMessage)
    assert seen[-1] < measure_file_size(path) / 2


def test_kinds_keep_their_names_and_their_order() -> None:
    """Users name them, and a kind comes before those that would take its files; others may come."""
    apis = ("openai", "anthropic", "exchanges")
    benchmarks = ("tau2_bench", "mini_swe_agent", "inspect")
    known = (
        *benchmarks,
        "goose",
        *apis,
        "tau_bench",
        "swe_agent",
        "qwen_code",
        "claude_code",
        "stream_json",
        "codex",
        "responses",
        "openhands",
        "convostore",
        "chatgpt",
        "claude_ai",
        "gemini_cli",
        "copilot_cli",
        "vscode_chat",
        "cursor",
        "droid",
        "kiro",
        "aider",
        "pi",
        "opencode",
        "sharegpt",
        "moss",
        "agent_bench",
        "toolbench",
        "moatless",
        "oasst",
        *("openai_agents", "adk", "llm", "langgraph", "open_webui", "librechat"),
    )
    assert tuple(kind for kind in TRANSCRIPT_KINDS if kind in known) == known


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
chat_keys = ["role", "content", "messages", "tool_calls", "type", "text", "session_id"]
file_keys = [
    "traj",
    "mapping",
    "chat_messages",
    "$set",
    "parts",
    "toolCalls",
    "sender",
    "task_id",
    "trial",
    "history",
    "trajectory",
    "action",
    "observation",
    "query",
    "response",
    "request",
    "body",
    "input",
    "output",
    "message",
    "id",
    "usage",
    "is_demo",
]
keys = st.sampled_from(chat_keys + file_keys)
words = st.sampled_from(["user", "assistant", "tool", "text", "tool_result"])
anything = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize("kind", TRANSCRIPT_KINDS)
@settings(max_examples=25)
@given(values=st.lists(anything, max_size=4), tail=st.binary(max_size=6))
@pytest.mark.sampled(4)
def test_no_json_breaks_a_parser(tmp_path: Path, kind: str, values: list[Any], tail: bytes) -> None:
    """Whatever JSON a file holds, a parser yields events, the same ones each time, and distinct
    session ids.
    """
    end = b" " + tail  # by itself, it may be the beginning of another encoding
    path = write(tmp_path / "f", *(json.dumps(value) for value in values), end)
    events = list(read(path, kind=kind))
    assert repr(events) == repr(list(read(path, kind=kind)))
    ids = [event.session_id for event in events if isinstance(event, SessionEvent)]
    assert len(ids) == len(set(ids))
    assert all(
        isinstance(event.message["role"], str)
        for event in events
        if isinstance(event, SessionMessage) and event.format == "openai" and kind != "exchanges"
    )


CONTEXT = (
    "<session_context>\nThis is the Gemini CLI. We are setting up the context.\n</session_context>"
)
TYPED: dict[str, list[Any]] = {
    "in the next message": [CONTEXT, "Mend it."],
    "behind a context": [f"{CONTEXT}\n\nMend it."],
    "behind two": ["<user_info>\nOS: linux\n</user_info>\n<rules>r</rules>\nMend it."],
    "in a part behind": [[{"type": "text", "text": CONTEXT}, {"type": "text", "text": "Mend it."}]],
    "within a tag": ["<user_query>\nMend it.\n</user_query>"],
    "within a tag with attributes": ["<task a='b'>Mend it.</task><environment_details>x"],
    "behind a context that does not end": ["<environment_context>cut", "Mend it."],
    "behind instructions": ["# AGENTS.md instructions for /w\n\nBe kind.", "Mend it."],
}
"""Where a user's words are → the contents of a session's messages."""


@pytest.mark.parametrize("where", TYPED)
def test_a_title_is_what_the_user_typed_first(where: str) -> None:
    """Not what the program put before it, or in the place of it."""
    assert find_title({"role": "user", "content": each} for each in TYPED[where]) == "Mend it."


def test_a_session_without_anything_typed_has_no_title() -> None:
    """Tags that are the user's own are a title like any text."""
    assert find_title([{"role": "user", "content": CONTEXT}]) is None
    assert find_title([{"role": "user", "content": "<b>Mend</b> it."}]) == "<b>Mend</b> it."
