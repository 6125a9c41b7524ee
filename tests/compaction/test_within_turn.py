"""No session is beyond compaction: lines without a user, and turns that run for long."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from chats import begun, broken_summarizer, query, short, tool
from conversations import NOW
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals

from store import Compaction, Policy, Store
from store.compaction.job import TURN_GOES_ON
from store.summaries import SummaryRequest, describe_unfinished_turn

Message = dict[str, Any]
SAYING = ("user", "assistant")
"""The roles by which groups begin."""
TASK = {"role": "system", "content": "Solve the task."}
WITHIN = Policy(
    name="within",
    within_turn=True,
    keep_groups=3,
    trigger_tokens=2000,
    facts_chars=0,
    language="en",
)


def user(text: str = "Do all of it.") -> Message:
    """What a user says."""
    return {"role": "user", "content": text}


def call(*ids: str) -> Message:
    """An assistant's calls, not answered yet."""
    made = [
        {"id": each, "type": "function", "function": {"name": "shell", "arguments": "{}"}}
        for each in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str) -> Message:
    """A result of some length."""
    return {"role": "tool", "tool_call_id": call_id, "content": f"output of {call_id} " * 20}


def steps(first: int, last: int) -> list[Message]:
    """Groups of a call and its result."""
    return [
        message
        for number in range(first, last + 1)
        for message in tool("shell", {"command": "make"}, "output " * 40, f"c{number}")
    ]


def shown(store: Store, session_id: str) -> list[int | None]:
    """The positions of a view that can be sent."""
    view = store.view(session_id, WITHIN, now=NOW)
    assert refusals(view.messages) == []
    return [entry.seq for entry in view.entries]


def compacted(store: Store, session_id: str, policy: Policy = WITHIN) -> Compaction:
    """A compaction as an app asks for it, which has to do something."""
    made = store.compact_if_needed(session_id, policy, short, now=NOW)
    assert made is not None
    return made


# --- without a user -------------------------------------------------------------------------------


@pytest.mark.parametrize("boundary", ["turn", "group"])
def test_a_line_without_a_user_is_compacted(store: Store, boundary: str) -> None:
    """S2.27: its groups are where it may be cut; the system message and the newest groups stay."""
    policy = Policy.named("message_count", boundary=boundary)
    session_id = begun(store, [TASK, *steps(1, 100)])
    made = store.compact(session_id, policy, short, now=NOW)
    assert (made.outcome, made.hidden, made.pinned) == ("applied", (1, 29), (1,))
    assert shown(store, session_id)[:3] == [1, None, 30]
    every = store.compact(session_id, Policy(facts_chars=0), short, now=NOW)
    assert every.hidden == (30, 191)
    assert shown(store, session_id) == [1, None, *range(192, 202)]


def test_a_line_without_a_user_keeps_to_its_hard_limit(store: Store) -> None:
    """S2.7, S2.27: also where no summary can be made."""
    policy = Policy.named("message_count")
    session_id = begun(store, [TASK])
    for _ in range(80):
        store.append(session_id, {"role": "assistant", "content": "step " * 9})
        store.compact_if_needed(session_id, policy, broken_summarizer, now=NOW)
        view = store.view(session_id, policy, now=NOW)
        assert len(view.messages) <= 50
        assert view.messages[0] == TASK


# --- one long turn --------------------------------------------------------------------------------


def test_a_long_turn_is_out_of_reach_unless_a_policy_says_so(store: Store) -> None:
    """S3.46 keeps all of it, and so do the ready policies of the seeds."""
    session_id = begun(store, [user(), *steps(1, 40)])
    for name in ("default", "message_count", "token_ratio", "turns", "raw"):
        assert not Policy.named(name).within_turn
    outside = WITHIN.model_copy(update={"within_turn": False})
    check = store.check(session_id, outside, max_tokens=2000, now=NOW)
    assert (check.overflow, check.should_compact) == (True, False)
    check = store.check(session_id, WITHIN, max_tokens=2000, now=NOW)
    assert (check.overflow, check.should_compact) == (True, True)


def test_the_finished_groups_of_a_long_turn_give_way(store: Store) -> None:
    """Its user message and the newest groups stay, and the summary says that it goes on."""
    session_id = begun(store, [TASK, user("earlier"), *steps(1, 1), user(), *steps(2, 40)])
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        return "what was done"

    made = store.compact_if_needed(session_id, WITHIN, summarizer, now=NOW)
    assert made is not None
    assert (made.outcome, made.hidden, made.pinned) == ("applied", (1, 77), (1, 5))
    assert made.summary == f"what was done\n\n{TURN_GOES_ON['en']}"
    assert shown(store, session_id) == [1, 5, None, *range(78, 84)]
    assert user() in asked[0].messages
    assert 5 not in store.hidden(session_id)
    assert made.tokens_after == store.check(session_id, WITHIN, now=NOW).tokens
    again = store.compact_if_needed(session_id, WITHIN, summarizer, now=NOW)
    assert again is None


def test_a_model_is_told_that_the_turn_goes_on(store: Store) -> None:
    """In the language of the prompt; of turns that are over it is told nothing."""
    session_id = begun(
        store, [user("earlier"), *steps(1, 40), user(), *steps(41, 80), user("last")]
    )
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        return "what was done"

    store.compact(session_id, WITHIN, summarizer, now=NOW)
    for prompt in ("handoff", "archive", "summary_zh"):
        running = begun(store, [user(), *steps(1, 40)])
        policy = WITHIN.model_copy(update={"prompt": prompt})
        store.compact_if_needed(running, policy, summarizer, now=NOW)
    finished, *others = asked
    assert not finished.turn_goes_on
    assert "not finished" not in finished.prompt
    assert all(each.turn_goes_on for each in others)
    assert [each.prompt.endswith(describe_unfinished_turn("en")) for each in others] == [
        True,
        True,
        False,
    ]
    assert others[-1].prompt.endswith(describe_unfinished_turn("zh"))


@pytest.mark.parametrize("facts_chars", [0, 2000])
def test_a_trim_within_a_turn_says_that_it_goes_on(store: Store, facts_chars: int) -> None:
    """With facts or without, once, and the view keeps to the limit."""
    policy = Policy.named("message_count", within_turn=True, language="en", facts_chars=facts_chars)
    session_id = begun(store, [user(), *steps(1, 40)])
    for number in range(41, 50):
        store.append(session_id, steps(number, number))
        store.compact_if_needed(session_id, policy, broken_summarizer, now=NOW)
        view = store.view(session_id, policy, now=NOW)
        assert len(view.messages) <= 50
        assert view.messages[0] == user()
        said = [str(message["content"]) for message in view.messages]
        assert sum(text.count(TURN_GOES_ON["en"]) for text in said) == 1


def test_a_turn_is_cut_again_and_again(store: Store) -> None:
    """The next summary takes up the one before, without the line that it went on."""
    session_id = begun(store, [user(), *steps(1, 40)])
    assert compacted(store, session_id).hidden == (1, 75)
    store.append(session_id, steps(41, 80))
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        return "all of it"

    made = store.compact_if_needed(session_id, WITHIN, summarizer, now=NOW)
    assert made is not None
    assert (made.hidden, made.pinned) == ((76, 155), ())
    assert asked[0].previous_summary == short(asked[0])
    assert shown(store, session_id) == [1, None, *range(156, 162)]


def test_when_the_turn_is_over_its_user_message_may_go(store: Store) -> None:
    """The summary has told of it; one record says since when it is hidden."""
    session_id = begun(store, [TASK, user(), *steps(1, 40)])
    first = compacted(store, session_id)
    store.append(session_id, [user("next"), *steps(41, 60), user("and now?")])
    second = compacted(store, session_id)
    assert (second.hidden, second.pinned) == ((2, 123), ())
    assert shown(store, session_id) == [1, None, 124]
    hidden = store.hidden(session_id)
    assert sorted(hidden) == list(range(2, 124))
    assert {hidden[2].compaction, hidden[77].compaction} == {second.id}
    assert hidden[3].compaction == first.id
    rows = query(store, session_id, "compaction_records")
    assert len(rows) == 2
    store.undo_compaction(session_id, second.id)
    assert shown(store, session_id)[:2] == [1, 2]
    assert 2 not in store.hidden(session_id)


def test_a_call_that_waits_for_its_result_stays(store: Store) -> None:
    """With the results that its message has; when it is answered, all of it may go."""
    waiting = [call("slow", "fast"), result("fast")]
    session_id = begun(store, [user(), *steps(1, 2), *waiting, *steps(3, 40)])
    made = compacted(store, session_id)
    assert (made.hidden, made.pinned) == ((1, 77), (1, 6, 7))
    made_up = None
    assert shown(store, session_id) == [1, 6, made_up, 7, None, *range(78, 84)]
    store.append(session_id, [result("slow")])
    assert shown(store, session_id) == [1, 6, 84, 7, None, *range(78, 84)]
    store.append(session_id, steps(41, 80))
    made = compacted(store, session_id)
    assert (made.hidden, made.pinned) == ((6, 158), ())
    assert shown(store, session_id) == [1, None, *range(159, 165)]


def test_a_turn_that_was_rewound_keeps_its_newest_groups(store: Store) -> None:
    """What was planned would hide what stays by now."""
    session_id = begun(store, [user(), *steps(1, 40)])

    def rewinding(request: SummaryRequest) -> str:
        store.rewind(session_id, to=request.last + 2)
        return "short"

    made = store.compact(session_id, WITHIN, rewinding, now=NOW)
    assert made.outcome == "rejected"
    assert "rewound into the range" in str(made.error)


@pytest.mark.slow
def test_a_hard_limit_reaches_into_a_long_turn(store: Store) -> None:
    """By a policy that lets it be cut; the user message stays."""
    policy = Policy.named("message_count", within_turn=True, keep_groups=3)
    session_id = begun(store, [TASK, user()])
    for number in range(1, 60):
        store.append(session_id, steps(number, number))
        store.compact_if_needed(session_id, policy, broken_summarizer, now=NOW)
        view = store.view(session_id, policy, now=NOW)
        assert len(view.messages) <= 50
        assert user() in view.messages
        assert refusals(view.messages) == []


# --- whatever happens -----------------------------------------------------------------------------


def happening(chance: Random, number: int, waiting: list[str]) -> list[Message]:
    """What may come next in a long turn."""
    kind = chance.choice(["group", "group", "group", "call", "answer", "say", "user"])
    if kind == "group":
        return [call(f"g{number}", f"h{number}"), result(f"h{number}"), result(f"g{number}")]
    if kind == "call":
        waiting.append(f"w{number}")
        return [call(waiting[-1])]
    if kind == "answer" and waiting:
        return [result(waiting.pop(chance.randrange(len(waiting))))]
    if kind == "user" and chance.random() < 0.3:
        return [user(f"question {number} " * chance.choice([1, 40]))]
    return [{"role": "assistant", "content": f"thought {number} " * 10}]


@settings(max_examples=25)
@given(
    st.integers(0, 2**40),
    st.sampled_from(["abort", "trim", "skip"]),
    st.sampled_from(["fold", "append"]),
)
@pytest.mark.slow
def test_whatever_is_cut_can_be_sent_and_keeps_what_runs(
    store: Store, number: int, on_failure: str, previous: str
) -> None:
    """The last user message and the newest groups are in every view, and nothing is lost."""
    chance = Random(number)
    policy = WITHIN.model_copy(
        update={
            "on_failure": on_failure,
            "previous_summary": previous,
            "hard_limit": 12,
            "trigger_tokens": chance.choice([300, 800]),
            "window_messages": chance.choice([None, 4]),
            "keep_turns": chance.choice([1, 2]),
        }
    )
    session_id, waiting = begun(store, [TASK] * chance.randrange(2)), []
    for place in range(60):
        store.append(session_id, happening(chance, place, waiting))
        writer = chance.choice([short, short, broken_summarizer])
        store.compact_if_needed(session_id, policy, writer, now=NOW + place)
        view = store.view(session_id, policy, now=NOW)
        assert refusals(view.messages) == []
        raw = [each.message for each in store.messages(session_id)]
        seen = {entry.seq for entry in view.entries} - {None}
        hidden = set(store.hidden(session_id))
        assert seen | hidden | set(view.stats.left_out) == set(range(1, len(raw) + 1))
        assert not seen & hidden
        users = [seq for seq, each in enumerate(raw, 1) if each["role"] == "user"]
        begins = max(users, default=1)
        groups = [seq for seq in range(begins, len(raw) + 1) if raw[seq - 1]["role"] in SAYING]
        assert set(users[-1:]) | set(groups[-3:]) <= seen
    assert store.verify() == []
