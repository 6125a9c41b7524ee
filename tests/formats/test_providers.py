"""Any conversation in any provider's format: what none of them refuses."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts
from conversations import NOW, Message, busy_conversations, conversations
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import JUDGES, complaints, misfits, own_types

from store import Policy, Store, StoreError, View
from store.errors import CompactionError, PositionOutOfRange
from store.formats import FORMATS, PlacedMessage
from store.formats.call_names import WORD_ALPHABET
from store.importing import import_file

PROVIDERS = [*JUDGES]
IN_TURNS = ("anthropic", "gemini")
PNG = "data:image/png;base64,AAAA"
PICTURE = {"type": "image_url", "image_url": {"url": PNG}}


def call(*ids: str, content: Any = None, name: str = "Read", arguments: Any = "{}") -> Message:
    """An answer that calls."""
    function = {"name": name, "arguments": arguments}
    calls = [{"id": each, "type": "function", "function": function} for each in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(call_id: str, content: Any = "done", **more: Any) -> Message:
    """A tool's result."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def user(content: Any = "hi") -> Message:
    """What the user says."""
    return {"role": "user", "content": content}


def seen(store: Store, line: list[Message], name: str, **fields: Any) -> View:
    """The view of a new session in a format, which nobody refuses."""
    session_id = store.create_session().id
    store.append(session_id, line)
    view = store.view(session_id, Policy(**fields), format=name, now=NOW)
    assert complaints(name, view.messages, view.system) == []
    return view


@pytest.mark.parametrize("name", PROVIDERS)
@given(line=conversations)
@settings(max_examples=60)
def test_no_provider_refuses_a_conversation(store: Store, name: str, line: list[Message]) -> None:
    """However messy it is: strange ids, roles, contents, results without calls."""
    view = seen(store, line, name)
    assert view.messages == seen(store, line, name).messages


@pytest.mark.parametrize("name", PROVIDERS)
@given(
    line=conversations,
    spans=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5), st.booleans()), max_size=6),
    role=st.sampled_from(["system", "user", "developer", "merge"]),
)
@settings(max_examples=40)
def test_no_provider_refuses_what_is_left(
    store: Store, name: str, line: list[Message], spans: list[tuple[int, int, bool]], role: Any
) -> None:
    """When ranges are hidden by name, behind a text or behind nothing, and some brought back."""
    session_id = store.create_session().id
    store.append(session_id, [*line, user()])
    for first, more, says in spans:
        with suppress(CompactionError, PositionOutOfRange):
            store.hide(session_id, first, first + more, "said" if says else None)
    policy = Policy(summary_role=role, orphans="adopt")
    for undone in (None, *(each.id or 0 for each in store.compactions(session_id))):
        with suppress(CompactionError):
            if undone:
                store.undo_compaction(session_id, undone)
        view = store.view(session_id, policy, format=name, now=NOW)
        assert complaints(name, view.messages, view.system) == []


@pytest.mark.parametrize("name", PROVIDERS)
@given(line=busy_conversations)
@settings(max_examples=20)
def test_what_was_sent_stays_as_it_was(store: Store, name: str, line: list[Message]) -> None:
    """A request begins as the one before did, as far as an answer was not still being given."""
    session_id = store.create_session().id
    store.append(session_id, [*line, user()])
    raw = Policy.named("raw")
    requests = [
        store.view(session_id, raw, format=name, now=NOW, at=at).messages
        for at, message in enumerate([*line, user()], 1)
        if message["role"] == "user"
    ]
    for before, after in pairwise(requests):
        whole = before[:-1] if name in IN_TURNS else before
        assert json.dumps(after[: len(whole)]) == json.dumps(whole)


@pytest.mark.parametrize("name", PROVIDERS)
def test_ids_and_names_are_taken(store: Store, name: str) -> None:
    """Those of other providers are renamed, the same in every request; no two become one."""
    ids = ["functions.edit:0", "x" * 90, "x" * 91, "call|fc_1", "ok_id-1"]
    names = ["mcp.server/tool", "é", "ok"]
    exchanges = [[call(one, name=tool), result(one)] for one in ids for tool in names]
    line = [user(), *[each for exchange in exchanges for each in exchange], user()]
    view = seen(store, line, name)
    again = seen(store, line, name)
    assert view.messages == again.messages
    text = json.dumps(view.messages)
    assert '"ok_id-1"' in text
    assert '"ok"' in text
    shorter = seen(store, line[:-2], name)
    assert shorter.messages[:-1] == view.messages[: len(shorter.messages) - 1]


def test_a_name_that_was_sent_says_which_one_was_meant() -> None:
    """Of those at hand."""
    names = ["a.b", "a/b", "a_b", "x" * 80]
    sent = [WORD_ALPHABET.fitted(each) for each in names]
    assert len({*sent}) == 4
    assert sent[2] == "a_b"
    assert [WORD_ALPHABET.original(each, names) for each in sent] == names
    assert WORD_ALPHABET.original("other", names) is None
    assert all(WORD_ALPHABET.fits(each) for each in sent)
    assert not WORD_ALPHABET.fits("")


@pytest.mark.parametrize("name", IN_TURNS)
def test_system_text_has_its_place(store: Store, name: str) -> None:
    """In front; further on it stays where it is, or the cache of all before it would be lost."""
    line = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        user("hi"),
        {"role": "assistant", "content": "hello"},
        {"role": "system", "content": "It is late."},
        user("bye"),
    ]
    view = seen(store, line, name)
    assert "Be brief." in json.dumps(view.system)
    assert "Be kind." in json.dumps(view.system)
    assert "It is late." in json.dumps(view.messages[2])
    assert len(view.messages) == 3


def test_system_text_is_a_message_where_it_has_no_place(store: Store) -> None:
    """Of its own role."""
    line = [{"role": "developer", "content": "Be kind."}, user()]
    view = seen(store, line, "responses")
    assert view.system is None
    assert view.messages[0] == {"type": "message", "role": "developer", "content": "Be kind."}


def test_anthropic_gets_results_of_one_turn_together(store: Store) -> None:
    """In the order of the calls, before what the user says."""
    line = [user(), call("a", "b", content="so"), result("b", "2"), result("a", "1"), user("go")]
    view = seen(store, line, "anthropic")
    assert view.messages == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "a", "name": "Read", "input": {}},
                {"type": "tool_use", "id": "b", "name": "Read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": "2"},
                {"type": "text", "text": "go"},
            ],
        },
    ]


def test_responses_gets_items(store: Store) -> None:
    """Calls and results by themselves."""
    line = [user(), call("a", content="so", arguments={"p": 1}), result("a", "1")]
    assert seen(store, line, "responses").messages == [
        {"type": "message", "role": "user", "content": "hi"},
        {"type": "message", "role": "assistant", "content": "so"},
        {"type": "function_call", "call_id": "a", "name": "Read", "arguments": '{"p": 1}'},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ]


def test_gemini_gets_contents(store: Store) -> None:
    """A response has the name of its call; a failed one says so by its key."""
    line = [user(), call("a"), result("a", "1"), call("b"), result("b", "x", messageStatus="error")]
    one, two = (
        {"functionCall": {"id": each, "name": "Read", "args": {}}, "thoughtSignature": UNSIGNED}
        for each in "ab"
    )
    done = {"id": "a", "name": "Read", "response": {"output": "1"}}
    failed = {"id": "b", "name": "Read", "response": {"error": "x"}}
    assert seen(store, line, "gemini").messages == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [one]},
        {"role": "user", "parts": [{"functionResponse": done}]},
        {"role": "model", "parts": [two]},
        {"role": "user", "parts": [{"functionResponse": failed}]},
    ]


UNSIGNED = "skip_thought_signature_validator"


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("arguments", ["not json", "[1]", None, 5, "", '{"a": NaN}', {"a": 1}])
def test_arguments_are_what_the_provider_takes(store: Store, name: str, arguments: Any) -> None:
    """An object, or its text."""
    seen(store, [user(), call("a", arguments=arguments), result("a")], name)


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("content", ["", " ", None, [], [{"type": "text", "text": ""}], {"a": 1}])
def test_empty_contents_are_no_reason_to_refuse(store: Store, name: str, content: Any) -> None:
    """Whoever says nothing."""
    failed = result("b", content, messageStatus="error")
    line = [user(content), call("a", "b", content=content), result("a", content), failed]
    seen(store, [*line, {"role": "assistant", "content": content}, user("x")], name)


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.slow
def test_pictures_are_sent_where_they_can_be(store: Store, name: str) -> None:
    """Of the user's, and the newest in results; an assistant's are named."""
    line = [
        user([PICTURE, {"type": "text", "text": "look"}]),
        call("a"),
        result("a", [PICTURE]),
        {"role": "assistant", "content": [PICTURE]},
        user([{"type": "input_image", "image_url": PNG}]),
    ]
    view = seen(store, line, name, picture_keep=1)
    assert json.dumps(view.messages).count("AAAA") == 3
    if own_types(name):
        assert misfits(name, view.messages) == []


@pytest.mark.parametrize("name", PROVIDERS)
def test_reasoning_of_others_is_dropped(store: Store, name: str) -> None:
    """Its signature is worth nothing elsewhere."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    answer = {"role": "assistant", "content": "so", "thinking_blocks": [thought]}
    view = seen(store, [user(), answer], name)
    assert (json.dumps(thought) in json.dumps(view.messages)) == (name == "anthropic")


def test_an_unsigned_thought_is_dropped(store: Store) -> None:
    """The provider refuses it."""
    answer = {"role": "assistant", "content": "so", "thinking_blocks": [{"type": "thinking"}, 5]}
    view = seen(store, [user(), answer], "anthropic")
    assert view.messages[1]["content"] == [{"type": "text", "text": "so"}]


def test_markers_stand_at_the_ends_of_layers(store: Store) -> None:
    """Behind the prompts, the history, and what was done; what is left to do has none."""
    session_id = store.create_session().id
    store.append(session_id, [user("a"), {"role": "assistant", "content": "b"}, user("c")])
    store.append(session_id, [call("x"), result("x")])
    context = store.context(
        session_id, system="S", todo_recap="left", format="anthropic", cache_markers=True
    )
    assert [place for place, block in enumerate(_blocks(context)) if "cache_control" in block] == [
        0,
        2,
        5,
    ]
    plain = store.context(session_id, system="S", todo_recap="left", format="anthropic")
    assert "cache_control" not in json.dumps(_blocks(plain))


def test_a_long_turn_has_a_marker_within_the_look_back(store: Store) -> None:
    """Behind one, the provider looks back over twenty blocks only."""
    session_id = store.create_session().id
    steps = [each for one in range(20) for each in (call(f"c{one}"), result(f"c{one}"))]
    store.append(session_id, [user("a"), *steps])
    context = store.context(session_id, system="S", format="anthropic", cache_markers=True)
    places = [place for place, block in enumerate(_blocks(context)) if "cache_control" in block]
    assert places == [0, 21, 41]
    assert complaints("anthropic", context.messages, context.system) == []


def _blocks(context: Any) -> list[Message]:
    """All blocks of a request in order."""
    return [*context.system, *(block for each in context.messages for block in each["content"])]


def test_an_empty_request_is_empty() -> None:
    """In every format that takes messages."""
    for name in PROVIDERS:
        assert FORMATS[name].request([]) == ([], None)
    only = FORMATS["anthropic"].request([PlacedMessage(1, {"role": "system", "content": " "})])
    assert only == ([], None)


@needs_transcripts
@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
def test_recordings_are_taken(tmp_path: Path, name: str) -> None:
    """Under the policies that people use, by our judge and by the provider's own types."""
    judged = 0
    for place, path in enumerate(sorted(TRANSCRIPTS.rglob("*.*"), key=lambda each: each.name)):
        if path.stat().st_size > 400_000 or path.suffix == ".tsv":
            continue
        with Store(tmp_path / f"{place}.db") as store:
            try:
                import_file(store, path)
            except StoreError:
                continue
            for session in store.sessions(limit=50):
                for policy in ("default", "agent", "raw"):
                    view = store.view(session.id, Policy.named(policy), format=name, now=NOW)
                    assert complaints(name, view.messages, view.system) == [], path.name
                    judged += 1
                if own_types(name):
                    assert misfits(name, view.messages) == [], path.name
    assert judged
