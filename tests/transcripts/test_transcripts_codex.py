from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import Store
from store.errors import UnknownTranscript
from store.importing import import_file
from store.tools.kinds import TOOL_KINDS
from store.tools.results import compute_result_facts
from store.transcripts import NoteEvent, SessionEvent, SessionMessage, read, sniff
from store.transcripts.codex.parser import RolloutLine
from store.transcripts.disk_buffer import DiskBuffer
from store.view.build import View

Lines = list[dict[str, Any] | str]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Give one store for many imports."""
    with Store(tmp_path_factory.mktemp("shelf") / "chat.db", durability="normal") as opened:
        yield opened


def line(kind: str, second: int = 0, **payload: Any) -> dict[str, Any]:
    """Return a line of a rollout."""
    return {"timestamp": f"2026-01-01T00:00:{second:02d}.000Z", "type": kind, "payload": payload}


def item(kind: str, second: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a line with an item of the API."""
    return line("response_item", second, type=kind, **fields)


def event(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a line for the screen."""
    return line("event_msg", type=kind, **fields)


def said(role: str, *texts: str, **fields: Any) -> dict[str, Any]:
    """Return a line with a message."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item(
        "message", role=role, content=[{"type": kind, "text": text} for text in texts], **fields
    )


def call(call_id: str, **fields: Any) -> dict[str, Any]:
    """Return a line with a function's call."""
    return item(
        "function_call", name="shell", arguments='{"command":["ls"]}', call_id=call_id, **fields
    )


def result(call_id: str, output: object = "done") -> dict[str, Any]:
    """Return a line with a function's result."""
    return item("function_call_output", call_id=call_id, output=output)


META = line(
    "session_meta",
    id="S",
    cwd="/p",
    cli_version="0.140.0",
    git={"branch": "main"},
    originator="codex-tui",
)
CONTEXT = line("turn_context", turn_id="t", cwd="/p", model="gpt-5.5", effort="high")
TOKENS = event("token_count", info={"last_token_usage": {"total_tokens": 7}})
THOUGHT = {
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "gAAA=",
}


def events_of(tmp_path: Path, lines: Lines) -> list[Any]:
    """Write lines, read them, return the events."""
    path = tmp_path / "rollout.jsonl"
    path.write_text(
        "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
    )
    return list(read(path, kind="codex"))


def messages_of(tmp_path: Path, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages that lines make."""
    return [
        each.message for each in events_of(tmp_path, [*lines]) if isinstance(each, SessionMessage)
    ]


def notes(events: list[Any]) -> list[str]:
    """Return what the notes say."""
    return [each.text for each in events if isinstance(each, NoteEvent)]


def view_of(tmp_path: Path, *lines: dict[str, Any]) -> View:
    """Import lines and return the view of their session."""
    events_of(tmp_path, [*lines])
    with Store(tmp_path / "chat.db") as store:
        report = import_file(store, tmp_path / "rollout.jsonl")
        assert [
            each.appended for each in import_file(store, tmp_path / "rollout.jsonl").sessions
        ] == [0]
        return store.view(report.sessions[0].id)


def test_one_response_is_one_message(tmp_path: Path) -> None:
    """Reasoning, texts and parallel calls of a response are one answer.

    The results follow, then the next answer.
    """
    first = [
        item("reasoning", 1, **THOUGHT),
        said("assistant", "I look", id="msg_1", phase="commentary"),
    ]
    calls = [call("c1", id="fc_1"), call("c2", namespace="n"), TOKENS, result("c2"), result("c1")]
    lines = [
        META,
        CONTEXT,
        said("user", "do it"),
        *first,
        *calls,
        said("assistant", "Done."),
        TOKENS,
        TOKENS,
    ]
    prompt, answer, *results, last = messages_of(tmp_path, *lines)
    assert prompt == {"role": "user", "content": "do it", "timestamp": 1_767_225_600_000}
    assert (answer["content"], answer["id"], answer["timestamp"]) == (
        "I look",
        "msg_1",
        1_767_225_601_000,
    )
    assert answer["reasoning_items"] == [{"type": "reasoning", **THOUGHT}]
    function = {"name": "shell", "arguments": '{"command":["ls"]}'}
    assert answer["tool_calls"] == [
        {"id": each, "type": "function", "function": function} for each in ("c1", "c2")
    ]
    at = "2026-01-01T00:00:00.000Z"
    assert answer["codex"]["items"] == [
        {"type": "reasoning", "timestamp": "2026-01-01T00:00:01.000Z"},
        {"type": "message", "id": "msg_1", "phase": "commentary", "timestamp": at},
        {"type": "function_call", "id": "fc_1", "timestamp": at},
        {"type": "function_call", "namespace": "n", "timestamp": at},
    ]
    assert (answer["codex"]["model"], answer["codex"]["usage"]) == ("gpt-5.5", {"total_tokens": 7})
    assert [each["tool_call_id"] for each in results] == ["c2", "c1"]
    assert results[0] == {
        "role": "tool",
        "content": "done",
        "tool_call_id": "c2",
        "timestamp": 1_767_225_600_000,
    }
    assert last["content"] == "Done."


def test_responses_are_told_apart(tmp_path: Path) -> None:
    """A result, a user, a new turn and the tokens of an ended response end it.

    Tokens after mere reasoning do not.
    """
    thinking = [item("reasoning", **THOUGHT), TOKENS]
    lines = [
        *thinking,
        said("assistant", "a"),
        TOKENS,
        said("assistant", "b"),
        said("user", "c"),
        call("1"),
    ]
    messages = messages_of(tmp_path, *lines, CONTEXT, said("assistant", "d"))
    assert [message["content"] for message in messages] == ["a", "b", "c", None, "d"]
    assert "reasoning_items" in messages[0]


def test_texts_of_one_response_stay_parts(tmp_path: Path) -> None:
    """Two messages of one response keep their texts apart; images are the chat's.

    Other parts stay as they are.
    """
    image = {"type": "input_image", "image_url": "data:image/png;base64,QUI=", "detail": "high"}
    odd = {"type": "input_image", "image_url": None}
    content = [image, odd, {"type": "input_text", "text": "x", "extra": 1}, "bare", 5]
    lines = [
        item("message", role="user", content=content),
        said("assistant", "a"),
        said("assistant", "b"),
    ]
    prompt, answer = messages_of(tmp_path, *lines)
    shown = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,QUI=", "detail": "high"},
    }
    text = {"type": "text", "text": "x", "extra": 1}
    assert prompt["content"] == [
        shown,
        odd,
        text,
        {"type": "text", "text": "bare"},
        {"type": "text", "text": "5"},
    ]
    assert answer["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def test_every_kind_of_call(tmp_path: Path) -> None:
    """Free text is the argument ``input``.

    The API's own tools go by their type, with what they were asked.
    """
    action = {"type": "exec", "command": ["ls"]}
    messages = messages_of(
        tmp_path,
        item(
            "custom_tool_call",
            name="apply_patch",
            input="*** Begin Patch",
            call_id="c1",
            status="completed",
        ),
        item("local_shell_call", call_id="c2", action=action, status="completed"),
        item("web_search_call", id="ws_1", action={"type": "search", "query": "q"}),
        item("tool_search_call", call_id="c4", arguments={"query": "t"}, execution="client"),
        item("function_call", name="odd", arguments=None, call_id="c5"),
        item(
            "image_generation_call",
            id="ig_1",
            status="completed",
            revised_prompt="a cat",
            result="QUI=",
        ),
        item("future_call", question="?"),
    )
    calls = messages[0]["tool_calls"]
    assert [each.get("id") for each in calls] == ["c1", "c2", "ws_1", "c4", "c5", "ig_1", None]
    names = [
        "apply_patch",
        "local_shell",
        "web_search",
        "tool_search",
        "odd",
        "image_generation",
        "future",
    ]
    assert [each["function"]["name"] for each in calls] == names
    asked = [each["function"]["arguments"] for each in calls]
    assert [json.loads(each) for each in asked[:4]] == [
        {"input": "*** Begin Patch"},
        action,
        {"type": "search", "query": "q"},
        {"query": "t"},
    ]
    assert asked[4:] == [None, '{"revised_prompt": "a cat"}', '{"question": "?"}']
    assert messages[1] | {"timestamp": 0} == {
        "role": "tool",
        "content": "QUI=",
        "tool_call_id": "ig_1",
        "timestamp": 0,
    }
    assert messages[0]["codex"]["items"][0]["status"] == "completed"


def test_every_kind_of_result(tmp_path: Path) -> None:
    """Outputs are texts, parts, objects with a content, or lists of tools, which stay readable as
    JSON.
    """
    tools = [{"type": "namespace", "name": "n"}]
    parts = [{"type": "input_text", "text": "a"}]
    *_, text, listed, failed, single, found, odd = messages_of(
        tmp_path,
        call("c1"),
        result("c1", "plain"),
        result("c2", parts),
        result("c3", {"content": "no", "success": False}),
        result("c4", {"type": "input_text", "text": "b"}),
        item("tool_search_output", call_id="c5", tools=tools, status="completed"),
        item("custom_tool_call_output", output={"unknown": 1}),
    )
    assert text["content"] == "plain"
    assert listed["content"] == [{"type": "text", "text": "a"}]
    assert (failed["content"], failed["messageStatus"]) == ("no", "error")
    assert single["content"] == [{"type": "text", "text": "b"}]
    assert json.loads(found["content"]) == tools
    assert found["codex"] == {"type": "tool_search_output", "status": "completed"}
    assert (odd["content"], "tool_call_id" in odd) == ({"unknown": 1}, False)


def test_a_session_is_told_by_its_first_head(tmp_path: Path) -> None:
    """Id, folder, version, git and model are metadata.

    Heads of resumes and of copied sessions are counted.
    """
    resumed, copied = line("session_meta", id="S", cwd="/q"), line("session_meta", id="parent")
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "above"}}}
    fork = line("session_meta", **META["payload"], forked_from_id="parent", source=spawn)
    events = events_of(tmp_path, [fork, copied, CONTEXT, said("user", "hi"), resumed])
    (opened,) = [each for each in events if isinstance(each, SessionEvent)]
    assert (opened.session_id, opened.title, opened.project_root) == ("S", "hi", "/p")
    known = {key: value for key, value in opened.metadata.items() if key != "codex"}
    git = {"branch": "main"}
    assert known == {
        "model": "gpt-5.5",
        "cli_version": "0.140.0",
        "git": git,
        "parent_session": "above",
    }
    assert opened.metadata["codex"]["forked_from_id"] == "parent"
    assert opened.metadata["codex"]["turn_context"]["effort"] == "high"
    assert notes(events)[:2] == [
        "the session begins 3 times in the file: it was resumed or copied",
        "left out 1 session_meta line (1 of other sessions)",
    ]


def test_titles(tmp_path: Path) -> None:
    """A name the user gave, else what was typed first, else the first message that no program
    wrote.
    """
    lines: Lines = [
        META,
        said("user", "# AGENTS.md instructions for /p"),
        said("user", "<environment_context>"),
    ]
    assert events_of(tmp_path, lines)[0].title is None
    lines += [said("user", "real\nprompt")]
    assert events_of(tmp_path, lines)[0].title == "real prompt"
    lines += [event("user_message", message="typed")]
    assert events_of(tmp_path, lines)[0].title == "typed"
    lines += [
        event("thread_name_updated", thread_name="Named"),
        event("thread_name_updated", thread_name=None),
    ]
    assert events_of(tmp_path, lines)[0].title == "Named"


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    """Lines for the screen, contexts, snapshots and unknown lines are counted.

    No text of theirs is a message.
    """
    screen = [event("agent_message", message="SCREEN"), event("exec_command_end", stdout="SCREEN")]
    snapshot = item("ghost_snapshot", ghost_commit={"id": "SCREEN"})
    events = events_of(
        tmp_path,
        [META, CONTEXT, said("user", "a"), *screen, snapshot, line("world_state", full=True)],
    )
    assert notes(events) == [
        "left out 2 event_msg lines (1 agent_message, 1 exec_command_end)",
        "left out 1 response_item line (1 ghost_snapshot)",
        "left out 1 turn_context line",
        "left out 1 world_state line",
    ]
    assert "SCREEN" not in json.dumps(
        [each.message for each in events if isinstance(each, SessionMessage)]
    )


def test_compactions_are_noted_and_all_messages_stay(tmp_path: Path) -> None:
    """Where the context was compacted, and what took its place beside messages, is metadata."""
    item_of = {"type": "compaction", "encrypted_content": "gAAA="}
    history = [{"type": "message", "role": "user", "content": []}, item_of, "odd"]
    compacted = line("compacted", message="what was", replacement_history=history, window_id="w")
    events = events_of(
        tmp_path, [META, said("user", "a"), compacted, said("user", "b"), item(kind="compaction")]
    )
    assert [each.message["content"] for each in events if isinstance(each, SessionMessage)] == [
        "a",
        "b",
    ]
    first, second = events[0].metadata["codex"]["compactions"]
    at = "2026-01-01T00:00:00.000Z"
    assert first == {
        "after": 1,
        "timestamp": at,
        "message": "what was",
        "window_id": "w",
        "replaced_by": 2,
        "items": [item_of],
    }
    assert second == {"after": 2, "timestamp": at, "items": [{"type": "compaction"}]}
    assert "compacted after message 1, 2: all messages stay" in notes(events)[0]


def test_an_interrupted_turn_is_noted(tmp_path: Path) -> None:
    """The note says after which message.

    The call stays without a result, and the view is still valid.
    """
    lines = [
        META,
        said("user", "a"),
        call("c1"),
        said("user", "<turn_aborted>"),
        event("turn_aborted"),
        said("user", "b"),
    ]
    assert "a turn was interrupted after message 3" in notes(events_of(tmp_path, lines))
    sent = view_of(tmp_path, *lines).messages
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user", "user"]


def test_turns_that_were_taken_back_are_a_session(tmp_path: Path) -> None:
    """Rolled back turns leave the line.

    They hang on it as a branch, counted by prompts, not by injected messages.
    """
    turns = [
        said("user", "one"),
        said("assistant", "1"),
        said("user", "two"),
        said("assistant", "2"),
    ]
    back = event("thread_rolled_back", num_turns=1)
    lines: Lines = [
        META,
        *turns,
        said("user", "<turn_aborted>"),
        back,
        said("user", "three"),
        event("thread_rolled_back"),
    ]
    events = events_of(tmp_path, lines)
    main, branch = [each for each in events if isinstance(each, SessionEvent)]
    assert (main.session_id, branch.session_id, branch.title) == ("S", "S/branch-1", "two")
    assert branch.metadata == {"parent_session": "S", "forked_at": 2}
    contents = [each.message["content"] for each in events if isinstance(each, SessionMessage)]
    assert contents == ["one", "1", "three", "two", "2", "<turn_aborted>"]
    assert "3 messages that were taken back are session 'S/branch-1'" in notes(events)
    with Store(tmp_path / "chat.db") as store:
        report = import_file(store, tmp_path / "rollout.jsonl", session_id="mine")
        assert [each.id for each in report.sessions] == ["mine", "mine/branch-1"]


def test_what_agents_say_to_each_other_is_a_users_message(tmp_path: Path) -> None:
    """A message of another agent reaches the model as input.

    It is no prompt, and its author is kept.
    """
    lines: Lines = [
        item(
            "agent_message",
            author="a",
            recipient="b",
            content=[{"type": "input_text", "text": "x"}],
        ),
        line("inter_agent_communication", author="b", recipient="a", content="y"),
    ]
    opened, first, second, *_ = events_of(tmp_path, lines)
    assert opened.title is None
    assert (first.message["role"], first.message["content"], second.message["content"]) == (
        "user",
        "x",
        "y",
    )
    assert first.message["codex"] == {"type": "agent_message", "author": "a", "recipient": "b"}


OLD = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do"}]},
    {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
    {
        "type": "function_call_output",
        "call_id": "c",
        "output": '{"output":"x","metadata":{"exit_code":3}}',
    },
]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            [{"id": "S", "timestamp": "2025-05-07T00:00:00Z", "instructions": None}, *OLD],
            id="bare items",
        ),
        pytest.param(
            [json.dumps({"session": {"id": "S"}, "items": OLD}, indent=1)], id="one document"
        ),
    ],
)
def test_the_layouts_of_early_2025(tmp_path: Path, lines: Lines) -> None:
    """Items without an envelope are read the same, after a head of their own or in a document."""
    events = events_of(tmp_path, [*lines, {"record_type": "state"}] if len(lines) > 1 else lines)
    assert sniff(tmp_path / "rollout.jsonl") == "codex"
    assert events[0].session_id == "S"
    assert [each.message["role"] for each in events if isinstance(each, SessionMessage)] == [
        "user",
        "assistant",
        "tool",
    ]
    assert [each for each in events if isinstance(each, NoteEvent) and each.broken] == []


@pytest.mark.parametrize(
    "first", [{"record_type": "state"}, OLD[1], OLD[2], CONTEXT, TOKENS, {"type": "mystery"}]
)
def test_a_rollout_is_known_by_any_of_its_lines(tmp_path: Path, first: dict[str, Any]) -> None:
    """A broken head does not hide the rest."""
    path = tmp_path / "f"
    path.write_text("\n".join(['{"timestamp', json.dumps(first), json.dumps(META)]))
    assert sniff(path) == "codex"


def test_broken_lines_are_reported_and_the_rest_kept(tmp_path: Path) -> None:
    """Cut lines, odd values and lines without a payload are noted with their number."""
    odd: Lines = [[1], {"what": 1}, {"type": "response_item"}, {"type": "event_msg", "payload": 5}]  # type: ignore[list-item]
    whole = json.dumps(said("user", "b"))
    events = events_of(tmp_path, [META, said("user", "a"), *odd, whole + whole, whole[:-9]])
    assert [each.message["content"] for each in events if isinstance(each, SessionMessage)] == [
        "a",
        "b",
        "b",
    ]
    assert [each.row for each in events if isinstance(each, NoteEvent) and each.broken] == [
        3,
        4,
        5,
        6,
        8,
    ]


def test_a_file_without_messages_has_no_session(tmp_path: Path) -> None:
    """A rollout of which only the head was written says so."""
    assert events_of(tmp_path, [META]) == [NoteEvent(None, "no message in this file", False)]


def test_ids_are_the_apis_and_unique(tmp_path: Path) -> None:
    """An id that a redactor made the same everywhere is used once.

    The store keeps one message for each id.
    """
    lines = [
        said("user", "a", id="REDACTED"),
        said("user", "b", id="REDACTED"),
        call("c", id="fc_1"),
    ]
    messages = messages_of(tmp_path, *lines)
    assert [message.get("id") for message in messages] == ["REDACTED", None, "fc_1"]


def test_results_are_recognised(tmp_path: Path) -> None:
    """The store knows the tools by their names, and the exit code in each of the program's
    wordings.
    """
    assert {TOOL_KINDS[name] for name in ("shell", "exec_command", "local_shell")} == {"terminal"}
    assert (TOOL_KINDS["apply_patch"], TOOL_KINDS["update_plan"]) == ("file_edit", "todo")
    outputs = [
        "Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nx",
        "Exit code: 3\nWall time: 0 seconds\nOutput:\nx",
        '{"output":"x","metadata":{"exit_code":4,"duration_seconds":0.1}}',
    ]
    calls = [
        part
        for number, text in enumerate(outputs)
        for part in (call(str(number)), result(str(number), text))
    ]
    found = [
        compute_result_facts(each)
        for each in messages_of(tmp_path, *calls)
        if each["role"] == "tool"
    ]
    assert [facts.exit_code for facts in found] == [2, 3, 4]


ids = st.sampled_from(["a", "b", "", None]) | st.integers()
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
junk = (
    scalars
    | st.lists(scalars, max_size=2)
    | st.dictionaries(st.text(max_size=2), scalars, max_size=2)
)
part_types = st.sampled_from(["input_text", "output_text", "input_image"]) | junk
part = junk | st.fixed_dictionaries(
    {"type": part_types}, optional={"text": junk, "image_url": junk, "detail": junk}
)
item_types = [
    "message",
    "agent_message",
    "reasoning",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "image_generation_call",
    "tool_search_output",
    "function_call_output",
    "compaction",
    "ghost_snapshot",
]
event_types = [
    "token_count",
    "thread_rolled_back",
    "turn_aborted",
    "user_message",
    "thread_name_updated",
]
fields = dict.fromkeys(
    ("name", "arguments", "input", "action", "tools", "info", "num_turns", "message", "status"),
    junk,
)
payload = junk | st.fixed_dictionaries(
    {"type": st.sampled_from(item_types + event_types) | junk},
    optional={
        **fields,
        "id": ids,
        "call_id": ids,
        "role": st.sampled_from(["user", "assistant", "developer"]) | junk,
        "content": junk | st.lists(part, max_size=3),
        "output": junk | st.lists(part, max_size=2),
        "result": junk,
        "replacement_history": junk,
        "model": junk,
        "cwd": junk,
        "source": junk,
    },
)
kinds = [
    "session_meta",
    "response_item",
    "event_msg",
    "compacted",
    "turn_context",
    "inter_agent_communication",
    "x",
]
rollout_line = st.fixed_dictionaries(
    {"type": st.sampled_from(kinds) | junk},
    optional={"payload": payload, "timestamp": junk, "id": ids},
)


def check(events: list[Any]) -> None:
    """Check what holds for any file: distinct sessions, and distinct ids within each."""
    found: dict[str, list[str]] = {}
    for each in events:
        if isinstance(each, SessionEvent):
            assert each.session_id not in found
            found[each.session_id] = []
        elif isinstance(each, SessionMessage):
            assert isinstance(each.message["role"], str)
            given_ids = list(found.values())[-1]
            assert each.message.get("id") not in given_ids
            given_ids += [each.message["id"]] if "id" in each.message else []


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(rollout_line | payload, max_size=8))
def test_no_lines_break_the_parser(tmp_path: Path, lines: Lines) -> None:
    """Whatever the lines say, the parser yields events, the same ones each time."""
    events = events_of(tmp_path, [json.dumps(each) for each in lines])
    check(events)
    assert repr(events) == repr(events_of(tmp_path, [json.dumps(each) for each in lines]))


SESSION: Lines = [
    META,
    CONTEXT,
    said("user", "one"),
    item("reasoning", **THOUGHT),
    said("assistant", "a", id="m"),
    call("c1"),
    call("c2"),
    TOKENS,
    result("c1"),
    result("c2"),
    line("compacted", message="s", replacement_history=[]),
    said("user", "two"),
    event("thread_rolled_back", num_turns=1),
    event("turn_aborted"),
]


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(lines=st.permutations(SESSION), cut=st.integers(0, 4000))
def test_shuffled_and_cut_lines_never_break_an_import(
    tmp_path: Path, shelf: Store, lines: Lines, cut: int
) -> None:
    """However a file was cut and its lines mixed up, what is left is imported once.

    Where no message is left, that is said.
    """
    path, name = tmp_path / "f.jsonl", uuid.uuid4().hex
    path.write_text("\n".join(map(json.dumps, lines))[: max(cut, 1)])
    check(list(read(path, kind="codex")))
    if not any(isinstance(each, SessionMessage) for each in read(path, kind="codex")):
        with pytest.raises(UnknownTranscript):
            import_file(shelf, path, kind="codex", session_id=name)
        return
    import_file(shelf, path, kind="codex", session_id=name)
    again = import_file(shelf, path, kind="codex", session_id=name)
    assert all((each.appended, each.differs_at) == (0, None) for each in again.sessions)


class CountedShelf(DiskBuffer):
    """A shelf that counts what is taken out of it."""

    taken = 0

    def at(self, place: int) -> Any:
        """Count, and return what is there."""
        self.taken += 1
        return super().at(place)


def test_the_last_answer_is_found_without_a_look_at_the_others() -> None:
    """However many messages follow it, or where there is none; it may be changed until then."""
    asked = {"role": "user", "content": "x"}
    with CountedShelf() as shelf:
        line = RolloutLine(shelf)
        for _ in range(100):
            line.append(asked)
            assert line.answer is None
        assert shelf.taken == 0
        line.append({"role": "assistant", "content": "a"})
        for number in range(100):
            line.append(asked)
            answer = line.answer
            assert answer is not None
            answer["content"] = number
        assert shelf.taken == 0
        cut = line.cut(150)
        assert (cut.answer, line.answer) == (None, {"role": "assistant", "content": 99})
        assert [each["content"] for each in line][99:102] == ["x", 99, "x"]
        again = line.cut(50)
        assert (len(cut), len(again), line.answer) == (51, 100, None)
        assert again.answer == {"role": "assistant", "content": 99}
