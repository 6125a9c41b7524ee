"""Lines whose messages are sent straight from their rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import pytest
from conversations import (
    NOW,
    Message,
    busy_conversations,
    conversations,
    messy_conversations,
    policies,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from world import READY

from store import Policy, Store, View
from store.errors import InvalidMessage
from store.view import build

law = partial(
    settings,
    derandomize=True,
    database=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def render_all(patch: pytest.MonkeyPatch) -> None:
    """Let no line be plain."""
    patch.setattr(build, "write_plain_line", lambda *_: None)


def describe(view: View) -> str:
    """Return all of a view as a text, with the order of keys."""
    return json.dumps([view.messages, view.entries, view.stats, view.left_out])


@law()
@given(
    st.one_of(conversations, busy_conversations, messy_conversations),
    st.one_of(st.sampled_from(READY), policies),
    st.integers(0, 12),
)
def test_a_plain_line_is_sent_as_it_would_be_rendered(
    url: str, line: list[Message], policy: Policy, later: int
) -> None:
    """From its rows, from the kept rows of a shorter line, and by a store that keeps none.

    Once a view was explained, the next one is rendered; so one store explains only the last view.
    """
    with (
        Store(url) as store,
        Store(url) as silent,
        Store(url, cache_bytes=0) as forgetful,
        Store(url) as general,
    ):
        session = store.create_session().id
        for messages in (line[: len(line) - later], line[len(line) - later :]):
            store.append(session, messages, now=NOW)
            last = silent.view(session, policy, now=NOW)
            seen = [describe(each.view(session, policy, now=NOW)) for each in (store, forgetful)]
            with pytest.MonkeyPatch.context() as patch:
                render_all(patch)
                rendered = describe(general.view(session, policy, now=NOW))
            assert seen == [rendered, rendered]
        assert describe(last) == rendered


def build_answer(*ids: str, name: str = "Read") -> Message:
    """Return an answer with calls of some ids."""
    calls = [
        {"id": each, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for each in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def build_result(call_id: str, content: Any = "done") -> Message:
    """Return a result of the call with an id."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


ASKED = {"role": "user", "content": "go on"}
PLAIN_LINES: dict[str, list[Message]] = {
    "words": [{"role": "system", "content": "short"}, ASKED, {"role": "assistant", "content": ""}],
    "a call": [ASKED, build_answer("a"), build_result("a"), ASKED],
    "two calls": [build_answer("a", "b"), build_result("a"), build_result("b")],
    "a name": [{**ASKED, "name": "ann"}],
    "times": [{**ASKED, "timestamp": "2026-01-01T00:00:00Z"}, {**ASKED, "created_at": 5}],
    "empty keys": [{"role": "assistant", "content": "yes", "refusal": None, "audio": None}],
    "other order": [{"content": "go on", "role": "user", "timestamp": NOW}],
}
OTHER_LINES: dict[str, list[Message]] = {
    "a missing result": [build_answer("a", "b"), build_result("a"), ASKED],
    "a result to come": [ASKED, build_answer("a")],
    "a late result": [build_answer("a"), ASKED, build_result("a")],
    "another order": [build_answer("a", "b"), build_result("b"), build_result("a")],
    "no call": [ASKED, build_result("a")],
    "an id twice": [build_answer("a"), build_result("a"), build_answer("a"), build_result("a")],
    "a long id": [build_answer("a" * 41), build_result("a" * 41)],
    "a dotted name": [build_answer("a", name="files.read"), build_result("a")],
    "a part": [{"role": "user", "content": [{"type": "text", "text": "go on"}]}],
    "another key": [{"role": "assistant", "content": "yes", "reasoning_content": "hm"}],
    "another role": [{"role": "narrator", "content": "a year later"}],
}


def build_items(line: list[Message]) -> list[Message]:
    """Return messages of a chat as items of Responses, as far as they can be."""
    items: list[Message] = []
    for number, message in enumerate(line):
        content, role = message.get("content"), message["role"]
        if role == "tool":
            answer = {"call_id": message.get("tool_call_id"), "output": content}
            items.append({"type": "function_call_output", **answer})
        elif role == "assistant" and isinstance(content, str):
            said = {"type": "output_text", "text": content, "annotations": []}
            named = {"id": f"msg_{number}", "status": "completed"} if number % 3 else {}
            items.append({"type": "message", "role": role, "content": [said], **named})
        elif isinstance(content, str):
            items.append({"role": role, "content": content})
        calls = [each for each in message.get("tool_calls") or () if isinstance(each, dict)]
        for place, call in enumerate(calls):
            named = {"id": f"fc_{number}_{place}"} if number % 2 else {}
            function = call.get("function", {})
            asked = {"type": "function_call", "call_id": call.get("id"), **function}
            items.append({**asked, **named})
    return items


@law(max_examples=20)
@given(
    st.one_of(conversations, busy_conversations),
    st.one_of(st.sampled_from(READY), policies),
    st.integers(0, 12),
)
def test_a_plain_line_of_items_is_sent_as_it_would_be_rendered(
    url: str, line: list[Message], policy: Policy, later: int
) -> None:
    """With what the rules replace, and with summaries in front."""
    items = build_items(line)
    with Store(url) as store, Store(url) as general:
        session = store.create_session().id
        for part in (items[: len(items) - later], items[len(items) - later :]):
            for item in part:
                with suppress(InvalidMessage):
                    store.append(session, item, format="responses", dedupe="off", now=NOW)
            view = store.view(session, policy, now=NOW, format="responses")
            with pytest.MonkeyPatch.context() as patch:
                render_all(patch)
                rendered = general.view(session, policy, now=NOW, format="responses")
            assert view.messages == rendered.messages
        assert describe(view) == describe(rendered)


CALL_ITEM = {"type": "function_call", "call_id": "a", "name": "Read", "arguments": "{}"}
RESULT_ITEM = {"type": "function_call_output", "call_id": "a", "output": "done"}
ANSWER_ITEM = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "é", "annotations": None}],
}
PLAIN_ITEMS: dict[str, list[Message]] = {
    "words": [ASKED, {**ANSWER_ITEM, "id": "msg_1", "own": 1}, ASKED],
    "a call": [ASKED, ANSWER_ITEM, CALL_ITEM, RESULT_ITEM],
    "a surrogate": [{"role": "user", "content": [{"type": "input_text", "text": "\ud800"}]}, ASKED],
    "two calls": [
        CALL_ITEM,
        {**CALL_ITEM, "call_id": "b", "id": "fc_1"},
        RESULT_ITEM,
        {**RESULT_ITEM, "call_id": "b"},
    ],
}
OTHER_ITEMS: dict[str, list[Message]] = {
    "reasoning": [ASKED, {"type": "reasoning", "id": "rs_1", "summary": []}, ANSWER_ITEM],
    "no result": [CALL_ITEM, ASKED],
    "another order": [*PLAIN_ITEMS["two calls"][:2], *reversed(PLAIN_ITEMS["two calls"][2:])],
    "a picture": [CALL_ITEM, {**RESULT_ITEM, "output": [{"type": "input_text", "text": "t"}]}],
    "a long id": [{**CALL_ITEM, "call_id": "a" * 65}, {**RESULT_ITEM, "call_id": "a" * 65}],
    "a program": [{**CALL_ITEM, "caller": {"caller_id": "p"}}, RESULT_ITEM],
    "nothing said": [{"role": "user", "content": ""}],
}


SAID = st.sampled_from(["go on", "done \n", " ", "é\t", "\ud800", '{"a": "\\u0041"}', "x" * 700])
BESIDE = st.sampled_from([{}, {}, {"cache_control": {"type": "ephemeral"}}, {"citations": None}])
INPUTS = st.sampled_from([{}, {"path": "a.py"}, {"text": "\udfff"}, {"rows": [1, {"e": "é\x1b"}]}])
PICTURE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
SPOKEN = st.lists(
    st.one_of(
        st.builds(lambda text, more: {"type": "text", "text": text, **more}, SAID, BESIDE),
        st.just({"type": "image", "source": PICTURE}),
    ),
    max_size=2,
)
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
NAMES = st.sampled_from(["Read", "Bash", "Bash", "files.read"])
RESULTS = st.one_of(SAID, SPOKEN, st.just("line\n" * 400))


@st.composite
def block_lines(draw: st.DrawFn) -> list[Message]:
    """Messages of Anthropic whose calls have their results, nearly always."""
    line: list[Message] = []
    for turn in range(draw(st.integers(1, 4))):
        line.append({"role": "user", "content": draw(st.one_of(SAID, SPOKEN))})
        for step in range(draw(st.integers(0, 3))):
            calls: list[Message] = [
                {"type": "tool_use", "id": f"t{turn}-{step}-{place}", "name": draw(NAMES)}
                for place in range(draw(st.integers(0, 3)))
            ]
            blocks = [*draw(SPOKEN), *({**each, "input": draw(INPUTS)} for each in calls)]
            if draw(st.integers(0, 9)) == 0:
                blocks.insert(draw(st.integers(0, len(blocks))), THOUGHT)
            line.append({"role": "assistant", "content": blocks})
            results: list[Message] = [
                {"type": "tool_result", "tool_use_id": each["id"], "content": draw(RESULTS)}
                for each in calls
            ]
            if draw(st.integers(0, 19)) == 0:
                results.reverse()
            if results and draw(st.integers(0, 5)) == 0:
                results[-1]["is_error"] = True
            if results:
                line.append({"role": "user", "content": [*results, *draw(SPOKEN)]})
    return line


def build_contents(line: list[Message]) -> list[Message]:
    """Return messages of Anthropic as contents of Gemini."""
    contents = []
    names: dict[str, str] = {}
    for message in line:
        blocks = message["content"]
        parts: list[Message] = []
        for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
            if block["type"] == "text":
                parts.append({"text": block["text"]})
            elif block["type"] == "image":
                parts.append({"inlineData": {"mimeType": "image/png", "data": PICTURE["data"]}})
            elif block["type"] == "thinking":
                parts.append({"text": "hm", "thought": True, "thoughtSignature": "c2ln"})
            elif block["type"] == "tool_use":
                names[block["id"]] = block["name"]
                call = {"id": block["id"], "name": block["name"], "args": block["input"]}
                parts.append({"functionCall": call})
            else:
                said = block["content"]
                key = "error" if "is_error" in block else "output"
                response = {key: said} if isinstance(said, str) else {"found": said}
                name = names.get(block["tool_use_id"], "Read")
                named = {"id": block["tool_use_id"], "name": "Grep" if name == "Bash" else name}
                parts.append({"functionResponse": {**named, "response": response}})
        contents.append(
            {"role": "model" if message["role"] == "assistant" else "user", "parts": parts}
        )
    return contents


@law(max_examples=40)
@given(
    block_lines(),
    st.sampled_from(["anthropic", "gemini"]),
    st.one_of(st.sampled_from(READY), policies),
    st.integers(0, 6),
)
def test_a_plain_line_of_turns_is_sent_as_it_would_be_rendered(
    url: str, line: list[Message], name: str, policy: Policy, later: int
) -> None:
    """Twice, because a row is written by a template only from the second of its shape on."""
    told = build_contents(line) if name == "gemini" else line
    with Store(url) as store, Store(url) as general:
        session = store.create_session().id
        for part in (told[: len(told) - later], told[len(told) - later :]):
            store.append(session, part, format=name, dedupe="off", now=NOW)
            views = [store.view(session, policy, now=NOW, format=name) for _ in range(2)]
            with pytest.MonkeyPatch.context() as patch:
                render_all(patch)
                rendered = general.view(session, policy, now=NOW, format=name)
            for view in views:
                assert json.dumps(view.messages) == json.dumps(rendered.messages)
                assert view.system == rendered.system
        assert describe(view) == describe(rendered)


class RenderedError(Exception):
    """A line was rendered."""


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let nothing be rendered."""

    def refuse(*_: object, **__: object) -> None:
        raise RenderedError

    with monkeypatch.context() as patch:
        patch.setattr(build, "render_segment", refuse)
        yield


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("name", PLAIN_LINES)
def test_nothing_is_rendered_for_a_plain_line(store: Store, name: str) -> None:
    """Neither at first nor later; its entries are made when they are asked for."""
    session = store.create_session().id
    store.append(session, PLAIN_LINES[name])
    assert len(store.view(session).messages) == len(PLAIN_LINES[name])
    store.append(session, ASKED)
    view = store.view(session)
    assert view.messages[-1] == ASKED
    with pytest.raises(RenderedError):
        _ = view.entries


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("name", [*PLAIN_ITEMS, *OTHER_ITEMS])
def test_items_are_rendered_only_where_others_decide_about_them(store: Store, name: str) -> None:
    """Such as those that are left out without the item that follows them."""
    session = store.create_session().id
    store.append(session, (PLAIN_ITEMS | OTHER_ITEMS)[name], format="responses")
    with nullcontext() if name in PLAIN_ITEMS else pytest.raises(RenderedError):
        assert len(store.view(session, format="responses").messages) > 1


def build_blocks(*ids: str) -> list[Message]:
    """Return an answer of Anthropic with calls of some ids, and their results."""
    calls = [{"type": "tool_use", "id": each, "name": "Read", "input": {}} for each in ids]
    results = [{"type": "tool_result", "tool_use_id": each, "content": "done"} for each in ids]
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


SIGHT = {"type": "image", "source": PICTURE}
PLAIN_BLOCKS: dict[str, list[Message]] = {
    "words": [ASKED, {"role": "assistant", "content": [{"type": "text", "text": "yes \n"}]}, ASKED],
    "two calls": [ASKED, *build_blocks("a", "b"), *build_blocks("c", "d"), ASKED],
    "thoughts": [{"role": "assistant", "content": [THOUGHT]}, ASKED],
    "a picture": [{"role": "user", "content": [SIGHT]}],
    "an instruction": [{"role": "system", "content": "short"}, ASKED],
}
OTHER_BLOCKS: dict[str, list[Message]] = {
    "no result": [build_blocks("a")[0], ASKED],
    "no call": [build_blocks("a")[1]],
    "an id twice": [*build_blocks("a"), *build_blocks("a")],
    "a long id": build_blocks("a" * 65),
    "a result with a picture": [
        build_blocks("a")[0],
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": [SIGHT]}],
        },
    ],
}


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("name", [*PLAIN_BLOCKS, *OTHER_BLOCKS])
@pytest.mark.parametrize("form", ["anthropic", "gemini"])
def test_turns_are_rendered_only_where_others_decide_about_them(
    store: Store, name: str, form: str
) -> None:
    """Such as the calls of an answer that wait for results; pictures of results may be too many."""
    line = (PLAIN_BLOCKS | OTHER_BLOCKS)[name]
    if form == "gemini":
        line = build_contents([each for each in line if each["role"] != "system"])
    session = store.create_session().id
    store.append(session, line, format=form)
    with nullcontext() if name in PLAIN_BLOCKS else pytest.raises(RenderedError):
        assert store.view(session, format=form).messages


@pytest.mark.usefixtures("refused")
@pytest.mark.parametrize("name", OTHER_LINES)
def test_whatever_is_not_plain_is_rendered(store: Store, name: str) -> None:
    """A repair, another id or name, and parts or keys that have to be looked at."""
    session = store.create_session().id
    store.append(session, OTHER_LINES[name])
    with pytest.raises(RenderedError):
        store.view(session)


def test_a_view_is_the_callers(store: Store) -> None:
    """Whoever changes it changes no later one, nor what explains it."""
    session = store.create_session().id
    store.append(session, PLAIN_LINES["a call"])
    first = store.view(session)
    first.messages[1]["tool_calls"][0]["function"]["name"] = "Write"
    first.messages.clear()
    second = store.view(session)
    assert second.messages[1]["tool_calls"] == build_answer("a")["tool_calls"]
    assert first.entries == second.entries
