"""What the rules save is one number, whether it is asked for alone or told by the verdicts."""

from __future__ import annotations

from typing import Any

from conversations import NOW, busy_conversations, policies
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Policy, Store
from store.history import lines
from store.view import (
    ViewContext,
    estimate_savings,
    estimate_shown_tokens,
    estimate_view_tokens,
    load_view_context,
)
from store.view.verdicts import judge_line

Message = dict[str, Any]
_sessions = iter(range(10**9))


def look(
    connection: Any, session_id: str, policy: Policy, *, last: int, turn_over: bool
) -> ViewContext:
    """A look at a session's line."""
    pointer = lines.load_pointer(connection, session_id)
    return load_view_context(connection, pointer, policy, last=last, now=NOW, turn_over=turn_over)


@settings(max_examples=250, derandomize=True, database=None)
@given(busy_conversations, policies, st.booleans(), st.data())
def test_what_a_view_costs_is_what_is_stored_less_what_the_verdicts_save(
    store: Store, line: list[Message], policy: Policy, turn_over: bool, data: st.DataObject
) -> None:
    """On any line, up to any position, by any policy."""
    session = store.create_session(f"savings-{next(_sessions)}")
    store.append(session.id, line)
    last = data.draw(st.integers(0, len(line)))
    with store.database.reading() as connection:
        seen = look(connection, session.id, policy, last=last, turn_over=turn_over)
        assert estimate_view_tokens(seen) == stored(seen) - sum(
            estimate_savings(seen, judge_line(seen, None).final).values()
        )


def stored(seen: ViewContext) -> int:
    """What the messages of a line would cost as they are stored."""
    return estimate_shown_tokens(seen, 1, seen.last)


def test_the_sum_is_of_what_a_fork_shows(store: Store) -> None:
    """Results of the past of a fork count, those that its parent got later do not."""
    turn = [
        {"role": "user", "content": "go", "timestamp": 0},
        {
            "role": "assistant",
            "content": None,
            "timestamp": 0,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "Bash"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "word " * 200, "timestamp": 0},
    ]
    parent = store.create_session()
    store.append(parent.id, turn * 2)
    fork = store.fork(parent.id, at=3)
    store.append(fork.id, turn * 3)
    policy = Policy(terminal_keep=1)
    with store.database.reading() as connection:
        seen = look(connection, fork.id, policy, last=12, turn_over=False)
        found = judge_line(seen, None).final
        assert [seq for seq, verdict in found.items() if verdict.rule] == [3, 6, 9]
        assert (
            stored(seen) - estimate_view_tokens(seen)
            == sum(estimate_savings(seen, found).values())
            > 0
        )
