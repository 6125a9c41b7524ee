"""Trajectories of benchmarks, made up in the shape of real ones."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from store import Store, StoreError
from store.importing import import_file
from store.transcripts import (
    NoteEvent,
    SessionEvent,
    SessionMessage,
    UsageTokens,
    archive,
    parse_message_usage,
    read,
    sniff,
)


def write(path: Path, *rows: Any) -> Path:
    """Write rows as lines."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a file."""
    return [event.message for event in read(path) if isinstance(event, SessionMessage)]


def opened(path: Path) -> list[SessionEvent]:
    """Return the sessions of a file."""
    return [event for event in read(path) if isinstance(event, SessionEvent)]


def notes(path: Path) -> list[str]:
    """Return the notes on a file."""
    return [event.text for event in read(path) if isinstance(event, NoteEvent)]


def calls(message: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the ids, names and arguments of a message's calls."""
    made = [(call["id"], call["function"]) for call in message["tool_calls"]]
    return [(name, function["name"], function["arguments"]) for name, function in made]


CALL = {"id": "c", "name": "look", "arguments": {"at": 1}}


def test_a_simulation_is_the_agents_session(tmp_path: Path) -> None:
    """What the user called stands beside what the user said next."""
    told = [
        {"role": "assistant", "content": "Hi", "timestamp": "2026-01-01T00:00:01", "raw_data": {}},
        {"role": "user", "content": None, "tool_calls": [{**CALL, "requestor": "user"}]},
        {"role": "tool", "id": "c", "content": "seen", "requestor": "user"},
        {"role": "user", "content": "Help", "turn_idx": 3},
        {
            "role": "assistant",
            "tool_calls": [CALL],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        },
        {"role": "tool", "id": "c", "content": "no", "error": True, "requestor": "assistant"},
        {"role": "tool", "id": "d", "content": "late", "requestor": "user"},
    ]
    simulation = {"id": "s", "task_id": "t", "messages": told, "reward_info": {"reward": 1}}
    info = {"agent_info": {"llm": "m"}}
    path = write(tmp_path / "f", {"info": info, "simulations": [simulation, 3]})
    assert sniff(path) == "tau2_bench"
    (session,) = opened(path)
    assert (session.session_id, session.title) == ("s", "Help")
    assert session.metadata == {"model": "m", "task_id": "t", "reward_info": {"reward": 1}}
    greeting, asked, looked, failed = messages(path)
    assert greeting["timestamp"] == 1767225601000
    assert [each["role"] for each in asked["tau2_bench"]["user_tools"]] == ["user", "tool"]
    assert calls(looked) == [("c", "look", '{"at": 1}')]
    assert [each.tokens for each in parse_message_usage(looked)] == [UsageTokens(9, 2)]
    assert (failed["tool_call_id"], failed["messageStatus"]) == ("c", "error")
    assert failed["tau2_bench"]["user_tools"][0]["content"] == "late"
    assert notes(path) == ["3 is no simulation"]


def test_a_trajectory_of_mini_swe_agent(tmp_path: Path) -> None:
    """Messages as they are; answers of the Responses API as one message."""
    usage = {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    output = [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "So."}]},
        {"type": "function_call", "call_id": "c", "name": "bash", "arguments": '{"command": "ls"}'},
    ]
    answer = {"object": "response", "id": "a", "output": output, "usage": usage, "model": "m"}
    told = [
        {"role": "system", "content": "Be."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {**answer, "extra": {"cost": 1, "timestamp": 1767225601.5}},
        {"type": "function_call_output", "call_id": "c", "output": "a.txt"},
        {"role": "exit", "content": "", "extra": {}},
    ]
    info = {"mini_version": "2.0", "config": {"model": {"model_name": "m"}}}
    path = write(tmp_path / "x.traj.json", {"info": info, "messages": told, "instance_id": "i"})
    assert sniff(path) == "mini_swe_agent"
    assert [(each.session_id, each.title) for each in opened(path)] == [("i", "Go.")]
    system, asked, called, result = messages(path)
    assert (system, asked) == (told[0], {"role": "user", "content": "Go."})
    assert (called["content"], called["timestamp"]) == ("So.", 1767225601500)
    assert calls(called) == [("c", "bash", '{"command": "ls"}')]
    assert called["reasoning_items"] == output[:1]
    assert [(each.tokens, each.model) for each in parse_message_usage(called)] == [
        (UsageTokens(9, 2, 4), "m")
    ]
    assert result == {"role": "tool", "tool_call_id": "c", "content": "a.txt"}
    assert notes(path) == ["left out 1 message that told how the run ended"]
    write(path, {"info": info, "messages": []}, 3)
    assert notes(path) == ["3 is no trajectory"]


SAMPLE = {
    "id": 1,
    "epoch": 2,
    "target": "x",
    "messages": [
        {"role": "user", "content": "attachment://h", "source": "input"},
        {
            "role": "assistant",
            "id": "a",
            "content": [{"type": "reasoning", "reasoning": "Hm", "signature": "s"}],
            "tool_calls": [{"id": "c", "function": "look", "arguments": {"at": 1}}],
        },
        {
            "role": "tool",
            "tool_call_id": "c",
            "function": "look",
            "content": [{"type": "image", "image": "data:image/png;base64,AA", "detail": "auto"}],
            "error": {"type": "timeout", "message": "late"},
        },
    ],
    "attachments": {"h": "What is it?"},
    "events": [
        {
            "event": "model",
            "output": {
                "model": "m",
                "choices": [{"message": {"id": "a"}}],
                "usage": {"input_tokens": 9, "output_tokens": 2, "input_tokens_cache_read": 3},
            },
        }
    ],
    "scores": {"match": {"value": "C"}},
}
HEAD = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t", "model": "m"}}


def test_a_sample_of_inspect_is_a_session(tmp_path: Path) -> None:
    """Also in an archive, where the head tells of the samples behind it."""
    document = write(tmp_path / "f.json", {**HEAD, "samples": [SAMPLE, 3]})
    archive = tmp_path / "f.eval"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("samples/1_epoch_2.json", json.dumps(SAMPLE))
        packed.writestr("header.json", json.dumps(HEAD))
        packed.writestr("_journal/start.json", "{}")
    for path in (document, archive):
        assert sniff(path) == "inspect"
        (session,) = opened(path)
        assert (session.session_id, session.title) == ("r-1-2", "What is it?")
        assert session.metadata["inspect"]["scores"] == {"match": {"value": "C"}}
        assert session.metadata["task"] == "t"
        asked, called, result = messages(path)
        assert (asked["content"], asked["inspect"]) == ("What is it?", {"source": "input"})
        assert (called["reasoning_content"], called["content"]) == ("Hm", None)
        assert calls(called) == [("c", "look", '{"at": 1}')]
        assert [each.tokens for each in parse_message_usage(called)] == [UsageTokens(9, 2, 3)]
        assert result["content"][0]["image_url"]["detail"] == "auto"
        assert (result["name"], result["messageStatus"]) == ("look", "error")
    assert notes(document) == ["3 is no sample"]


def test_an_archive_may_be_packed_by_zstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As newer logs are; where nothing unpacks it, it is said what does."""
    path = tmp_path / "f.eval"
    with archive.zipfile.ZipFile(path, "w", compression=93) as packed:
        packed.writestr("header.json", json.dumps(HEAD))
        packed.writestr("samples/1_epoch_2.json", json.dumps(SAMPLE))
    assert (sniff(path), len(messages(path))) == ("inspect", 3)
    monkeypatch.setattr(archive, "zipfile", zipfile)
    if sys.version_info < (3, 14):
        with pytest.raises(StoreError, match=r"pip install 'convostore\[zstd\]'"):
            sniff(path)


def node(kind: str, text: str, *below: Any, **more: Any) -> dict[str, Any]:
    """Return a node of ToolBench."""
    return {"node_type": kind, "description": text, "children": list(below), **more}


def test_a_search_of_toolbench(tmp_path: Path, url: str) -> None:
    """The path that answered is the session, what was given up are forks of it."""
    dead = node("Thought", "No use.")
    looked = node("Action Input", "{}", observation="seen", finished=True)
    root = node("Action Input", "", node("Thought", "Hm", node("Action", "look", looked), dead))
    prompts = [{"role": "system", "content": "Be."}, {"role": "user", "content": "Why?"}]
    answer = {"query": "Why?", "train_messages": [[*prompts, {"role": "assistant"}]]}
    path = write(tmp_path / "f", {"win": True, "tree": {"tree": root}, "answer_generation": answer})
    with path.open("a") as file:
        file.write("3\n")
    assert sniff(path) == "toolbench"
    assert (opened(path)[0].title, opened(path)[0].metadata) == ("Why?", {"win": True})
    assert notes(path)[-1] == "3 is no tree of thoughts"
    with Store(url) as store:
        import_file(store, path)
        line = [each.message for each in store.messages("f")]
        assert [each["content"] for each in line] == ["Be.", "Why?", "Hm", None, "seen"]
        assert calls(line[3]) == [("call-node-4", "look", "{}")]
        branch = [each.message["content"] for each in store.messages("f/branch-node-5")]
        assert branch == ["Be.", "Why?", "Hm", "No use."]
    del answer["train_messages"]
    write(path, {"tree": {"tree": root}, "answer_generation": answer})
    assert messages(path)[0] == {"role": "user", "content": "Why?"}


def test_a_tree_of_moatless(tmp_path: Path) -> None:
    """Answers as they came, else their actions; the last leaf is the session."""
    use = {"type": "tool_use", "id": "c", "name": "Find", "input": {"at": 1}}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "cached_tokens": 40}
    built = {"build_action": {"model": "m", "response": {"content": [use]}, "usage": usage}}
    action = {"action_args_class": "a.b.FinishArgs", "reason": "done"}
    nodes = [
        {"node_id": 0, "parent_id": None, "message": "Mend it."},
        {"node_id": 1, "parent_id": 0, "action": {"x": 1}, "completions": built},
        {"node_id": 2, "parent_id": 0, "action": action, "observation": {"message": "ok"}},
    ]
    agent = {"system_prompt": "Be.", "completion": {"model": "m"}}
    path = write(tmp_path / "f", {"agent": agent, "nodes": nodes, "max_cost": 1}, {"odd": 1})
    assert sniff(path) == "moatless"
    first, branch = opened(path)
    assert (first.session_id, first.title) == ("f", "Mend it.")
    assert first.metadata["moatless"]["max_cost"] == 1
    assert branch.stem == ("f", 2)
    system, task, finish, result, found = messages(path)
    assert (system["content"], task["content"]) == ("Be.", "Mend it.")
    assert calls(finish) == [("call-2", "Finish", '{"reason": "done"}')]
    assert (result["tool_call_id"], result["content"]) == ("call-2", "ok")
    assert calls(found) == [("c", "Find", '{"at": 1}')]
    assert [each.tokens for each in parse_message_usage(found)] == [UsageTokens(43, 2, 40)]
    assert notes(path)[-1] == "an object with 'odd' is no tree of nodes"
