"""Transcripts of the Claude Agent SDK in a store."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from conftest import Child
from killed_runs import ScriptedRun, check_killed_runs

from store import Store

pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk: pip install -e '.[claude]'")

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, project_key_for_directory
from claude_agent_sdk.testing import run_session_store_conformance

from store.adapters.claude import Sessions

KEY: Any = {"project_key": "project", "session_id": "main"}


def make_turn(name: str) -> list[Any]:
    """Return the entries of a turn as the program writes them: a call, two results, an answer."""
    calls = [{"type": "tool_use", "id": f"{name}{n}", "name": "Read", "input": {}} for n in "ab"]
    results = [
        {"type": "tool_result", "tool_use_id": f"{name}{n}", "content": f"x = {n}"} for n in "ab"
    ]
    said: list[tuple[str, Any, dict[str, Any]]] = [
        ("user", f"Turn {name}", {}),
        ("assistant", calls, {"id": "msg_1", "usage": {"input_tokens": 3}}),
        ("user", results, {}),
        ("assistant", [{"type": "text", "text": "Done."}], {"id": "msg_1"}),
    ]
    entries: list[Any] = [
        {
            "type": role,
            "uuid": f"{name}-{number}",
            "parentUuid": None,
            "timestamp": "2026-01-31T12:00:00.000Z",
            "message": {"role": role, "content": content, **beside},
        }
        for number, (role, content, beside) in enumerate(said)
    ]
    return [*entries, {"type": "ai-title", "title": name}]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_conformance(backend: str, store: Store) -> None:
    """The 14 contracts that the SDK checks."""

    def make() -> Sessions:
        for session in store.sessions(where={"framework": "claude-agent-sdk"}):
            store.delete_session(session.id)
        return Sessions(store)

    anyio.run(run_session_store_conformance, make, backend=backend)


def test_entries_come_back_and_are_sent(store: Store) -> None:
    """Equal, in order; a view has their messages, each result at a position, nothing of titles."""
    sessions = Sessions(store)
    entries = [entry for name in "xy" for entry in make_turn(name)]
    odd: list[Any] = [
        {"type": "user", "uuid": "odd", "message": {"role": "user", "content": 7}},
        {"type": "user", "uuid": "empty", "message": None},
    ]
    key = {**KEY, "session_id": "sent"}
    asyncio.run(sessions.append(key, entries[:3]))
    asyncio.run(sessions.append(key, [*entries, *odd]))
    untold = [entry for entry in entries if entry["type"] == "ai-title"]
    assert asyncio.run(sessions.load(key)) == [*entries, *odd]
    assert len(untold) == 2
    view = store.view("project/sent", format="anthropic")
    assert [len(each["content"]) for each in view.messages if each["role"] == "user"] == [
        1,
        2,
        1,
        2,
    ]
    assert store.calls("project/sent")[0].name == "Read"


def test_a_fork_is_listed_by_its_own_id(store: Store) -> None:
    """With a summary of its own; one whose name is no id of the SDK is not listed."""
    sessions = Sessions(store)
    first, other = ({"project_key": "forks", "session_id": each} for each in ("first", "other"))
    asyncio.run(sessions.append(first, make_turn("f")))
    asyncio.run(sessions.append({**first, "subpath": "subagents/a"}, make_turn("s")))
    store.fork("forks/first", at=4, session_id="forks/other")
    store.fork("forks/first", session_id="aside")
    asyncio.run(sessions.append(other, make_turn("o")))
    listed: list[Any] = asyncio.run(sessions.list_sessions("forks"))
    summaries: list[Any] = asyncio.run(sessions.list_session_summaries("forks"))
    assert [each["session_id"] for each in listed] == ["other", "first"]
    assert [each["session_id"] for each in summaries] == ["other", "first"]
    assert [each["mtime"] for each in summaries] == [each["mtime"] for each in listed]
    asyncio.run(sessions.delete(first))
    left = store.sessions(where={"project": "forks"})
    assert [each.id for each in left] == ["forks/other", "aside"]


def test_a_redacted_result_is_gone(store: Store) -> None:
    """Alone; the transcript is still read whole."""
    sessions = Sessions(store)
    asyncio.run(sessions.append({**KEY, "session_id": "secret"}, make_turn("z")))
    store.redact("project/secret", 3, "asked for")
    found: Any = asyncio.run(sessions.load({**KEY, "session_id": "secret"}))
    assert "x = a" not in json.dumps(found)
    assert "x = b" in json.dumps(found)


def append_turns(url: str, name: str) -> None:
    """Append turns of which another process appends some, too."""
    sessions = Sessions(url)
    for number in range(10):
        asyncio.run(sessions.append(KEY, make_turn(f"{name}{number}")))
        asyncio.run(sessions.append(KEY, make_turn(f"both{number}")[:4]))
    sessions.close()


def test_two_processes_lose_and_double_nothing(url: str, fork: Callable[..., Child]) -> None:
    """Each entry is there once, in the order of its turn."""
    for child in [fork(append_turns, url, "a"), fork(append_turns, url, "b")]:
        child.result()
    sessions = Sessions(url)
    found: Any = asyncio.run(sessions.load(KEY))
    (summary,) = asyncio.run(sessions.list_session_summaries("project"))
    sessions.close()
    ids = [entry["uuid"] for entry in found if "uuid" in entry]
    assert len(ids) == len({*ids}) == 120
    assert all(ids[place][:-1] == ids[place + 3][:-1] for place in range(0, 120, 4))
    assert len(found) == 140
    assert summary["session_id"] == "main"


class ScriptedModel(ThreadingHTTPServer):
    """A model on loopback that asks for two results, one after the other, then answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ScriptedAnswers)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class ScriptedAnswers(BaseHTTPRequestHandler):
    """Answers of the model, as events."""

    def do_POST(self) -> None:
        """Answer a request."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = "".join(
            f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in list_events(asked)
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def list_events(asked: Any) -> list[dict[str, Any]]:
    """Return the events of an answer: a call after words of a user, another, then words."""
    last = asked["messages"][-1]["content"]
    results = [each["tool_use_id"] for each in last if "tool_use_id" in each]
    name = "b" if results and results[-1].endswith("a") else "a"
    is_answered = not asked.get("tools") or (results and results[-1].endswith("b"))
    call_id = f"{len(asked['messages'])}{name}"
    block = {"type": "tool_use", "id": call_id, "name": "Read", "input": {}}
    given = json.dumps({"file_path": f"{name}.py"})
    delta = {"type": "input_json_delta", "partial_json": given}
    if is_answered:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    usage = {"input_tokens": 100, "output_tokens": 20}
    message = {"id": uuid.uuid4().hex, "type": "message", "role": "assistant", "model": "made-up"}
    stop = {"stop_reason": "end_turn" if is_answered else "tool_use", "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message, "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]


class Program(NamedTuple):
    """The SDK's program with a model, in a folder with the files that it reads."""

    folder: Path
    model: str

    def run(self, url: str, name: str, count: int) -> None:
        """Run turns of a session, as a process of its own."""
        sessions = Sessions(url)
        append = sessions.append

        async def append_recorded(key: Any, entries: Any) -> None:
            await append(key, entries)
            with (self.folder / name).open("a") as file:
                file.writelines(f"{each['uuid']}\n" for each in entries if "uuid" in each)

        sessions.append = append_recorded  # type: ignore[method-assign]
        asyncio.run(self._ask(sessions, name, count))
        sessions.close()

    async def _ask(self, sessions: Sessions, name: str, count: int) -> None:
        key = self._name(name)
        known = await sessions.load(key)
        session = key["session_id"]
        options = ClaudeAgentOptions(
            cwd=self.folder,
            env={
                **QUIET,
                "ANTHROPIC_BASE_URL": self.model,
                "ANTHROPIC_API_KEY": "made-up",
                # as on another machine: there is no transcript but the one of the store
                "CLAUDE_CONFIG_DIR": str(self.folder / f"home-{os.getpid()}"),
            },
            tools=["Read"],
            setting_sources=[],
            session_store=sessions,
            session_store_flush="eager",
            **{"resume" if known else "session_id": session},
        )
        async with ClaudeSDKClient(options) as client:
            for number in range(count):
                await client.query(f"Turn {number}")
                said = [each async for each in client.receive_response()]
                assert said[-1].result == "Done."

    def _name(self, name: str) -> Any:
        project = project_key_for_directory(str(self.folder))
        return {"project_key": project, "session_id": str(uuid.uuid5(uuid.NAMESPACE_DNS, name))}

    def read(self, url: str, name: str) -> list[str]:
        """Return what was said as texts, after a look for all that was acknowledged."""
        sessions = Sessions(url)
        found: Any = asyncio.run(sessions.load(self._name(name))) or []
        sessions.close()
        path = self.folder / name
        acknowledged = path.read_text().split() if path.exists() else []
        assert {*acknowledged} <= {entry.get("uuid") for entry in found}
        said = (entry["message"] for entry in found if entry["type"] in ("user", "assistant"))
        return [json.dumps([each["role"], each["content"]]) for each in said]


QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}


@pytest.mark.timeout(900)
def test_a_killed_run_goes_on(
    url: str, tmp_path: Path, fork: Callable[..., Child], pytestconfig: pytest.Config
) -> None:
    """At any write; what was acknowledged is there, and the next turn is answered.

    The SDK sends the entries of its program in batches of no fixed size.
    """
    for name in "ab":
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    model = ScriptedModel()
    thread = threading.Thread(target=model.serve_forever, args=(0.01,))
    thread.start()
    program = Program(tmp_path, model.url)
    try:
        scripted = ScriptedRun(program.run, program.read, writes_at_once=True)
        check_killed_runs(scripted, url, fork, pytestconfig)
    finally:
        model.shutdown()
        model.server_close()
        thread.join()
