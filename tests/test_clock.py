"""Moments: which are taken, what they mean, and how they are told by messages."""

from __future__ import annotations

import logging
import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from store import Policy, Store
from store.clock import LONGEST_TIME, parse_day, parse_moment, resolve_now, shift_moment
from store.errors import InvalidValue
from store.messages import find_message_time
from store.policy import POLICIES

MOMENT = 1_738_287_600_000
DATETIME = datetime.fromtimestamp(MOMENT // 1000, tz=UTC)

TOLD: list[tuple[Any, int | None]] = [
    (MOMENT, MOMENT),
    (MOMENT + 0.9, MOMENT),
    (MOMENT // 1000, MOMENT),
    (MOMENT / 1000 + 0.123, MOMENT + 123),
    (0, 0),
    (-5, -5000),
    (10**11 - 1, (10**11 - 1) * 1000),
    (10**11, 10**11),
    (-(10**11), -(10**11)),
    (2**63, None),
    (-(2**63), -(2**63)),
    (10**300, None),
    (1e300, None),
    (math.inf, None),
    (math.nan, None),
    (True, None),
    (None, None),
    ([MOMENT], None),
    ("", None),
    ("yesterday", None),
    (str(MOMENT), None),
    ("2025-01-31T01:40:00Z", MOMENT),
    ("2025-01-31T02:40:00+01:00", MOMENT),
    ("20250131T014000.5Z", MOMENT + 500),
    ("2025-01-31T01:40:00", None),
    ("2025-01-31", None),
    (DATETIME, MOMENT),
    (DATETIME.astimezone(timezone(timedelta(hours=9))), MOMENT),
    (DATETIME.replace(tzinfo=None), None),
]


@pytest.mark.parametrize(("value", "moment"), TOLD, ids=lambda value: f"{value!r:.40}")
def test_what_tells_a_moment(value: Any, moment: int | None) -> None:
    """Ms, seconds, ISO 8601 and datetimes with a zone; whatever else tells none (A0.9)."""
    assert parse_moment(value) == moment


@pytest.mark.parametrize("key", ["timestamp", "created_at", "createdAt", "time"])
def test_a_message_tells_its_moment_under_any_of_four_keys(store: Store, key: str) -> None:
    """In every spelling; raw it comes out as it went in, and nothing is added."""
    session = store.create_session().id
    for value in (MOMENT, MOMENT / 1000, MOMENT // 1000, "2025-01-31T01:40:00Z"):
        message = {"role": "tool", "name": "Bash", "content": "done", key: value}
        assert find_message_time(message) == MOMENT
        store.append(session, message)
        assert store.messages(session, -1)[0].message == message
    late = MOMENT + Policy().terminal_max_age + 1
    view = store.view(session, Policy(terminal_keep=0), now=late)
    assert view.stats.replaced["terminal"] == 4
    assert store.verify() == []


def test_the_first_key_that_tells_a_moment_counts() -> None:
    """Beside it the others are keys like any other."""
    keys = {"timestamp": "soon", "created_at": None, "createdAt": MOMENT, "time": MOMENT + 1}
    assert find_message_time({"role": "user", **keys}) == MOMENT


def test_a_datetime_comes_out_as_its_iso_text(store: Store) -> None:
    """JSON has no datetimes; under other keys one is refused."""
    session = store.create_session().id
    (stored,) = store.append(session, {"role": "user", "content": "a", "timestamp": DATETIME})
    assert stored.message["timestamp"] == "2025-01-31T01:40:00+00:00"
    assert store.messages(session) == [stored]


@pytest.mark.parametrize("now", [0, -1, 1_763_779_749, 1_763_779_749.5, 10**11 - 1])
def test_seconds_are_no_moment_of_an_operation(store: Store, now: float) -> None:
    """The error says what is wanted, and nothing is stored."""
    session = store.create_session().id
    with pytest.raises(InvalidValue, match=r"looks like seconds; pass time\.time\(\) \* 1000"):
        store.append(session, {"role": "user", "content": "a"}, now=now)
    with pytest.raises(InvalidValue, match="looks like seconds"):
        store.view(session, now=now)
    assert store.session(session).head == 0


def test_a_part_of_a_millisecond_counts_whole() -> None:
    """So the same moment means the same as a number and as a datetime."""
    for micros, moment in ((0, MOMENT), (1, MOMENT + 1), (400, MOMENT + 1), (1000, MOMENT + 1)):
        assert resolve_now(DATETIME + timedelta(microseconds=micros)) == moment
        assert resolve_now(MOMENT + micros / 1000) == moment


def test_an_early_datetime_is_a_moment(store: Store) -> None:
    """It cannot be taken for anything else."""
    early = datetime(1970, 1, 2, tzinfo=UTC)
    assert resolve_now(early) == 86_400_000
    assert store.create_session(now=early).created_at == 86_400_000


@pytest.mark.parametrize("timestamp", [-(2**63), 2**63 - 1])
@pytest.mark.parametrize("judge_at", ["now", "turn"])
@pytest.mark.parametrize("now", [MOMENT, 2**63 - 1])
def test_a_far_moment_breaks_nothing(store: Store, timestamp: int, judge_at: Any, now: int) -> None:
    """Reckoning ends where columns end, and so do ages."""
    session = store.create_session().id
    for number in range(4):
        store.append(session, {"role": "user", "content": f"{number}", "timestamp": timestamp})
        store.append(session, {"role": "assistant", "content": "a", "timestamp": timestamp})
    policy = Policy.named("turns", judge_at=judge_at, keep_turns=1)
    assert store.context(session, "x", policy=policy, now=now).messages
    assert store.check(session, policy, now=now).tokens
    assert store.compact(session, policy, now=now).outcome == "applied"
    assert store.context(session, "x", policy=policy, now=now).messages
    assert store.verify() == []


def test_reckoning_ends_where_columns_end() -> None:
    """A moment farther off is as good as the last one."""
    assert shift_moment(MOMENT, 5) == MOMENT + 5
    assert shift_moment(2**63 - 1, 2**62) == LONGEST_TIME
    assert shift_moment(-(2**63), -1) == -LONGEST_TIME


def test_what_tells_no_moment_is_noted_once(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At WARNING, with what is wanted; the message is stored as it is, and dated by nothing."""
    monkeypatch.setattr("store.history.append._GIVEN_WARNINGS", set())
    session = store.create_session().id
    for text in ("yesterday", "today"):
        store.append(session, {"role": "user", "content": text, "timestamp": text})
    store.append(session, {"role": "user", "content": "undated"})
    (record,) = [each for each in caplog.records if each.name == "store.history.append"]
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "the timestamp of a message tells no moment (a str): rules that go by time leave it alone;"
        " give ms, seconds, ISO 8601 with a zone, or a datetime with one"
    )


def test_undated_results_may_go_by_when_they_were_stored(store: Store) -> None:
    """By the policy alone; a time of their own counts all the same."""
    session = store.create_session().id
    command = {"role": "tool", "name": "Bash", "content": "done " * 100}
    store.append(session, command, now=MOMENT)
    store.append(session, {**command, "timestamp": MOMENT + 5}, now=MOMENT)
    by_storing = Policy(terminal_keep=0, undated="stored_at")
    age = by_storing.terminal_max_age

    def replaced(policy: Policy, passed: int) -> list[int | None]:
        view = store.view(session, policy, now=MOMENT + age + passed)
        checked = store.check(session, policy, now=MOMENT + age + passed).tokens
        assert abs(checked - sum(entry.tokens for entry in view.entries if entry.seq)) <= 2
        return [entry.seq for entry in view.entries if entry.rule == "terminal"]

    assert replaced(Policy(terminal_keep=0), 10) == [2]
    assert replaced(by_storing, 0) == []
    assert replaced(by_storing, 1) == [1]
    assert replaced(by_storing, 6) == [1, 2]


@pytest.mark.parametrize("name", POLICIES)
def test_messages_of_the_wire_are_dated_by_ready_policies(store: Store, name: str) -> None:
    """A provider's messages tell no time: `Policy()` alone keeps their results for that."""
    policy = Policy.named(name)
    assert policy.undated == ("keep" if name == "default" else "stored_at")
    if not (policy.terminal or policy.file_read):
        return
    session = store.create_session().id
    for number in range(40):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}}
        given = {"type": "tool_result", "tool_use_id": call["id"], "content": "done " * 100}
        turn = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": [call]}]
        store.append(session, [*turn, {"role": "user", "content": [given]}], now=MOMENT)
    later_on = MOMENT + policy.terminal_max_age + 1
    store.append(session, {"role": "user", "content": "And now?"}, now=later_on)
    view = store.view(session, policy, now=later_on)
    replaced = sum(entry.rule == "terminal" for entry in view.entries)
    assert replaced == (0 if name == "default" else 40 - policy.terminal_keep)


def test_a_day_is_named_by_a_word_an_age_or_a_date() -> None:
    """A weekday is the last one; a day that no calendar has, or whose end none has, is refused."""
    saturday = date(2026, 3, 14)
    names = ("today", "Yesterday", "saturday", "monday", "3 days ago", "2026-03-14", "0d")
    found = [parse_day(name, saturday).name[-2:] for name in names]
    assert found == ["14", "13", "14", "09", "11", "14", "14"]
    day = parse_day("today", saturday)
    assert day.has(day.first)
    assert not day.has(day.end)
    for name in ("9999-12-31", "someday", "2026-02-30"):
        with pytest.raises(InvalidValue, match="yesterday"):
            parse_day(name, saturday)
