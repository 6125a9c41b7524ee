"""Threads of LangGraph in a store."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import InvalidValue, Store

pytest.importorskip("langgraph.graph", reason="needs langgraph: pip install -e '.[langgraph]'")

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from store.adapters.langgraph import Saver

pytestmark = pytest.mark.filterwarnings("ignore")
CHECKPOINT = "checkpoint"
THREAD: Any = {"configurable": {"thread_id": "chat"}}


def name_thread(name: str) -> Any:
    """Return the configuration of a thread."""
    return {"configurable": {"thread_id": name}}


def call_model(state: Any) -> Any:
    """Ask for two results at once, then answer."""
    said = state["messages"]
    if isinstance(said[-1], ToolMessage):
        return {"messages": [AIMessage("Done.", id=f"answer-{len(said)}")]}
    calls = [
        {"name": "read", "args": {"path": f"{name}.py"}, "id": f"{len(said)}{name}"}
        for name in "ab"
    ]
    return {"messages": [AIMessage("", tool_calls=calls, id=f"calls-{len(said)}")]}


def route(state: Any) -> Any:
    """Send each call to a task of its own."""
    return [Send("tool", call) for call in state["messages"][-1].tool_calls] or "__end__"


def call_tool(call: Any) -> Any:
    """Answer a call, after an approval if it is asked for."""
    if call["args"]["path"] == "a.py" and call["id"].startswith("ask"):
        interrupt("May I?")
    result = ToolMessage(f"of {call['id']}", tool_call_id=call["id"], id=f"result-{call['id']}")
    return {"messages": [result]}


def build_graph(saver: Any) -> Any:
    """Return a graph with tasks that run at once."""
    builder = StateGraph(MessagesState)
    builder.add_node("model", call_model)
    builder.add_node("tool", call_tool)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", route, ["tool", "__end__"])
    builder.add_edge("tool", "model")
    return builder.compile(checkpointer=saver)


def say(graph: Any, text: str, config: Any = THREAD) -> Any:
    """Return the messages after a turn of a user."""
    return graph.invoke({"messages": [HumanMessage(text, id=text)]}, config)["messages"]


def show(state: Any) -> Any:
    """Return what two savers must agree on."""
    return state.values, state.next, state.metadata["step"], len(state.tasks)


def test_ten_turns_are_as_their_saver_has_them(store: Store) -> None:
    """Each state of the history; the messages are a line, each once, results at own positions."""
    ours, theirs = build_graph(Saver(store)), build_graph(InMemorySaver())
    for number in range(10):
        assert say(ours, f"Turn {number}") == say(theirs, f"Turn {number}")
    histories = [[show(each) for each in it.get_state_history(THREAD)] for it in (ours, theirs)]
    assert histories[0] == histories[1]
    assert store.session("chat").head == 50
    assert len(store.branches("chat")) == 1
    roles = [each["role"] for each in store.view("chat").messages[:5]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    again = asyncio.run(build_graph(Saver(store)).aget_state(THREAD))
    assert show(again) == histories[0][0]


def test_an_older_checkpoint_goes_on_as_a_branch(store: Store) -> None:
    """Both lines are read; the session is the line that was written last."""
    thread = name_thread("older")
    graph = build_graph(Saver(store))
    for text in ("One", "Two"):
        say(graph, text, thread)
    newest = graph.get_state(thread)
    older = next(
        each for each in graph.get_state_history(thread) if len(each.values["messages"]) == 5
    )
    said = say(graph, "Another", older.config)
    assert [each.id for each in said[:6]] == [
        *(each.id for each in older.values["messages"]),
        "Another",
    ]
    assert graph.get_state(newest.config).values == newest.values
    assert [each.message["content"] for each in store.messages("older")][5] == "Another"
    assert len(store.branches("older")) == 2


def test_messages_that_change_and_go(store: Store) -> None:
    """A replaced, a removed message, all of them; each older state stays as it was."""
    thread = name_thread("changed")
    graph = build_graph(Saver(store))
    before = say(graph, "One", thread)
    held = graph.get_state(thread)
    graph.update_state(thread, {"messages": [HumanMessage("Uno", id="One")]})
    graph.update_state(thread, {"messages": [RemoveMessage(before[-1].id)]}, as_node="tool")
    assert [each.content for each in graph.get_state(thread).values["messages"]][:1] == ["Uno"]
    assert store.session("changed").head == 4
    graph.update_state(thread, {"messages": [RemoveMessage("__remove_all__")]}, as_node="tool")
    assert graph.get_state(thread).values["messages"] == []
    assert graph.get_state(held.config).values["messages"] == before


def test_values_of_all_kinds_come_back_equal(store: Store) -> None:
    """Messages with blocks, artifacts, other classes and values; bytes; a list that is not one."""
    said = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "x"}, {"type": "image", "base64": "AA=="}]),
        AIMessage(
            [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "y"},
            ],
            usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
            response_metadata={"model_name": "m"},
            tool_calls=[{"name": "f", "args": {"é": [1.5, None]}, "id": "c"}],
            id="a",
        ),
        ToolMessage("z", tool_call_id="c", status="error", artifact={"rows": [1]}, name="f"),
    ]
    packed = [ToolMessage("z", tool_call_id="c", artifact=b"2")]
    values = {"messages": said, "packed": packed, "mixed": [said[0], 1], "bytes": b"\xff", "no": []}
    saver, config = Saver(store), {"configurable": {"thread_id": "kinds", "checkpoint_ns": ""}}
    versions = {key: saver.get_next_version(None, None) for key in values}
    checkpoint: Any = {"v": 1, "id": "1", "ts": "", "versions_seen": {}}
    checkpoint |= {"channel_values": values, "channel_versions": versions}
    saver.put(config, checkpoint, {"source": "loop"}, versions)  # type: ignore[arg-type]
    found = saver.get_tuple(config)  # type: ignore[arg-type]
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert [each.message["role"] for each in store.messages("kinds")] == [
        *("system", "user", "assistant", "tool")
    ]
    assert store.view("kinds").messages[2]["tool_calls"][0]["function"]["name"] == "f"


def test_a_copy_is_a_fork(store: Store) -> None:
    """It goes on by itself, and outlives its source; a taken name is refused."""
    thread = name_thread("copied")
    saver = Saver(store)
    graph = build_graph(saver)
    said = say(graph, "One", thread)
    asyncio.run(saver.acopy_thread("copied", "copy"))
    copied = name_thread("copy")
    assert say(graph, "Two", copied)[:5] == said
    assert graph.get_state(thread).values["messages"] == said
    saver.delete_thread("copied")
    assert saver.get_tuple(thread) is None
    assert len(graph.get_state(copied).values["messages"]) == 10
    saver.delete_thread("copy")
    assert store.sessions(where={"thread": "copy"}) == []


def test_a_pruned_thread_goes_on(store: Store) -> None:
    """Its newest checkpoint is left, with what it needs; an unknown strategy is refused."""
    thread = name_thread("pruned")
    saver = Saver(store)
    graph = build_graph(saver)
    said = say(graph, "One", thread)
    saver.prune(["pruned"])
    assert [len(each.values["messages"]) for each in graph.get_state_history(thread)] == [5]
    assert say(graph, "Two", thread)[:5] == said
    with pytest.raises(InvalidValue, match="keep_latest"):
        saver.prune(["pruned"], strategy="all")


def test_what_is_pruned_is_erased(store: Store) -> None:
    """The list of the newest checkpoint is the line; those of runs that are deleted go too."""
    thread = name_thread("erased")
    saver = Saver(store)
    graph = build_graph(saver)
    say(graph, "One", thread)
    begin = [each for each in graph.get_state_history(thread) if len(each.values["messages"]) == 1]
    said = say(graph, "Two", begin[0].config)
    assert len(store.branches("erased")) == 2
    saver.prune(["erased"])
    assert graph.get_state(thread).values["messages"] == said
    for name in ("erased", "erased/checkpoints"):
        assert [each.current for each in store.branches(name)] == [True]
    assert {each.session_id for each in store.erasures()} >= {"erased", "erased/checkpoints"}
    assert [each.content for each in said][:1] == ["One"]
    saver.put(
        {"configurable": {**thread["configurable"], "checkpoint_ns": "run"}},
        {**empty_checkpoint(), "channel_values": {"messages": said[:1]}},
        {"run_id": "r"},
        {"messages": "1"},
    )
    saver.delete_for_runs(["r"])
    assert store.messages("erased/messages/run/messages") == []
    store.fork("erased", session_id="aside")
    saver.delete_thread("erased")
    saver.delete_thread("erased")
    names = [each.id for each in store.sessions()]
    assert [each for each in names if each.startswith("erased")] == []
    assert len(store.messages("aside")) == len(said)
    assert store.verify() == []


def ask(graph: Any, config: Any) -> Any:
    """Begin with calls of which one needs an approval; return what is asked."""
    calls = [{"name": "read", "args": {"path": f"{name}.py"}, "id": f"ask{name}"} for name in "ab"]
    said = [HumanMessage("Go", id="go"), AIMessage("", tool_calls=calls, id="calls")]
    graph.update_state(config, {"messages": said}, as_node="model")
    return graph.invoke(None, config)["__interrupt__"]


def test_an_approval_is_resumed_by_another_program(store: Store) -> None:
    """What the other task wrote meanwhile is not done again."""
    thread = name_thread("asked")
    (asked,) = ask(build_graph(Saver(store)), thread)
    assert asked.value == "May I?"
    said = build_graph(Saver(store)).invoke(Command(resume="Yes"), thread)["messages"]
    assert [each.content for each in said] == ["Go", "", "of aska", "of askb", "Done."]


def append_turns(url: str, thread: str) -> None:
    """Run turns, as a process of its own."""
    saver = Saver(url)
    graph = build_graph(saver)
    for number in range(4):
        say(graph, f"{thread} {number}", name_thread(thread))
        say(graph, f"{os.getpid()} {number}")
    saver.close()


def test_two_processes_lose_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Each has its own thread whole, and each checkpoint of the common one is there."""
    for child in [fork(append_turns, url, "one"), fork(append_turns, url, "two")]:
        child.result()
    saver = Saver(url)
    graph = build_graph(saver)
    for thread in ("one", "two"):
        assert len(graph.get_state(name_thread(thread)).values["messages"]) == 20
    found = [*saver.list(THREAD)]
    assert len(found) == 8 * 5
    said = [each.checkpoint["channel_values"].get("messages", []) for each in found]
    assert said.count([]) <= 2
    assert all(len({each.id for each in listed}) == len(listed) for listed in said)
    saver.close()


def run_recorded(folder: Path, url: str, name: str, count: int) -> None:
    """Run turns, after one that was not ended, and write down what the saver has acknowledged."""
    saver, thread = Saver(url), name_thread(name)
    put, put_writes = saver.put, saver.put_writes

    def put_recorded(config: Any, checkpoint: Any, *rest: Any) -> Any:
        done = put(config, checkpoint, *rest)
        write_down(folder / name, checkpoint["id"], CHECKPOINT, 1)
        return done

    def put_writes_recorded(config: Any, writes: Any, task_id: str, *rest: Any) -> None:
        put_writes(config, writes, task_id, *rest)
        write_down(folder / name, config["configurable"]["checkpoint_id"], task_id, len(writes))

    saver.put, saver.put_writes = put_recorded, put_writes_recorded  # type: ignore[method-assign]
    graph = build_graph(saver)
    if saver.get_tuple(thread):
        said = graph.invoke(None, thread)["messages"]
        asked = len(said) - 4
        results = [f"of {asked}a", f"of {asked}b"]
        assert [each.content for each in said[-4:]] == ["", *results, "Done."]
    for number in range(count):
        say(graph, f"Turn {number} of {os.getpid()}", thread)
    saver.close()


def write_down(path: Path, *told: object) -> None:
    """Add a line to a file, whole, by whatever thread."""
    file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(file, f"{json.dumps(told)}\n".encode())
    os.close(file)


def read_acknowledged(folder: Path, url: str, name: str) -> list[str]:
    """Return the messages of a thread as texts, after a look for all that was acknowledged."""
    saver, thread = Saver(url), name_thread(name)
    found = {each.checkpoint["id"]: each for each in saver.list(thread)}
    path = folder / name
    for line in path.read_text().splitlines() if path.exists() else []:
        own_id, task_id, count = json.loads(line)
        if task_id == CHECKPOINT:
            assert own_id in found
        elif own_id in found:
            written = [each for each in found[own_id].pending_writes or () if each[0] == task_id]
            assert len(written) == count
    newest = saver.get_tuple(thread)
    saver.close()
    said = newest.checkpoint["channel_values"].get("messages", []) if newest else []
    return [
        f"{each.type} {each.text.partition(' of ')[0]} {getattr(each, 'tool_calls', '')}"
        for each in said
    ]


@pytest.mark.timeout(3600)  # 600 processes, also where a server starts each connection
def test_a_killed_run_goes_on(
    url: str, tmp_path: Path, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was acknowledged is there, and the turn is ended, each result once.

    The framework stores checkpoints and writes of tasks from threads of its own, in no fixed order.
    """
    run, read = partial(run_recorded, tmp_path), partial(read_acknowledged, tmp_path)
    check_killed_runs(ScriptedRun(run, read, writes_at_once=True), url, fork, pytestconfig)
