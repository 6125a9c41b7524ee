"""Conversations of Pydantic AI in a store, by the text of its contract; on their own store, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import Policy, Store

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install -e '.[pydantic-ai]'")

from pydantic_ai import Agent, ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.function import AgentInfo, FunctionModel

from store.adapters.pydantic_ai import Conversations, compacted

Case = Callable[[ConversationStore], Coroutine[Any, Any, None]]


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Ask for two results at once, then say how many messages there are."""
    last = messages[-1].parts[-1]
    if last.part_kind == "user-prompt":
        calls = [ToolCallPart("read", {"path": name}, f"{len(messages)}-{name}") for name in "ab"]
        return ModelResponse([TextPart("I look."), *calls])
    return ModelResponse([TextPart(f"I was sent {len(messages)} messages.")])


agent = Agent(FunctionModel(answer))


@agent.tool_plain
def read(path: str) -> dict[str, str]:
    """Read a file."""
    return {path: "x = 1"}


async def talk(store: ConversationStore, name: str, *said: str, **options: Any) -> Conversation:
    """Run turns of a conversation, each saved."""
    conversation = await store.load(name) or Conversation(conversation_id=name)
    for each in said:
        result = await agent.run(each, conversation=conversation)
        await store.save(result, **options)
        conversation = result.conversation
    return conversation


async def saves_whole(store: ConversationStore) -> None:
    """Ten turns with parallel calls come back as they were, with usage and ids."""
    saved = await talk(store, "whole", *map(str, range(10)))
    loaded = await store.load("whole")
    assert loaded == saved
    assert len(saved.messages) == 40
    assert loaded.usage.requests == 20
    entries = await store.load_entries("whole")
    assert entries
    assert len({entry.id for entry in entries}) == 40
    assert [entry.parent_id for entry in entries] == [None, *(each.id for each in entries[:-1])]
    assert await store.read_entry(entries[7].id) == entries[7]


async def loads_a_window(store: ConversationStore) -> None:
    """The last messages, after which a run goes on."""
    saved = await talk(store, "window", "a", "b", "c")
    for limit in (0, 1, 5, 12, 99):
        loaded = await store.load("window", limit=limit)
        assert loaded.messages == saved.messages[len(saved.messages) - limit if limit < 12 else 0 :]
    loaded = await store.load("window", limit=2)
    await store.save(await agent.run("d", conversation=loaded))
    assert len((await store.load("window")).messages) == 16
    with pytest.raises(UserError):
        await store.load("window", limit=-1)


async def knows_no_other(store: ConversationStore) -> None:
    """What was never saved is None, a scope hides what is another's."""
    await talk(store, "mine", "a", scope="ann")
    assert await store.load("nobody") is None
    assert await store.load("mine", scope="ben") is None
    assert await store.load_entries("mine", scope="ben") is None
    assert await store.load("mine", scope="ann") is not None
    await store.delete("mine", scope="ben")
    assert await store.load("mine") is not None


async def refuses_a_stale_save(store: ConversationStore) -> None:
    """The second of two that continue the same revision."""
    await talk(store, "stale", "a")
    first, second = await store.load("stale"), await store.load("stale")
    await store.save(await agent.run("b", conversation=first))
    with pytest.raises(ConversationConflict):
        await store.save(await agent.run("c", conversation=second))
    with pytest.raises(ConversationConflict):
        await store.save(Conversation(conversation_id="stale"))
    assert len((await store.load("stale")).messages) == 8


async def branches_and_returns(store: ConversationStore) -> None:
    """A conversation goes back, on, and back to what it left."""
    saved = await talk(store, "branch", "a", "b")
    back = await store.branch("branch", at=4, expected_revision=saved.revision)
    assert back.messages == saved.messages[:4]
    await store.save(await agent.run("c", conversation=back))
    record = await store.read_record("branch")
    assert len(record.branches) == 1
    assert (await store.read_history(record.branches[0]))[-1].message == saved.messages[-1]
    again = await store.branch(
        "branch", from_entry=record.branches[0], expected_revision=record.revision
    )
    assert again.messages == saved.messages
    empty = await store.branch("branch", at=0, expected_revision=again.revision)
    assert empty.messages == []
    with pytest.raises(ConversationConflict):
        await store.branch("branch", at=1, expected_revision="old")


async def forks_share(store: ConversationStore) -> None:
    """Forks go on by themselves; what they share outlives their source."""
    saved = await talk(store, "source", "a", "b")
    fork = await store.fork("source", at=4, new_conversation_id="fork")
    assert fork.messages == saved.messages[:4]
    await store.save(await agent.run("c", conversation=fork))
    assert (await store.load("source")).messages == saved.messages
    assert len((await store.load("fork")).messages) == 8
    with pytest.raises(ConversationConflict):
        await store.fork("source", new_conversation_id="fork")
    await store.delete("source")
    assert (await store.load("fork")).messages[:4] == saved.messages[:4]


async def forks_a_left_branch(store: ConversationStore) -> None:
    """From an entry that its source has left."""
    saved = await talk(store, "left", "a", "b")
    back = await store.branch("left", at=4, expected_revision=saved.revision)
    await store.save(await agent.run("c", conversation=back))
    (tip,) = (await store.read_record("left")).branches
    fork = await store.fork("left", from_entry=tip, new_conversation_id="left-fork")
    assert fork.messages == saved.messages


async def rewrites_branch_off(store: ConversationStore) -> None:
    """A history that was rewritten branches off the last message that both share."""
    saved = await talk(store, "rewritten", "a", "b")
    record = await store.read_record("rewritten")
    loaded = Conversation(
        conversation_id="rewritten",
        messages=[*saved.messages[:4], ModelRequest.user_text_prompt("other")],
        revision=record.revision,
    )
    (entry,) = await store.save(loaded)
    assert (await store.load("rewritten")).messages == loaded.messages
    assert entry.parent_id == (await store.load_entries("rewritten"))[3].id
    assert (await store.read_record("rewritten")).branches == [record.head_id]


async def lists_the_last_saved(store: ConversationStore) -> None:
    """The newest first, of a scope, and no more than are asked for."""
    for name in ("x", "y", "z"):
        await talk(store, name, "a", scope="list" if name != "y" else "other")
    await talk(store, "x", "b")
    listed = await store.list_conversations(scope="list")
    assert [each.conversation_id for each in listed] == ["x", "z"]
    assert len(await store.list_conversations(limit=1)) == 1


async def deletes(store: ConversationStore) -> None:
    """A deleted conversation is gone, its id is free, its old copies cannot be saved."""
    saved = await talk(store, "gone", "a")
    await store.delete("gone")
    await store.delete("gone")
    assert await store.load("gone") is None
    with pytest.raises(ConversationConflict):
        await store.save(await agent.run("b", conversation=saved))
    await talk(store, "gone", "new")
    assert len((await store.load("gone")).messages) == 4


async def misses_entries(store: ConversationStore) -> None:
    """What is no entry raises LookupError, as the head of a fork it is a conflict."""
    with pytest.raises(LookupError):
        await store.read_entry("nothing")
    with pytest.raises(LookupError):
        await store.read_history("nothing")
    assert await store.read_history(None) == []
    saved = await talk(store, "missing", "a")
    record = await store.read_record("missing")
    record.conversation_id, record.head_id = "other", "nothing"
    with pytest.raises(ConversationConflict):
        await store.write_record(record, expected_revision=None)
    assert await store.read_record("other") is None
    assert saved.revision == record.revision


async def keeps_what_waits(store: ConversationStore) -> None:
    """A save without new messages changes what the record carries."""
    saved = await talk(store, "usage", "a")
    saved.usage.tool_calls += 5
    assert await store.save(saved) == []
    assert (await store.load("usage")).usage == saved.usage


CASES: list[Case] = [
    saves_whole,
    loads_a_window,
    knows_no_other,
    refuses_a_stale_save,
    branches_and_returns,
    forks_share,
    forks_a_left_branch,
    rewrites_branch_off,
    lists_the_last_saved,
    deletes,
    misses_entries,
    keeps_what_waits,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Case, store: Store) -> None:
    """What the text of the contract says."""
    asyncio.run(case(Conversations(store)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract_on_theirs(case: Case) -> None:
    """Theirs keeps it, too."""
    asyncio.run(case(InMemoryConversationStore()))


def test_a_plain_fork_is_no_conversation(store: Store) -> None:
    """It has the record of its source: that one is listed once, and the fork is not deleted."""

    async def work() -> None:
        conversations = Conversations(store)
        await talk(conversations, "forked", "a")
        assert store.fork("forked", session_id="plain").head
        listed = [each.conversation_id for each in await conversations.read_records()]
        assert [each for each in listed if each in ("forked", "plain")] == ["forked"]
        assert await conversations.load("plain") is None
        await conversations.delete("plain")
        await conversations.delete("forked")

    asyncio.run(work())
    assert store.session("plain").head


def test_a_policy_compacts_what_is_sent(store: Store) -> None:
    """Old messages are a summary for the model; what is stored stays, and is saved on."""
    conversations = Conversations(store)
    long = "a line of a log\n" * 900
    policy = Policy.named("agent", context_window=30_000)
    process = ProcessHistory(compacted(conversations, policy))
    seen: list[int] = []

    def count(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(sum(len(str(each)) for each in messages))
        return ModelResponse([TextPart(f"Turn {len(seen)}.")])

    async def work() -> None:
        small = Agent(FunctionModel(count), capabilities=[process])
        conversation = Conversation(conversation_id="long")
        for number in range(20):
            result = await small.run(f"{number} {long}", conversation=conversation)
            await conversations.save(result)
            conversation = await conversations.load("long") or conversation
        assert len(conversation.messages) == 40

    asyncio.run(work())
    assert store.compactions("long")
    assert max(seen[10:]) < 20 * len(long) / 2
    assert len(store.messages("long")) == 40


def test_a_redacted_part_is_gone(store: Store) -> None:
    """Alone: the other results of its request stay, and the history is still read."""
    conversations = Conversations(store)
    asyncio.run(talk(conversations, "secret", "a"))
    store.redact("secret", 3, "asked for")
    loaded = asyncio.run(conversations.load("secret"))
    assert loaded is not None
    parts = loaded.messages[2].parts
    assert [part.content for part in parts] == ["[redacted]", {"b": "x = 1"}]
    assert "'a'" not in str(parts)


def save_turns(url: str, name: str) -> int:
    """Save ten turns against another process; return the conflicts."""
    conversations = Conversations(url)
    conflicts = done = 0
    while done < 10:
        try:
            asyncio.run(talk(conversations, "both", f"{name}{done}"))
            done += 1
        except ConversationConflict:
            conflicts += 1
    conversations.close()
    return conflicts


def test_two_processes_lose_and_double_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Each turn is there once and whole, whoever had to try again."""
    for child in [fork(save_turns, url, "a"), fork(save_turns, url, "b")]:
        child.result()
    conversations = Conversations(url)
    loaded = asyncio.run(conversations.load("both"))
    conversations.close()
    said = [each.parts[0].content for each in loaded.messages[::4]]
    assert sorted(said) == sorted(f"{name}{number}" for name in "ab" for number in range(10))
    assert len(loaded.messages) == 80


def run_turns(url: str, name: str, count: int) -> None:
    """Run turns, as a process of its own."""
    conversations = Conversations(url)
    asyncio.run(talk(conversations, name, *(f"Turn {number}" for number in range(count))))
    conversations.close()


def read_parts(url: str, name: str) -> list[str]:
    """Return the parts of a conversation as texts."""
    conversations = Conversations(url)
    loaded = asyncio.run(conversations.load(name))
    conversations.close()
    parts: list[Any] = [part for each in loaded.messages for part in each.parts] if loaded else []
    return [f"{part.part_kind} {getattr(part, 'args', None) or part.content}" for part in parts]


@pytest.mark.timeout(600)
def test_a_killed_run_goes_on(
    url: str, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was written is there, and the next turn is answered."""
    check_killed_runs(ScriptedRun(run_turns, read_parts, "I was sent"), url, fork, pytestconfig)
