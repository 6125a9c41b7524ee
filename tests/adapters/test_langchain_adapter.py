"""Histories of LangChain in a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import Policy, Store

pytest.importorskip("langchain_core", reason="needs langchain-core: pip install -e '.[langchain]'")

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables.history import RunnableWithMessageHistory

from store.adapters.langchain import History

pytestmark = pytest.mark.filterwarnings("ignore")


def make_turn(number: int) -> list[BaseMessage]:
    """Return a turn with a call and its result."""
    call = {"name": "read", "args": {"path": "a.py"}, "id": f"c{number}"}
    return [
        HumanMessage(f"Turn {number}"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("a line of a log\n" * 900, tool_call_id=f"c{number}"),
        AIMessage([{"type": "text", "text": "Done."}], response_metadata={"model_name": "m"}),
    ]


def test_messages_come_back_equal(store: Store) -> None:
    """Awaited or not; a history that is cleared is gone."""
    history = History("chat", store)
    assert history.messages == asyncio.run(history.aget_messages()) == []
    history.clear()
    history.add_messages([])
    history.add_messages(make_turn(0))
    asyncio.run(history.aadd_messages(make_turn(1)))
    assert history.messages == make_turn(0) + make_turn(1)
    assert asyncio.run(history.aget_messages()) == history.messages
    assert store.session("chat").head == 8
    asyncio.run(history.aclear())
    assert history.messages == []


def test_a_policy_gives_the_view(store: Store) -> None:
    """A long history is compacted; what is stored stays."""
    history = History("long", store)
    for number in range(20):
        history.add_messages(make_turn(number))
    policy = Policy.named("agent", context_window=30_000)
    sent = History("long", store, policy=policy)
    assert len(str(sent.messages)) < len(str(history.messages)) / 2
    assert asyncio.run(sent.aget_messages()) == sent.messages
    assert sent.messages[-1] == make_turn(19)[-1]
    assert history.messages[-4:] == make_turn(19)


def test_messages_of_other_programs_are_read(store: Store) -> None:
    """Also one that was redacted."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = History("other", store)
    history.add_messages([HumanMessage("secret", id="h")])
    said = [
        {"role": "system", "content": "s"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    store.append("other", said)
    store.redact("other", 1, "asked for")
    found = history.messages
    assert [each.type for each in found] == ["human", "system", "ai", "tool"]
    assert "secret" not in str(found)
    assert found[2].tool_calls == [{"name": "f", "args": {}, "id": "c", "type": "tool_call"}]  # type: ignore[attr-defined]


@contextmanager
def open_history(url: str, name: str) -> Iterator[History]:
    """Give a history of a store that is closed after."""
    history = History(name, url)
    yield history
    history.close()


def append_turns(url: str, first: int) -> None:
    """Append every other turn, as a process of its own."""
    with open_history(url, "both") as history:
        for number in range(first, 20, 2):
            history.add_messages(make_turn(number))


def test_two_processes_lose_and_double_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Each turn is there once and whole."""
    for child in [fork(append_turns, url, 0), fork(append_turns, url, 1)]:
        child.result()
    with open_history(url, "both") as history:
        found = history.messages
    turns = [found[place : place + 4] for place in range(0, 80, 4)]
    assert sorted(str(turn[0].content) for turn in turns) == sorted(
        f"Turn {number}" for number in range(20)
    )
    assert all(turn == make_turn(int(str(turn[0].content)[5:])) for turn in turns)


def run_turns(history: History, count: int) -> None:
    """Run turns of a chain that keeps its history."""
    model = GenericFakeChatModel(messages=iter([AIMessage("Done.")] * count))
    chain = RunnableWithMessageHistory(model, lambda _: history)
    for number in range(count):
        config: Any = {"configurable": {"session_id": history.session_id}}
        assert chain.invoke([HumanMessage(f"Turn {number}")], config).content == "Done."


def run_named(url: str, name: str, count: int) -> None:
    """Run turns, as a process of its own."""
    with open_history(url, name) as history:
        run_turns(history, count)


def read_messages(url: str, name: str) -> list[str]:
    """Return the messages of a history as texts."""
    with open_history(url, name) as history:
        return [str(each.content) for each in history.messages]


@pytest.mark.timeout(600)
def test_a_killed_run_goes_on(
    url: str, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was written is there, and the next turn is answered."""
    check_killed_runs(ScriptedRun(run_named, read_messages), url, fork, pytestconfig)
