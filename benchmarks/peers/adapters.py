"""``python -m benchmarks.peers.adapters``: a framework's own store, and ours in its place.

Both do the same in turn, in one process, on files of their own with the same durability, after both
gave the same back. Told are the CPU times of theirs, and how many times as long ours takes.
Frameworks that are not installed are left out; each of the environments that
``python -m tests.suites`` makes has one.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from store import Store

from ..formats import convert_to_responses
from ..stage import ENDLESS
from ..timing import Pace, interleaved
from ..workload import conversation

NEWEST = 100
TURN = 4
"""How many items are appended at once."""
GRAPH_TURNS = 100
"""How long the thread of a graph is: a turn of it is four messages."""
PACE, ONCE = Pace(seconds=1.5), Pace(repeat=5)


class Comparison(NamedTuple):
    """An operation: ``work`` is given 0 for our side or 1 for theirs, and what ``prepare`` gave."""

    name: str
    work: Callable[[int, Any], Any]
    prepare: Callable[[], Any] = lambda: None
    pace: Pace = PACE


Operations = Iterator[Comparison]


def check_equal(ours: object, theirs: object) -> None:
    """Make sure that both sides gave the same, before their times are compared."""
    if ours != theirs:
        raise AssertionError("the sides gave different things: their times mean nothing")


def compare_openai_agents(folder: Path, size: int, run: Callable[..., Any]) -> Operations:
    """Yield what sessions of OpenAI's Agents SDK do."""
    from agents.extensions.memory import AdvancedSQLiteSession

    from store.adapters.openai_agents import BranchedSession, Session

    from .openai_agents import Normal

    class Branching(Normal, AdvancedSQLiteSession):
        """Their session with branches, with the durability of both sides."""

    store, path = Store(folder / "ours.db", durability="normal"), folder / "theirs.db"
    items = convert_to_responses([*conversation(size)], count())
    later = convert_to_responses([*islice(conversation(ENDLESS, seed=2), 4_000)], count(10**6))
    turns = (later[place : place + TURN] for place in count(0, TURN))
    names = map(str, count())

    def fill(*sessions: Any) -> tuple[Any, ...]:
        for session in sessions:
            run(session.add_items(items))
        return sessions

    def make_pair(**options: Any) -> tuple[Any, ...]:
        name = next(names)
        return fill(Session(name, store, **options), Normal(name, path))

    sides = make_pair()
    check_equal(*(run(side.get_items()) for side in sides))
    yield Comparison(
        f"append a turn of {TURN}", lambda at, turn: sides[at].add_items(turn), lambda: next(turns)
    )
    yield Comparison("load all", lambda at, _: sides[at].get_items())
    yield Comparison(f"newest {NEWEST}", lambda at, _: sides[at].get_items(NEWEST))
    yield Comparison("pop", lambda at, _: sides[at].pop_item())
    branches = fill(
        BranchedSession("branched", store),
        Branching(session_id="branched", db_path=folder / "branched.db", create_tables=True),
    )
    half = sum(each.get("role") == "user" for each in items) // 2

    async def branch(at: int, _: object) -> None:
        await branches[at].create_branch_from_turn(half)
        await branches[at].switch_to_branch("main")

    yield Comparison("branch at the half", branch, pace=ONCE)
    for kind in ("erase", "rewind"):
        yield Comparison(
            f"clear, on_clear={kind!r}",
            lambda at, pair: pair[at].clear_session(),
            lambda kind=kind: make_pair(on_clear=kind),  # type: ignore[misc]
            ONCE,
        )


def compare_adk(folder: Path, size: int, run: Callable[..., Any]) -> Operations:
    """Yield what session services of ADK do."""
    from google.adk.sessions.base_session_service import GetSessionConfig

    from store.adapters.adk import Sessions

    from .adk_sessions import Adk

    store = Store(folder / "ours.db", durability="normal")
    peer = Adk(folder / "theirs.db")
    services = (Sessions(store), peer._service)
    key = {"app_name": "app", "user_id": "user"}
    events = peer.native([*islice(conversation(ENDLESS), size + 2_000)])
    later = iter(events[size:])

    async def fill(name: str, count: int) -> list[Any]:
        made = [await each.create_session(**key, session_id=name) for each in services]
        for event in events[:count]:
            for service, session in zip(services, made, strict=True):
                await service.append_event(session, event.model_copy(deep=True))
        return made

    def load(at: int, newest: int | None) -> Any:
        wanted = newest and GetSessionConfig(num_recent_events=newest)
        return services[at].get_session(**key, session_id="long", config=wanted)

    sessions = run(fill("long", size))
    check_equal(*(run(load(at, None)).events for at in (0, 1)))
    yield Comparison(
        "append an event",
        lambda at, event: services[at].append_event(sessions[at], event.model_copy(deep=True)),
        lambda: next(later),
    )
    yield Comparison("load all", load)
    yield Comparison(f"newest {NEWEST}", load, lambda: NEWEST)
    names = map(str, count())

    def fill_another() -> str:
        run(fill(name := next(names), size // 10))
        return name

    yield Comparison(
        "delete a tenth of it",
        lambda at, name: services[at].delete_session(**key, session_id=name),
        fill_another,
        ONCE,
    )


def compare_langgraph(folder: Path, size: int, _: Callable[..., Any]) -> Operations:
    """Yield what a graph of an agent does on savers; its thread has 100 turns, or ``size`` if less.

    A turn is a call and its result, in four messages.
    """
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver

    from store.adapters.langgraph import Saver

    connection = sqlite3.connect(folder / "theirs.db", check_same_thread=False)
    theirs = SqliteSaver(connection)
    theirs.setup()
    connection.execute("PRAGMA synchronous = NORMAL")
    store = Store(folder / "ours.db", durability="normal")
    savers = (Saver(store), theirs)
    graphs = [*map(build_graph, savers)]
    thread: Any = {"configurable": {"thread_id": "long", "checkpoint_ns": ""}}
    texts = (each["content"] for each in conversation(ENDLESS))
    turns = enumerate(texts)

    def take_turn(at: int, turn: tuple[int, str]) -> Any:
        number, text = turn
        said = [{"role": "user", "content": text, "id": f"user-{number}"}]
        return graphs[at].invoke({"messages": said}, thread)

    for turn in islice(turns, min(size, GRAPH_TURNS)):
        check_equal(*(take_turn(at, turn) for at in (0, 1)))
    store.purge()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sizes = [sum(each.stat().st_size for each in folder.glob(f"{name}.db*")) for name in SIDES]
    print(f"the files have {sizes[0]:,} and {sizes[1]:,} bytes: {sizes[0] / sizes[1]:.2f} ×")
    yield Comparison(f"a turn after {GRAPH_TURNS}", take_turn, lambda: next(turns), ONCE)
    yield Comparison("load the state", lambda at, _: savers[at].get_tuple(thread))


SIDES = ("ours", "theirs")


def build_graph(saver: Any) -> Any:
    """Return a graph whose model calls a tool, which says what the user said, and answers."""
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.graph import START, MessagesState, StateGraph

    def call_model(state: Any) -> Any:
        name = f"model-{len(state['messages'])}"
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [AIMessage("Done.", id=name)]}
        call = {"name": "read", "args": {"path": "a.py"}, "id": f"call-{name}"}
        return {"messages": [AIMessage("", tool_calls=[call], id=name)]}

    def call_tool(state: Any) -> Any:
        *_, said, asked = state["messages"]
        call_id = asked.tool_calls[0]["id"]
        return {"messages": [ToolMessage(said.content, tool_call_id=call_id, id=f"of-{call_id}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", call_model)
    builder.add_node("tool", call_tool)
    builder.add_edge(START, "model")
    builder.add_conditional_edges(
        "model", lambda state: "tool" if state["messages"][-1].tool_calls else "__end__"
    )
    builder.add_edge("tool", "model")
    return builder.compile(checkpointer=saver)


class Framework(NamedTuple):
    """What is imported of a framework, and what is compared."""

    module: str
    compare: Callable[[Path, int, Callable[..., Any]], Operations]


FRAMEWORKS = {
    "openai-agents": Framework("agents", compare_openai_agents),
    "adk": Framework("google.adk", compare_adk),
    "langgraph": Framework("langgraph.checkpoint.sqlite", compare_langgraph),
}


def is_installed(module: str) -> bool:
    """Tell whether a module can be imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.adapters", description=__doc__
    )
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=", ".join(FRAMEWORKS))
    parser.add_argument("--sizes", default="1000,10000", help="items in the session")
    asked = parser.parse_args(arguments)
    for name in asked.frameworks or FRAMEWORKS:
        if is_installed(FRAMEWORKS[name].module):
            for size in map(int, asked.sizes.split(",")):
                measure_framework(name, size)


def measure_framework(name: str, size: int) -> None:
    """Print a line for each operation of a framework."""
    print(f"{name}, {size:,} items")
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:

        def work(at: int, comparison: Comparison, given: Any) -> Any:
            result = comparison.work(at, given)
            return runner.run(result) if asyncio.iscoroutine(result) else result

        for each in FRAMEWORKS[name].compare(Path(folder), size, runner.run):
            pair = interleaved(
                lambda given, each=each: work(0, each, given),  # type: ignore[misc]
                lambda given, each=each: work(1, each, given),  # type: ignore[misc]
                each.pace,
                each.prepare,
            )
            print(f"  {each.name:28} {pair.rival.cpu:8.2f} ms {pair.cpu:6.2f} ×", flush=True)


if __name__ == "__main__":
    main()
