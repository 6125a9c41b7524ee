"""Chat stores of LlamaIndex in a store, and cases of their contracts, also on LlamaIndex's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import Policy, Store

pytest.importorskip("llama_index.core", reason="needs llama-index: pip install -e '.[llama-index]'")

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ImageBlock,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from store.adapters.llama_index import ChatStore, DBChatStore

pytestmark = pytest.mark.filterwarnings("ignore")
ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


def make_messages(*texts: str) -> list[ChatMessage]:
    """Return messages of a user."""
    return [ChatMessage(text, role="user") for text in texts]


def list_texts(messages: Any) -> list[str]:
    """Return what messages say."""
    return [str(each.content) for each in messages]


@contextmanager
def open_chats(url: str) -> Iterator[ChatStore]:
    """Give chats of a store that is closed after."""
    chats = ChatStore(url)
    yield chats
    chats.close()


# --- the contract of BaseChatStore ----------------------------------------------------------------


def check_nothing(chats: BaseChatStore) -> None:
    """An unknown key has no messages, and none can be removed."""
    assert chats.get_messages("x") == []
    assert chats.delete_messages("x") is None
    assert chats.delete_message("x", 0) is None
    assert chats.delete_last_message("x") is None


def check_append(chats: BaseChatStore) -> None:
    """Messages are in the order of their appending, each key has its own."""
    for key, text in (("x", "a"), ("y", "b"), ("x", "c")):
        chats.add_message(key, ChatMessage(text, role="user"))
    assert chats.get_messages("x") == make_messages("a", "c")
    assert chats.get_messages("y") == make_messages("b")


def check_set(chats: BaseChatStore) -> None:
    """Messages that are set replace all."""
    for texts in ("ab", "abc", "axc", "a", ""):
        chats.set_messages("x", make_messages(*texts))
        assert list_texts(chats.get_messages("x")) == [*texts]


def check_delete(chats: BaseChatStore) -> None:
    """A message is removed by its place and returned; none at another place."""
    chats.set_messages("x", make_messages(*"abcd"))
    assert chats.delete_message("x", 1) == ChatMessage("b", role="user")
    assert chats.delete_message("x", 9) is None
    assert list_texts(chats.get_messages("x")) == ["a", "c", "d"]


def check_delete_last(chats: BaseChatStore) -> None:
    """The last message is removed and returned."""
    chats.set_messages("x", make_messages(*"ab"))
    assert list_texts([chats.delete_last_message("x")]) == ["b"]
    assert list_texts(chats.get_messages("x")) == ["a"]


def check_delete_all(chats: BaseChatStore) -> None:
    """All messages of a key are removed and returned; those of others stay."""
    chats.set_messages("x", make_messages(*"ab"))
    chats.set_messages("y", make_messages("c"))
    assert list_texts(chats.delete_messages("x")) == ["a", "b"]
    assert chats.get_messages("x") == []
    assert chats.get_keys() == ["y"]


def check_keys(chats: BaseChatStore) -> None:
    """All keys are listed."""
    for key in "xyz":
        chats.add_message(key, ChatMessage(key, role="user"))
    assert sorted(chats.get_keys()) == ["x", "y", "z"]


def check_awaited(chats: BaseChatStore) -> None:
    """The awaited methods do the same."""

    async def work() -> None:
        await chats.aset_messages("x", make_messages(*"abc"))
        await chats.async_add_message("x", ChatMessage("d", role="user"))
        assert list_texts(await chats.aget_messages("x")) == [*"abcd"]
        assert list_texts([await chats.adelete_message("x", 0)]) == ["a"]
        assert list_texts([await chats.adelete_last_message("x")]) == ["d"]
        assert await chats.aget_keys() == ["x"]
        assert list_texts(await chats.adelete_messages("x")) == ["b", "c"]

    asyncio.run(work())


CASES = (
    *(check_nothing, check_append, check_set, check_delete),
    *(check_delete_last, check_delete_all, check_keys, check_awaited),
)


@pytest.mark.parametrize("case", CASES)
def test_contract(case: Callable[[BaseChatStore], None], url: str) -> None:
    """A case passes with our class."""
    with open_chats(url) as chats:
        case(chats)


@pytest.mark.parametrize("case", CASES)
def test_contract_on_theirs(case: Callable[[BaseChatStore], None]) -> None:
    """A case passes with theirs."""
    case(SimpleChatStore())


# --- the contract of AsyncDBChatStore -------------------------------------------------------------


async def check_db_nothing(chats: AsyncDBChatStore) -> None:
    """An unknown key has no messages, and none can be removed."""
    assert await chats.get_messages("x") == []
    assert await chats.count_messages("x") == 0
    assert await chats.delete_message("x", 1) is None
    assert await chats.delete_oldest_messages("x", 2) == []
    assert await chats.archive_oldest_messages("x", 2) == []
    await chats.delete_messages("x")
    assert await chats.get_keys() == []


async def check_db_append(chats: AsyncDBChatStore) -> None:
    """Messages are in the order of their appending, each key has its own."""
    await chats.add_message("x", ChatMessage("a", role="user"))
    await chats.add_messages("x", make_messages("b", "c"))
    await chats.add_message("y", ChatMessage("d", role="user"))
    assert await chats.get_messages("x") == make_messages("a", "b", "c")
    assert sorted(await chats.get_keys()) == ["x", "y"]


async def check_db_pages(chats: AsyncDBChatStore) -> None:
    """A limit and an offset count the messages of the status."""
    await chats.add_messages("x", make_messages(*"ab"), ARCHIVED)
    await chats.add_messages("x", make_messages(*"cdef"))
    assert list_texts(await chats.get_messages("x", limit=2, offset=1)) == ["d", "e"]
    assert list_texts(await chats.get_messages("x", None, limit=3)) == ["a", "b", "c"]


async def check_db_status(chats: AsyncDBChatStore) -> None:
    """Messages have one of two statuses."""
    await chats.add_message("x", ChatMessage("a", role="user"), ARCHIVED)
    await chats.add_message("x", ChatMessage("b", role="user"))
    assert list_texts(await chats.get_messages("x")) == ["b"]
    assert list_texts(await chats.get_messages("x", ARCHIVED)) == ["a"]
    counts = [await chats.count_messages("x", each) for each in (ACTIVE, ARCHIVED, None)]
    assert counts == [1, 1, 2]


async def check_db_archive(chats: AsyncDBChatStore) -> None:
    """The oldest active messages are archived and returned."""
    await chats.add_messages("x", make_messages(*"abcd"))
    assert list_texts(await chats.archive_oldest_messages("x", 2)) == ["a", "b"]
    assert list_texts(await chats.archive_oldest_messages("x", 1)) == ["c"]
    assert list_texts(await chats.get_messages("x")) == ["d"]
    assert list_texts(await chats.get_messages("x", ARCHIVED)) == ["a", "b", "c"]


async def check_db_set(chats: AsyncDBChatStore) -> None:
    """Messages that are set replace those of any status."""
    await chats.add_messages("x", make_messages(*"ab"))
    await chats.archive_oldest_messages("x", 1)
    await chats.set_messages("x", make_messages("c"))
    assert list_texts(await chats.get_messages("x", None)) == ["c"]
    await chats.set_messages("x", make_messages("d"), ARCHIVED)
    assert await chats.get_messages("x") == []


async def check_db_delete(chats: AsyncDBChatStore) -> None:
    """A message is removed by its id; the oldest active ones are; archived ones stay archived."""
    await chats.add_messages("x", make_messages(*"abcde"))
    await chats.archive_oldest_messages("x", 2)
    assert list_texts([await chats.delete_message("x", 1)]) == ["a"]
    assert await chats.delete_message("x", 9) is None
    assert list_texts(await chats.delete_oldest_messages("x", 2)) == ["c", "d"]
    assert list_texts(await chats.get_messages("x")) == ["e"]
    assert list_texts(await chats.get_messages("x", ARCHIVED)) == ["b"]


async def check_db_delete_all(chats: AsyncDBChatStore) -> None:
    """All messages are removed, or those of a status."""
    await chats.add_messages("x", make_messages(*"abc"))
    await chats.archive_oldest_messages("x", 1)
    await chats.delete_messages("x", ARCHIVED)
    assert list_texts(await chats.get_messages("x", None)) == ["b", "c"]
    await chats.delete_messages("x")
    assert await chats.get_keys() == []


DB_CASES = (
    *(check_db_nothing, check_db_append, check_db_pages, check_db_status),
    *(check_db_archive, check_db_set, check_db_delete, check_db_delete_all),
)


@pytest.mark.parametrize("case", DB_CASES)
def test_contract_of_databases(case: Callable[[Any], Any], url: str) -> None:
    """A case passes with our class."""
    with open_chats(url) as chats:
        asyncio.run(case(DBChatStore(chats.store)))


@pytest.mark.parametrize("case", DB_CASES)
def test_contract_of_databases_on_theirs(case: Callable[[Any], Any]) -> None:
    """A case passes with theirs."""
    pytest.importorskip("aiosqlite", reason="their store needs aiosqlite")
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

    asyncio.run(case(SQLAlchemyChatStore("messages")))


# --- ours -----------------------------------------------------------------------------------------

MESSAGES = [
    ChatMessage("s", role="developer"),
    ChatMessage("", role="user"),
    ChatMessage(role="assistant", blocks=[]),
    ChatMessage(
        role="user",
        blocks=[TextBlock(text="a"), ImageBlock(image=b"\x89PNG"), ImageBlock(url="https://e.com")],
    ),
    ChatMessage(
        role="chatbot",
        blocks=[
            ThinkingBlock(content="hm"),
            TextBlock(text="a"),
            TextBlock(text="b"),
            ToolCallBlock(tool_call_id="c", tool_name="f", tool_kwargs={"a": 1}),
            ToolCallBlock(tool_call_id="d", tool_name="f", tool_kwargs='{"a": 1}'),
            ToolCallBlock(tool_name="f"),
        ],
    ),
    ChatMessage("x = 1", role="tool", additional_kwargs={"tool_call_id": "c", "k": [1]}),
    ChatMessage("x = 1", role="function", additional_kwargs={"name": "f"}),
    ChatMessage(
        role="assistant",
        additional_kwargs={
            "tool_calls": [
                {"id": "e", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ]
        },
    ),
]


def test_messages_come_back_equal(store: Store) -> None:
    """Of each role, with blocks of each kind; calls and results are those of a chat."""
    chats = ChatStore(store)
    chats.set_messages("x", MESSAGES)
    assert chats.get_messages("x") == MESSAGES
    rows = [each.message for each in store.messages("x")]
    roles = [*("system", "user", "assistant", "user", "assistant", "tool", "user", "assistant")]
    roles[0] = "developer"
    assert [row["role"] for row in rows] == roles
    assert [call["id"] for call in rows[4]["tool_calls"]] == ["c", "d"]
    assert rows[7]["tool_calls"][0]["id"] == "e"


def test_messages_of_other_programs_are_read(store: Store) -> None:
    """Also one that was redacted; what is removed comes back by an undo."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chats = ChatStore(store)
    chats.add_message("other", ChatMessage("secret", role="user"))
    said = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    store.append("other", said)
    store.redact("other", 1, "asked for")
    found = chats.get_messages("other")
    assert "secret" not in str(found)
    assert found[1].blocks == [ToolCallBlock(tool_call_id="c", tool_name="f", tool_kwargs={})]
    assert found[2].additional_kwargs == {"tool_call_id": "c"}
    chats.delete_message("other", 1)
    store.undo_rewind("other")
    assert chats.get_messages("other") == found


class ScriptedModel(FunctionCallingLLM):
    """A model that asks for two results at once, then hands over, or answers."""

    sent: list[Any]
    hands_over: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        """Say that it calls functions."""
        return LLMMetadata(is_function_calling_model=True)

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> Any:
        return {"messages": chat_history}

    def get_tool_calls_from_response(self, response: Any, **_: Any) -> list[ToolSelection]:
        """Return the calls of an answer."""
        calls = [each for each in response.message.blocks if isinstance(each, ToolCallBlock)]
        return [
            ToolSelection(tool_id=c.tool_call_id, tool_name=c.tool_name, tool_kwargs=c.tool_kwargs)
            for c in calls
        ]

    async def astream_chat(self, messages: Any, **_: Any) -> Any:
        """Answer."""
        self.sent[:] = [*messages]

        async def stream() -> Any:
            number = len(messages)
            calls = [("read", {"path": "a.py"})] * 2 if messages[-1].role == "user" else []
            answered = [each.content for each in messages if each.role == MessageRole.TOOL]
            if self.hands_over and not calls and "handed" not in str(answered[-1]).lower():
                calls = [("handoff", {"to_agent": "second", "reason": "It knows."})]
            blocks: list[Any] = [
                ToolCallBlock(tool_call_id=f"{number}{place}", tool_name=name, tool_kwargs=given)
                for place, (name, given) in enumerate(calls)
            ]
            said = ChatMessage(role="assistant", blocks=blocks or [TextBlock(text="Done.")])
            yield ChatResponse(message=said, delta="")

        return stream()

    async def astream_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> Any:
        """Answer."""
        return await self.astream_chat(chat_history)

    def chat(self, messages: Any, **_: Any) -> Any:
        """Be no such model."""
        raise NotImplementedError

    achat = complete = acomplete = stream_chat = stream_complete = astream_complete = chat


def read(path: str) -> str:
    """Read a file."""
    return "x = 1"


def make_agents() -> tuple[AgentWorkflow, ScriptedModel]:
    """Return two agents, of which the first hands over to the second, which answers."""
    first, second = ScriptedModel(sent=[], hands_over=True), ScriptedModel(sent=[])
    options: dict[str, Any] = {"tools": [read], "streaming": True}
    agents = [
        FunctionAgent(name="first", description="First", llm=first, **options),
        FunctionAgent(name="second", description="Second", llm=second, **options),
    ]
    return AgentWorkflow(agents=agents, root_agent="first"), second


def make_memory(chats: ChatStore, key: str) -> ChatMemoryBuffer:
    """Return the memory of a conversation."""
    limit = 1_000_000
    return ChatMemoryBuffer.from_defaults(
        chat_store=chats, chat_store_key=key, token_limit=limit, tokenizer_fn=str.split
    )


def run_turns(chats: ChatStore, key: str, texts: list[str]) -> ScriptedModel:
    """Run turns, each with agents of its own, as new programs would."""

    async def work() -> ScriptedModel:
        for text in texts:
            agents, model = make_agents()
            answer = await agents.run(user_msg=text, memory=make_memory(chats, key))
            assert str(answer) == "Done."
        return model

    return asyncio.run(work())


def test_ten_turns_of_a_run_are_restored(store: Store) -> None:
    """With calls at once and a handoff; each turn goes on with all before it."""
    chats = ChatStore(store)
    model = run_turns(chats, "run", [f"Turn {number}" for number in range(10)])
    found = chats.get_messages("run")
    assert list_texts(found).count("Done.") == 10
    assert store.session("run").head == len(found)
    assert model.sent == found[: len(model.sent)]
    results = [each.message for each in store.messages("run") if each.message["role"] == "tool"]
    assert len(results) == 30


def test_a_policy_gives_the_view(store: Store) -> None:
    """A long history is compacted when it is read; what is stored stays."""
    chats = ChatStore(store)
    run_turns(chats, "long", [f"{number} " + "a line of a log\n" * 900 for number in range(20)])
    policy = Policy.named("agent", context_window=30_000)
    sent = ChatStore(store, policy=policy)
    assert len(str(sent.get_messages("long"))) < len(str(chats.get_messages("long"))) / 2
    assert store.compactions("long")
    assert asyncio.run(DBChatStore(store, policy=policy).get_messages("long")) == sent.get_messages(
        "long"
    )


def append_messages(url: str, name: str) -> None:
    """Append messages, as a process of its own."""
    with open_chats(url) as chats:
        for number in range(20):
            chats.add_message("both", ChatMessage(f"{name}{number}", role="user"))


def pop_messages(url: str) -> list[str]:
    """Remove the last message until none is left."""
    with open_chats(url) as chats:
        return list_texts(iter(lambda: chats.delete_last_message("both"), None))


def test_two_processes_lose_and_double_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Each message is there once, and is popped once."""
    for child in [fork(append_messages, url, "a"), fork(append_messages, url, "b")]:
        child.result()
    with open_chats(url) as chats:
        found = list_texts(chats.get_messages("both"))
    assert len({*found}) == len(found) == 40
    children = [fork(pop_messages, url), fork(pop_messages, url)]
    popped = [text for child in children for text in child.result()]
    assert sorted(popped) == sorted(found)


def run_named(url: str, name: str, count: int) -> None:
    """Run turns, as a process of its own."""
    with open_chats(url) as chats:
        run_turns(chats, name, [f"Turn {number}" for number in range(count)])


def read_messages(url: str, name: str) -> list[str]:
    """Return the messages of a conversation as texts."""
    with open_chats(url) as chats:
        return [each.model_dump_json() for each in chats.get_messages(name)]


@pytest.mark.timeout(600)
def test_a_killed_run_goes_on(
    url: str, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was written is there, and the next turn is answered."""
    check_killed_runs(ScriptedRun(run_named, read_messages), url, fork, pytestconfig)
