"""The recap of a todo list."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.tools.todos import TODO_TEXT_LIMIT, render_recap

CLAUDE = [
    {"content": "Read", "status": "completed", "activeForm": "Reading"},
    {"content": "Write", "status": "in_progress", "activeForm": "Writing"},
    {"content": "Test", "status": "pending", "activeForm": "Testing"},
]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"todos": CLAUDE}, "[1/3] in progress: Write; pending: Test"),
        (json.dumps({"todos": CLAUDE}), "[1/3] in progress: Write; pending: Test"),
        (
            {"explanation": "why", "plan": [{"step": "Look", "status": "completed"}]},
            "[1/1] all done",
        ),
        ({"todos": ["one", "two"]}, "[0/2] pending: one, two"),
        ({"todos": [{"text": "old", "completed": True}, {"text": "new"}]}, "[1/2] pending: new"),
        (
            {"todos": [{"content": "gone", "status": "cancelled"}, {"content": "new"}]},
            "[0/1] pending: new",
        ),
        (
            {"items": [{"title": f"t{i}"} for i in range(7)]},
            "[0/7] pending: t0, t1, t2, t3, t4, and 2 more",
        ),
        ({"todos": [{"content": "two\n  lines", "status": 5}]}, "[0/1] pending: two lines"),
    ],
)
def test_what_a_list_came_to(arguments: Any, said: str) -> None:
    """How many are done, what is running, what waits; the keys of the tools in use are known."""
    assert render_recap(arguments) == said


def test_a_result_that_says_it_is_believed() -> None:
    """The tool knows its list best (S4.16)."""
    assert (
        render_recap({"todos": CLAUDE}, '{"status": "success", "data": {"recap": "[1/3] x"}}')
        == "[1/3] x"
    )
    assert (
        render_recap("{}", {"data": {"todos": CLAUDE}}) == "[1/3] in progress: Write; pending: Test"
    )


@pytest.mark.parametrize(
    "arguments", [None, "", "x", "{", "[]", {}, {"todos": []}, {"todos": 5}, {"todos": [None, {}]}]
)
def test_nothing_to_say(arguments: Any) -> None:
    """A call that lists nothing has no recap."""
    assert render_recap(arguments) is None


def test_long_items_are_cut() -> None:
    """A recap is one line of a bounded length."""
    assert len(render_recap({"todos": ["x" * 10_000]}) or "") < TODO_TEXT_LIMIT + 20


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_nothing_is_raised(value: Any) -> None:
    """Whatever a model wrote."""
    for arguments in (value, {"todos": value}, json.dumps(value)):
        said = render_recap(arguments, value)
        assert said is None or (said and "\n" not in said)
