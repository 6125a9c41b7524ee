"""The worked examples of the specification (S0, S1, S4), as data in ``vectors/``.

Positions in it count from 0.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import ROOT

from store import Policy, Store
from store.tools.path_normalization import normalise_path
from store.tools.results import compute_result_facts
from store.tools.short_forms import compress

FILES = sorted((ROOT / "tests" / "vectors").glob("*.json"))
CASES = [case for file in FILES for case in json.loads(file.read_text(encoding="utf-8"))["cases"]]


def cases(kind: str) -> pytest.MarkDecorator:
    """Run a test for each example of a kind."""
    found = (case for case in CASES if case["kind"] == kind)
    chosen = [
        pytest.param(case, id=f"{case['id']}: {case.get('note') or case['tool']}") for case in found
    ]
    assert chosen
    return pytest.mark.parametrize("case", chosen)


@cases("view")
def test_the_view_is_as_the_example_says(store: Store, case: dict[str, Any]) -> None:
    """The same contents are replaced by the same texts.

    Nothing else changes, raw nothing at all.
    """
    session_id = store.create_session(project_root=case["project_root"]).id
    store.append(session_id, case["messages"])
    replaced = {int(place): text for place, text in case["replaced"].items()}
    wanted = [
        {**message, "content": replaced.get(place, message["content"])}
        for place, message in enumerate(case["messages"])
    ]
    for _ in range(2):
        view = store.view(session_id, Policy(**case["switches"]), now=case["now"])
        shown = [entry.message for entry in view.entries if entry.seq is not None]
        assert shown == wanted
        assert [
            message["content"]
            for message in view.messages
            if message.get("content") in replaced.values()
        ] == list(replaced.values())
    assert [stored.message for stored in store.messages(session_id)] == case["messages"]


@cases("sniff")
def test_output_is_recognised(case: dict[str, Any]) -> None:
    """Command output is told by its content where nothing else tells it."""
    assert bool(compute_result_facts(case).looks_terminal) is case["expect"]


@cases("error")
def test_errors_are_recognised(store: Store, case: dict[str, Any]) -> None:
    """The facts say so, and a view keeps an error that it would have replaced otherwise."""
    facts = compute_result_facts(case["message"])
    assert bool(facts.error_prefix or facts.has_stderr or facts.status == "error") is case["expect"]
    session_id = store.create_session().id
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "terminal-execute", "arguments": "{}"},
    }
    result = {"timestamp": 0, "tool_call_id": "c", **case["message"]}
    store.append(session_id, [{"role": "assistant", "tool_calls": [call]}, result])
    (entry,) = [
        e
        for e in store.view(session_id, Policy(terminal_keep=0), now=10**12 + 900_001).entries
        if e.seq == 2
    ]
    assert (entry.rule is None) is case["expect"]


@cases("normalise")
def test_paths_have_one_spelling(case: dict[str, Any]) -> None:
    """One file is one key."""
    assert normalise_path(case["path"], case["project_root"]) == case["key"]


@cases("compress")
def test_results_are_cut(case: dict[str, Any]) -> None:
    """A tool's result keeps exactly these fields of its data."""
    short = compress(case["tool"], case["raw"])
    assert (short if isinstance(case["expect"], str) else json.loads(short)) == case["expect"]
