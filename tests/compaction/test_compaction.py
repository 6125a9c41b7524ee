"""Compactions through the faces: ready policies, costs, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from chats import COUNT, HEADING, RATIO, TURNS, begun, short, work
from conversations import NOW
from refusals import refusals

from store import AsyncStore, Policy, Store
from store.errors import InvalidPolicy
from store.view import visible_set


def test_the_constants_of_the_specification() -> None:
    """S2.3-S2.7, S2.17; S3.4-S3.10; S4.23, S4.32, S4.36."""
    assert (COUNT.trigger_messages, COUNT.window_messages, COUNT.keep_messages) == (40, 30, 10)
    assert (COUNT.summary_max_chars, COUNT.hard_limit, COUNT.transcript_max_chars) == (
        1500,
        50,
        12_000,
    )
    assert (COUNT.summary_heading, COUNT.prompt, COUNT.on_failure) == (
        HEADING,
        "summary_zh",
        "trim",
    )
    assert (RATIO.trigger_ratio, RATIO.overflow_ratio, RATIO.keep_messages) == (0.8, 0.9, 10)
    assert (RATIO.summary_max_chars, RATIO.parts_to_keep, RATIO.max_iterations) == (
        500,
        ("text",),
        3,
    )
    assert (RATIO.on_failure, RATIO.previous_summary) == ("skip", "fold")
    assert (TURNS.trigger_usage, TURNS.context_window, TURNS.min_messages) == (0.8, 200_000, 3)
    assert (TURNS.keep_turns, TURNS.summary_timeout, TURNS.prompt) == (10, 120.0, "archive")
    assert (TURNS.on_failure, TURNS.previous_summary) == ("truncate", "append")


def test_a_compacted_view_is_sent_without_repair(store: Store) -> None:
    """With tools in what is hidden and in what is kept."""
    session_id = begun(store, [each for number in range(8) for each in work(number)])
    for policy in (COUNT, RATIO, TURNS.model_copy(update={"keep_turns": 3})):
        fork = store.fork(session_id).id
        assert store.compact(fork, policy, short).outcome == "applied"
        view = store.view(fork, policy)
        assert refusals(view.messages) == []
        assert "repair" not in view.stats.replaced
        assert view.stats.left_out == ()


def steps(store: Store, operation: Any, *arguments: Any, **options: Any) -> int:
    """How many steps of SQLite's machine an operation takes: a count of rows read, and no clock."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    with store.database.reading() as connection:
        operation(connection, *arguments, **options)
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(step, 1)
        operation(connection, *arguments, **options)
        driver.set_progress_handler(None, 0)
    return count


@pytest.mark.sqlite_only
@pytest.mark.slow
def test_hidden_messages_are_not_read(store: Store) -> None:
    """The contents of a view are those of what is kept, however many messages are hidden."""
    from store.history import lines
    from store.view.line_rows import VISIBLE_MESSAGES

    def read(connection: Any, session_id: str) -> None:
        pointer = lines.load_pointer(connection, session_id)
        visible = visible_set.load_visible_set(connection, pointer, pointer.head)
        line = lines.Line(connection, pointer)
        for run in line.runs(visible.first_kept, pointer.head):
            VISIBLE_MESSAGES.rows(
                connection, tree_id=pointer.tree_id, **run._asdict(), replaced="[]"
            )

    costs = []
    for turns in (6, 300):
        session_id = begun(store, [each for number in range(turns) for each in work(number)])
        assert (
            store.compact(session_id, Policy(keep_turns=3, facts_chars=0), short).outcome
            == "applied"
        )
        costs.append(steps(store, read, session_id))
    assert costs[1] <= costs[0] * 1.02


@pytest.mark.sampled(2)
@pytest.mark.sqlite_only
@pytest.mark.parametrize("operation", ["view", "check", "plan"])
@pytest.mark.slow
def test_the_cost_of_a_view_is_that_of_what_is_kept(store: Store, operation: str) -> None:
    """Promise 8: the rules and the budget read nothing of what is hidden either."""
    from store import compaction
    from store.view import build as view

    policy = Policy(keep_turns=3, facts_chars=0, trigger_messages=1)
    ask = {"view": view.view, "check": compaction.check, "plan": compaction.plan_compaction}[
        operation
    ]
    costs = []
    for turns in (6, 300):
        session_id = begun(store, [each for number in range(turns) for each in work(number)])
        assert store.compact(session_id, policy, short).outcome == "applied"
        costs.append(steps(store, ask, session_id, policy, now=NOW))
    assert costs[1] <= costs[0] * 1.05


def test_everything_is_awaited_too() -> None:
    """The two faces have the same names."""
    names = {name for name in dir(Store) if not name.startswith("_")} - {"pages", "shared"}
    assert names - set(dir(AsyncStore)) == set()


def test_no_policy_of_impossible_values() -> None:
    """Each says what is wrong."""
    counts = ({"keep_turns": 0}, {"window_messages": 0})
    for wrong in (*counts, {"trigger_ratio": 1.1}, {"trigger_ratio": 0.0}, {"boundary": "message"}):
        with pytest.raises(InvalidPolicy, match=next(iter(wrong))):
            Policy(**wrong)
