"""Messages of every provider: what went in comes out, and rules see what was called and returned."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from conftest import TRANSCRIPTS, needs_transcripts
from conversations import NOW
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import complaints

from store import InvalidMessage, InvalidValue, Policy, Store
from store.formats import decode_message, encode_message

Message = dict[str, Any]
SIGNED = {"type": "thinking", "thinking": "Let me look.", "signature": "c2lnbmVk" * 20}
HIDDEN = {"type": "redacted_thinking", "data": "x" * 40}
PNG = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
PNG_TYPE = "image/png"
EPHEMERAL = {"type": "ephemeral"}


def used(call_id: str, name: str = "Read", **given: Any) -> Message:
    """A tool_use block."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def returned(call_id: str, content: Any = "done", **more: Any) -> Message:
    """A tool_result block."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def text(said: str = "hi", **more: Any) -> Message:
    """A text block."""
    return {"type": "text", "text": said, **more}


ANTHROPIC: list[Message] = [
    {"role": "user", "content": [text(cache_control=EPHEMERAL), {"type": "image", "source": PNG}]},
    {
        "role": "assistant",
        "content": [SIGNED, HIDDEN, text("so"), used("t1"), used("t2", path="a")],
    },
    {
        "role": "user",
        "content": [
            returned("t1", [text("one"), {"type": "image", "source": PNG}]),
            returned("t2", "no such file", is_error=True, cache_control=EPHEMERAL),
            text("and?"),
        ],
    },
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srv_1",
                "content": [{"type": "web_search_result", "encrypted_content": "y" * 400}],
            },
            text("found", citations=[{"type": "char_location"}]),
            used("t3") | {"caller": {"type": "direct"}},
            SIGNED,
            {"input": {}, "name": "Odd", "id": "t4", "type": "tool_use"},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1},
    },
    {"role": "user", "content": [text("first"), returned("t4", []), text("between")]},
    {"timestamp": 5, "content": [returned("t3") | {"content": None}], "role": "user", "id": "u"},
    {"role": "assistant", "content": [SIGNED]},
    {"role": "assistant", "content": [used("t5")]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t5"}]},
    {"role": "assistant", "content": [{"type": "compaction", "content": "so far"}, SIGNED]},
]
RESPONSES: list[Message] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "z" * 8_000},
    {
        "type": "message",
        "id": "msg_2",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "so", "annotations": [], "logprobs": []}],
        "phase": "commentary",
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "Read", "arguments": "{}"},
    {"arguments": '{"path": "a"}', "call_id": "c2", "name": "Read", "type": "function_call"},
    {"type": "function_call_output", "call_id": "c1", "output": "1"},
    {
        "type": "function_call_output",
        "call_id": "c2",
        "output": [
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
        ],
    },
    {
        "type": "custom_tool_call",
        "call_id": "c3",
        "name": "apply_patch",
        "input": "*** Begin Patch",
    },
    {"type": "custom_tool_call_output", "call_id": "c3", "output": "ok"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
    {
        "type": "local_shell_call",
        "call_id": "c4",
        "action": {"command": ["ls"]},
        "status": "completed",
    },
    {"type": "local_shell_call_output", "call_id": "c4", "output": "a.py"},
    {"type": "mcp_call", "id": "mcp_1", "name": "x", "arguments": "{}", "output": "1"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "q" * 100},
    {"type": "item_reference", "id": "rs_1"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "no"}],
        "id": "msg_3",
        "status": "completed",
    },
]
GEMINI: list[Message] = [
    {
        "role": "user",
        "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
    },
    {
        "role": "model",
        "parts": [
            {"text": "Let me look.", "thought": True},
            {"text": "so", "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "Read", "args": {"path": "a"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "g2", "name": "List", "args": {}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "Read", "response": {"output": "1"}}},
            {
                "functionResponse": {
                    "id": "g2",
                    "name": "List",
                    "response": {"files": ["a"], "n": 1},
                }
            },
            {"text": "and?"},
        ],
    },
    {
        "role": "model",
        "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}, {"text": ""}],
    },
    {"role": "model", "parts": [{"function_call": {"name": "Read"}, "thought_signature": "c2ln"}]},
    {
        "role": "function",
        "parts": [{"function_response": {"response": {"error": "no"}, "name": "Read"}}],
    },
    {"parts": [{"fileData": {"fileUri": "gs://x", "mimeType": "application/pdf"}}]},
]
PATCHES = {"name": "apply_patch", "input": "*** Begin Patch"}
READS_A = {"name": "Read", "arguments": '{"path": "a"}'}
CHAT: list[Message] = [
    {"role": "user", "content": "Do it."},
    {"role": "assistant", "content": None, "refusal": "I will not.", "annotations": []},
    {"role": "user", "content": "Say hello."},
    {
        "content": "",
        "refusal": None,
        "role": "assistant",
        "audio": {"id": "audio_1", "data": "AAAA", "transcript": "Hello there.", "expires_at": 5},
    },
    {
        "id": "m1",
        "role": "assistant",
        "tool_calls": [
            {"type": "custom", "id": "c1", "custom": PATCHES},
            {"id": "c2", "type": "function", "function": READS_A},
        ],
        "content": "so",
        "reasoning_content": "Let me look.",
    },
    {"role": "tool", "tool_call_id": "c1", "content": "patched"},
    {"role": "tool", "tool_call_id": "c2", "content": "x = 1"},
    {"function_call": READS_A, "role": "assistant", "content": None, "tool_calls": None},
    {"name": "Read", "role": "function", "content": "x = 2", "timestamp": 5},
]
GIVEN = {"openai": CHAT, "anthropic": ANTHROPIC, "responses": RESPONSES, "gemini": GEMINI}
PROVIDERS = [*GIVEN]


def same(one: object, other: object) -> bool:
    """Whether two values are equal, the order of their keys included."""
    return json.dumps(one) == json.dumps(other)


def out(store: Store, session_id: str, **span: Any) -> list[Message]:
    """The raw messages of a session."""
    return [each.message for each in store.messages(session_id, **span)]


def stored(store: Store, messages: Iterable[Message], name: str | None = None) -> str:
    """The id of a new session of messages."""
    session_id = store.create_session().id
    given = [*messages]
    back = store.append(session_id, given, format=name)
    assert same([each.message for each in back], given)
    return session_id


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", GIVEN)
def test_what_went_in_comes_out(store: Store, name: str, told: bool) -> None:
    """All at once or one by one, in pages, by id and by position; also from a fork."""
    session_id = stored(store, GIVEN[name], None if told else name)
    assert same(out(store, session_id), GIVEN[name])
    one_by_one = store.create_session().id
    for message in GIVEN[name]:
        (back,) = store.append(one_by_one, message, format=None if told else name)
        assert same(back.message, message)
        assert store.session(one_by_one).head == back.seq
    assert same(out(store, one_by_one), GIVEN[name])
    for size in (1, 2, 3):
        paged = [each.message for page in store.pages(session_id, size=size) for each in page]
        assert same(paged, GIVEN[name])
    for each in store.messages(session_id):
        assert store.message(session_id, each.seq) == each
    assert same(out(store, store.fork(session_id).id), GIVEN[name])
    assert store.verify() == []


@pytest.mark.parametrize("name", GIVEN)
def test_it_is_not_stored_again(store: Store, name: str) -> None:
    """Where it has an id: whoever does not know whether it arrived sends it again."""
    session_id = store.create_session().id
    first = store.append(session_id, GIVEN[name])
    with_ids = [
        each for each in GIVEN[name] if "id" in each and each.get("type") != "item_reference"
    ]
    head = store.session(session_id).head
    again = store.append(session_id, with_ids)
    assert store.session(session_id).head == head
    assert [each for each in first if each.message in with_ids] == again
    for each in with_ids:
        assert same(store.message(session_id, each["id"]).message, each)


texts = st.text(max_size=6)
ids = st.sampled_from(["a", "b", "", "é", "\ud800", "x" * 70])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts, values, max_size=2)
extra = st.dictionaries(st.sampled_from(["cache_control", "status", "x"]), values, max_size=1)
contents = st.none() | texts | st.lists(st.builds(text, texts), max_size=2)


def mixed(*parts: st.SearchStrategy[Message]) -> st.SearchStrategy[Message]:
    """Objects of parts, with their keys in any order."""
    whole = st.tuples(*parts).map(lambda each: {k: v for part in each for k, v in part.items()})
    return whole.flatmap(lambda one: st.permutations([*one.items()]).map(dict))


blocks = st.builds(text, texts) | st.sampled_from([SIGNED, HIDDEN, {"type": "x", "y": 1}])
calls = mixed(st.builds(used, ids, texts, x=values), extra)
results = mixed(st.builds(returned, ids, contents, is_error=st.booleans()), extra)
outer = st.dictionaries(st.sampled_from(["id", "timestamp", "usage", "name"]), values, max_size=2)
answers = st.lists(blocks | calls, max_size=4).map(
    lambda each: {"role": "assistant", "content": each}
)
inputs = st.lists(blocks | results, max_size=4).map(lambda each: {"role": "user", "content": each})
anthropic_messages = mixed(answers | inputs, outer)

parts = st.builds(lambda said: {"text": said}, texts) | st.sampled_from(
    [
        {"thought": True, "text": "hm"},
        {"inlineData": {"data": "AA"}},
        {"text": "x", "thoughtSignature": "cw"},
    ]
)
function_calls = mixed(
    mixed(objects.map(lambda args: {"args": args}), texts.map(lambda name: {"name": name})).map(
        lambda held: {"functionCall": held}
    ),
    extra,
)
function_responses = mixed(
    mixed(
        (objects | texts.map(lambda said: {"output": said})).map(lambda held: {"response": held}),
        texts.map(lambda name: {"name": name}),
    ).map(lambda held: {"function_response": held}),
    extra,
)
models = st.lists(parts | function_calls, max_size=4).map(
    lambda each: {"role": "model", "parts": each}
)
users = st.lists(parts | function_responses, max_size=4).map(
    lambda each: {"role": "user", "parts": each}
)
gemini_contents = mixed(models | users, outer)

items = mixed(
    st.sampled_from(RESPONSES),
    st.dictionaries(st.sampled_from(["id", "status"]), texts, max_size=1),
)
chats = mixed(
    st.sampled_from([{"role": "assistant"}, {"role": "function"}]),
    st.dictionaries(st.sampled_from(["id", "timestamp", "x"]), values, max_size=1),
    st.fixed_dictionaries(
        {},
        optional={
            "content": contents,
            "name": texts,
            "refusal": st.none() | texts,
            "audio": st.none() | objects | st.builds(lambda said: {"transcript": said}, texts),
            "function_call": st.none() | st.fixed_dictionaries({"name": texts, "arguments": texts}),
            "tool_calls": st.none() | st.lists(st.sampled_from(CHAT[4]["tool_calls"]), max_size=2),
        },
    ),
)
MESSAGES = {
    "openai": chats,
    "anthropic": anthropic_messages,
    "gemini": gemini_contents,
    "responses": items,
}


@pytest.mark.parametrize("name", MESSAGES)
@given(data=st.data())
@settings(max_examples=200)
def test_every_message_goes_in_and_out(store: Store, name: str, data: st.DataObject) -> None:
    """By its rows alone, and through a store; its views are taken by all."""
    messages = data.draw(st.lists(MESSAGES[name], min_size=1, max_size=5))
    for message in messages:
        rows = encode_message(message, name, 0).rows
        assert same(decode_message(name, rows), message)
    session_id = store.create_session().id
    store.append(session_id, messages, format=name, dedupe="off")
    assert same(out(store, session_id), messages)
    for wanted in PROVIDERS:
        view = store.view(session_id, format=wanted)
        if wanted != name:
            assert complaints(wanted, view.messages, view.system) == []


@pytest.mark.parametrize(
    ("name", "message", "key"),
    [
        ("anthropic", {"role": "tool", "content": "x"}, "role"),
        ("anthropic", {"role": "user"}, "content"),
        ("anthropic", {"role": "user", "content": ["x"]}, "content"),
        ("anthropic", {"role": "user", "content": [used("a")]}, "content"),
        ("anthropic", {"role": "assistant", "content": [returned("a")]}, "content"),
        ("anthropic", {"role": "assistant", "content": "x", "tool_calls": []}, "tool_calls"),
        ("gemini", {"role": "user", "content": "x"}, "content"),
        ("gemini", {"role": "assistant", "parts": []}, "role"),
        ("gemini", {"role": "user", "parts": [{"type": "text", "text": "x"}]}, "parts"),
        ("gemini", {"role": "user", "parts": [{"functionCall": {"name": "x"}}]}, "parts"),
        ("responses", {"role": "user"}, "content"),
        ("responses", {"content": "x", "role": "tool"}, "role"),
        ("responses", {"content": "x", "role": {}, "type": "message"}, "role"),
        ("responses", {"type": "function_call", "name": "x", "call_id": "c"}, "arguments"),
        ("responses", {"type": 5}, "type"),
    ],
)
def test_a_named_format_is_kept_to(store: Store, name: str, message: Message, key: str) -> None:
    """The index and the key are told, and nothing is stored."""
    session_id = store.create_session().id
    with pytest.raises(InvalidMessage) as refused:
        store.append(session_id, [{"role": "user", "content": "x"}, message], format=name)
    if name != "gemini":
        assert (refused.value.index, refused.value.key) == (1, key)
    assert store.session(session_id).head == 0
    with pytest.raises(InvalidValue, match="openai"):
        store.append(session_id, message, format="nothing")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [text()]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
    ],
)
def test_what_may_be_of_a_chat_is(message: Message) -> None:
    """It is one row, as it is; so is anything, where the format is named."""
    assert encode_message(message, None, 0) == (None, [message])
    foreign = {"role": "user", "content": [returned("a")]}
    assert encode_message(foreign, "openai", 0) == (None, [foreign])


@pytest.mark.parametrize("name", PROVIDERS)
def test_what_a_chat_says_elsewhere_is_told(store: Store, name: str) -> None:
    """A refusal, a spoken answer, a call of free text and one of older programs, to everybody."""
    session_id = stored(store, CHAT)
    view = store.view(session_id, format=name)
    assert complaints(name, view.messages, view.system) == []
    said = json.dumps(view.messages)
    for words in ("I will not.", "Hello there.", "apply_patch", "*** Begin Patch", "patched"):
        assert words in said
    for words in ("x = 1", "x = 2"):
        assert said.count(words) == 1
    assert "No result" not in said
    assert [entry.seq for entry in view.entries] == [*range(1, len(CHAT) + 1)]


def test_what_a_chat_says_elsewhere_is_found(url: str) -> None:
    """By a search, and by a model that reads plain text."""
    with Store(url, durability="normal") as store:
        session_id = stored(store, CHAT)
        for words, seq in (("will not", 2), ("there", 4), ("Begin Patch", 5)):
            assert [each.seq for each in store.search(words)] == [seq]
        (request,) = store.context(session_id, format="react").messages
        for words in ("Action: Finish[I will not.]", "Hello there.", "*** Begin Patch"):
            assert words in request["content"]


def test_a_chat_has_its_calls_of_free_text_back(store: Store) -> None:
    """And the one call of older programs as the first of a list, with its result."""
    sent = store.view(stored(store, CHAT)).messages
    assert sent[1]["content"] == [{"type": "refusal", "refusal": "I will not."}]
    assert sent[4]["tool_calls"] == [
        {"id": "c1", "type": "custom", "custom": PATCHES},
        CHAT[4]["tool_calls"][1],
    ]
    (call,) = sent[7]["tool_calls"]
    assert call == {"id": "Read", "type": "function", "function": READS_A}
    assert sent[8] == {"role": "tool", "tool_call_id": "Read", "content": "x = 2"}


def test_what_a_chat_says_elsewhere_is_redacted(store: Store) -> None:
    """With all that it said."""
    session_id = stored(store, CHAT)
    for seq, words in ((2, "I will not."), (4, "Hello there."), (5, "Begin Patch"), (9, "x = 2")):
        store.redact(session_id, seq, "secret")
        assert words not in json.dumps(out(store, session_id))
    assert store.verify() == []


def test_several_results_are_several_to_every_rule(store: Store) -> None:
    """And one message again in a request."""
    session_id = stored(store, ANTHROPIC[:3])
    assert store.session(session_id).head == 5
    view = store.view(session_id)
    assert [each["role"] for each in view.messages] == ["user", "assistant", "tool", "tool", "user"]
    assert [entry.seq for entry in view.entries] == [1, 2, 3, 4, 5]
    request = store.view(session_id, format="anthropic").messages
    assert [len(each["content"]) for each in request] == [2, 5, 3]
    assert request[1] == ANTHROPIC[1]


@pytest.mark.parametrize("name", GIVEN)
def test_rules_judge_foreign_calls(store: Store, name: str) -> None:
    """A file that is read again and again is sent once, whoever read it."""
    session_id = store.create_session().id
    for number in range(4):
        read = READS[name](number)
        store.append(session_id, [{**each, "timestamp": NOW - 60_000 + number} for each in read])
    policy = Policy(file_read=True, file_read_keep=1)
    for wanted in PROVIDERS:
        view = store.view(session_id, policy, format=wanted, now=NOW)
        assert [entry.rule for entry in view.entries].count("file_read") == 3
        assert complaints(wanted, view.messages, view.system) == []


READS = {
    "openai": lambda _: [
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "Read", "arguments": '{"file_path": "a.py"}'},
        },
        {"role": "function", "name": "Read", "content": "x = 1\n" * 50},
    ],
    "anthropic": lambda number: [
        {"role": "assistant", "content": [used(f"t{number}", "Read", file_path="a.py")]},
        {"role": "user", "content": [returned(f"t{number}", "x = 1\n" * 50)]},
    ],
    "responses": lambda number: [
        {
            "type": "function_call",
            "call_id": f"t{number}",
            "name": "Read",
            "arguments": '{"file_path": "a.py"}',
        },
        {"type": "function_call_output", "call_id": f"t{number}", "output": "x = 1\n" * 50},
    ],
    "gemini": lambda _: [
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "Read", "args": {"file_path": "a.py"}}}],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "Read", "response": {"output": "x = 1\n" * 50}}}
            ],
        },
    ],
}


@pytest.mark.parametrize("wanted", PROVIDERS)
@pytest.mark.parametrize("name", GIVEN)
def test_a_request_is_the_callers(store: Store, name: str, wanted: str) -> None:
    """Whatever is done with it, the next one and what is stored are as they were."""
    system = {"role": "system", "content": "Be brief."}
    session_id = stored(store, [system])
    store.append(session_id, GIVEN[name], format=name)
    first = store.view(session_id, format=wanted)
    whole = json.dumps([first.messages, first.system])
    spoil([first.messages, first.system])
    again = store.view(session_id, format=wanted)
    assert json.dumps([again.messages, again.system]) == whole
    assert same(out(store, session_id), [system, *GIVEN[name]])
    request = {"format": wanted, "system": "S", "cache_markers": wanted == "anthropic"}
    context = store.context(session_id, **request)
    whole = json.dumps([context.messages, context.system])
    spoil([context.messages, context.system])
    context = store.context(session_id, **request)
    assert json.dumps([context.messages, context.system]) == whole


def spoil(value: Any) -> None:
    """Change whatever can be changed."""
    if isinstance(value, dict):
        for held in value.values():
            spoil(held)
        value["spoilt"] = True
    elif isinstance(value, list):
        for held in value:
            spoil(held)
        value.append("spoilt")


def test_a_range_has_what_ends_in_it(store: Store) -> None:
    """A message of three positions is at its last."""
    session_id = stored(store, ANTHROPIC[:3])
    assert out(store, session_id, start=5, stop=5) == [ANTHROPIC[2]]
    assert out(store, session_id, start=3, stop=4) == []
    assert out(store, session_id, start=-1) == [ANTHROPIC[2]]
    assert out(store, session_id, start=2, stop=4) == [ANTHROPIC[1]]
    assert [store.message(session_id, seq).seq for seq in (3, 4, 5)] == [5, 5, 5]


def test_a_line_may_end_within_a_message(store: Store) -> None:
    """It has the beginning of it; what is appended then is no part of it."""
    session_id = stored(store, ANTHROPIC[:3])
    store.rewind(session_id, to=4)
    begun = {"role": "user", "content": ANTHROPIC[2]["content"][:2]}
    assert out(store, session_id) == [*ANTHROPIC[:2], begun]
    store.append(session_id, {"role": "user", "content": [text("x"), returned("t9")]})
    assert out(store, session_id)[2:4] == [
        begun,
        {"role": "user", "content": [text("x"), returned("t9")]},
    ]
    assert out(store, session_id, at=3)[-1] == {
        "role": "user",
        "content": ANTHROPIC[2]["content"][:1],
    }


def test_a_message_is_popped_whole(store: Store) -> None:
    """With all its positions."""
    session_id = stored(store, ANTHROPIC[:3])
    popped = store.pop(session_id)
    assert popped is not None
    assert popped.message == ANTHROPIC[2]
    assert store.session(session_id).head == 2


def test_a_part_that_is_redacted_is_one_still(store: Store) -> None:
    """What went in is one message, the others in it as they were."""
    session_id = stored(store, ANTHROPIC[:3])
    whole = ANTHROPIC[2]["content"]
    for seq, said in ((4, True), (3, True), (5, False)):
        store.redact(session_id, seq, "secret")
        (message,) = out(store, session_id, start=5, stop=5)
        block = message["content"][seq - 3]
        assert block["content" if said else "text"] == "[redacted]"
        assert block.get("tool_use_id") == whole[seq - 3].get("tool_use_id")
        assert store.message(session_id, seq).message == message
        request = store.view(session_id, format="anthropic").messages[-1]["content"]
        assert [each["type"] for each in request] == [each["type"] for each in message["content"]]
    assert message["content"][1].get("is_error") == whole[1].get("is_error")
    assert store.verify() == []


@pytest.mark.parametrize("first", [True, False])
def test_a_response_that_is_redacted_is_one_still(store: Store, first: bool) -> None:
    """Of Gemini's; a message that had an id has it, whatever else of it went."""
    parts = [
        {"functionResponse": {"id": each, "name": "Read", "response": {"output": each}}}
        for each in "ab"
    ]
    given = {"role": "user", "parts": [*parts, {"text": "so?"}], "id": "m1"}
    session_id = stored(store, [given], "gemini")
    store.redact(session_id, 1 if first else 3, "secret")
    (message,) = out(store, session_id)
    if first:
        redacted = {"id": "a", "name": "Read", "response": {"output": "[redacted]"}}
        assert message == {**given, "parts": [{"functionResponse": redacted}, *given["parts"][1:]]}
    else:
        assert message == {**given, "parts": [*parts, {"text": "[redacted]"}]}
    assert store.append(session_id, given, format="gemini")[0].seq == 3


def test_siblings_are_whole(store: Store) -> None:
    """Whatever of its positions a message is asked for by."""
    session_id = stored(store, ANTHROPIC[:3])
    store.replace(session_id, 2, {"role": "user", "content": "no"})
    for seq, found in ((3, [ANTHROPIC[2], {"role": "user", "content": "no"}]), (4, [])):
        same = [each.message for each in store.siblings(session_id, seq)]
        assert same == found
    store.undo_rewind(session_id)
    for seq in (3, 4, 5):
        assert ANTHROPIC[2] in [each.message for each in store.siblings(session_id, seq)]


def test_a_part_can_be_redacted(store: Store) -> None:
    """It says nothing any more; the others stay."""
    session_id = stored(store, ANTHROPIC[:3])
    store.redact(session_id, 4, "secret")
    assert "no such file" not in json.dumps(out(store, session_id))
    assert "and?" in json.dumps(out(store, session_id))
    for wanted in PROVIDERS:
        view = store.view(session_id, format=wanted)
        assert complaints(wanted, view.messages, view.system) == []
    assert store.verify() == []


def test_its_own_format_has_it_back(store: Store) -> None:
    """Reasoning with its signature, parts that nobody else has, calls side by side."""
    session_id = stored(
        store, [RESPONSES[number] for number in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11)]
    )
    policy = Policy(picture_keep=1)
    items = store.view(session_id, policy, format="responses").messages
    assert items == [each.message for each in store.messages(session_id)]
    chat = store.view(session_id).messages
    assert [each["role"] for each in chat[:4]] == ["user", "assistant", "tool", "tool"]
    assert len(chat[1]["tool_calls"]) == 2
    session_id = stored(store, GEMINI[:3])
    model = store.view(session_id, format="gemini").messages[1]
    assert model["parts"][:2] == GEMINI[1]["parts"][:2]
    assert [part.get("thoughtSignature") for part in model["parts"]] == [None, "c2ln", "c2ln", None]


SERVER_CALL = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}}
SERVER_RESULT = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
MCP_CALL = {"type": "mcp_tool_use", "id": "m1", "name": "look", "server_name": "a", "input": {}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "m1", "content": []}


def says(*blocks: Message) -> Message:
    """An answer."""
    return {"role": "assistant", "content": [*blocks]}


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        # whole, over two answers, and behind the results of a client's own tool
        ([says(SERVER_CALL, SERVER_RESULT)], "server_tool_use web_search_tool_result"),
        ([says(SERVER_CALL), says(SERVER_RESULT)], "server_tool_use web_search_tool_result"),
        (
            [
                says(MCP_CALL, used("a")),
                {"role": "user", "content": [returned("a")]},
                says(MCP_RESULT),
            ],
            "mcp_tool_use tool_use mcp_tool_result",
        ),
        # alone: what was interrupted, what was left of a hidden answer, one id twice
        ([says(text("so"), SERVER_CALL)], "text text"),
        ([says(SERVER_RESULT, text("so"))], "text text"),
        ([says(SERVER_RESULT, SERVER_CALL)], "text text"),
        (
            [says(MCP_CALL, SERVER_CALL, SERVER_RESULT)],
            "text server_tool_use web_search_tool_result",
        ),
        (
            [says(SERVER_CALL, SERVER_RESULT, SERVER_CALL, SERVER_RESULT)],
            "server_tool_use web_search_tool_result text text",
        ),
    ],
)
def test_a_servers_call_keeps_its_result(store: Store, line: list[Message], kinds: str) -> None:
    """One that is alone is told as text; in a format of another provider all are."""
    asked = {"role": "user", "content": [text("?")]}
    session_id = stored(store, [asked, *line, asked], "anthropic")
    for wanted in PROVIDERS:
        view = store.view(session_id, format=wanted)
        assert complaints(wanted, view.messages, view.system) == []
    sent = store.view(session_id, format="anthropic").messages
    said = [block for each in sent if each["role"] == "assistant" for block in each["content"]]
    assert " ".join(block["type"] for block in said) == kinds
    told = [json.loads(block["text"]) for block in said if block.get("text", "")[:1] == "{"]
    there = [block for each in line for block in each["content"]]
    assert all(each in there for each in told)
    assert len(said) == len([each for each in there if each != returned("a")])


LONG = "srvtoolu_" + "x" * 70
SHORT = LONG[:53] + "-" + sha256(LONG.encode()).hexdigest()[:10]


def test_long_ids_of_a_servers_calls_are_renamed(store: Store) -> None:
    """As those of any other call, with those of their results."""
    asked = {"role": "user", "content": [text("?")]}
    pair = says(SERVER_CALL | {"id": LONG}, SERVER_RESULT | {"tool_use_id": LONG})
    session_id = stored(store, [asked, pair, asked], "anthropic")
    sent = store.view(session_id, format="anthropic").messages
    assert complaints("anthropic", sent) == []
    call, result = sent[1]["content"]
    assert (call["id"], result["tool_use_id"]) == (SHORT, SHORT)


def test_long_ids_of_items_are_renamed(store: Store) -> None:
    """With those that refer to them."""
    line = [
        {"type": "message", "role": "user", "content": "?"},
        {"type": "web_search_call", "id": LONG, "status": "completed", "action": SEARCHED},
        {"type": "reasoning", "id": LONG + "r", "summary": []},
        {"type": "message", "id": LONG + "m", "role": "assistant", "content": SPOKEN},
        ASKS | {"id": LONG + "a"},
        APPROVED | {"approval_request_id": LONG + "a"},
    ]
    sent = store.view(stored(store, line, "responses"), format="responses").messages
    assert complaints("responses", sent) == []
    assert len(sent) == len(line)
    assert sent[1]["id"] == SHORT
    assert sent[5]["approval_request_id"] == sent[4]["id"] != LONG + "a"


@pytest.mark.parametrize("role", ["user", "assistant", "developer"])
def test_an_item_may_say_nothing(store: Store, role: str) -> None:
    """It is sent as an empty text where it came, and not as a list of nothing."""
    line = [
        {"type": "message", "role": "user", "content": "?"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "role": role, "content": []},
        {"type": "message", "role": "user", "content": "!"},
    ]
    session_id = stored(store, line, "responses")
    for wanted in PROVIDERS:
        view = store.view(session_id, format=wanted)
        assert complaints(wanted, view.messages, view.system) == []


def test_an_upload_is_the_users(store: Store) -> None:
    """Anthropic's block for a file in a container goes back as it came."""
    line = [{"role": "user", "content": [{"type": "container_upload", "file_id": "f1"}, text()]}]
    session_id = stored(store, line)
    sent = store.view(session_id, format="anthropic").messages
    assert sent == line
    assert complaints("anthropic", sent) == []
    for wanted in PROVIDERS:
        assert "f1" in json.dumps(store.view(session_id, format=wanted).messages)


def test_a_server_goes_on_with_its_call(store: Store) -> None:
    """Where nothing but results of the client's stands behind the answer."""
    line = [{"role": "user", "content": [text("?")]}, says(text("so"), SERVER_CALL)]
    session_id = stored(store, line, "anthropic")
    assert store.view(session_id, format="anthropic").messages == line
    called = says(MCP_CALL, used("a"))
    results = {"role": "user", "content": [returned("a")]}
    other = stored(store, [line[0], called, results], "anthropic")
    assert store.view(other, format="anthropic").messages == [line[0], called, results]
    store.append(other, line[0])
    sent = store.view(other, format="anthropic").messages
    assert [block["type"] for block in sent[1]["content"]] == ["text", "tool_use"]


SEARCH = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}}
FOUND = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []}
ASKS = {"type": "mcp_approval_request", "id": "r1", "name": "x", "arguments": "{}"}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": True}
THOUGHT = {"type": "reasoning", "id": "rs", "summary": []}
SEARCHED = {"type": "search", "query": "x"}
SPOKEN = [{"type": "output_text", "text": "so", "annotations": []}]


@pytest.mark.parametrize(
    ("items", "kinds"),
    [
        ([THOUGHT, SEARCH, FOUND], "reasoning tool_search_call tool_search_output"),
        ([THOUGHT, SEARCH], ""),
        ([FOUND], ""),
        ([SEARCH, THOUGHT, FOUND], ""),
        ([SEARCH, SEARCH, FOUND], "tool_search_call tool_search_output"),
        ([ASKS, APPROVED], "mcp_approval_request mcp_approval_response"),
        ([APPROVED], ""),
        ([APPROVED | {"approval_request_id": {}}], ""),
    ],
)
def test_a_servers_search_keeps_what_it_found(
    store: Store, items: list[Message], kinds: str
) -> None:
    """One of two items alone is not sent."""
    asked = {"type": "message", "role": "user", "content": "?"}
    session_id = stored(store, [asked, *items, asked], "responses")
    sent = store.view(session_id, format="responses").messages
    assert complaints("responses", sent) == []
    assert " ".join(each["type"] for each in sent[1:-1]) == kinds


def test_reasoning_without_its_item_is_left_out(store: Store) -> None:
    """As the last, and before another provider's answer."""
    session_id = stored(store, RESPONSES[:2])
    assert len(store.view(session_id, format="responses").messages) == 1
    store.append(session_id, [{"role": "assistant", "content": "so"}])
    items = store.view(session_id, format="responses").messages
    assert [each["type"] for each in items] == ["message", "message"]


@pytest.mark.parametrize(
    "message",
    [
        RESPONSES[1],
        {"role": "assistant", "content": [{**SIGNED, "signature": "s" * 8_000}, text("so")]},
        {"role": "model", "parts": [{"text": "so"}, {"text": "t" * 8_000, "thought": True}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "x"}, "thoughtSignature": "s" * 8_000}],
        },
        {
            "role": "assistant",
            "content": [
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s",
                    "content": [{"type": "web_search_result", "encrypted_content": "s" * 8_000}],
                }
            ],
        },
    ],
)
def test_what_nobody_can_read_is_counted(store: Store, message: Message) -> None:
    """Eight thousand characters of reasoning are not four tokens."""
    session_id = stored(store, [message])
    assert store.view(session_id).stats.raw_tokens > 1_500


DUMPED = dict.fromkeys(
    (
        *("media_resolution", "code_execution_result", "executable_code", "file_data"),
        *("function_call", "function_response", "inline_data", "text", "thought"),
        *("thought_signature", "video_metadata"),
    )
)
"""A part as Gemini's client for Python dumps it: null for all that it is not."""
NULLS: list[Message] = [
    {"parts": [DUMPED | {"text": "Read it."}], "role": "user"},
    {
        "parts": [
            DUMPED | {"text": "Let me look.", "thought": True},
            DUMPED | {"text": "", "thought_signature": "c2ln"},
            DUMPED
            | {
                "function_call": {"id": None, "args": {"path": "a"}, "name": "Read"},
                "thought_signature": "c2ln",
            },
            DUMPED | {"function_call": {"id": "g2", "args": None, "name": "List"}},
        ],
        "role": "model",
    },
    {
        "parts": [
            DUMPED
            | {
                "function_response": {
                    "will_continue": None,
                    "id": None,
                    "name": "Read",
                    "response": {"output": "x = 1"},
                }
            },
            DUMPED | {"function_response": {"id": "g2", "name": "List", "response": {"n": 1}}},
            DUMPED | {"inline_data": {"data": "AAAA", "mime_type": PNG_TYPE}},
        ],
        "role": "user",
    },
    {"parts": [DUMPED | {"text": "done"}], "role": None},
]


def test_a_part_may_be_null_in_all_that_it_is_not(store: Store) -> None:
    """As its client dumps it: it comes out so, and is sent without."""
    session_id = stored(store, NULLS)
    assert store.session(session_id).head == 6
    for wanted in PROVIDERS:
        view = store.view(session_id, format=wanted)
        assert complaints(wanted, view.messages, view.system) == []
        assert "null" not in json.dumps(view.messages).replace('"content": null', "")
        assert "x = 1" in json.dumps(view.messages)
    model = store.view(session_id, format="gemini").messages[1]["parts"]
    assert [part.get("thought_signature") for part in model] == [None, "c2ln", "c2ln", None]
    with pytest.raises(InvalidMessage):
        store.append(session_id, {"role": "model", "parts": [DUMPED]}, format="gemini")


def test_clients_dumps_are_taken(store: Store) -> None:
    """What Gemini's client makes of its own objects."""
    types = pytest.importorskip("google.genai.types", reason="google-genai is not installed")
    call = types.Part.from_function_call(name="Read", args={"path": "a"})
    response = types.Part.from_function_response(name="Read", response={"output": "x"})
    contents = [types.Content(role="model", parts=[call]), types.UserContent(parts=[response])]
    session_id = stored(store, [each.model_dump(mode="json") for each in contents])
    view = store.view(session_id, format="gemini")
    assert complaints("gemini", view.messages) == []


SEEN = [{"inlineData": {"mimeType": PNG_TYPE, "data": "AAAA"}}]


@pytest.mark.parametrize("response", [{"output": "a picture"}, {"files": 1, "of": "a picture"}])
@pytest.mark.parametrize("parts", [SEEN, [], None, 5, [{}], [{"functionCall": {"name": "x"}}]])
def test_a_response_may_have_pictures(store: Store, response: Message, parts: Any) -> None:
    """They are parts of the result, sent as any other's and as the policy says."""
    answered = {"name": "Look", "parts": parts, "response": response}
    line = [
        {"role": "user", "parts": [{"text": "?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "Look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": answered}]},
    ]
    session_id = stored(store, line)
    for wanted in PROVIDERS:
        for kept in (0, 1):
            view = store.view(session_id, Policy(picture_keep=kept), format=wanted)
            assert complaints(wanted, view.messages, view.system) == []
            sent = json.dumps(view.messages)
            assert "a picture" in sent
            assert ("AAAA" in sent) == (parts is SEEN and kept == 1)
    (_, _, own) = store.view(session_id, format="gemini").messages
    said = own["parts"][0]["functionResponse"]["response"]
    assert said.keys() == response.keys()
    store.redact(session_id, 3, "secret")
    assert "AAAA" not in json.dumps(out(store, session_id))


@pytest.mark.parametrize("wanted", PROVIDERS)
def test_items_may_be_null_in_what_they_do_not_say(store: Store, wanted: str) -> None:
    """As OpenAI's client dumps them: its own types refuse what it dumps."""
    dumped = {"status": None, "namespace": None, "id": "fc_1"}
    line = [
        {"type": "message", "role": "user", "content": "?"},
        THOUGHT | {"content": None, "encrypted_content": None, "status": None},
        RESPONSES[3] | dumped,
        {"type": "function_call_output", "call_id": "c1", "output": "1", "status": None},
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "phase": None,
            "content": [SPOKEN[0] | {"logprobs": None}],
        },
    ]
    view = store.view(stored(store, line), format=wanted)
    assert complaints(wanted, view.messages, view.system) == []
    if wanted == "responses":
        assert "null" not in json.dumps(view.messages)
        assert [{*each} for each in view.messages] == [
            {key for key, held in each.items() if held is not None} for each in line
        ]


@pytest.mark.slow
def test_clients_objects_are_taken(store: Store) -> None:
    """As the clients return them."""
    types = pytest.importorskip("google.genai.types", reason="google-genai is not installed")
    call = types.Part.from_function_call(name="Read", args={"path": "a"})
    session_id = store.create_session().id
    store.append(session_id, types.Content(role="model", parts=[call]))
    assert store.view(session_id).messages[0]["tool_calls"][0]["function"]["name"] == "Read"


@needs_transcripts
def test_recorded_requests_go_in_and_out(tmp_path: Path) -> None:
    """Of Anthropic and of Responses, as they were sent over HTTP."""
    found = 0
    with Store(tmp_path / "s.db") as store:
        for name, message in _recorded():
            rows = encode_message(message, name, 0).rows
            assert same(decode_message(name, rows), message)
            session_id = store.create_session().id
            store.append(session_id, message, format=name)
            assert same(out(store, session_id), [message])
            found += 1
    assert found > 50


def _recorded() -> Iterable[tuple[str, Message]]:
    kinds = {"anthropic_messages_http": "anthropic", "openai_responses_http": "responses"}
    for folder, name in kinds.items():
        for path in sorted((TRANSCRIPTS / folder).iterdir()):
            for line in path.read_text("utf-8").splitlines():
                body = json.loads(line)["request"].get("body") or {}
                given = body.get("messages") or body.get("input")
                for message in given if isinstance(given, list) else ():
                    yield name, message


def test_every_position_is_counted(store: Store) -> None:
    """By a tokenizer, and without any."""
    session_id = stored(store, ANTHROPIC)
    total = store.count_tokens(session_id)
    assert total.messages == store.session(session_id).head
    assert store.count_tokens(session_id, "estimate").messages == total.messages


@pytest.mark.parametrize("wanted", PROVIDERS)
@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("anthropic", [ANTHROPIC[0], ANTHROPIC[6]]),
        ("anthropic", ANTHROPIC[:3]),
        ("gemini", GEMINI[:3]),
        ("openai", [{"role": "assistant", "content": "so", "reasoning_content": "Let me look."}]),
        (
            "responses",
            [
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "Let me look."}],
                    "encrypted_content": "x",
                },
                *RESPONSES[3:7],
            ],
        ),
    ],
)
def test_reasoning_is_told_as_text_by_choice(
    store: Store, name: str, messages: list[Message], wanted: str
) -> None:
    """To other providers; its own gets it as it was, a chat's too."""
    session_id = stored(store, messages, name)
    view = store.view(session_id, Policy(foreign_reasoning="text"), format=wanted)
    assert complaints(wanted, view.messages, view.system) == []
    is_told = "<thinking>\\nLet me look.\\n</thinking>" in json.dumps(view.messages)
    assert is_told == (name != wanted)
    plain = store.view(session_id, format=wanted)
    assert "<thinking>" not in json.dumps(plain.messages)


WORDS = {"type": "text", "media_type": "text/plain", "data": "plain words"}
PATCH = {"type": "apply_patch_call", "call_id": "p1", "status": "completed", "operation": {}}
PATCH["operation"] = {"type": "delete_file", "path": "a"}
SHELL = {"type": "local_shell_call", "id": "l1", "call_id": "s1", "status": "completed"}
SHELL["action"] = {"type": "exec", "command": ["ls"], "env": {}}


def test_a_document_of_words_is_told(store: Store) -> None:
    """It is no base64, whatever key it is under."""
    asked = {"role": "user", "content": [{"type": "document", "source": WORDS}, text()]}
    called = says(used("a"))
    answered = {"role": "user", "content": [returned("a", [{"type": "document", "source": WORDS}])]}
    session_id = stored(store, [asked, called, answered], "anthropic")
    for wanted in PROVIDERS:
        sent = store.view(session_id, Policy(picture_keep=1), format=wanted).messages
        assert json.dumps(sent).count("plain words") == 2
        assert "inlineData" not in json.dumps(sent)


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (PATCH, {"type": "apply_patch_call_output", "call_id": "p1", "status": "failed"}),
        (SHELL, {"type": "local_shell_call_output", "id": "s1", "output": "a.py"}),
    ],
)
def test_a_result_is_paired_as_its_type_has_it(
    store: Store, call: Message, result: Message
) -> None:
    """Without any output, or by its own id; where there is none, one is made that is taken."""
    line = [{"type": "message", "role": "user", "content": "x"}, call, result]
    session_id = stored(store, line, "responses")
    assert same(store.view(session_id, format="responses").messages, line)
    for wanted in PROVIDERS:
        sent = store.view(session_id, format=wanted).messages
        assert complaints(wanted, sent) == []
        assert "No result" not in json.dumps(sent)
    alone = stored(store, line[:2], "responses")
    (*_, made) = store.view(alone, format="responses").messages
    assert {*result} <= {*made}
