"""Histories of LangChain in a store."""

from __future__ import annotations

import asyncio

import pytest

from store import Policy, Store

pytest.importorskip("langchain_core", reason="needs langchain-core: pip install -e '.[langchain]'")

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

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
