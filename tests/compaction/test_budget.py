"""When a view should be compacted.

Triggers, real usage, what holds back, and numbers that are those of the view.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from chats import tool
from conversations import NOW, conversations, policies
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Policy, Store
from store.compaction.triggers import reaches_share
from store.context import remind
from store.errors import InvalidValue, MaxCompactionReachedError, SessionNotFound
from store.summaries import SummaryRequest
from store.tokens import FRAMING_TOKENS, PLAIN_KEYS, count_message_tokens, estimate, estimate_size
from store.tools.results import compute_result_facts
from store.view.rules import RULES

Message = dict[str, Any]
SEEN = {"role": "assistant", "content": "I see."}
WORDS = "some words to count " * 20


def chat(count: int, text: str = WORDS) -> list[Message]:
    """Users and assistants in turn."""
    return [
        {"role": "assistant" if i % 2 else "user", "content": f"{i} {text}"} for i in range(count)
    ]


def begun(store: Store, messages: list[Message]) -> str:
    """A session with these messages."""
    session_id = store.create_session().id
    store.append(session_id, messages)
    return session_id


def broken(request: Any) -> str:
    """A summarizer that fails."""
    raise RuntimeError("no model")


# --- ratios ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "window", "overflow", "compact"),
    [
        (90, 100, True, True),
        (89, 100, False, True),
        (80, 100, False, True),
        (79, 100, False, False),
        (5, 0, False, False),
    ],
)
def test_shares_of_the_window(tokens: int, window: int, overflow: bool, compact: bool) -> None:
    """S3.25, S3.26: from the ratio on; an unknown window is never reached (A3.11)."""
    policy = Policy.named("token_ratio")
    assert reaches_share(tokens, policy.overflow_ratio, window) is overflow
    assert reaches_share(tokens, policy.trigger_ratio, window) is compact


def test_ratios_are_compared_in_whole_numbers() -> None:
    """A4.21: 0.07 * 100 is 7.000000000000001, and seven tokens of a hundred are seven per cent."""
    assert not 7 >= 0.07 * 100
    assert reaches_share(7, 0.07, 100)
    assert reaches_share(160_000, 0.8, 200_000)
    assert not reaches_share(159_999, 0.8, 200_000)
    assert reaches_share(8 * 10**25, 0.8, 10**26)
    assert not reaches_share(8 * 10**25 - 1, 0.8, 10**26)


def test_soft_and_hard(store: Store) -> None:
    """A3.2: from 0.8 on it had better be compacted, from 0.9 on it must be."""
    session_id = begun(store, chat(40))
    policy = Policy.named("token_ratio")
    tokens = store.check(session_id, policy, 0).tokens
    windows = {"below": tokens * 2, "soft": tokens * 100 // 85, "hard": tokens * 100 // 95}
    found = {name: store.check(session_id, policy, window)[:2] for name, window in windows.items()}
    assert found == {"below": (False, False), "soft": (False, True), "hard": (True, True)}


def test_what_overflows_by_its_real_usage_is_compacted(store: Store) -> None:
    """An estimate that is too low does not stand against what the provider counted (A3.10)."""
    session_id = begun(store, chat(40))
    check = store.check(session_id, Policy.named("token_ratio"), 1_000_000, last_usage=950_000)
    assert (check.overflow, check.should_compact) == (True, True)


@pytest.mark.parametrize(
    "policy", [Policy.named(name) for name in ("default", "raw", "token_ratio")]
)
@pytest.mark.parametrize("window", [None, 0])
def test_an_unknown_window_never_overflows(
    store: Store, policy: Policy, window: int | None
) -> None:
    """A3.11."""
    check = store.check(begun(store, chat(40)), policy, window, last_usage=10**12)
    assert (check.overflow, check.should_compact) == (False, False)


@pytest.mark.parametrize("bad", [-1, True, 1.5, "100"])
@pytest.mark.parametrize("name", ["max_tokens", "last_usage", "fixed_tokens"])
def test_what_is_no_number_of_tokens_is_refused(store: Store, name: str, bad: Any) -> None:
    """A3.11."""
    session_id = begun(store, chat(2))
    with pytest.raises(InvalidValue, match=name):
        store.check(session_id, Policy(), **{name: bad})


@pytest.mark.parametrize(
    "bad", [{"input": -1, "output": 0}, {"input": 0, "output": True}, {"input": 1, "output": 2.0}]
)
def test_what_is_no_usage_is_refused(store: Store, bad: Any) -> None:
    """Nothing is recorded then."""
    session_id = begun(store, chat(2))
    with pytest.raises(InvalidValue):
        store.record_usage(session_id, **bad)
    assert store.view(session_id).stats.unchanged_tokens is None


def test_an_unknown_session_is_said(store: Store) -> None:
    """By each of them."""
    for call in (
        lambda: store.check("nobody", Policy()),
        lambda: store.compact("nobody", Policy()),
        lambda: store.compact_if_needed("nobody", Policy()),
        lambda: store.compactions("nobody"),
        lambda: store.undo_compaction("nobody", 1),
        lambda: store.record_usage("nobody", input=1, output=1),
    ):
        with pytest.raises(SessionNotFound):
            call()


# --- triggers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "text", "count", "compact"),
    [
        (159_999, "xx", 3, False),
        (159_999, "xxx", 3, True),
        (160_000, "", 3, True),
        (199_000, "", 2, False),
    ],
)
def test_the_last_usage_and_a_third_of_the_input(
    store: Store, usage: int, text: str, count: int, compact: bool
) -> None:
    """S4.37, S4.36: eight tenths of the window, and at least three messages."""
    session_id = begun(store, chat(3, "x")[:count])
    policy = Policy.named("turns", keep_turns=1)
    assert (
        store.check(session_id, policy, last_usage=usage, user_input=text).should_compact is compact
    )
    assert store.check(session_id, policy, 200_000, usage, text).should_compact is compact
    store.record_usage(session_id, input=usage - 10, output=10)
    assert store.check(session_id, policy, user_input=text).should_compact is compact


@pytest.mark.parametrize(("count", "compact"), [(38, False), (39, False), (40, True), (41, True)])
def test_forty_messages(store: Store, count: int, compact: bool) -> None:
    """S2.3, S2.30: tool results and calls count as well (A2.15)."""
    assert (
        store.check(begun(store, chat(count)), Policy.named("message_count")).should_compact
        is compact
    )
    call = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    tool = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c"},
    ]
    turns = [{"role": "user", "content": "go"}, *tool * 6] * 4
    assert (
        store.check(begun(store, turns[-count:]), Policy.named("message_count")).should_compact
        is compact
    )


def test_an_absolute_number_of_tokens(store: Store) -> None:
    """The share of a window of a million is never reached in time."""
    session_id = begun(store, chat(40))
    tokens = store.check(session_id, Policy()).tokens
    for limit, compact in ((tokens, True), (tokens + 1, False)):
        policy = Policy(trigger_tokens=limit, trigger_ratio=0.8)
        assert store.check(session_id, policy, 1_000_000).should_compact is compact
    assert store.check(
        session_id, Policy(trigger_tokens=tokens + 1), user_input="xxx"
    ).should_compact


def test_no_trigger_never_compacts(store: Store) -> None:
    """The default and raw policies have none. Over the window that is said, and nothing is done."""
    session_id = begun(store, chat(100))
    for name in ("default", "raw"):
        policy = Policy.named(name)
        assert store.compact_if_needed(session_id, policy) is None
        answer = store.compact_if_needed(session_id, policy, max_tokens=10, last_usage=10**9)
        assert answer is not None
        assert (answer.outcome, answer.id, answer.still_over) == ("nothing", None, True)
        assert answer.error == "1000000000 of 10 tokens; below every trigger of the policy"
    assert store.compactions(session_id) == []


def test_a_view_that_is_left_over_the_window_says_so(store: Store) -> None:
    """A3.13: too few messages for any trigger of the policy, and yet a request that is refused."""
    sizes = {"user": 8000, "assistant": 3000}
    said = [{"role": role, "content": "x" * size} for role, size in sizes.items()]
    session_id = begun(store, [said[1], *said, said[0]])
    policy = Policy.named("turns", context_window=1000, keep_turns=1, facts_chars=0)
    done = store.compact_if_needed(session_id, policy, lambda _: "short")
    assert done is not None
    assert (done.outcome, done.messages_after, done.still_over) == ("applied", 2, True)
    again = store.compact_if_needed(session_id, policy, lambda _: "short")
    assert again is not None
    assert (again.outcome, again.id, again.still_over) == ("nothing", None, True)
    assert store.compact_if_needed(session_id, policy, max_tokens=9000) is None


def test_what_came_after_the_last_request_counts(store: Store) -> None:
    """S3.27, A4.7, A4.8: a long tool loop does not overflow unseen, whatever its last usage."""
    session_id = begun(store, chat(6, "x"))
    policy = Policy.named("turns", keep_turns=1, context_window=10_000)
    store.record_usage(session_id, input=500, output=20)
    assert not store.check(session_id, policy).should_compact
    store.append(session_id, [{"role": "assistant", "content": "y" * 40_000}])
    assert store.check(session_id, policy).should_compact


@pytest.mark.parametrize("told", ["recorded", "given", "recorded, the turn begun"])
def test_a_usage_of_the_turn_before_makes_no_needless_summary(store: Store, told: str) -> None:
    """S4.35: what the short forms free by the new turn is no longer sent."""
    output = json.dumps({"stdout": "line of output\n" * 4000, "stderr": "", "exitCode": 0})
    messages: list[Message] = []
    for number in range(4):
        messages += [{"role": "user", "content": f"do {number}"}]
        messages += tool("terminal-execute", {"command": "make"}, output, f"c{number}")
        messages += [{"role": "assistant", "content": "done " * 10}]
    session_id = begun(store, messages)
    policy = Policy.named("turns", keep_turns=1)
    checks = {"user_input": "and now?"}
    if told == "given":
        checks["last_usage"] = 161_000
    else:
        store.record_usage(session_id, input=160_000, output=1000)
    assert store.check(session_id, policy).should_compact is (told != "given")
    if told == "recorded, the turn begun":
        store.append(session_id, {"role": "user", "content": "and now?"})
    assert not store.check(session_id, policy, **checks).should_compact
    without = policy.model_copy(update={"tool_output": False})
    assert store.check(session_id, without, **checks).should_compact


def test_what_the_short_forms_leave_over_the_trigger_is_compacted(store: Store) -> None:
    """S4.35: the usage counts all the same, less what they free."""
    session_id = begun(store, chat(6))
    policy = Policy.named("turns", keep_turns=1)
    store.record_usage(session_id, input=159_000, output=1000)
    assert store.check(session_id, policy, user_input="go on").should_compact
    assert not store.check(session_id, policy, user_input="").tokens > 1000


def test_whoever_asks_while_another_compaction_runs_is_told(store: Store) -> None:
    """A3.21: that nothing was needed would not be true."""
    session_id = begun(store, chat(60))
    policy = Policy.named("message_count")
    told: list[Any] = []

    def meanwhile(request: SummaryRequest) -> str:
        told.append(store.compact_if_needed(session_id, policy, lambda request: "short"))
        return "short"

    assert store.compact(session_id, policy, meanwhile).outcome == "applied"
    (answer,) = told
    assert (answer.outcome, answer.id) == ("rejected", None)
    assert "still running" in answer.error


def test_whoever_asks_over_the_window_is_told_that_nothing_can_be_hidden(store: Store) -> None:
    """A3.13: a request that is sent all the same will be refused."""
    session_id = begun(store, [{"role": "user", "content": "why " * 4000}])
    policy = Policy.named("token_ratio", context_window=2000)
    answer = store.compact_if_needed(session_id, policy)
    assert answer is not None
    assert (answer.outcome, answer.id, answer.still_over) == ("nothing", None, True)
    assert "nothing to compact" in str(answer.error)
    assert store.compactions(session_id) == []
    assert store.compact_if_needed(session_id, policy, max_tokens=100_000) is None


def test_what_goes_out_beside_the_view_counts(store: Store) -> None:
    """Prompts, tools and rules: a check is told of them, a request tells how much they are."""
    messages = [{"role": "user", "content": "word " * 40}] * 60
    session_id = begun(store, messages)
    policy = Policy.named("turns", context_window=8000, keep_turns=2)
    tools = [{"type": "function", "function": {"name": f"tool {each}"}} for each in range(100)]
    asked = {"system": "rule " * 5000, "tools": tools, "user_input": "go on", "todo_recap": "left"}
    request = store.context(session_id, **asked, policy=policy, now=NOW)
    assert (
        request.fixed_tokens
        == request.tokens - request.layers["history"] - request.layers["user_input"]
    )
    assert store.check(session_id, policy, user_input="go on", now=NOW).reason.startswith("below")
    fixed = {"user_input": "go on", "fixed_tokens": request.fixed_tokens}
    check = store.check(session_id, policy, **fixed, now=NOW)
    assert check.should_compact
    assert abs(check.tokens - request.tokens) < 10
    assert store.compact_if_needed(session_id, policy, user_input="go on", now=NOW) is None
    done = store.compact_if_needed(session_id, policy, **fixed, now=NOW)
    assert done is not None
    assert (done.outcome, done.still_over) == ("applied", True)
    assert not store.check(session_id, policy, now=NOW).should_compact


@pytest.mark.parametrize("role", ["system", "user", "merge"])
def test_a_reminder_of_files_counts_once_before_and_after_its_input_is_stored(
    store: Store, role: Any
) -> None:
    """It goes out beside the view from then on: by the new input, and by the one that is stored."""
    session_id = begun(store, [{"role": "user", "content": "What does @src/a.py do?"}, SEEN])
    policy = Policy.named("turns", summary_role=role)
    said = "And @src/b.py, @src/c.py and @src/d.py?"

    def fixed(**given: Any) -> int:
        return store.context(session_id, "Be careful.", **given, policy=policy).fixed_tokens

    before = fixed()
    new = fixed(user_input=said)
    assert new - before > 20
    store.append(session_id, {"role": "user", "content": said})
    assert fixed() == new
    request = store.context(session_id, "Be careful.", policy=policy)
    assert store.check(session_id, policy, fixed_tokens=new).tokens == request.tokens
    store.append(session_id, SEEN)
    assert fixed(user_input="Thanks.") == new
    assert fixed(user_input=remind(said)) == new


def test_whoever_asks_over_the_window_is_told_that_failures_hold_back(store: Store) -> None:
    """The answer is no record."""
    session_id = begun(store, chat(60))
    policy = Policy(trigger_ratio=0.8, context_window=500, keep_messages=20)
    for _ in range(3):
        store.compact_if_needed(session_id, policy, broken)
    answer = store.compact_if_needed(session_id, policy, broken)
    assert answer is not None
    assert (answer.outcome, answer.id) == ("rejected", None)
    assert "attempts failed" in str(answer.error)


def test_a_usage_is_stale_after_a_compaction(store: Store) -> None:
    """A4.8: until the next one the estimate of the new view counts; after an undo the same."""
    session_id = begun(store, chat(60))
    policy = Policy.named("turns", keep_turns=1, context_window=100_000)
    store.record_usage(session_id, input=90_000, output=1, now=NOW)
    assert store.check(session_id, policy, now=NOW).should_compact
    made = store.compact(session_id, policy, now=NOW + 1)
    assert made.outcome == "applied"
    check = store.check(session_id, policy, now=NOW + 1)
    assert (check.should_compact, check.tokens) == (False, made.tokens_after)
    store.append(session_id, chat(2))
    store.record_usage(session_id, input=90_000, output=1, now=NOW + 2)
    assert store.check(session_id, policy, now=NOW + 2).should_compact
    store.record_usage(session_id, input=0, output=0, now=NOW + 3)
    store.undo_compaction(session_id, made.id, now=NOW + 4)
    assert store.check(session_id, policy, now=NOW + 4).tokens > check.tokens


@pytest.mark.parametrize("clock", [-1000, 0])
def test_a_usage_of_a_later_position_is_later(store: Store, clock: int) -> None:
    """Though the clock of who recorded it was behind that of who compacted, or they were given the
    same moment.
    """
    session_id = begun(store, chat(60))
    policy = Policy.named("turns", keep_turns=1, context_window=100_000)
    store.compact(session_id, policy, now=NOW)
    store.append(session_id, chat(2))
    store.record_usage(session_id, input=90_000, output=1, now=NOW + clock)
    assert "90001 of 100000" in store.check(session_id, policy, now=NOW).reason
    stats = store.view(session_id, policy, now=NOW).stats
    assert stats.unchanged_tokens == stats.tokens


def test_a_usage_of_before_a_rewind_counts_no_more(store: Store) -> None:
    """It was of messages that the line no longer has; undoing the rewind brings both back."""
    session_id = begun(store, chat(10))
    policy = Policy.named("turns", keep_turns=1)
    store.record_usage(session_id, input=170_000, output=0)
    store.rewind(session_id, 8)
    assert not store.check(session_id, policy).should_compact
    store.undo_rewind(session_id)
    assert store.check(session_id, policy).should_compact


def test_a_suggestion_says_what_would_be_saved(store: Store) -> None:
    """S3.20, S3.22, A3.14: at most what is hidden, or nothing and why (A3.13)."""
    session_id = begun(store, chat(40))
    policy = Policy.named("message_count")
    check = store.check(session_id, policy)
    hidden = store.plan_compaction(session_id, policy).tokens_hidden
    assert check.reason == "40 messages"
    assert 0 < check.estimated_savings < hidden < check.tokens
    below = store.check(session_id, Policy())
    assert (below.should_compact, below.estimated_savings) == (False, 0)
    assert (below.reason, below.problem) == ("below every trigger of the policy", None)
    few = store.check(begun(store, chat(8)), Policy.named("token_ratio"), 100)
    assert (few.overflow, few.should_compact, few.estimated_savings) == (True, False, 0)
    assert "nothing to compact" in few.reason


def test_what_pays_for_no_summary_is_not_suggested(store: Store) -> None:
    """Not even an empty one, with its heading.

    A model would be asked for nothing, and fail three times a turn.
    """
    session_id = begun(store, [*chat(2, "x"), {"role": "user", "content": "work"}])
    tokens = store.plan_compaction(session_id, Policy()).tokens_hidden
    for words, suggested in ((tokens - FRAMING_TOKENS - 1, True), (tokens - FRAMING_TOKENS, False)):
        policy = Policy(trigger_messages=1, summary_heading="word" * words)
        check = store.check(session_id, policy)
        assert check.should_compact is suggested
        assert (
            suggested
            or check.reason
            == f"3 messages; nothing to compact: {tokens} tokens do not pay for a summary"
        )
        assert (
            store.compact_if_needed(session_id, policy, lambda request: "") is not None
        ) is suggested


def test_savings_are_those_of_the_view(store: Store) -> None:
    """What a rule replaced already is not saved a second time."""
    call = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    output = {
        "role": "tool",
        "tool_call_id": "c",
        "content": '{"stdout":"' + "x" * 40_000 + '"}',
        "timestamp": 0,
    }
    group = [
        {"role": "user", "content": "run"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        output,
    ]
    session_id = begun(store, group * 10)
    policy = Policy(trigger_messages=1, terminal_keep=0, terminal_max_age=0)
    check = store.check(session_id, policy, now=NOW)
    assert check.tokens < 1000
    assert check.estimated_savings < check.tokens
    made = store.compact(session_id, policy, lambda request: "short", now=NOW)
    assert 0 < made.tokens_after < made.tokens_before == check.tokens
    assert made.tokens_after == store.check(session_id, policy, now=NOW).tokens


# --- what holds back ------------------------------------------------------------------------------


def test_after_three_failures_nothing_is_tried_for_ten_messages(store: Store) -> None:
    """A2.8: a model that is down is not asked after every message, nor in every turn."""
    session_id = begun(store, chat(41))
    policy = Policy.named("message_count")
    outcomes = []
    for _ in range(5):
        made = store.compact_if_needed(session_id, policy, broken, reason="tool_execution")
        outcomes.append(made and made.outcome)
        store.append(session_id, {"role": "assistant", "content": "still here"})
    assert outcomes == ["failed", "failed", "failed", None, None]
    check = store.check(session_id, policy)
    assert not check.should_compact
    assert "3 attempts failed" in check.reason
    store.append(session_id, {"role": "user", "content": "a new turn"})
    assert store.compact_if_needed(session_id, policy, lambda request: "worked") is None
    store.append(session_id, chat(7))
    again = store.compact_if_needed(session_id, policy, lambda request: "worked")
    assert again is not None
    assert again.outcome == "applied"


def test_after_three_failures_nothing_is_tried_for_ten_minutes(store: Store) -> None:
    """A2.8: whichever comes first, and one more failure begins it anew."""
    session_id = begun(store, chat(41))
    policy = Policy.named("message_count")

    def outcome(minutes: float, summarizer: Any = broken) -> str | None:
        now = NOW + int(minutes * 60_000)
        made = store.compact_if_needed(session_id, policy, summarizer, now=now)
        return made and made.outcome

    minutes = (0, 1, 2, 3, 11.9, 12, 13, 21.9)
    outcomes = [outcome(each) for each in minutes]
    assert outcomes == ["failed"] * 3 + [None, None, "failed", None, None]
    assert outcome(22, lambda request: "worked") == "applied"


@pytest.mark.parametrize(("fields", "asked"), [({}, 6), ({"back_off_messages": 20}, 4)])
def test_a_dead_model_is_not_asked_at_every_turn(
    store: Store, fields: dict[str, Any], asked: int
) -> None:
    """A2.8, as S2 checks: once in a turn, from 40 messages on; the view keeps to its limit."""
    session_id = begun(store, [])
    policy = Policy.named("message_count", **fields)
    given: list[int] = []

    def dead(request: SummaryRequest) -> str:
        given.append(request.last)
        raise ConnectionError("no route to host")

    for _ in range(40):
        store.append(session_id, chat(2))
        store.compact_if_needed(session_id, policy, dead)
        assert len(store.view(session_id, policy).messages) <= 50
    assert len(given) == asked


def test_the_hard_limit_holds_while_nothing_is_tried(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A2.8.

    In a turn of many calls the oldest turns go all the same, and no model is asked for it.
    """
    session_id = begun(store, chat(45))
    policy = Policy.named("message_count")
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        raise ConnectionError("no route to host")

    sizes = []
    caplog.set_level("INFO", "store")
    for _ in range(40):
        store.append(session_id, {"role": "assistant", "content": "still here"})
        store.compact_if_needed(session_id, policy, summarizer, reason="tool_execution")
        sizes.append(len(store.view(session_id, policy).messages))
    assert (max(sizes), len(asked)) == (50, 6)
    kept_to = [made for made in store.compactions(session_id) if made.outcome == "applied"]
    assert [made.hidden for made in kept_to] == [(first, first + 1) for first in range(1, 36, 2)]
    assert {(made.outcome, made.reason) for made in kept_to} == {("applied", "tool_execution")}
    held = [made for made in kept_to if "attempts failed" in str(made.error)]
    assert len(held) > len(kept_to) // 2
    assert caplog.text.count("history 压缩完成: 51 条 → 49 条") == len(kept_to)


def test_a_manual_compaction_is_always_tried(store: Store) -> None:
    """Somebody asked for it."""
    session_id = begun(store, chat(41))
    policy = Policy.named("message_count", back_off_after=1)
    assert store.compact(session_id, policy, broken).outcome == "failed"
    assert not store.check(session_id, policy).should_compact
    assert store.compact(session_id, policy, lambda request: "worked").outcome == "applied"


def test_no_more_than_so_many_compactions_in_a_turn(store: Store) -> None:
    """S3.33: a floor above the trigger does not loop; a new turn begins anew (A3.4)."""
    session_id = begun(store, chat(60))
    policy = Policy(trigger_messages=2, window_messages=4, max_iterations=3, facts_chars=0)
    made = [store.compact_if_needed(session_id, policy, lambda request: "short") for _ in range(5)]
    assert [each and each.outcome for each in made] == ["applied", "applied", "applied", None, None]
    check = store.check(session_id, policy)
    assert "3 times in this turn" in check.reason
    assert isinstance(check.problem, MaxCompactionReachedError)
    assert (check.problem.session_id, check.problem.can_retry) == (session_id, True)
    store.append(session_id, chat(1))
    assert store.compact_if_needed(session_id, policy, lambda request: "short")


def test_by_session_a_new_turn_begins_nothing_anew(store: Store) -> None:
    """A3.4: BR-09 to the letter; only a compaction that helps does."""
    for scope, tried in (("turn", True), ("session", False)):
        policy = Policy(trigger_tokens=100, keep_messages=2, max_iterations=1, scope=scope)
        session_id = begun(store, chat(20))
        store.append(session_id, {"role": "assistant", "content": "long " * 400})
        made = store.compact_if_needed(session_id, policy, lambda request: "s")
        assert made is not None
        assert (made.outcome, made.still_over) == ("applied", True)
        store.append(session_id, chat(6))
        check = store.check(session_id, policy)
        assert check.should_compact is tried
        assert isinstance(check.problem, MaxCompactionReachedError) is not tried


def test_the_user_is_warned_where_compacting_stops(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """S3.40: nothing is raised in the midst of a host's turn, and it does not go unnoticed."""
    session_id = begun(store, chat(60))
    policy = Policy(trigger_messages=2, window_messages=4, max_iterations=1, facts_chars=0)
    with caplog.at_level(logging.WARNING, "store"):
        assert store.compact_if_needed(session_id, policy, lambda request: "short")
        assert not caplog.records
        assert store.compact_if_needed(session_id, policy, lambda request: "short") is None
    (warned,) = caplog.records
    assert warned.levelname == "WARNING"
    assert "1 times in this turn" in warned.getMessage()
    assert (warned.session_id, warned.policy, warned.error) == (
        session_id,
        "default",
        "MaxCompactionReachedError",
    )


def test_a_compaction_that_got_below_the_trigger_does_not_count(store: Store) -> None:
    """A3.4: in a long turn each may be needed.

    Only those in a row that stayed above it make a floor.
    """
    session_id = begun(store, chat(60))
    policy = Policy(trigger_messages=58, window_messages=4, max_iterations=2, facts_chars=0)
    for _ in range(5):
        made = store.compact_if_needed(session_id, policy, lambda request: "short")
        assert made is not None
        assert (made.outcome, made.messages_after) == ("applied", 57)
        store.append(session_id, [{"role": "assistant", "content": "and on"}] * 4)
    low = policy.model_copy(update={"trigger_messages": 30})
    made = [store.compact_if_needed(session_id, low, lambda request: "short") for _ in range(3)]
    assert [each and each.outcome for each in made] == [None, None, None]
    assert "2 times in this turn" not in store.check(session_id, policy).reason


def test_one_that_got_below_the_trigger_begins_anew(store: Store) -> None:
    """In a row means since the last success.

    What is to be added is part of what the trigger sees.
    """
    session_id = begun(store, chat(40))
    policy = Policy(trigger_messages=38, window_messages=2, max_iterations=2, facts_chars=0)
    outcomes = []
    for added in (0, 0, 5, 0, 0):
        store.append(session_id, [{"role": "assistant", "content": "and on"}] * added)
        made = store.compact_if_needed(session_id, policy, lambda request: "short")
        outcomes.append(made and made.messages_after)
    assert outcomes == [39, 37, 40, 38, None]


@pytest.mark.parametrize("name", ["message_count", "token_ratio", "turns"])
def test_a_summary_nearly_as_long_as_what_it_replaces_makes_no_loop(
    store: Store, name: str
) -> None:
    """What is kept is about at the trigger, which fires again and again in a turn.

    A model is asked a few times.
    """
    session_id = begun(store, chat(200))
    policy = Policy.named(name, context_window=1500, facts_chars=0)
    given: list[int] = []

    def wordy(request: SummaryRequest) -> str:
        given.append(
            sum(len(message["content"]) for message in request.messages)
            + len(request.previous_summary or "")
        )
        return "x" * min(given[-1] - 40, request.max_chars)

    made, fired = [], 0
    for _ in range(30):
        store.append(session_id, {"role": "assistant", "content": WORDS})
        fired += store.check(session_id, policy).reason != "below every trigger of the policy"
        made.append(store.compact_if_needed(session_id, policy, wordy))
    tried = [each for each in made if each and each.id and each.error_kind is None]
    assert fired > 20
    assert 1 <= len(given) == len(tried) <= 5
    assert sum(each.still_over for each in tried) <= policy.max_iterations
    assert all(
        each.tokens_after < each.tokens_before for each in tried if each.outcome == "applied"
    )


def test_what_is_to_be_added_is_above_the_trigger_too(store: Store) -> None:
    """A view that is below it alone, and not with the user's input, is compacted no more often than
    others.
    """
    session_id = begun(store, chat(40))
    tokens = store.check(session_id, Policy()).tokens
    policy = Policy(trigger_tokens=tokens, max_iterations=1, window_messages=2, facts_chars=0)
    assert store.compact_if_needed(
        session_id, policy, lambda request: "short", user_input="x" * 3000
    )
    assert not store.check(session_id, policy).should_compact
    assert "1 times in this turn" in store.check(session_id, policy, user_input="x" * 3000).reason


# --- the same numbers -----------------------------------------------------------------------------


def sent_tokens(view: Any, raw: list[Any]) -> int:
    """The tokens of a view without its repairs: made-up messages apart, left-out ones back in."""
    left_out = sum(
        count_message_tokens(raw[seq - 1].message, estimate) for seq in view.stats.left_out
    )
    return left_out + sum(
        each.tokens for each in view.entries if each.seq is not None or each.rule == "summary"
    )


READY = [Policy.named(name) for name in ("default", "message_count", "token_ratio", "turns", "raw")]


@settings(max_examples=40)
@given(messages=conversations, policy=policies)
def test_a_check_counts_what_the_view_sends(
    store: Store, messages: list[Message], policy: Policy
) -> None:
    """By the estimate, before a compaction and after it, by every policy.

    How near it is for odd results is said.
    """
    session_id = begun(store, [*messages, {"role": "user", "content": "and now?"}])
    for _ in range(2):
        for each in (policy, *READY, policy.model_copy(update={"summary_heading": "[summary]"})):
            view = store.view(session_id, each, now=NOW)
            assert _is_cost_of(store.check(session_id, each, now=NOW).tokens, view, store), each
        made = store.compact(session_id, policy, lambda request: "a summary", now=NOW)
        if made.outcome == "applied":
            assert made.tokens_after == store.check(session_id, policy, now=NOW).tokens


@settings(max_examples=25)
@given(messages=conversations, policy=policies, stored=st.booleans())
def test_a_check_counts_what_the_next_request_sends(
    store: Store, messages: list[Message], policy: Policy, stored: bool
) -> None:
    """With an input the last turn is over, and its results are shown short.

    Not so where it is that turn's own.
    """
    session_id = begun(
        store, [*messages, {"role": "user", "content": "and now?"}] if stored else messages
    )
    for _ in range(2):
        for each in (
            policy,
            *READY,
            policy.model_copy(update={"judge_at": "turn", "tool_output": True}),
        ):
            view = store.context(session_id, user_input="and now?", policy=each, now=NOW).view
            tokens = store.check(session_id, each, user_input="and now?", now=NOW).tokens
            assert _is_cost_of(tokens - (0 if stored else len("and now?") // 3), view, store), each
        store.compact(session_id, policy, lambda request: "a summary", now=NOW)


def _is_cost_of(tokens: int, view: Any, store: Store) -> bool:
    """Tell whether tokens are those of a view; how near they are for odd results is known."""
    raw = store.messages(view.session_id)
    replaced = [
        raw[entry.seq - 1].message for entry in view.entries if entry.seq and entry.rule in RULES
    ]
    odd = [message for message in replaced if message.keys() - PLAIN_KEYS or _beyond_text(message)]
    return abs(tokens - sent_tokens(view, raw) - sum(map(_beyond_text, odd))) <= len(odd)


def _beyond_text(message: Message) -> int:
    """What a result's content counts in a message more than by its text: images and other parts.

    For an object less.
    """
    content = {"role": "tool", "content": message.get("content")}
    facts = compute_result_facts(content)
    return (
        count_message_tokens(content, estimate)
        - FRAMING_TOKENS
        - estimate_size(facts.length, facts.size)
    )


def worked(*, minutes: int = 0, tokens: int = 1000) -> list[Message]:
    """A turn that read a file and has its answer."""
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "Read", "arguments": '{"path": "a.py"}'},
    }
    content = json.dumps({"status": "success", "data": {"content": "line\n" * tokens}})
    return [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "c",
            "content": content,
            "timestamp": NOW - minutes * 60_000,
        },
        {"role": "assistant", "content": "done"},
    ]


def test_an_input_ends_the_turn_that_ran(store: Store) -> None:
    """A4.2.

    What would be over the window whole is not compacted for a request that shows it short.
    """
    session_id = begun(store, chat(6, "x") + worked(tokens=20_000))
    policy = Policy.named("turns", keep_turns=1)
    whole, short = (
        store.check(session_id, policy, user_input=text).tokens for text in ("", "and?")
    )
    assert whole > 5 * short
    window = 2 * short
    assert store.check(session_id, policy, window).should_compact
    assert not store.check(session_id, policy, window, user_input="and?").should_compact
    assert (
        store.compact_if_needed(session_id, policy, broken, max_tokens=window, user_input="and?")
        is None
    )
    store.append(session_id, {"role": "user", "content": "and?"})
    assert abs(store.check(session_id, policy).tokens - short) <= FRAMING_TOKENS + 2


def test_what_is_compacted_for_an_input_is_measured_with_it(store: Store) -> None:
    """The record has the tokens that the check had.

    A summary is not too long for a turn that is shown short.
    """
    session_id = begun(store, chat(20) + worked(tokens=20_000))
    policy = Policy.named("turns", keep_turns=1, facts_chars=0)
    check = store.check(session_id, policy, 2800, user_input="and?")
    made = store.compact_if_needed(
        session_id, policy, lambda request: WORDS, max_tokens=2800, user_input="and?"
    )
    assert (check.should_compact, made and made.outcome, made and made.still_over) == (
        True,
        "applied",
        False,
    )
    assert made is not None
    assert made.tokens_before == check.tokens - len("and?") // 3
    assert (
        made.tokens_after
        == store.check(session_id, policy, user_input="and?").tokens - len("and?") // 3
    )


def test_an_input_that_is_stored_already_is_counted_once(store: Store) -> None:
    """A turn that was cut off goes on when its input is given again: it is whole."""
    session_id = begun(store, chat(6, "x") + worked()[:3])
    for policy in (Policy.named("turns"), Policy.named("token_ratio")):
        running = store.check(session_id, policy)
        assert store.check(session_id, policy, user_input="read it") == running
        assert store.check(session_id, policy, user_input="read it again").tokens != running.tokens


def test_an_input_is_a_new_turn_to_what_held_back(store: Store) -> None:
    """S3.33: too little success in the turn before counts no more."""
    session_id = begun(store, chat(60))
    policy = Policy(trigger_messages=2, window_messages=4, max_iterations=1, facts_chars=0)
    assert store.compact_if_needed(session_id, policy, lambda request: "short")
    store.append(session_id, {"role": "assistant", "content": "done"})
    assert not store.check(session_id, policy).should_compact
    assert store.check(session_id, policy, user_input="go on").should_compact


def test_a_merged_summary_counts_a_little_more(store: Store) -> None:
    """A message of its own is framed; in the system message it is not."""
    session_id = begun(store, [{"role": "system", "content": "the rules of this house"}, *chat(20)])
    policy = Policy(summary_role="merge", previous_summary="append", facts_chars=0)
    for count in (1, 2, 3):
        assert (
            store.compact(session_id, policy, lambda request: "what was said before").outcome
            == "applied"
        )
        store.append(session_id, chat(4))
        view = store.view(session_id, policy)
        assert [entry.rule for entry in view.entries].count("summary") == 1
        assert 0 < store.check(session_id, policy).tokens - view.stats.tokens <= 5 * count
