"""What goes into a request and what comes out of it is the caller's, and is asked for no more."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Child
from conversations import NOW

from store import Store
from store.database import fork_safety

TOOLS = [{"type": "function", "function": {"name": "Bash", "description": "one"}}]
CALL = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": {"in": {"x": 1}}}}


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store with a session that has a call whose arguments are no text."""
    with Store(url, durability="normal") as opened:
        opened.create_session("s")
        said = {"role": "assistant", "content": "so", "tool_calls": [CALL]}
        opened.append("s", [{"role": "user", "content": "go"}, said])
        opened.append("s", {"role": "tool", "tool_call_id": "c", "content": "done"})
        yield opened


@pytest.mark.parametrize("format", ["openai", "anthropic", "gemini"])
def test_the_arguments_of_calls_are_the_caller_s(store: Store, format: str) -> None:  # noqa: A002
    """Whatever he does to those of the pieces, the next request has them."""
    first = store.context("s", now=NOW, format=format)
    sent = copy.deepcopy(first.messages)
    for call in (call for piece in first.pieces for call in piece.placed.calls):
        call.arguments.clear()
    assert store.context("s", now=NOW, format=format).messages == sent


def test_the_list_of_entries_is_the_caller_s(store: Store) -> None:
    """Totals and pieces, of which he asks later, are of all of them."""
    fresh, spoilt = (store.context("s", now=NOW) for _ in range(2))
    spoilt.view.entries.clear()
    assert spoilt.pieces == fresh.pieces
    assert spoilt.view.stats == fresh.view.stats
    assert store.context("s", now=NOW).first_changed is None


def test_tools_are_compared_as_they_were_sent(store: Store) -> None:
    """Though their definitions are written over behind a request."""
    tools: list[dict[str, Any]] = copy.deepcopy(TOOLS)
    store.context("s", tools=tools, now=NOW)
    tools[0]["function"]["description"] = "another"
    assert store.context("s", tools=tools, now=NOW).first_changed == 0


def test_a_fork_beside_a_request_leaves_no_lock(
    store: Store, fork: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another thread is at work on is free in the child."""
    monkeypatch.setattr(fork_safety, "FORK_PATIENCE", 0.01)
    store.context("s", now=NOW)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store._requests._lock:
            held.set()
            done.wait()

    holding = threading.Thread(target=hold)
    holding.start()
    held.wait()
    child = fork(asked, store)
    try:
        assert child.result(30) == "go"
    finally:
        done.set()
        holding.join()


def asked(store: Store) -> Any:
    """Ask for a request."""
    return store.context("s", now=NOW).messages[0]["content"]
