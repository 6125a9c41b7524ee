"""Sessions of Google's ADK in a store, by the text of their contract; on their own services, too."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import Policy, Store

pytest.importorskip("google.adk", reason="needs google-adk: pip install -e '.[adk]'")

from google.adk.agents import Agent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from store.adapters.adk import Sessions, compacted

pytestmark = pytest.mark.filterwarnings("ignore")
Case = Callable[[BaseSessionService], Coroutine[Any, Any, None]]
ANN: dict[str, Any] = {"app_name": "app", "user_id": "ann"}


def make_event(text: str | None, **options: Any) -> Event:
    """Return an event of the user."""
    content = types.Content(role="user", parts=[types.Part(text=text)]) if text else None
    return Event(author="user", content=content, **options)


def changing(**delta: Any) -> Event:
    """Return an event that changes the states; one underscore stands for a colon."""
    named = {key.replace("_", ":", 1): value for key, value in delta.items()}
    return make_event(None, actions=EventActions(state_delta=named))


async def keeps_events(service: BaseSessionService) -> None:
    """They come back as they went in, with and without a content."""
    session = await service.create_session(**ANN, session_id="a")
    for event in (make_event("hi"), changing(x=1), make_event("ho")):
        await service.append_event(session, event)
    found = await service.get_session(**ANN, session_id="a")
    assert found.events == session.events
    assert found.state == {"x": 1}
    assert found.last_update_time == session.events[-1].timestamp


async def misses_others(service: BaseSessionService) -> None:
    """A session of another user, app or name is none."""
    await service.create_session(**ANN, session_id="a")
    assert await service.get_session(**ANN, session_id="b") is None
    assert await service.get_session(app_name="app", user_id="ben", session_id="a") is None
    assert await service.get_session(app_name="other", user_id="ann", session_id="a") is None


async def refuses_a_taken_id(service: BaseSessionService) -> None:
    """Once for each user; spaces around an id are nothing."""
    await service.create_session(**ANN, session_id=" a ")
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**ANN, session_id="a")
    await service.create_session(app_name="app", user_id="ben", session_id="a")
    assert (await service.create_session(**ANN)).id


async def shares_states(service: BaseSessionService) -> None:
    """That of a user over sessions, that of an app over users, temporary ones with nobody."""
    state = {"app:a": 1, "user:u": 2, "temp:t": 3, "s": 4}
    session = await service.create_session(**ANN, session_id="a", state=state)
    assert session.state == {"app:a": 1, "user:u": 2, "s": 4}
    await service.append_event(session, changing(app_b=5, user_u=6, temp_t=7, s=None))
    assert session.state["temp:t"] == 7
    ann = await service.create_session(**ANN, session_id="b")
    ben = await service.create_session(app_name="app", user_id="ben", session_id="c")
    assert ann.state == {"app:a": 1, "app:b": 5, "user:u": 6}
    assert ben.state == {"app:a": 1, "app:b": 5}
    found = await service.get_session(**ANN, session_id="a")
    assert found.state == {"app:a": 1, "app:b": 5, "user:u": 6, "s": None}
    assert found.events[0].actions.state_delta == {"app:b": 5, "user:u": 6, "s": None}
    assert await service.get_user_state(**ANN) == {"u": 6}
    assert await service.get_user_state(app_name="app", user_id="nobody") == {}


async def selects_events(service: BaseSessionService) -> None:
    """The newest, those from a moment on, or both."""
    session = await service.create_session(**ANN, session_id="a")
    for number in range(1, 6):
        await service.append_event(session, make_event(str(number), timestamp=2e9 + number))
    for options, expected in (
        ({"num_recent_events": 2}, "45"),
        ({"num_recent_events": 0}, ""),
        ({"after_timestamp": 2e9 + 4}, "45"),
        ({"num_recent_events": 3, "after_timestamp": 2e9 + 4}, "45"),
        ({"num_recent_events": 99}, "12345"),
    ):
        config = GetSessionConfig(**options)
        found = await service.get_session(**ANN, session_id="a", config=config)
        assert "".join(each.content.parts[0].text for each in found.events) == expected


async def lists_the_oldest_first(service: BaseSessionService) -> None:
    """Of a user or of all, without events, with their states."""
    for user, name in (("ann", "a"), ("ben", "b"), ("ann", "c")):
        state = {"user:u": user, "s": name}
        made = await service.create_session(
            app_name="app", user_id=user, session_id=name, state=state
        )
        if name == "a":
            await service.append_event(made, make_event("later", timestamp=4e9))
    listed = (await service.list_sessions(**ANN)).sessions
    assert [(each.id, each.events, each.state["s"]) for each in listed] == [
        ("c", [], "c"),
        ("a", [], "a"),
    ]
    everybody = (await service.list_sessions(app_name="app")).sessions
    assert {(each.id, each.state["user:u"]) for each in everybody} == {
        ("a", "ann"),
        ("b", "ben"),
        ("c", "ann"),
    }
    assert (await service.list_sessions(app_name="other")).sessions == []


async def deletes(service: BaseSessionService) -> None:
    """A session is gone, the state of its user stays; again is nothing."""
    session = await service.create_session(**ANN, session_id="a", state={"user:u": 1})
    for _ in range(2):
        await service.delete_session(**ANN, session_id="a")
    assert await service.get_session(**ANN, session_id="a") is None
    assert await service.get_user_state(**ANN) == {"u": 1}
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, make_event("late"))


async def stores_nothing_partial(service: BaseSessionService) -> None:
    """A part of a streamed answer is no event yet."""
    session = await service.create_session(**ANN, session_id="a")
    await service.append_event(session, make_event("ha", partial=True))
    found = await service.get_session(**ANN, session_id="a")
    assert found.events == session.events == []


async def gives_copies(service: BaseSessionService) -> None:
    """A change of what was returned changes nothing stored."""
    session = await service.create_session(**ANN, session_id="a", state={"s": {"x": 1}})
    session.state["s"]["x"] = 2
    found = await service.get_session(**ANN, session_id="a")
    assert found.state == {"s": {"x": 1}}


CASES: list[Case] = [
    keeps_events,
    misses_others,
    refuses_a_taken_id,
    shares_states,
    selects_events,
    lists_the_oldest_first,
    deletes,
    stores_nothing_partial,
    gives_copies,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Case, url: str) -> None:
    """What the text of the contract says."""
    with Store(url, durability="normal") as store:
        asyncio.run(case(Sessions(store)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_contract_on_theirs(kind: str, case: Case, tmp_path: Path) -> None:
    """Their services keep it, too."""
    services = {"memory": InMemorySessionService, "sqlite": SqliteSessionService}
    path = [str(tmp_path / "theirs.db")] if kind == "sqlite" else []
    asyncio.run(case(services[kind](*path)))


def test_a_user_is_erased_with_their_state(store: Store) -> None:
    """The state of the app stays."""

    async def work() -> None:
        service, key = Sessions(store), {"app_name": "erasing", "user_id": "eve"}
        await service.create_session(**key, session_id="e", state={"app:a": 1, "user:u": 2})
        store.delete_owner("eve")
        assert await service.get_user_state(**key) == {}
        again = await service.create_session(**key, session_id="e")
        assert again.state == {"app:a": 1}

    asyncio.run(work())


def test_a_stale_writer_is_refused(store: Store) -> None:
    """Whoever read before another wrote; an event that is sent again is stored once."""

    async def work() -> None:
        service = Sessions(store)
        first = await service.create_session(**ANN, session_id="stale")
        second = await service.get_session(**ANN, session_id="stale")
        event = make_event("a")
        await service.append_event(first, event)
        await service.append_event(first, event)
        with pytest.raises(ValueError, match="changed since"):
            await service.append_event(second, make_event("b"))
        found = await service.get_session(**ANN, session_id="stale")
        assert found.events == first.events == [event]

    asyncio.run(work())


class ScriptedModel(BaseLlm):
    """A model that calls a tool twice at once, then answers."""

    model: str = "made-up"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        """Yield an answer."""
        last = llm_request.contents[-1].parts[0]
        if last.text:
            parts = [
                types.Part(function_call=types.FunctionCall(name="read", args={"path": name}))
                for name in "ab"
            ]
        else:
            parts = [types.Part(text=f"I was sent {len(llm_request.contents)} contents.")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def read(path: str) -> dict[str, str]:
    """Read a file."""
    return {path: "x = 1"}


async def run_turns(
    service: BaseSessionService, name: str, count: int, send: Any = None, agent_name: str = "one"
) -> None:
    """Run turns of an agent on a session."""
    if not await service.get_session(**ANN, session_id=name):
        await service.create_session(**ANN, session_id=name)
    model = ScriptedModel()
    agent = Agent(name=agent_name, model=model, tools=[read], before_model_callback=send)
    runner = Runner(agent=agent, app_name="app", session_service=service)
    for number in range(count):
        said = types.Content(role="user", parts=[types.Part(text=f"Turn {number}")])
        async for _ in runner.run_async(user_id="ann", session_id=name, new_message=said):
            pass


def test_ten_turns_of_a_run(store: Store) -> None:
    """A view has each result at a position of its own, and is one for the provider."""
    service = Sessions(store)
    asyncio.run(run_turns(service, "run", 10))
    found: Any = asyncio.run(service.get_session(**ANN, session_id="run"))
    assert len(found.events) == 40
    view = store.view("app/ann/run", format="gemini")
    assert [len(each["parts"]) for each in view.messages[:4]] == [1, 2, 2, 1]
    assert store.session("app/ann/run").owner == "ann"
    assert len(store.calls("app/ann/run")) == 20


def count_sent(store: Store, name: str) -> int:
    """Return how many contents the last request of a run had."""
    said = store.messages(f"app/ann/{name}", last=1)[0].message["parts"][0]["text"]
    return int(re.sub("[^0-9]", "", said))


def test_a_run_is_sent_its_view_and_goes_on_in_a_fork(store: Store) -> None:
    """By a policy that compacts; a session with another agent is sent as ADK does."""
    service = Sessions(store)
    policy = Policy.named("message_count", trigger_messages=16, keep_messages=6)
    send = compacted(service, policy)
    asyncio.run(run_turns(service, "long", 8, send))
    assert store.compactions("app/ann/long")
    assert count_sent(store, "long") < 16 < store.session("app/ann/long").head
    store.fork("app/ann/long", at=5, session_id="app/ann/fork")
    store.fork("app/ann/long", at=5)
    asyncio.run(run_turns(service, "fork", 1, send))
    assert count_sent(store, "fork") == 7
    assert store.session("app/ann/fork").head == 10
    listed = asyncio.run(service.list_sessions(**ANN)).sessions
    assert sorted(each.id for each in listed if each.id[:4] in ("", "long", "fork")) == [
        "fork",
        "long",
    ]
    asyncio.run(run_turns(service, "long", 1, send, "two"))
    assert count_sent(store, "long") > 16


def append_events(url: str, name: str) -> int:
    """Append events against another process; return how often they were refused."""
    service = Sessions(url)
    refused = done = 0

    async def work() -> None:
        nonlocal refused, done
        while done < 15:
            session = await service.get_session(**ANN, session_id="both")
            event = make_event(f"{name}{done}")
            event.actions.state_delta = {f"user:{name}{done}": 1}
            try:
                await service.append_event(session, event)
                done += 1
            except ValueError:
                refused += 1

    asyncio.run(work())
    service.close()
    return refused


def test_two_processes_lose_and_double_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Each event is there once, and so is what it changes in a shared state."""
    service = Sessions(url)
    asyncio.run(service.create_session(**ANN, session_id="both"))
    service.close()
    for child in [fork(append_events, url, "a"), fork(append_events, url, "b")]:
        child.result()
    service = Sessions(url)
    found: Any = asyncio.run(service.get_session(**ANN, session_id="both"))
    service.close()
    said = [each.content.parts[0].text for each in found.events]
    assert sorted(said) == sorted(f"{name}{number}" for name in "ab" for number in range(15))
    assert {key.removeprefix("user:") for key in found.state} == {*said}


def run_named(url: str, name: str, count: int) -> None:
    """Run turns, as a process of its own."""
    service = Sessions(url)
    asyncio.run(run_turns(service, name, count))
    service.close()


def read_events(url: str, name: str) -> list[str]:
    """Return the contents of a session's events as texts, without the ids of calls."""
    service = Sessions(url)
    found = asyncio.run(service.get_session(**ANN, session_id=name))
    service.close()
    contents = (
        [each.content.model_dump_json(exclude_none=True) for each in found.events] if found else []
    )
    return [re.sub(r'"id":"[^"]*",', "", each) for each in contents]


@pytest.mark.timeout(600)
def test_a_killed_run_goes_on(
    url: str, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was written is there, and the next turn is answered."""
    check_killed_runs(ScriptedRun(run_named, read_events, "I was sent"), url, fork, pytestconfig)
