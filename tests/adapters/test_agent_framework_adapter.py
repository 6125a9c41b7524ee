"""Histories of Agent Framework in a store, and cases of their contract, also on its own stores."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import Policy, Store

pytest.importorskip("agent_framework", reason="needs it: pip install -e '.[agent-framework]'")

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FileHistoryProvider,
    FunctionInvocationLayer,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    tool,
)

from store.adapters.agent_framework import Provider

pytestmark = pytest.mark.filterwarnings("ignore")


@contextmanager
def open_provider(url: str, **options: Any) -> Iterator[Provider]:
    """Give a provider of a store that is closed after."""
    provider = Provider(url, **options)
    yield provider
    provider.close()


def dump(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as values that can be compared, without what the framework marks them with."""
    return [
        {**each.to_dict(), "additional_properties": strip(each.additional_properties)}
        for each in messages
    ]


def strip(properties: Any) -> dict[str, Any]:
    """Return properties without the source that a run marks."""
    return {key: value for key, value in properties.items() if key != "_attribution"}


# --- the contract of HistoryProvider --------------------------------------------------------------


class Case:
    """A provider, and the state that a session has for it."""

    def __init__(self, provider: HistoryProvider) -> None:
        self.provider = provider
        self.states: dict[str, dict[str, Any]] = {}

    async def save(self, name: str, *messages: Message) -> None:
        """Save messages in a session."""
        state = self.states.setdefault(name, {})
        await self.provider.save_messages(name, messages, state=state)

    async def load(self, name: str) -> list[dict[str, Any]]:
        """Return the messages of a session."""
        state = self.states.setdefault(name, {})
        return dump(await self.provider.get_messages(name, state=state))


async def check_nothing(case: Case) -> None:
    """A session that was never saved has no messages; saving none changes nothing."""
    assert await case.load("x") == []
    await case.save("x")
    assert await case.load("x") == []


async def check_order(case: Case) -> None:
    """Messages come back in the order of their saving, each session has its own."""
    first, second, other = (Message("user", [text]) for text in "abc")
    await case.save("x", first, Message("assistant", ["1"], message_id="1"))
    await case.save("y", other)
    await case.save("x", second, Message("assistant", ["2"], message_id="2"))
    assert [each["contents"][0]["text"] for each in await case.load("x")] == ["a", "1", "b", "2"]
    assert await case.load("y") == dump([other])


async def check_kinds(case: Case) -> None:
    """Messages with contents of each kind come back equal."""
    for number, message in enumerate(MESSAGES):
        await case.save(f"kind-{number}", message)
        assert await case.load(f"kind-{number}") == dump([message])


async def check_replay(case: Case) -> None:
    """A caller that gives all messages again adds the new ones only."""
    said = [Message("user", ["a"]), Message("assistant", ["b"], message_id="b")]
    new = [Message("user", ["c"]), Message("assistant", ["d"], message_id="d")]
    await case.save("x", *said)
    await case.save("x", *said, *new)
    assert await case.load("x") == dump([*said, *new])


MESSAGES = [
    Message(
        "user",
        [
            "a",
            Content.from_uri("https://e.com/a.png", media_type="image/png"),
            Content.from_data(b"\x00\xff", "image/png"),
        ],
    ),
    Message(
        "assistant",
        [
            Content.from_text_reasoning(text="hm"),
            Content.from_text("a"),
            Content.from_text("b"),
            Content.from_function_call("c", "f", arguments={"a": 1}),
            Content.from_function_call("d", "f", arguments='{"a": 1}'),
            Content.from_function_call("e", "f"),
        ],
        message_id="m",
        author_name="x",
    ),
    Message(
        "tool",
        [
            Content.from_function_result("c", result="x = 1"),
            Content.from_function_result(
                "d",
                result=[Content.from_text("a"), Content.from_data(b"\x00\xff", "image/png")],
                exception="secret",
            ),
            Content("function_result", call_id="e", result={"a": 2}),
        ],
    ),
    Message("user", []),
    Message("assistant", [""], additional_properties={"k": [1]}),
    Message("system", ["s"]),
]


CASES = (check_nothing, check_order, check_kinds, check_replay)


@pytest.mark.parametrize("check", CASES)
def test_contract(check: Callable[[Case], Any], url: str) -> None:
    """A case passes with our class."""
    with open_provider(url) as provider:
        asyncio.run(check(Case(provider)))


@pytest.mark.parametrize("check", CASES)
@pytest.mark.parametrize("kind", ["in memory", "files"])
def test_contract_on_theirs(kind: str, check: Callable[[Case], Any], tmp_path: Path) -> None:
    """A case passes with theirs."""
    is_file = kind == "files"
    provider = FileHistoryProvider(tmp_path / "history") if is_file else InMemoryHistoryProvider()
    asyncio.run(check(Case(provider)))


# --- ours -----------------------------------------------------------------------------------------


def test_results_have_positions_of_their_own(store: Store) -> None:
    """And what a chat can say is said there; another program's messages are read."""
    provider = Provider(store)
    asyncio.run(provider.save_messages("rows", MESSAGES))
    rows = [each.message for each in store.messages("rows")]
    roles = ["user", "assistant", "tool", "tool", "tool", "user", "assistant", "system"]
    assert [row["role"] for row in rows] == roles
    assert [call["id"] for call in rows[1]["tool_calls"]] == ["c", "d", "e"]
    assert rows[3]["messageStatus"] == "error"
    call = {"id": "z", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    store.append("rows", {"role": "assistant", "content": None, "tool_calls": [call]})
    store.append("rows", {"role": "tool", "tool_call_id": "z", "content": "r"})
    store.redact("rows", 3, "asked for")
    found = asyncio.run(provider.get_messages("rows"))
    assert "x = 1" not in str(dump(found))
    assert [each.type for each in found[-2].contents] == ["function_call"]
    assert found[-1].contents[0].result == "r"


def test_words_that_are_said_again_are_stored_again(store: Store) -> None:
    """Only ids tell that a message is one that is stored."""
    provider = Provider(store)
    said = [Message("user", ["Go on"]), Message("assistant", ["Done."])]
    for _ in range(3):
        asyncio.run(provider.save_messages("again", said))
    assert store.session("again").head == 6


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc]
    """A model that asks for two results at once, then answers; it keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Message] = []

    def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
        async def respond() -> ChatResponse:
            self.sent = [*messages]
            number = len(messages)
            is_new = messages[-1].role == "user" and messages[-1].text
            contents = [Content.from_text("Done.")]
            if is_new:
                given = {"arguments": '{"path": "a.py"}'}
                contents = [
                    Content.from_function_call(f"{number}{name}", "read", **given) for name in "ab"
                ]
            said = Message("assistant", contents, message_id=f"m{number}")
            return ChatResponse(messages=[said], response_id=f"r{number}")

        return respond()


def make_agent(provider: HistoryProvider, *, approval: str = "never_require") -> Any:
    """Return an agent with a history, whose tool may have to be approved."""

    @tool(approval_mode=approval)  # type: ignore[arg-type]
    def read(path: str) -> str:
        """Read a file."""
        return "x = 1"

    options = {"require_per_service_call_history_persistence": True}
    return Agent(ScriptedClient(), tools=[read], context_providers=[provider], **options)


async def run_turns(provider: HistoryProvider, name: str, texts: Sequence[str]) -> Any:
    """Run turns, each with an agent of its own, as new programs would; return the last agent."""
    for text in texts:
        agent = make_agent(provider)
        answer = await agent.run(text, session=AgentSession(session_id=name))
        assert answer.text == "Done."
    return agent


def test_ten_turns_of_a_run_are_restored(store: Store) -> None:
    """Each goes on with all before it."""
    provider = Provider(store)
    agent = asyncio.run(run_turns(provider, "run", [f"Turn {number}" for number in range(10)]))
    found = asyncio.run(provider.get_messages("run"))
    assert [each.role for each in found] == ["user", "assistant", "tool", "assistant"] * 10
    assert store.session("run").head == 50
    assert dump(agent.client.sent[:37]) == dump(found[:37])


@pytest.mark.parametrize("policy", [None, Policy.named("agent")])
def test_an_approval_is_resumed(store: Store, policy: Policy | None) -> None:
    """By another program: the calls that were asked for are made when they are approved."""
    name = f"approval-{policy is None}"

    async def work() -> Any:
        provider = Provider(store, policy=policy)
        session = AgentSession(session_id=name)
        asked = await make_agent(provider, approval="always_require").run("Go", session=session)
        requests = asked.user_input_requests
        assert len(requests) == 2
        given = [each.to_function_approval_response(approved=True) for each in requests]
        agent = make_agent(Provider(store, policy=policy), approval="always_require")
        session = AgentSession.from_dict(session.to_dict())
        return await agent.run(Message("user", given), session=session)

    assert asyncio.run(work()).text == "Done."
    results = [each.message for each in store.messages(name) if each.message["role"] == "tool"]
    assert [each["content"] for each in results] == ["x = 1", "x = 1"]


def test_a_policy_gives_the_view(store: Store) -> None:
    """A long history is compacted before a run; what is stored stays."""
    texts = [f"{number} " + "a line of a log\n" * 900 for number in range(20)]
    asyncio.run(run_turns(Provider(store), "long", texts))
    policy = Policy.named("agent", context_window=30_000)
    agent = asyncio.run(run_turns(Provider(store, policy=policy), "long", ["More"]))
    assert store.compactions("long")
    stored = [each.message for each in store.messages("long")]
    assert len(stored) == 105
    assert len(str(dump(agent.client.sent))) < len(str(stored)) / 2


def append_messages(url: str, name: str) -> None:
    """Append messages, as a process of its own."""
    with open_provider(url) as provider:
        for number in range(20):
            said = Message("user", [f"{name}{number}"], message_id=f"{name}{number}")
            asyncio.run(provider.save_messages("both", [said]))


def test_two_processes_lose_and_double_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Each message is there once."""
    for child in [fork(append_messages, url, "a"), fork(append_messages, url, "b")]:
        child.result()
    with open_provider(url) as provider:
        found = [each.text for each in asyncio.run(provider.get_messages("both"))]
    assert len({*found}) == len(found) == 40


def run_named(url: str, name: str, count: int) -> None:
    """Run turns, as a process of its own."""
    with open_provider(url) as provider:
        asyncio.run(run_turns(provider, name, [f"Turn {number}" for number in range(count)]))


def read_messages(url: str, name: str) -> list[str]:
    """Return the messages of a session as texts, without the random ids of results."""
    with open_provider(url) as provider:
        found = map(str, dump(asyncio.run(provider.get_messages(name))))
        return [re.sub("af-call-[0-9a-f]+", "", each) for each in found]


@pytest.mark.timeout(600)
def test_a_killed_run_goes_on(
    url: str, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was written is there, and the next turn is answered."""
    check_killed_runs(ScriptedRun(run_named, read_messages), url, fork, pytestconfig)
