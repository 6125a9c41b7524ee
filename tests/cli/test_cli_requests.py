"""The commands for recorded requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run
from conversations import NOW

from store import Policy, Store

pytestmark = pytest.mark.sqlite_only


@pytest.fixture
def told(path: Path) -> Path:
    """A store with two requests, of which the second replaces a result."""
    call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c", "content": "done\n" * 50, "timestamp": NOW}
    with Store(path) as store:
        store.create_session("s", now=NOW)
        asked = {"role": "assistant", "content": None, "tool_calls": [call]}
        store.append("s", [{"role": "user", "content": "Go."}, asked, result], now=NOW)
        store.context("s", system="Be brief.", record=True, now=NOW)
        store.record_usage("s", input=100, output=5, cached=20, cost=0.25, now=NOW)
        policy = Policy(terminal_keep=0, terminal_max_age=0, language="en")
        store.view("s", policy, record=True, now=NOW + 1)
    return path


def test_requests_are_listed(run: Run, told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their policies and usages."""
    out = run("--db", told, "requests", "s").out
    assert [line.split()[0] for line in out.splitlines() if line[:8].strip().isdigit()] == [
        "1",
        "2",
    ]
    assert "turns" in out
    monkeypatch.setenv("COLUMNS", "80")
    narrow = run("--db", told, "requests", "s").out.splitlines()
    assert max(map(len, narrow)) <= 80
    assert [line.split()[2].endswith("Z") for line in narrow[2:4]] == [True, True]
    assert "0.2500" in out
    listed = json.loads(run("--db", told, "requests", "s", "--json").out)
    assert [each["usage"] and each["usage"]["cached"] for each in listed] == [20, None]


def test_a_request_is_shown_with_its_reasons(run: Run, told: Path) -> None:
    """What was replaced and why, the layers, and what differs from the request before."""
    first = run("--db", told, "request", "s", 1).out
    assert "system" in first
    assert "usage: 100 in, 20 cached, 5 out, $0.2500" in first
    second = run("--db", told, "request", "s", 2).out
    assert "terminal" in second
    assert "the first 0 of 3 messages are those of request 1" in second
    whole = json.loads(run("--db", told, "request", "s", 2, "--json").out)
    assert (whole["same_messages"], whole["missing"], whole["recorded"]) == (0, [], True)
    assert [entry["rule"] for entry in whole["entries"]] == [None, None, "terminal"]


def test_a_number_that_is_not_there_is_refused(run: Run, told: Path) -> None:
    """With the exit status of a wrong use."""
    done = run("--db", told, "request", "s", 3)
    assert done.status == 2
    assert "has no request 3" in done.err
