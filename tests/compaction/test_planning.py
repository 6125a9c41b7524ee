"""Where a compaction may cut: whole groups, whole turns, what the policy keeps.

And that there is nothing.
"""

from __future__ import annotations

from typing import Any

import pytest
from conversations import Agent
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Policy, Store
from store.compaction.plan import Plan

Message = dict[str, Any]
GROUPS = Policy(boundary="group")
TURNS = Policy()


def user(text: str = "question") -> Message:
    """What a user says."""
    return {"role": "user", "content": text}


def says(text: str = "answer") -> Message:
    """What an assistant says."""
    return {"role": "assistant", "content": text}


def calls(*ids: str) -> Message:
    """An assistant's calls."""
    made = [
        {"id": each, "type": "function", "function": {"name": "shell", "arguments": "{}"}}
        for each in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str) -> Message:
    """A tool's result."""
    return {"role": "tool", "tool_call_id": call_id, "content": "output"}


def chat(count: int) -> list[Message]:
    """Users and assistants in turn."""
    return [user(f"消息 {i}") if i % 2 == 0 else says(f"消息 {i}") for i in range(count)]


def planned(store: Store, messages: list[Message], policy: Policy) -> Plan:
    """What a compaction of these messages would do."""
    session_id = store.create_session().id
    store.append(session_id, messages)
    return store.plan_compaction(session_id, policy)


def cut(store: Store, messages: list[Message], policy: Policy) -> int:
    """The last position that would be hidden; 0 for none."""
    plan = planned(store, messages, policy)
    assert (plan.nothing is None) == (plan.last >= plan.first)
    return plan.last


# --- groups ---------------------------------------------------------------------------------------


def test_a_call_and_its_result_stay_together(store: Store) -> None:
    """S2.34: the third place would part them, so the cut moves back."""
    messages = [user(), says(), calls("1"), result("1"), user()]
    assert cut(store, messages, Policy(boundary="group", window_messages=3)) == 2


def test_between_plain_messages_any_place_is_legal(store: Store) -> None:
    """S2.35."""
    assert cut(store, chat(5), Policy(boundary="group", window_messages=3)) == 3


def test_a_cut_between_messages_would_part_a_question_from_its_answer(store: Store) -> None:
    """A2.5: this is why the default is the last whole turn."""
    assert (
        cut(store, chat(5), Policy(boundary="group", window_messages=3)) == 3
    )  # the user's question, alone
    assert cut(store, chat(5), Policy(boundary="turn", window_messages=3)) == 2


@pytest.mark.parametrize(
    ("keep", "last"), [(1, 8), (2, 7), (3, 6), (4, 2), (5, 2), (6, 2), (7, 2), (8, 1), (9, 0)]
)
def test_parallel_calls_and_all_their_results_are_one_group(
    store: Store, keep: int, last: int
) -> None:
    """However many messages stay, no result is parted from its call, nor from the results beside
    it.
    """
    messages = [
        user(),
        says(),
        calls("a", "b", "c"),
        result("c"),
        result("a"),
        result("b"),
        says(),
        says(),
        user(),
    ]
    assert cut(store, messages, Policy(boundary="group", keep_messages=keep)) == last


def test_a_result_far_behind_its_call_keeps_all_between(store: Store) -> None:
    """The group reaches to the last result, whatever stands between."""
    messages = [user(), says(), user(), calls("slow"), *chat(10), result("slow"), says(), user()]
    assert cut(store, messages, Policy(boundary="group", keep_messages=4)) == 3
    assert cut(store, messages, Policy(boundary="group", keep_messages=3)) == 3
    assert cut(store, messages, Policy(boundary="group", keep_messages=2)) == 15


def test_a_result_after_the_next_users_message_keeps_both_turns(store: Store) -> None:
    """A user message between a call and its result is no place to cut."""
    messages = [user(), calls("1"), user("hurry"), result("1"), says(), user(), says(), user()]
    assert cut(store, messages, Policy(keep_messages=4)) == 0
    assert cut(store, messages, Policy(keep_messages=3)) == 5
    assert cut(store, messages, Policy(boundary="group", keep_messages=5)) == 1


@pytest.mark.parametrize("boundary", ["turn", "group"])
def test_calls_that_overlap_are_one_group(store: Store, boundary: str) -> None:
    """Each is answered behind the next one's call.

    There is no cut from the first call to the last result.
    """
    chain = [
        calls("0"),
        *[each for i in range(1, 20) for each in (user(), calls(f"{i}"), result(f"{i - 1}"))],
    ]
    messages = [user(), says(), user(), says(), *chain, result("19"), user(), says(), user()]
    before = 4 if boundary == "group" else 2
    assert cut(store, messages, Policy(boundary=boundary, keep_messages=30)) == before
    assert cut(store, messages[before:], Policy(boundary=boundary, keep_messages=30)) == 0
    assert (
        cut(store, messages[before:], Policy(boundary=boundary, window_messages=4))
        == len(messages) - before - 3
    )


def test_an_unanswered_call_holds_nothing_back(store: Store) -> None:
    """Nobody knows whether its result ever comes."""
    messages = [user(), calls("1", "2"), result("1"), user(), says(), user()]
    assert cut(store, messages, TURNS) == 5
    assert cut(store, messages, Policy(boundary="group", keep_messages=3)) == 3


def test_a_result_that_comes_after_its_call_was_hidden_is_sent(store: Store) -> None:
    """Behind a call made up for it: nothing that is visible is lost."""
    session_id = store.create_session().id
    store.append(
        session_id,
        [user("why " * 200), calls("late"), user("go on " * 200), says("on " * 200), user()],
    )
    assert store.compact(session_id, TURNS).hidden == (1, 4)
    store.append(session_id, result("late"))
    view = store.view(session_id)
    assert [message["role"] for message in view.messages] == ["system", "user", "assistant", "tool"]
    assert view.messages[-1]["content"] == "output"


# --- what stays -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("turns", "last"), [(10, 0), (11, 2), (13, 6)])
def test_the_newest_ten_turns_stay_whole(store: Store, turns: int, last: int) -> None:
    """S4.23, S4.25."""
    plan = planned(store, chat(2 * turns), Policy.named("turns"))
    assert plan.last == last
    assert bool(plan.nothing) == (turns == 10)


def test_forty_messages_leave_the_last_ten(store: Store) -> None:
    """S2.4, S2.5."""
    assert cut(store, chat(40), Policy.named("message_count")) == 30


def test_a_turn_longer_than_the_window_is_hidden_whole(store: Store) -> None:
    """A2.2.

    Where no cut is legal in the window, the next one is taken, or the session could never be
    compacted.
    """
    work = [each for i in range(30) for each in (calls(f"c{i}"), result(f"c{i}"))]
    messages = [{"role": "system", "content": "rules"}, user(), *work, *chat(12)]
    plan = planned(store, messages, Policy.named("message_count"))
    assert (plan.first, plan.last, plan.pinned) == (1, 62, (1,))
    assert cut(store, [*messages, *work], Policy.named("message_count", boundary="group")) == 30


@pytest.mark.parametrize(("before", "last"), [(2, 64), (14, 76), (16, 16), (30, 30), (32, 30)])
def test_a_few_messages_before_such_a_turn_are_hidden_with_it(
    store: Store, before: int, last: int
) -> None:
    """Alone they would not pay for their summary, and nothing would ever be compacted.

    Half a window of them do.
    """
    work = [
        user(),
        says(),
        *[each for i in range(30) for each in (calls(f"c{i}"), result(f"c{i}"))],
    ]
    policy = Policy.named("message_count")
    assert cut(store, [*chat(before), *work, *chat(12)], policy) == last
    assert cut(store, [*chat(before), *work], policy) == min(before, 30)  # the turn still goes on


def test_system_messages_do_not_fill_a_window(store: Store) -> None:
    """They are not hidden, so what is hidden beside them has to be worth it."""
    system = [{"role": "system", "content": "rules"}] * 20
    work = [user(), *[each for i in range(30) for each in (calls(f"c{i}"), result(f"c{i}"))]]
    assert cut(store, [*system, *chat(6), *work, *chat(12)], Policy.named("message_count")) == 87


def test_more_than_forty_leave_more_than_ten(store: Store) -> None:
    """A2.1: the window is the first thirty, so at forty-five fifteen remain."""
    assert cut(store, chat(45), Policy.named("message_count")) == 30


def test_what_stays_is_the_union_of_what_the_parts_keep(store: Store) -> None:
    """S3.29, A3.3: messages, turns, and a pair-safe place."""
    messages = chat(20)
    assert cut(store, messages, Policy(keep_messages=5, keep_turns=1)) == 14
    assert cut(store, messages, Policy(keep_messages=1, keep_turns=5)) == 10
    assert cut(store, messages, Policy(keep_messages=5, keep_turns=5, window_messages=7)) == 6


@pytest.mark.parametrize("boundary", ["turn", "group"])
def test_the_current_turn_stays_whole(store: Store, boundary: str) -> None:
    """S3.46: however long it is, from the latest user message on.

    A policy that keeps nothing keeps it too.
    """
    messages = [
        *chat(6),
        user("now"),
        *[each for i in range(30) for each in (calls(f"c{i}"), result(f"c{i}"))],
    ]
    assert cut(store, messages, Policy(boundary=boundary)) == 6
    assert cut(store, messages, Policy(boundary=boundary, keep_messages=3, window_messages=60)) == 6


def test_messages_before_the_first_user_message_are_hidden_like_a_turn(store: Store) -> None:
    """A4.20: they belong to no turn, and are not dropped without a word."""
    messages = [says("welcome"), says("ask me"), *chat(20)]
    assert cut(store, messages, Policy.named("turns")) == 2


def test_system_messages_stay(store: Store) -> None:
    """S3.28: wherever they stand, developers' instructions too."""
    messages = [
        {"role": "system", "content": "rules"},
        *chat(4),
        {"role": "developer", "content": "more"},
        *chat(3),
    ]
    plan = planned(store, messages, TURNS)
    assert (plan.first, plan.last, plan.pinned, plan.messages) == (1, 8, (1, 6), 6)


# --- nothing to compact ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "nothing before"),
        ([user()], "nothing before"),
        ([says(), calls("1"), result("1")], "nothing before"),
        ([calls("1"), user(), result("1"), user()][:3], "no place to cut"),
        ([{"role": "system", "content": "rules"}, user()], "no place to cut"),
    ],
)
def test_nothing_to_compact_is_an_answer(store: Store, messages: list[Message], why: str) -> None:
    """With its reason (A3.13); nobody is asked for a summary, nothing is recorded (A2.2)."""
    session_id = store.create_session().id
    store.append(session_id, messages)
    asked: list[object] = []
    answer = store.compact(
        session_id, GROUPS, lambda request: str(asked.append(request)), reason="tool_execution"
    )
    assert (answer.id, answer.outcome, answer.reason) == (None, "nothing", "tool_execution")
    assert why in str(answer.error)
    assert asked == []
    assert store.compactions(session_id) == []


def test_fewer_messages_than_stay_are_nothing(store: Store) -> None:
    """A3.13."""
    assert planned(store, chat(8), Policy.named("token_ratio")).nothing


def test_a_new_range_begins_where_the_last_one_ended(store: Store) -> None:
    """What the first compaction kept is not lost at the second, and a summary alone is nothing to
    summarise (A2.3).
    """
    session_id = store.create_session().id
    store.append(session_id, [{**each, "content": each["content"] * 30} for each in chat(40)])
    policy = Policy.named("message_count")
    first = store.compact(session_id, policy, lambda request: "first")
    assert (first.hidden, first.first_kept) == ((1, 30), 31)
    assert store.compact(session_id, policy).outcome == "nothing"
    store.append(session_id, [{**each, "content": each["content"] * 30} for each in chat(6)])
    asked: list[tuple[int, int, int]] = []

    def second(request: Any) -> str:
        asked.append((request.first, request.last, len(request.messages)))
        return "second"

    assert store.compact(session_id, policy, second).hidden == (31, 36)
    assert asked == [(31, 36, 6)]


# --- any conversation -----------------------------------------------------------------------------

_numbers = st.lists(st.integers(0, 2**40), min_size=1, max_size=20)


@settings(max_examples=40)
@given(
    _numbers,
    st.integers(0, 12),
    st.integers(1, 3),
    st.sampled_from(["turn", "group"]),
    st.integers(1, 30),
)
def test_no_cut_parts_a_call_from_its_results(
    store: Store, numbers: list[int], keep: int, turns: int, boundary: str, window: int
) -> None:
    """And none takes from what the policy keeps, nor less than half a window if it need not.

    Where there is none, there really was no legal one.
    """
    messages = [message for number in numbers for message in Agent(number).run()]
    policy = Policy(keep_messages=keep, keep_turns=turns, boundary=boundary, window_messages=window)
    session_id = store.create_session().id
    store.append(session_id, messages)
    plan = store.plan_compaction(session_id, policy)
    with store.database.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT call_seq, seq FROM tool_results JOIN session_ids USING (tree_id)"
            f" WHERE call_seq IS NOT NULL AND id = '{session_id}'"
        )
        links = [tuple(row) for row in rows]
    users = [seq for seq, message in enumerate(messages, 1) if message["role"] == "user"]
    kept = users[-turns] if len(users) >= turns else 1
    systems = {
        seq for seq, message in enumerate(messages, 1) if message["role"] in ("system", "developer")
    }
    if not users:  # all is one turn that runs
        roles = [message["role"] for message in messages]
        inside = ("system", "developer", "tool")  # every other message begins a group
        groups = [seq for seq, role in enumerate(roles, 1) if role not in inside]
        kept = groups[-policy.keep_groups] if len(groups) >= policy.keep_groups else 1
    limit = min(len(messages) - keep + 1, kept)
    places = users if users and boundary == "turn" else range(2, len(messages) + 1)
    legal = [
        at for at in places if at <= limit and not any(call < at <= seq for call, seq in links)
    ]
    legal = [at for at in legal if set(range(1, at)) - systems]
    if not legal:
        assert plan.nothing
        return
    enough = [at for at in legal if len(set(range(1, at)) - systems) >= max(1, window // 2)]
    wanted = enough or legal
    best = max((at for at in wanted if at <= 1 + window), default=wanted[0])
    assert (plan.first, plan.last) == (1, best - 1)
    assert set(plan.pinned) == {seq for seq in systems if seq < best}


# --- fewer turns where these are too many ---------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "least", "last"),
    [
        (10**6, 1, 20),  # no trigger: ten turns stay
        (4_600, 1, 20),  # what ten turns have is below it
        (2_400, 1, 30),  # five
        (1_000, 1, 36),  # two
        (10, 1, 38),  # the current one alone, though it is not below either
        (10, 4, 32),  # never fewer than the policy says
        (10, None, 20),  # as it is written: ten, whatever they have
    ],
)
def test_fewer_turns_stay_where_more_are_too_many(
    store: Store, limit: int, least: int | None, last: int
) -> None:
    """A4.6: half as many at a time, by what the view would have.

    Each turn here has about 470 tokens.
    """
    messages = [
        each for number in range(20) for each in (user(f"{number} " + "x" * 900), says("y" * 900))
    ]
    policy = Policy.named("turns", trigger_tokens=limit, least_turns=least)
    assert cut(store, messages, policy) == last


def test_a_compaction_keeps_as_few_turns_as_its_check_expects(store: Store) -> None:
    """What is hidden is what the plan said, and what is left is below the trigger."""
    messages = [
        each for number in range(20) for each in (user(f"{number} " + "x" * 900), says("y" * 900))
    ]
    session_id = store.create_session().id
    store.append(session_id, messages)
    policy = Policy.named("turns", context_window=2_000, trigger_ratio=0.8, least_turns=1)
    assert store.check(session_id, policy).should_compact
    plan = store.plan_compaction(session_id, policy)
    done = store.compact_if_needed(session_id, policy, lambda request: "short")
    assert done is not None
    assert (done.outcome, done.hidden, done.still_over) == ("applied", (1, plan.last), False)
    assert plan.last == 36
