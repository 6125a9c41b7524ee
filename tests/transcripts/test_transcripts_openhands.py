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

AT = "2026-01-01T00:00:01.500000"
ENDING = (
    "\n[The command completed with exit code 3.]"
    "\n[Current working directory: /w]\n[Python interpreter: /bin/python]"
    "\n[Command finished with exit code 3]"
)
METADATA = {
    "exit_code": 3,
    "working_dir": "/w",
    "py_interpreter_path": "/bin/python",
    "prefix": "[Below is the rest]\n",
    "suffix": "\n[The command completed with exit code 3.]",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Give one store for many imports."""
    with Store(tmp_path_factory.mktemp("shelf") / "chat.db", durability="normal") as opened:
        yield opened


def write(tmp_path: Path, *values: object) -> Path:
    """Write values as lines of JSON."""
    path = tmp_path / "talk.jsonl"
    path.write_text(
        "\n".join(each if isinstance(each, str) else json.dumps(each) for each in values)
    )
    return path


def events_of(tmp_path: Path, *values: object) -> list[Any]:
    """Write values, read them, return the events."""
    return list(read(write(tmp_path, *values), kind="openhands"))


def messages_of(tmp_path: Path, *values: object) -> list[dict[str, Any]]:
    """Return the messages that values make."""
    return [
        each.message for each in events_of(tmp_path, *values) if isinstance(each, SessionMessage)
    ]


def notes(events: list[Any]) -> list[str]:
    """Return what the notes say."""
    return [each.text for each in events if isinstance(each, NoteEvent)]


def v1(kind: str, number: int, source: str = "agent", **fields: Any) -> dict[str, Any]:
    """Return an event of V1."""
    return {"kind": kind, "id": f"e{number}", "source": source, "timestamp": AT, **fields}


def text(words: str) -> dict[str, Any]:
    """Return a text part as V1 writes it."""
    return {"type": "text", "text": words, "cache_prompt": False}


def act(
    number: int, call_id: str, response: str | None, thought: str = "", **fields: Any
) -> dict[str, Any]:
    """Return a tool call of V1."""
    call = {
        "id": call_id,
        "responses_item_id": None,
        "name": "terminal",
        "arguments": "{}",
        "origin": "completion",
    }
    known = {
        "tool_name": "terminal",
        "tool_call_id": call_id,
        "tool_call": call,
        "llm_response_id": response,
    }
    thoughts = {
        "thought": [text(thought)] if thought else [],
        "action": {"kind": "TerminalAction", "command": "ls"},
    }
    return v1("ActionEvent", number, **known, **thoughts, **fields)


def observe(number: int, call_id: str, **observation: Any) -> dict[str, Any]:
    """Return a tool's result of V1."""
    known = {"tool_name": "terminal", "tool_call_id": call_id, "action_id": "e"}
    return v1("ObservationEvent", number, "environment", observation=observation, **known)


SPOKEN = v1("MessageEvent", 2, "user", llm_message={"role": "user", "content": [text("fix it")]})


def test_actions_of_one_response_are_one_message(tmp_path: Path) -> None:
    """Parallel calls of V1 are one answer, with its thoughts.

    Results follow, carried out at once or one by one.
    """
    thinking = {
        "reasoning_content": "hm",
        "thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "s"}],
    }
    first = act(3, "c1", "r1", "I look", **thinking, summary="look", security_risk="LOW")
    done = [observe(5, "c1", content=[text("a")]), observe(6, "c2", content=[])]
    later = [
        act(7, "c3", "r2"),
        observe(8, "c3", content="x"),
        act(9, "c4", "r2"),
        observe(10, "c4", content="y"),
    ]
    other = [
        act(11, "c4", "r2"),
        act(12, "c5", None),
        act(13, "c6", None),
        act(14, "c7", "r3"),
        act(15, "c8", "r3", "so"),
    ]
    messages = messages_of(tmp_path, SPOKEN, first, act(4, "c2", "r1"), *done, *later, *other)
    _, answer, one, two, *rest = messages
    assert (answer["id"], answer["content"], answer["timestamp"]) == (
        "e3",
        "I look",
        1_767_225_601_500,
    )
    function = {"name": "terminal", "arguments": "{}"}
    assert answer["tool_calls"][0] == {
        "id": "c1",
        "origin": "completion",
        "type": "function",
        "function": function,
    }
    assert {key: answer[key] for key in thinking} == thinking
    facts = {"id": "e3", "source": "agent", "timestamp": AT, "kind": "ActionEvent"}
    assert answer["openhands"]["events"][0] == facts | {"summary": "look", "security_risk": "LOW"}
    assert answer["openhands"]["llm_response_id"] == "r1"
    assert (one["tool_call_id"], one["name"], one["content"], one["id"]) == (
        "c1",
        "terminal",
        "a",
        "e5",
    )
    assert (two["tool_call_id"], two["content"]) == ("c2", "")
    groups = [
        [each["id"] for each in message["tool_calls"]]
        for message in rest
        if "tool_calls" in message
    ]
    assert groups == [["c3", "c4"], ["c4"], ["c5"], ["c6"], ["c7"], ["c8"]]


def test_prompts_and_messages_of_v1(tmp_path: Path) -> None:
    """The system prompt, what users and agents said, what skills added and images become the
    chat's.
    """
    prompt = {"system_prompt": text("S"), "dynamic_context": text("D"), "tools": [{"name": "t"}]}
    image = {
        "type": "image",
        "image_urls": ["https://x/a.png", "https://x/b.png"],
        "cache_prompt": True,
    }
    shown = {"role": "user", "content": [image], "thinking_blocks": [], "tool_calls": None}
    call = {"id": "c", "name": "f", "arguments": "{}"}
    system, user, agent, odd = messages_of(
        tmp_path,
        v1("SystemPromptEvent", 1, **prompt),
        v1(
            "MessageEvent",
            2,
            "user",
            llm_message=shown,
            extended_content=[text("skill")],
            activated_skills=["k"],
        ),
        v1(
            "MessageEvent",
            3,
            llm_message={"role": "assistant", "content": [], "tool_calls": [call]},
        ),
        v1("MessageEvent", 4, llm_message=None),
    )
    assert system["content"] == [{"type": "text", "text": "S"}, {"type": "text", "text": "D"}]
    assert system["openhands"]["tools"] == [{"name": "t"}]
    urls = [part["image_url"]["url"] for part in user["content"][:2]]
    assert (urls, user["content"][2]) == (image["image_urls"], {"type": "text", "text": "skill"})
    assert user["openhands"]["activated_skills"] == ["k"]
    assert agent["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]
    assert (agent["content"], odd["role"], odd["content"]) == (None, "assistant", "")


def test_results_of_v1(tmp_path: Path) -> None:
    """A command's result ends as the model was shown it; errors and refusals say so.

    Older layouts are read.
    """
    known = {"tool_name": "t", "tool_call_id": "c"}
    command, old, failed, refused, error, odd = messages_of(
        tmp_path,
        observe(
            1,
            "c",
            kind="TerminalObservation",
            content=[text("out")],
            metadata=METADATA,
            exit_code=3,
        ),
        observe(
            2,
            "c",
            kind="ExecuteBashObservation",
            output="out",
            exit_code=1,
            metadata={"exit_code": None},
        ),
        observe(3, "c", content=[text("bad")], is_error=True, metadata={"exit_code": -1}),
        v1("UserRejectObservation", 4, "user", rejection_reason="no", **known),
        v1("AgentErrorEvent", 5, error="broken", **known),
        observe(6, "c", kind="TaskObservation", tasks=[1]),
    )
    texts = [part["text"] for part in command["content"]]
    assert texts == ["[Below is the rest]\n", "out", ENDING]
    assert compute_result_facts(command).exit_code == 3
    assert command["openhands"]["observation"]["metadata"] == METADATA
    assert compute_result_facts(old).exit_code == 1
    assert (failed["content"], failed["messageStatus"]) == ("bad", "error")
    assert (refused["content"], refused["messageStatus"]) == ("Action rejected: no", "error")
    assert (error["content"], error["messageStatus"], error["tool_call_id"]) == (
        "broken",
        "error",
        "c",
    )
    assert json.loads(odd["content"]) == {"kind": "TaskObservation", "tasks": [1]}
    assert (TOOL_KINDS["terminal"], TOOL_KINDS["execute_bash"]) == ("terminal", "terminal")
    assert TOOL_KINDS["str_replace_editor"] == "file_edit"


def test_what_v1_leaves_out_is_counted(tmp_path: Path) -> None:
    """States are counted, and tell the model, the folder and the id.

    Condensations are metadata, messages stay.
    """
    usage = {"usage_to_metrics": {"default": {"model_name": "m"}}}
    whole = {
        "id": "conversation",
        "workspace": {"working_dir": "/w"},
        "agent": {"llm": {"model": "later"}},
    }
    forgotten = v1("Condensation", 7, "environment", forgotten_event_ids=["e2"], summary="short")
    events = events_of(
        tmp_path,
        v1("ConversationStateUpdateEvent", 1, "environment", key="stats", value=usage),
        SPOKEN,
        v1("ConversationStateUpdateEvent", 3, "environment", key="full_state", value=whole),
        v1("PauseEvent", 4, "user"),
        act(5, "c", "r"),
        forgotten,
    )
    opened = events[0]
    assert (opened.session_id, opened.title, opened.project_root) == (
        "conversation",
        "fix it",
        "/w",
    )
    assert opened.metadata == {"model": "m", "condensations": [{"after": 2} | forgotten]}
    assert len([each for each in events if isinstance(each, SessionMessage)]) == 2
    assert notes(events) == [
        "the context was condensed after message 2: all messages stay",
        "left out 2 ConversationStateUpdateEvent events (1 full_state, 1 stats)",
        "left out 1 PauseEvent event",
        "left out 'action' of 1 event: it repeats the call's arguments",
    ]
    bare = v1("ActionEvent", 1, "agent", tool_name="t", tool_call_id="c")
    assert notes(events_of(tmp_path, bare)) == [], (
        "an action without its arguments leaves nothing out"
    )


def action(number: int, kind: str, source: str = "agent", **fields: Any) -> dict[str, Any]:
    """Return an action of V0."""
    args = fields.pop("args", {})
    return {
        "id": number,
        "timestamp": AT,
        "source": source,
        "message": "shown",
        "action": kind,
        "args": args,
        **fields,
    }


def seen(number: int, kind: str, content: str = "out", **fields: Any) -> dict[str, Any]:
    """Return an observation of V0."""
    event = {
        "id": number,
        "timestamp": AT,
        "source": "agent",
        "message": "shown",
        "observation": kind,
    }
    return {**event, "content": content, "extras": {}, **fields}


def called(
    call_id: str, *all_ids: str, response: str | None = "r1", content: str = "I look"
) -> dict[str, Any]:
    """Return the metadata of a call of V0: the model's whole answer, again at each of its calls."""
    function = {"name": "execute_bash", "arguments": '{"command": "ls"}'}
    calls = [
        {"index": 1, "id": each, "type": "function", "function": function}
        for each in all_ids or (call_id,)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": calls, "function_call": None}
    answer = {
        "id": response,
        "model": "m",
        "usage": {"total_tokens": 9},
        "choices": [{"message": message}],
    }
    return {
        "tool_call_metadata": {
            "function_name": "execute_bash",
            "tool_call_id": call_id,
            "model_response": answer,
        }
    }


SYSTEM = action(
    0, "system", args={"content": "S", "tools": [{"name": "t"}], "openhands_version": "0.35"}
)
ASKED = action(1, "message", "user", args={"content": "fix it", "image_urls": ["https://x/a.png"]})
TASK = [SYSTEM, ASKED]


def test_a_response_of_v0_is_one_message(tmp_path: Path) -> None:
    """The first action of a response holds its answer with all calls.

    The others are noted in it.
    """
    both = ("c1", "c2")
    history = [
        *TASK,
        action(2, "run", args={"command": "ls"}, llm_metrics={"costs": []}, **called("c1", *both)),
        seen(
            3, "run", cause=2, **called("c1", *both), extras={"metadata": METADATA, "command": "ls"}
        ),
        action(4, "run", **called("c2", *both)),
        seen(5, "error", cause=4, **called("c2", *both)),
        action(
            6, "finish", args={"final_thought": "done"}, **called("c1", response="r2", content="")
        ),
    ]
    system, user, answer, one, two, last = messages_of(tmp_path, history)
    assert (system["role"], system["content"]) == ("system", "S")
    assert system["openhands"]["args"] == {"tools": [{"name": "t"}], "openhands_version": "0.35"}
    image = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}
    assert user["content"] == [{"type": "text", "text": "fix it"}, image]
    assert (answer["content"], [each["id"] for each in answer["tool_calls"]]) == (
        "I look",
        ["c1", "c2"],
    )
    assert "function_call" not in answer
    assert answer["openhands"]["response"] == {"model": "m", "usage": {"total_tokens": 9}}
    assert [each["id"] for each in answer["openhands"]["events"]] == [2, 4]
    assert (one["tool_call_id"], one["name"], one["content"][-1]["text"]) == (
        "c1",
        "execute_bash",
        ENDING,
    )
    assert compute_result_facts(one).exit_code == 3
    assert (one["openhands"]["cause"], one["openhands"]["extras"]["command"]) == (2, "ls")
    assert (two["tool_call_id"], two["content"], two["messageStatus"]) == ("c2", "out", "error")
    assert (last["content"], last["tool_calls"][0]["id"]) == ("", "c1")


def test_calls_of_v0_without_metadata_are_joined_by_their_cause(tmp_path: Path) -> None:
    """Where the answer was not kept, the action makes the call.

    Its observation names it as the cause.
    """
    thought = {"text": "so"}
    bare = {
        "tool_call_metadata": {
            "function_name": "execute_bash",
            "tool_call_id": "c",
            "model_response": None,
        }
    }
    *_, run, result, edit, changed, kept, finish = messages_of(
        tmp_path,
        *TASK,
        action(2, "run", args={"command": "ls", "thought": "I look", "hidden": None}),
        seen(3, "run", cause=2, extras={"exit_code": 1}),
        action(4, "edit", args={"path": "/a", "thought": thought}),
        seen(5, "edit", cause=4),
        action(6, "run", args={"command": "ls"}, **bare),
        action(8, "finish", args={"final_thought": "done"}),
    )
    assert run["content"] == "I look"
    function = {"name": "execute_bash", "arguments": '{"command": "ls"}'}
    assert run["tool_calls"] == [{"id": "event-2", "type": "function", "function": function}]
    assert (result["role"], result["tool_call_id"], compute_result_facts(result).exit_code) == (
        "tool",
        "event-2",
        1,
    )
    assert (edit["content"], edit["tool_calls"][0]["function"]["name"]) == ("so", "edit")
    assert (changed["role"], changed["tool_call_id"]) == ("tool", "event-4")
    assert kept["tool_calls"] == [{"id": "c", "type": "function", "function": function}]
    assert (finish["role"], finish["content"], "tool_calls" in finish) == (
        "assistant",
        "done",
        False,
    )


def test_what_users_did_and_errors_are_users_messages(tmp_path: Path) -> None:
    """A command of the user, its output and an error without a call were shown to the model as a
    user's words.
    """
    *_, ran, output, error, reply = messages_of(
        tmp_path,
        *TASK,
        action(2, "run", "user", args={"command": "ls"}),
        seen(3, "run", cause=2, extras={"metadata": METADATA}),
        seen(4, "error", "unknown tool"),
        action(5, "message", args={"content": "ok"}),
    )
    assert (ran["role"], ran["content"]) == ("user", "User executed the command:\nls")
    assert (output["role"], output["content"][1]["text"]) == ("user", "out")
    assert (error["role"], error["content"], error["messageStatus"]) == (
        "user",
        "unknown tool",
        "error",
    )
    assert (reply["role"], reply["content"]) == ("assistant", "ok")


def test_what_v0_leaves_out_is_counted(tmp_path: Path) -> None:
    """States, empty events and recalls are counted; what was recalled and condensed is metadata."""
    recalled = {"repo_directory": "/r", "microagent_knowledge": [{"name": "k"}]}
    condensed = action(7, "condensation", args={"forgotten_event_ids": [1], "summary": "short"})
    quiet = [
        seen(2, "null", ""),
        action(3, "change_agent_state"),
        seen(4, "agent_state_changed"),
        action(5, "recall"),
    ]
    record = {
        "instance_id": "i-1",
        "history": [*TASK, *quiet, seen(6, "recall", extras=recalled), condensed],
        "x": 1,
    }
    events = events_of(tmp_path, record | {"big": "x" * 200_000})
    opened = events[0]
    assert (opened.session_id, opened.title, opened.project_root) == ("talk-i-1", "fix it", "/r")
    metadata = {
        "instance_id": "i-1",
        "x": 1,
        "recalled": [recalled],
        "condensations": [{"after": 2} | condensed],
    }
    assert opened.metadata == metadata
    assert notes(events) == [
        "left out 'big': 200,002 characters are too many for a session's metadata",
        "the context was condensed after message 2: all messages stay",
        "left out 1 agent_state_changed event (1 observation)",
        "left out 1 change_agent_state event (1 action)",
        "left out 1 null event (1 observation)",
        "left out 2 recall events (1 action, 1 observation)",
    ]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(TASK, id="an event a line"),
        pytest.param([TASK], id="a list"),
        pytest.param([{"trajectory": TASK}], id="a downloaded trajectory"),
        pytest.param([{"history": [TASK]}], id="pairs"),
        pytest.param([json.dumps({"history": TASK}, indent=1)], id="a document"),
        pytest.param([{"kind": "odd"}, [], *TASK], id="after something else"),
    ],
)
def test_the_layouts_of_files(tmp_path: Path, values: list[Any]) -> None:
    """Events are found wherever programs keep them."""
    path = write(tmp_path, *values)
    assert sniff(path) == "openhands"
    assert [each.message["role"] for each in read(path) if isinstance(each, SessionMessage)] == [
        "system",
        "user",
    ]


def test_records_are_sessions_of_their_own(tmp_path: Path) -> None:
    """Each record is a session; events on lines of their own make one more."""
    events = events_of(
        tmp_path, {"history": TASK}, {"instance_id": "i", "history": TASK}, {"history": TASK}, *TASK
    )
    names = [each.session_id for each in events if isinstance(each, SessionEvent)]
    assert names == ["talk", "talk-i", "talk-3", "talk-4"]


def test_broken_events_are_reported_and_the_rest_kept(tmp_path: Path) -> None:
    """Cut lines and values that are no events are noted with their line.

    A list without messages says so.
    """
    events = events_of(tmp_path, [ASKED, 5], {"a": 1}, ASKED, '{"id', {"history": []})
    assert len([each for each in events if isinstance(each, SessionMessage)]) == 2
    assert [each.row for each in events if isinstance(each, NoteEvent) and each.broken] == [1, 2, 4]
    assert "no message in 'talk-2'" in notes(events)


def test_ids_are_used_once(tmp_path: Path) -> None:
    """An event that was written twice does not take another's id."""
    messages = messages_of(tmp_path, SPOKEN, SPOKEN)
    assert [message.get("id") for message in messages] == ["e2", None]


def test_views_are_valid(tmp_path: Path, shelf: Store) -> None:
    """What was imported can be sent.

    Each call is followed by its result, though some were never carried out.
    """
    history = [
        *TASK,
        action(2, "run", **called("c1", "c1", "c2")),
        seen(3, "run", cause=2, **called("c1", "c1", "c2")),
    ]
    path = write(tmp_path, history)
    (session,) = import_file(shelf, path, session_id="valid").sessions
    assert [each.appended for each in import_file(shelf, path, session_id="valid").sessions] == [0]
    sent = shelf.view(session.id).messages
    assert [message.get("tool_call_id") for message in sent] == [None, None, None, "c1", "c2"]


ids = st.sampled_from(["a", "b", "", None]) | st.integers()
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
junk = (
    scalars
    | st.lists(scalars, max_size=2)
    | st.dictionaries(st.text(max_size=2), scalars, max_size=2)
)
part = junk | st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image"]) | junk}, optional={"text": junk, "image_urls": junk}
)
content = junk | st.lists(part, max_size=2)
call = junk | st.fixed_dictionaries(
    {}, optional={"id": ids, "name": junk, "arguments": junk, "function": junk}
)
message = junk | st.fixed_dictionaries(
    {"content": content}, optional={"role": junk, "tool_calls": junk | st.lists(call, max_size=2)}
)
response = junk | st.fixed_dictionaries(
    {
        "id": ids,
        "choices": junk | st.lists(junk | st.fixed_dictionaries({"message": message}), max_size=1),
    }
)
metadata = junk | st.fixed_dictionaries(
    {"tool_call_id": ids, "function_name": junk, "model_response": response}
)
observation = junk | st.fixed_dictionaries(
    {"content": content},
    optional={"metadata": junk, "exit_code": junk, "is_error": junk, "output": junk},
)
kinds_v1 = [
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "AgentErrorEvent",
    "Condensation",
]
event_v1 = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(kinds_v1),
        "source": st.sampled_from(["agent", "user"]),
        "timestamp": st.text(max_size=3),
    },
    optional={
        **dict.fromkeys(("id", "tool_call_id", "llm_response_id"), ids),
        **dict.fromkeys(("thought", "extended_content"), content),
        **dict.fromkeys(
            ("system_prompt", "action", "tool_name", "value", "key", "error", "thinking_blocks"),
            junk,
        ),
        "llm_message": message,
        "tool_call": call,
        "observation": observation,
    },
)
kinds_v0 = ["system", "message", "run", "finish", "recall", "null", "condensation", "error"]
event_v0 = st.fixed_dictionaries(
    {"source": st.sampled_from(["agent", "user"]), "args": junk | observation, "content": content},
    optional={
        **dict.fromkeys(("action", "observation"), st.sampled_from(kinds_v0) | junk),
        **dict.fromkeys(("id", "cause"), ids),
        **dict.fromkeys(("extras", "llm_metrics", "message", "timestamp"), junk),
        "tool_call_metadata": metadata,
    },
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(events=st.lists(event_v1 | event_v0, max_size=8), listed=st.booleans())
def test_no_events_break_the_parser(tmp_path: Path, events: list[Any], listed: bool) -> None:
    """Whatever the events say, the parser yields messages, the same ones each time, with ids of
    their own.
    """
    values = [events] if listed else events
    found = events_of(tmp_path, *map(json.dumps, values))
    assert repr(found) == repr(events_of(tmp_path, *map(json.dumps, values)))
    messages = [each.message for each in found if isinstance(each, SessionMessage)]
    assert all(isinstance(each["role"], str) for each in messages)
    given_ids = [each["id"] for each in messages if "id" in each]
    assert len(given_ids) == len(set(given_ids))


TALK = [
    SPOKEN,
    act(3, "c1", "r1", "so"),
    act(4, "c2", "r1"),
    observe(5, "c1", content="x"),
    observe(6, "c2", content="y"),
]
TALK += [
    *TASK,
    action(2, "run", **called("c1")),
    seen(3, "run", cause=2, **called("c1")),
    seen(4, "null"),
]


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(events=st.permutations(TALK), cut=st.integers(1, 5000))
def test_shuffled_and_cut_events_never_break_an_import(
    tmp_path: Path, shelf: Store, events: list[dict[str, Any]], cut: int
) -> None:
    """However a file was cut and its events mixed up, what is left is imported once.

    Where no message is left, that is said.
    """
    path, name = tmp_path / "f.jsonl", uuid.uuid4().hex
    path.write_text("\n".join(map(json.dumps, events))[:cut])
    if not any(isinstance(each, SessionMessage) for each in read(path, kind="openhands")):
        with pytest.raises(UnknownTranscript):
            import_file(shelf, path, kind="openhands", session_id=name)
        return
    import_file(shelf, path, kind="openhands", session_id=name)
    again = import_file(shelf, path, kind="openhands", session_id=name)
    assert all((each.appended, each.differs_at) == (0, None) for each in again.sessions)
