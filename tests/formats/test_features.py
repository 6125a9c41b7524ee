"""What providers added late in 2025 and in 2026: back to its own provider as it came, valid to all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from features import FEATURES, Feature
from judge import JUDGES, complaints, misfits, own_types

from store import InvalidMessage, Policy, Store
from store.formats.responses import ITEM_KEYS, RESULT_TYPES
from store.importing import import_file

Message = dict[str, Any]
PROVIDERS = [*JUDGES]
cases = pytest.mark.parametrize("feature", FEATURES.values(), ids=FEATURES.keys())


def stored(store: Store, feature: Feature, format_name: str | None = None) -> str:
    """Append a conversation to a new session; return its id."""
    session_id = store.create_session().id
    store.append(session_id, feature.messages, format=format_name)
    return session_id


def test_each_provider_has_nine() -> None:
    """So none is tried less than the others."""
    assert len(FEATURES) == 36
    for name in PROVIDERS:
        assert sum(each.format == name for each in FEATURES.values()) == 9


@cases
def test_its_own_provider_gets_it_as_it_came(store: Store, feature: Feature) -> None:
    """But for what the page about formats says."""
    session_id = stored(store, feature, feature.format)
    assert [each.message for each in store.messages(session_id)] == feature.messages
    view = store.view(session_id, Policy(**feature.fields), format=feature.format)
    assert view.messages == (feature.back or feature.messages)
    assert view.left_out == []
    again = store.view(session_id, Policy(**feature.fields), format=feature.format)
    assert again.messages == view.messages


@pytest.mark.sampled(6)
@cases
@pytest.mark.parametrize("wanted", PROVIDERS)
def test_every_provider_takes_it(store: Store, feature: Feature, wanted: str) -> None:
    """Whatever of it the provider has no place for is told as text, or left out and listed."""
    session_id = stored(store, feature, feature.format)
    for policy in (Policy(), Policy.named("agent"), Policy.named("raw", cache_control=True)):
        view = store.view(session_id, policy, format=wanted)
        assert complaints(wanted, view.messages, view.system) == []
        if own_types(wanted):
            assert misfits(wanted, view.messages) == []
        said = {entry.seq for entry in view.entries} | {each.seq for each in view.left_out}
        assert said >= {*range(1, store.session(session_id).head + 1)}


@cases
def test_its_shape_tells_of_what_format_it_is(store: Store, feature: Feature) -> None:
    """Or it may be any chat's: then each provider takes it, too."""
    session_id = stored(store, feature)
    assert [each.message for each in store.messages(session_id)] == feature.messages
    for wanted in PROVIDERS:
        view = store.view(session_id, format=wanted)
        assert complaints(wanted, view.messages, view.system) == []
        assert "unknown_tool" not in json.dumps(view.messages)


OWN_KEYS = {"timestamp": 1_767_225_600_000, "messageStatus": "success", "__own": {"a": 1}}
OWN_KEYS |= {"createdAt": "2026-01-01T00:00:00Z", "my_key": ["own"], "source": "own"}


@pytest.mark.sampled(11)
@cases
@pytest.mark.parametrize("wanted", PROVIDERS)
def test_no_key_of_the_callers_is_sent(store: Store, feature: Feature, wanted: str) -> None:
    """Not of any kind of message, whole or replaced; what went in has them."""
    given = [{**message, **OWN_KEYS} for message in feature.messages]
    session_id = store.create_session().id
    store.append(session_id, given, format=feature.format)
    assert [each.message for each in store.messages(session_id)] == given
    plain = store.view(stored(store, feature, feature.format), format=wanted)
    for policy in (Policy(), Policy.named("agent"), Policy.named("raw")):
        view = store.view(session_id, policy, format=wanted)
        assert complaints(wanted, view.messages, view.system) == []
        for message in view.messages:
            assert OWN_KEYS.keys().isdisjoint(message)
    assert store.view(session_id, format=wanted).messages == plain.messages


def test_keys_of_the_providers_that_look_like_ours_stay(store: Store) -> None:
    """In what a tool is given, in what it says, and in what it can be given."""
    inner = {"timestamp": 1, "messageStatus": "x", "properties": {"timestamp": {"type": "string"}}}
    search = {
        "type": "tool_search_call",
        "call_id": "s1",
        "execution": "client",
        "arguments": inner,
    }
    tool = {"type": "function", "name": "look", "parameters": inner}
    found = {"type": "tool_search_output", "call_id": "s1", "execution": "client", "tools": [tool]}
    told = {"type": "mcp_list_tools", "id": "l1", "server_label": "a", "tools": [{"x": inner}]}
    line = [search, found, told]
    session_id = store.create_session().id
    store.append(session_id, [{**each, "timestamp": 5} for each in line], format="responses")
    assert store.view(session_id, format="responses").messages == line
    block = {"type": "tool_use", "id": "t1", "name": "look", "input": inner}
    asked = {"role": "user", "content": [{"type": "text", "text": "?"}]}
    store.append(
        other := store.create_session().id, [asked, {"role": "assistant", "content": [block]}]
    )
    assert store.view(other, format="anthropic").messages[1]["content"] == [block]


def test_the_keys_of_items_are_those_of_the_client() -> None:
    """So what its provider adds is noticed with the next version of its client."""
    pytest.importorskip("openai", reason="openai is not installed")
    from openai.types.responses import ResponseInputItemParam

    known: dict[str, set[str]] = {}
    for each in _types_in(ResponseInputItemParam):
        hints = get_type_hints(each)
        kinds = [kind for kind in _values_of(hints["type"]) if isinstance(kind, str)]
        for kind in kinds:
            known.setdefault(kind, set()).update(hints)
    assert len(known) > 20
    assert {
        kind: keys - ITEM_KEYS[kind] for kind, keys in known.items() if keys - ITEM_KEYS[kind]
    } == {}
    assert {*RESULT_TYPES} | {*RESULT_TYPES.values()} <= {*ITEM_KEYS}


def _types_in(union: Any) -> Iterator[Any]:
    for each in get_args(union):
        if hasattr(each, "__annotations__") and isinstance(each, type):
            yield each
        else:
            yield from _types_in(each)


def _values_of(hint: Any) -> Iterator[Any]:
    for each in get_args(hint):
        yield each
        yield from _values_of(each)


TOMORROW = [
    {"type": "hologram", "id": "h1", "depth": 3, "of": {"timestamp": 1}},
    {"type": "hologram_call", "id": "h2", "call_id": "h", "angle": 1, "timestamp": 5},
    {"type": "hologram_output", "call_id": "h", "output": "seen", "messageStatus": "error"},
]
SAYS = {"type": "message", "role": "user", "content": "Do it."}


@pytest.mark.parametrize("item", TOMORROW, ids=lambda item: item["type"])
def test_items_of_tomorrow_go_back_as_they_came(store: Store, item: Message) -> None:
    """They are nobody's call and nobody's result; other formats leave them out, and say so."""
    session_id = store.create_session().id
    store.append(session_id, [SAYS, item, SAYS], format="responses")
    assert store.messages(session_id)[1].message == item
    sent = {key: held for key, held in item.items() if key not in ("timestamp", "messageStatus")}
    own = store.view(session_id, format="responses")
    assert own.messages == [SAYS, sent, SAYS]
    assert own.left_out == []
    for wanted in ("openai", "anthropic", "gemini"):
        view = store.view(session_id, format=wanted)
        assert [(each.seq, each.type) for each in view.left_out] == [(2, item["type"])]
        assert "responses" in view.left_out[0].reason
        assert view.stats.left_out == (2,)
        assert "call" not in json.dumps(view.messages)
        with pytest.raises(AttributeError):
            view.left_out[0].seq = 3  # type: ignore[misc]


@pytest.mark.parametrize("item", TOMORROW, ids=lambda item: item["type"])
def test_an_item_of_which_nothing_tells_what_it_is_is_refused(store: Store, item: Message) -> None:
    """The error says how it is taken, and nothing is stored."""
    session_id = store.create_session().id
    with pytest.raises(InvalidMessage, match=r"format='responses'") as refused:
        store.append(session_id, [{"role": "user", "content": "x"}, item])
    assert (refused.value.index, refused.value.key) == (1, "role")
    assert item["type"] in str(refused.value)
    assert store.session(session_id).head == 0


PROGRAM = {"type": "program", "id": "p", "call_id": "p1", "code": "1", "fingerprint": "f"}
ENDED = {"type": "program_output", "id": "o", "call_id": "p1", "result": "1", "status": "completed"}
CALLED = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
CALLED |= {"caller": {"type": "program", "caller_id": "p1"}}
RETURNED = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
RETURNED |= {"caller": CALLED["caller"]}


@pytest.mark.parametrize(
    ("line", "kinds", "left_out"),
    [
        ([PROGRAM, CALLED, RETURNED, ENDED], "program call result ended", []),
        ([PROGRAM, CALLED, RETURNED], "program call result", []),
        ([CALLED, RETURNED, ENDED], "call result", [4]),
        ([PROGRAM, CALLED, RETURNED, SAYS], "call result says", [2]),
        ([PROGRAM, ENDED, SAYS], "program ended says", []),
    ],
)
def test_a_program_and_its_output_go_together(
    store: Store, line: list[Message], kinds: str, left_out: list[int]
) -> None:
    """One that the user interrupted is left out, and what it called stands by itself."""
    names = {"program": PROGRAM, "call": CALLED, "result": RETURNED, "ended": ENDED, "says": SAYS}
    session_id = store.create_session().id
    store.append(session_id, [SAYS, *line])
    for _ in range(2):
        view = store.view(session_id, format="responses")
        assert complaints("responses", view.messages) == []
        expected = [names[kind]["type"] for kind in kinds.split()]
        assert [each["type"] for each in view.messages[1:]] == expected
        assert [each.seq for each in view.left_out] == left_out
        assert ("caller" in json.dumps(view.messages)) == ("program" in kinds and "call" in kinds)
    for wanted in ("openai", "anthropic", "gemini"):
        view = store.view(session_id, format=wanted)
        assert complaints(wanted, view.messages) == []
        there = [place for place, each in enumerate(line, 2) if each in (PROGRAM, ENDED)]
        assert [each.seq for each in view.left_out] == there


def test_what_is_left_out_is_told_of_a_line_that_grows(store: Store) -> None:
    """A later view goes on from an earlier one, and lists the same as one made anew."""
    session_id = store.create_session().id
    line = [SAYS, PROGRAM, CALLED, RETURNED, ENDED, SAYS, TOMORROW[0], SAYS]
    for number, each in enumerate(line):
        store.append(session_id, each, format="responses")
        seen = store.view(session_id).left_out
        places = [place for place in (2, 5, 7) if place <= number + 1]
        assert [left.seq for left in seen] == places
    seen.clear()
    assert store.view(session_id).left_out != []


def test_what_a_repair_drops_is_left_out(store: Store) -> None:
    """A result of no call, and an answer that said nothing but calls without results."""
    session_id = store.create_session().id
    function = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    store.append(session_id, {"role": "tool", "tool_call_id": "c0", "content": "ok"})
    store.append(session_id, {"role": "assistant", "content": None, "tool_calls": [function]})
    dropping = Policy(unanswered="drop", orphans="drop")
    left = store.view(session_id, dropping).left_out
    assert [(each.seq, each.type) for each in left] == [(1, "tool"), (2, "assistant")]
    store.append(session_id, {"role": "tool", "tool_call_id": "c1", "content": "ok"})
    assert [each.seq for each in store.view(session_id, dropping).left_out] == [1]


# --- what providers add to a chat -----------------------------------------------------------------

THOUGHT = {"reasoning_content": "Look.", "reasoning_details": [{"type": "reasoning.text"}]}
SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
FUNCTION = {"name": "look", "arguments": "{}"}
THINKS: list[Message] = [
    {"role": "user", "content": "?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION, **SIGNED}],
        **THOUGHT,
    },
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
]


def test_a_chat_that_changes_its_provider_leaves_out_what_the_old_one_added(store: Store) -> None:
    """By choice; other formats never have it, nor has a request as text."""
    session_id = store.create_session().id
    store.append(session_id, THINKS)
    assert store.view(session_id).messages == THINKS
    plain = store.view(session_id, Policy(chat_extensions=False)).messages
    assert "Look." not in json.dumps(plain)
    assert "google" not in json.dumps(plain)
    assert plain[1].keys() == {"role", "content", "tool_calls"}
    told = Policy(chat_extensions=False, foreign_reasoning="text")
    assert "<thinking>" in json.dumps(store.view(session_id, told).messages)
    for wanted in ("responses", "anthropic", "gemini"):
        assert "c2ln" not in json.dumps(store.view(session_id, format=wanted).messages)
    assert "c2ln" not in store.context(session_id).text


def test_what_a_provider_added_is_the_callers(store: Store) -> None:
    """Whatever is done with it, the next request has it as it came."""
    session_id = store.create_session().id
    store.append(session_id, THINKS)
    for _ in range(3):
        sent = store.view(session_id).messages
        assert sent == THINKS
        sent[1]["reasoning_details"][0]["type"] = "spoilt"
        sent[1]["tool_calls"][0]["extra_content"]["google"] = "spoilt"
        sent[1]["tool_calls"][0]["function"]["name"] = "spoilt"
    store.append(session_id, {"role": "user", "content": "and?"})
    assert store.view(session_id).messages[:3] == THINKS


def test_what_came_in_as_another_format_has_nothing_of_a_chats(store: Store) -> None:
    """A key of the caller's beside an item or a block is no provider's."""
    session_id = store.create_session().id
    block = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    store.append(session_id, {"role": "assistant", "content": [block], **THOUGHT, **SIGNED})
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}", **THOUGHT}
    store.append(session_id, item)
    for wanted in PROVIDERS:
        assert "Look." not in json.dumps(store.view(session_id, format=wanted).messages)


def test_audio_goes_back_until_its_provider_deletes_it(store: Store) -> None:
    """Then what was said is told; each view is of its moment, whatever was made before."""
    session_id = store.create_session().id
    audio = {"id": "a1", "data": "AAAA", "transcript": "Hello.", "expires_at": 1_800_000_000}
    spoken = {"role": "assistant", "content": None, "audio": audio}
    store.append(session_id, [{"role": "user", "content": "?"}, spoken])
    end = 1_800_000_000_000
    for now, is_there in ((end - 9, True), (end, False), (end - 1, True)):
        view = store.view(session_id, now=now)
        answer = view.messages[1]
        assert complaints("openai", view.messages) == []
        assert (answer.get("audio") == {"id": "a1"}) is is_there
        assert (answer["content"] == "Hello.") is not is_there
    for wanted in ("responses", "anthropic", "gemini"):
        assert "Hello." in json.dumps(store.view(session_id, format=wanted).messages)
    assert "Hello." in store.context(session_id).text


def test_thoughts_that_a_transcript_tells_are_no_providers(store: Store, tmp_path: Path) -> None:
    """Programs tell them in shapes of their own; an exchange with a provider of a chat has its."""
    said = {"role": "assistant", "content": "ok", "reasoning_content": "Look."}
    asked = {"role": "user", "content": "?"}
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps({"messages": [asked, said]}))
    (exchanged,) = import_file(store, chat).sessions
    assert store.view(exchanged.id).messages == [asked, said]
    goose = tmp_path / "goose.jsonl"
    rows = [
        {"role": "user", "created": 1, "content": [{"type": "text", "text": "?"}]},
        {
            "role": "assistant",
            "created": 2,
            "content": [
                {"type": "thinking", "thinking": "Look."},
                {"type": "text", "text": "ok"},
            ],
        },
    ]
    head = {"working_dir": "/w", "description": "d"}
    goose.write_text("".join(f"{json.dumps(each)}\n" for each in [head, *rows]))
    report = import_file(store, goose)
    (told,) = report.sessions
    assert report.kind == "goose"
    assert store.messages(told.id)[-1].message["reasoning_content"] == "Look."
    assert "Look." not in json.dumps(store.view(told.id).messages)
    assert "Look." in json.dumps(store.view(told.id, Policy(foreign_reasoning="text")).messages)
    assert import_file(store, goose).sessions[0].appended == 0
    assert store.verify() == []


# --- calls that the server's code makes, and markers ----------------------------------------------


def text(said: str = "hi", **more: Any) -> Message:
    """A block of text."""
    return {"type": "text", "text": said, **more}


MARKER = {"type": "ephemeral"}


@pytest.mark.parametrize(("marked", "sent"), [(3, 3), (4, 4), (6, 4)])
def test_the_last_four_markers_are_sent_if_asked(store: Store, marked: int, sent: int) -> None:
    """Of the system text, too; a context that sets its own has no others."""
    session_id = store.create_session().id
    system = {"role": "system", "content": [text("Be brief.", cache_control=MARKER)]}
    line = [system]
    for number in range(marked - 1):
        line.append({"role": "user", "content": [text(f"{number}", cache_control=MARKER)]})
        line.append({"role": "assistant", "content": [text("ok")]})
    store.append(session_id, line, format="anthropic")
    view = store.view(session_id, Policy(cache_control=True), format="anthropic")
    assert json.dumps([view.system, view.messages]).count("cache_control") == sent
    assert ("cache_control" in view.system[0]) == (marked == sent)
    assert view.messages[-2]["content"][0]["cache_control"] == MARKER
    assert "cache_control" not in json.dumps(store.view(session_id, format="anthropic").messages)
    policy = Policy.named("turns", cache_control=True)
    own = store.context(session_id, policy=policy, format="anthropic")
    assert json.dumps([own.system, own.messages]).count("cache_control") == sent
    made, plain = (
        store.context(session_id, policy=each, format="anthropic", cache_markers=True)
        for each in (policy, Policy.named("turns"))
    )
    assert (made.system, made.messages) == (plain.system, plain.messages)
    for wanted in ("openai", "responses", "gemini"):
        told = store.view(session_id, Policy(cache_control=True), format=wanted)
        assert "cache_control" not in json.dumps(told.messages)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_call_names_its_caller_only_where_that_is_sent(store: Store, hidden: bool) -> None:
    """Else the request would be refused, as it is for a result of the server's that is not there."""
    called = FEATURES["calls that the server's code makes"].messages
    line = [called[0], called[1], called[2]]
    line.append(called[0] if hidden else called[3])
    session_id = store.create_session().id
    store.append(session_id, line, format="anthropic")
    sent = store.view(session_id, format="anthropic").messages
    assert complaints("anthropic", sent) == []
    assert ("caller" in json.dumps([each for each in sent[1]["content"] if "name" in each])) == (
        not hidden
    )
