"""Lines whose messages are sent straight from their rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
    patch.setattr(build, "write_plain_messages", lambda *_: None)


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
