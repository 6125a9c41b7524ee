"""Sessions of OpenAI's Agents SDK in a store."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import Policy, Store

pytest.importorskip("agents", reason="needs openai-agents: pip install -e '.[openai-agents]'")

from agents import Agent, Runner, RunResult, function_tool
from agents.memory import Session as SessionProtocol
from agents.testing import ScriptedModel, assistant_message, function_call

from store.adapters.openai_agents import BranchedSession, Session

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
TURN = [
    {"role": "user", "content": "Read a.py."},
    {
        "type": "function_call",
        "call_id": "c",
        "name": "read",
        "arguments": "{}",
        "id": "__fake_id__",
    },
    {"type": "function_call_output", "call_id": "c", "output": "x = 1"},
    {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": []},
]


@function_tool
def read(path: str) -> str:
    """Read a file."""
    return f"{path}: x = 1"


def make_agent() -> Agent[Any]:
    """Return an agent that reads two files at once, asks another one, and answers: 4 requests."""
    calls = [function_call("read", {"path": f"{name}.py"}, call_id=name) for name in "ab"]
    model = ScriptedModel(
        [
            calls,
            [function_call("transfer_to_other", {}, call_id="h")],
            [function_call("read", {"path": "c.py"}, call_id="c")],
            [assistant_message("Done.")],
        ]
    )
    other = Agent(name="other", model=model, tools=[read])
    return Agent(name="first", model=model, tools=[read], handoffs=[other])


def run(session: Session, said: str) -> RunResult:
    """Run the agent on a session."""
    return asyncio.run(Runner.run(make_agent(), said, session=session))


def test_ten_turns_of_a_run_come_back_as_they_went_in(store: Store) -> None:
    """Parallel calls, a handoff and its results; the class is one of the SDK's protocol."""
    session = Session("run", store)
    assert isinstance(session, SessionProtocol)
    sent: list[Any] = []
    for number in range(10):
        result = run(session, f"Turn {number}")
        sent.append({"role": "user", "content": f"Turn {number}"})
        sent += [each.to_input_item() for each in result.new_items]
        items = asyncio.run(session.get_items())
        assert items == sent
    assert len(items) == 100
    assert asyncio.run(session.get_items(3)) == items[-3:]
    assert asyncio.run(session.pop_item()) == items[-1]
    store.undo_rewind("run")
    assert asyncio.run(session.get_items()) == items


def add_turns(url: str, count: int) -> None:
    """Append turns, as a process of its own."""
    session = Session("both", url)
    for number in range(count):
        items = [
            {**item, "id": f"{os.getpid()}-{number}-{place}"} for place, item in enumerate(TURN)
        ]
        asyncio.run(session.add_items(items))
    session.close()


def pop_all(url: str) -> list[str]:
    """Pop until nothing is left, as a process of its own; return the ids."""
    session = Session("both", url)
    popped = []
    while item := asyncio.run(session.pop_item()):
        popped.append(item["id"])
    session.close()
    return popped


def test_two_processes_lose_and_double_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Turns stay whole, and each item is popped once."""
    for child in [fork(add_turns, url, 10), fork(add_turns, url, 10)]:
        child.result()
    session = Session("both", url)
    ids = [item["id"] for item in asyncio.run(session.get_items())]
    session.close()
    assert len({*ids}) == 80
    assert all(ids[place][:-1] == ids[place + 3][:-1] for place in range(0, 80, 4))
    popped = [child.result() for child in [fork(pop_all, url), fork(pop_all, url)]]
    assert sorted(popped[0] + popped[1]) == sorted(ids)


def begin_branches(name: str, store: Any) -> BranchedSession:
    """Return a session with two turns, the second of which a branch answers in another way."""
    session = BranchedSession(name, store)
    asyncio.run(session.add_items([*TURN, {"role": "user", "content": "And b.py?"}]))
    assert asyncio.run(session.create_branch_from_turn(2, "other")) == "other"
    asyncio.run(session.add_items([{"role": "user", "content": "And c.py?"}]))
    return session


def test_branches_are_forks_of_one_tree(store: Store) -> None:
    """Several are live at once, a name is used once, and a clear by another object is noticed."""
    session, main = begin_branches("tree", store), BranchedSession("tree", store)
    items = asyncio.run(main.get_items())
    assert asyncio.run(session.get_items()) == [
        *items[:4],
        {"role": "user", "content": "And c.py?"},
    ]
    assert asyncio.run(main.get_items(branch_id="other")) == asyncio.run(session.get_items())
    told = asyncio.run(main.list_branches())
    assert [(each["branch_id"], each["message_count"], each["user_turns"]) for each in told] == [
        ("main", 5, 2),
        ("other", 5, 2),
    ]
    (fork,) = store.sessions(where={"branch": "other"})
    assert (fork.forked_from, fork.forked_at) == ("tree", 4)
    for name in ("other", "main"):
        with pytest.raises(ValueError, match="already been used"):
            asyncio.run(main.create_branch_from_content("b.py", name))
    assert asyncio.run(session.get_tool_usage()) == [("read", 1, 1)]
    assert [each["turn"] for each in asyncio.run(session.find_turns_by_content("C.PY"))] == [2]
    asyncio.run(main.switch_to_branch("other"))
    asyncio.run(session.delete_branch("other", force=True))
    assert (session.branch_id, asyncio.run(session.get_items())) == ("main", items)
    with pytest.raises(ValueError, match="does not exist"):
        asyncio.run(main.add_items(TURN))
    asyncio.run(session.clear_session())
    assert asyncio.run(main.get_items()) == []
    assert main.branch_id == "main"
    assert store.verify() == []


def test_a_clear_wins_over_a_branch_that_is_being_begun(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The branch is gone with all others; the session goes on with main."""
    session = begin_branches("cleared", store)
    atomically = session.awaited.atomically

    async def clear_after(work: Any) -> Any:
        made = await atomically(work)
        monkeypatch.undo()
        await session.clear_session()
        return made

    monkeypatch.setattr(session.awaited, "atomically", clear_after)
    assert asyncio.run(session.create_branch_from_turn(1, "late")) == "late"
    asyncio.run(session.add_items(TURN[:1]))
    assert (asyncio.run(session.get_items()), session.branch_id) == (TURN[:1], "main")


def test_a_call_that_no_model_can_be_sent_is_kept(store: Store) -> None:
    """It is read, popped and counted as other items are; by a policy it is left out."""
    call = {"type": "function_call", "name": "read", "arguments": "{}"}
    session = BranchedSession("incomplete", store)
    asyncio.run(session.add_items([*TURN, call]))
    assert asyncio.run(session.get_items())[-1] == call
    assert asyncio.run(session.get_tool_usage()) == [("read", 2, 1)]
    sent = asyncio.run(Session("incomplete", store, policy=Policy()).get_items())
    assert len(sent) == len(TURN)
    assert asyncio.run(session.pop_item()) == call


def test_usages_belong_to_turns_of_a_branch(store: Store) -> None:
    """A turn that was popped takes its usage with it; the bill of the store keeps it."""
    session = begin_branches("used", store)
    result = run(session, "Read.")
    asyncio.run(session.store_run_usage(result))
    used = result.context_wrapper.usage
    found = asyncio.run(session.get_turn_usage(3))
    assert isinstance(found, dict)
    assert found["total_tokens"] == used.total_tokens
    sums = asyncio.run(session.get_session_usage())
    assert sums
    assert (sums["requests"], sums["total_turns"]) == (used.requests, 1)
    assert asyncio.run(session.get_session_usage("main")) is None
    while len(asyncio.run(session.get_items())) > 5:
        asyncio.run(session.pop_item())
    asyncio.run(session.add_items([{"role": "user", "content": "Again"}]))
    assert asyncio.run(session.get_turn_usage()) == []


def fill_branch(url: str, name: str, count: int) -> str:
    """Branch, append and pop, as a process of its own; return the branch."""
    session = BranchedSession("shared", url)
    made = asyncio.run(session.create_branch_from_turn(1, None))
    for number in range(count):
        asyncio.run(session.add_items([{"role": "user", "content": f"{name}{number}"}] * 2))
        asyncio.run(session.pop_item())
    session.close()
    return made


def test_two_processes_branch_one_session(url: str, fork: Callable[..., Child]) -> None:
    """Each gets a name of its own, and its branch holds what it appended."""
    with Store(url) as store:
        store.append("shared", TURN, create=True, format="responses")
    children = [fork(fill_branch, url, name, 5) for name in "ab"]
    made = [child.result() for child in children]
    assert len({*made}) == 2
    session = BranchedSession("shared", url)
    for name, branch in zip("ab", made, strict=True):
        said = [each["content"] for each in asyncio.run(session.get_items(branch_id=branch))]
        assert said == [f"{name}{number}" for number in range(5)]
    assert asyncio.run(session.get_items()) == TURN
    session.close()


def run_turns(url: str, name: str, count: int) -> None:
    """Run turns of the agent, as a process of its own."""
    session = Session(name, url)
    for number in range(count):
        run(session, f"Turn {number}")
    session.close()


def read_items(url: str, name: str) -> list[str]:
    """Return the items of a session as texts, without their ids."""
    session = Session(name, url)
    items: list[Any] = asyncio.run(session.get_items())
    session.close()
    return [json.dumps({**item, "id": None}, sort_keys=True) for item in items]


@pytest.mark.timeout(600)
def test_a_killed_run_goes_on(
    url: str, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was written is there, and the next turn is answered."""
    check_killed_runs(ScriptedRun(run_turns, read_items), url, fork, pytestconfig)


def test_a_policy_makes_the_history_a_view(store: Store) -> None:
    """A view that nears the window is compacted before it is read; what is stored stays."""
    items = []
    for number in range(30):
        asked, call, result, _ = TURN
        items += [asked, {**call, "call_id": f"c{number}", "name": "Bash"}]
        items += [{**result, "call_id": f"c{number}", "output": "a line of a log\n" * 900}]
    seen = Session("view", store, policy=Policy.named("agent", context_window=50_000))
    asyncio.run(seen.add_items(items))
    shown = asyncio.run(seen.get_items())
    assert asyncio.run(Session("view", store).get_items()) == items
    assert [each.kind for each in store.compactions("view")] == ["summary"]
    assert sum(len(str(item)) for item in shown) < sum(len(str(item)) for item in items) / 2
    assert asyncio.run(seen.get_items(2)) == shown[-2:]


def test_clearing_erases_or_rewinds(store: Store) -> None:
    """An erased session is gone, a rewound one can be brought back; both go on."""
    for on_clear in ("erase", "rewind"):
        session = Session(on_clear, store, on_clear=on_clear)
        asyncio.run(session.clear_session())
        asyncio.run(session.add_items(TURN))
        asyncio.run(session.clear_session())
        assert asyncio.run(session.get_items()) == []
        assert asyncio.run(session.pop_item()) is None
        asyncio.run(session.add_items(TURN[:1]))
        assert asyncio.run(session.get_items()) == TURN[:1]
    store.undo_rewind("rewind")
    assert asyncio.run(Session("rewind", store).get_items()) == TURN
    assert "erase" in [each.session_id for each in store.erasures()]


def test_the_newest_items_are_replaced_unless_they_changed(store: Store) -> None:
    """As the SDK compacts: a part is replaced, expired items go, another writer's are kept."""
    session = Session("compact", store)
    items = [{"role": "user", "content": str(number)} for number in range(6)]
    asyncio.run(session.add_items(items))
    new = [{"role": "user", "content": "new"}]

    async def replace(limit: int, start: int, **options: Any) -> bool:
        snapshot = await session._get_compaction_snapshot(limit, **options)
        assert snapshot.items == items[-limit:]
        assert snapshot.complete == (limit >= len(items))
        if options.get("late"):
            await session.add_items(new)
        return await snapshot.replace_suffix(start, new)

    assert asyncio.run(replace(4, 9)) is False
    assert asyncio.run(replace(4, 2)) is True
    items[4:] = new
    assert asyncio.run(session.get_items()) == items
    gone = {"0", "1"}
    prune = {"prune_prefix": lambda item: item["content"] in gone}
    assert asyncio.run(replace(2, 1, **prune)) is True
    items = [*items[2:4], *new]
    assert asyncio.run(session.get_items()) == items
    snapshot = asyncio.run(session._get_compaction_snapshot(9))
    asyncio.run(session.add_items(new))
    assert asyncio.run(snapshot.replace_suffix(0, [])) is False
    assert asyncio.run(session.get_items()) == [*items, *new]


def test_encrypted_items_are_stored_as_they_are(store: Store) -> None:
    """Items of the SDK's session that encrypts have no shape; another client's stand beside."""
    pytest.importorskip("cryptography", reason="the SDK encrypts by it")
    from agents.extensions.memory import EncryptedSession

    plain = Session("secret", store)
    session = EncryptedSession("secret", plain, encryption_key="key")
    asyncio.run(session.add_items(TURN))
    assert "x = 1" not in str(store.messages("secret"))
    assert asyncio.run(session.get_items()) == TURN
    assert asyncio.run(session.pop_item()) == TURN[-1]


def test_a_path_is_opened_once(path: Path) -> None:
    """Sessions of one path share a store, which the last `close` gives back."""
    first, second = Session("a", path), Session("b", path)
    assert first.store is second.store
    first.close()
    first.close()
    for work in (first.add_items([]), first.get_items(), first.pop_item(), first.clear_session()):
        with pytest.raises(RuntimeError, match="Session is closed"):
            asyncio.run(work)
    asyncio.run(second.add_items(TURN))
    second.close()
    with Store(path) as store:
        assert store.session("b").head == 4
