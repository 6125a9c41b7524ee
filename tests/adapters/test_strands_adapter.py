"""Sessions of Strands in a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import Policy, Store

pytest.importorskip("strands", reason="needs strands-agents: pip install -e '.[strands]'")

from strands import Agent, tool
from strands.models import Model
from strands.session.repository_session_manager import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from store.adapters.strands import Repository

pytestmark = pytest.mark.filterwarnings("ignore")


class ScriptedModel(Model):
    """A model that asks for two results at once, then answers; it keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def update_config(self, **_: Any) -> None:
        """Change nothing."""

    def get_config(self) -> Any:
        """Return nothing."""

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Be no such model."""
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
        """Stream an answer."""
        self.sent = [dict(each) for each in messages]
        yield {"messageStart": {"role": "assistant"}}
        if "text" in messages[-1]["content"][0]:
            for name in "ab":
                used = {"toolUseId": f"{len(messages)}{name}", "name": "read"}
                yield {"contentBlockStart": {"start": {"toolUse": used}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"path": "a.py"}'}}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "Done."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@tool
def read(path: str) -> str:
    """Read a file."""
    return "x = 1"


def make_agent(repository: Repository, session_id: str) -> Any:
    """Return an agent that goes on with a session."""
    manager = RepositorySessionManager(session_id, repository)
    options: dict[str, Any] = {"tools": [read], "callback_handler": None, "agent_id": "one"}
    return Agent(model=ScriptedModel(), session_manager=manager, **options)


def drop_tracking(messages: Any) -> list[Any]:
    """Return messages without what the framework marks them with in memory."""
    return [{key: each[key] for key in ("role", "content")} for each in messages]


def test_ten_turns_of_a_run_are_restored(store: Store) -> None:
    """Equal, each result at a position of its own; a new program goes on with them."""
    repository = Repository(store)
    agent = make_agent(repository, "run")
    for number in range(10):
        agent(f"Turn {number}")
    again = make_agent(repository, "run")
    assert drop_tracking(again.messages) == drop_tracking(agent.messages)
    assert len(again.messages) == 40
    assert store.session("run/agents/one").head == 50
    again("More")
    assert drop_tracking(again.model.sent[:40]) == drop_tracking(agent.messages)
    assert len(repository.list_messages("run", "one", limit=3, offset=40)) == 3


def test_a_policy_restores_the_view(store: Store) -> None:
    """A long history is compacted when an agent is restored; what is stored stays."""
    agent = make_agent(Repository(store), "long")
    for number in range(20):
        agent(f"{number} " + "a line of a log\n" * 900)
    policy = Policy.named("agent", context_window=30_000)
    repository = Repository(store, policy=policy)
    again = make_agent(repository, "long")
    assert store.compactions("long/agents/one")
    assert len(str(again.messages)) < len(str(agent.messages)) / 2
    assert store.session("long/agents/one").head == 100
    first = repository.read_message("long", "one", 0)
    assert first
    assert str(first.message["content"]).startswith("[{'text': '0 ")
    again("More")
    assert again.model.sent[-1]["role"] == "user"


def make_message(number: int, *blocks: Any) -> SessionMessage:
    """Return a message of a user."""
    return SessionMessage({"role": "user", "content": [*blocks]}, number)


def begin(repository: Repository, session_id: str) -> None:
    """Create a session with an agent."""
    repository.create_session(Session(session_id, SessionType.AGENT))
    repository.create_agent(session_id, SessionAgent("one", {}, {}))


def test_blocks_come_back_in_their_order(store: Store) -> None:
    """Texts between results, bytes, results that are JSON or failed."""
    repository = Repository(store)
    begin(repository, "blocks")
    blocks: list[Any] = [
        {"text": "before"},
        {"toolResult": {"toolUseId": "a", "content": [{"json": {"x": 1}}], "status": "error"}},
        {"image": {"format": "png", "source": {"bytes": b"\x00\xff"}}},
        {"toolResult": {"toolUseId": "b", "content": [{"text": "y"}, {"text": "z"}]}},
        {"text": "after"},
    ]
    for number, some in enumerate(([], blocks, blocks[1:2], blocks[:1])):
        given = make_message(number, *some)
        repository.create_message("blocks", "one", given)
        assert repository.read_message("blocks", "one", number) == given
    with pytest.raises(SessionException):
        repository.create_message("blocks", "one", make_message(1))
    with pytest.raises(SessionException):
        repository.update_message("blocks", "one", make_message(9))
    assert repository.read_message("blocks", "one", 9) is None


def test_a_redaction_leaves_no_word(store: Store) -> None:
    """On no line; its replacement is what an agent is given."""
    repository = Repository(store)
    begin(repository, "secret")
    result = {"toolResult": {"toolUseId": "a", "content": [{"text": "secret"}]}}
    given = make_message(0, result, {"text": "secret"})
    repository.create_message("secret", "one", given)
    store.fork("secret/agents/one", session_id="secret-fork")
    given.redact_message = {"role": "user", "content": [{"text": "removed"}]}
    repository.update_message("secret", "one", given)
    (found,) = repository.list_messages("secret", "one")
    assert found.to_message() == given.redact_message
    for name in ("secret/agents/one", "secret-fork"):
        assert "secret" not in str([each.message for each in store.messages(name)])


def append_messages(url: str, first: int) -> None:
    """Append every other message, as a process of its own."""
    repository = Repository(url)
    for number in range(first, 40, 2):
        repository.create_message("both", "one", make_message(number, {"text": str(number)}))
    repository.close()


def test_two_processes_lose_and_double_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Each message is there once."""
    repository = Repository(url)
    begin(repository, "both")
    repository.close()
    for child in [fork(append_messages, url, 0), fork(append_messages, url, 1)]:
        child.result()
    repository = Repository(url)
    found = repository.list_messages("both", "one")
    repository.close()
    assert sorted(each.message_id for each in found) == [*range(40)]


def run_turns(url: str, name: str, count: int) -> None:
    """Run turns of the agent, as a process of its own."""
    repository = Repository(url)
    agent = make_agent(repository, name)
    for number in range(count):
        agent(f"Turn {number}")
    repository.close()


def read_messages(url: str, name: str) -> list[str]:
    """Return the messages of a session as texts."""
    repository = Repository(url)
    try:
        return [str(each.to_message()["content"]) for each in repository.list_messages(name, "one")]
    except SessionException:
        return []
    finally:
        repository.close()


@pytest.mark.timeout(600)
def test_a_killed_run_goes_on(
    url: str, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was written is there, and the next turn is answered."""
    check_killed_runs(ScriptedRun(run_turns, read_messages), url, fork, pytestconfig)
