"""The command that replays all sessions: simulate --all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run

from store import Store
from store.cli.demo_session import build_conversation


@pytest.fixture
def saved(run: Run, tmp_path: Path) -> Run:
    """Give the command in a folder with two sessions, one of them without an answer."""
    with Store(tmp_path / "convostore.db", durability="normal") as store:
        store.create_session("talk")
        store.append("talk", build_conversation())
        store.create_session("asked")
        store.append("asked", {"role": "user", "content": "Hello?"})
    return run


@pytest.mark.sqlite_only
def test_all_sessions_are_replayed_by_size(saved: Run) -> None:
    """Each policy has a row of each size and of all; the line is of one that makes none dearer."""
    policies = ["--policy", "raw", "--policy", "agent,clear_keep=1"]
    ran = saved("simulate", "--all", *policies, "--json")
    assert ran.status == 0, ran
    told = json.loads(ran.out)
    rows = [(each["policy"], each["tokens"], each["sessions"]) for each in told["savings"]]
    sizes = ["0 to 12,000", "all"]
    assert rows == [(name, size, 1) for name in ("raw", "agent,clear_keep=1") for size in sizes]
    assert told["savings"][1]["bill"] == told["savings"][1]["worst"] == 1
    best = told["savings"][3]
    saves = best["worst"] <= 1.02 and best["recalled"] < 1
    assert told["line"] == ("Policy.named('agent', clear_keep=1)" if saves else "")
    shown = saved("simulate", "--all", *policies, "--svg", "bills.svg")
    assert shown.status == 0
    assert "with recalls" in shown.out
    drawn = Path("bills.svg").read_text("utf-8")
    assert drawn.count("<circle") == len(policies) // 2  # one session has an answer
    assert "agent,clear_keep=1" in drawn


@pytest.mark.sqlite_only
def test_a_session_is_named_or_all_are(saved: Run) -> None:
    """Neither or both is refused in a line."""
    for arguments in (["simulate"], ["simulate", "talk", "--all"]):
        ran = saved(*arguments)
        assert (ran.status, ran.out) == (2, "")
        assert "name a SESSION, or --all" in ran.err
    ran = saved("simulate", "--all", "--svg", "no/bills.svg")
    assert (ran.status, ran.out) == (2, "")
    assert "there is no folder 'no'" in ran.err
