"""Transcripts of the Claude Agent SDK in a store."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from conftest import Child

from store import Store

pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk: pip install -e '.[claude]'")

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


def append_until(url: str, writes: int) -> None:
    """Append turns in a process that kills itself after a write."""
    sessions = Sessions(url)
    for number in range(writes):
        asyncio.run(sessions.append(KEY, make_turn(str(number))))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_program_goes_on(url: str, fork: Callable[..., Child]) -> None:
    """What was appended is there; what is sent again is not doubled."""
    with pytest.raises(AssertionError, match="killed"):
        fork(append_until, url, 3).result()
    sessions = Sessions(url)
    asyncio.run(sessions.append(KEY, make_turn("2")[:4]))
    asyncio.run(sessions.append(KEY, make_turn(str(uuid.uuid4()))))
    assert len(asyncio.run(sessions.load(KEY)) or ()) == 20
    sessions.close()
