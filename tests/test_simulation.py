"""What a session would have cost: a small written session, replayed by several policies."""

from __future__ import annotations

from typing import Any

import pytest

from store import Policy, Store
from store.simulation import Prices, Simulated, simulate

MINUTE = 60_000
START = 1_767_225_600_000

RAW = Policy.named("raw")
ALWAYS = Policy(terminal_keep=2, terminal_max_age=2 * MINUTE)
BATCHED = Policy(
    terminal_keep=2, terminal_max_age=2 * MINUTE, clearing="batched", clear_min_freed=700
)


def turn(number: int, gap: int = MINUTE) -> list[dict[str, Any]]:
    """Return a turn of two requests: a question, a command, its long output, an answer."""
    at = START + number * gap
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "Bash", "arguments": '{"command": "make"}'},
    }
    output = f'{{"stdout": "{"ok " * 200}", "stderr": "", "exitCode": 0}}'
    return [
        {"role": "user", "content": f"Step {number}, please.", "timestamp": at},
        {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": at + 1000},
        {"role": "tool", "tool_call_id": call["id"], "content": output, "timestamp": at + 2000},
        {"role": "assistant", "content": f"Step {number} is done.", "timestamp": at + 3000},
    ]


@pytest.fixture
def store(url: str) -> Any:
    """Give a store with a session of twelve turns, a minute apart."""
    with Store(url, durability="normal") as made:
        made.create_session("talk", project_root="/home/ada/app", now=START)
        made.append(
            "talk", [message for number in range(12) for message in turn(number)], now=START
        )
        yield made


def bill(told: Simulated, prices: Prices) -> float:
    """Return what a provider bills for what was counted."""
    fresh = told.tokens_sent - told.tokens_cached
    return (
        told.tokens_cached * prices.cached
        + fresh * prices.written
        + told.tokens_output * prices.output
    )


@pytest.mark.parametrize("policy", [RAW, ALWAYS, BATCHED], ids=["raw", "always", "batched"])
def test_totals_add_up(store: Store, policy: Policy) -> None:
    """There is a request before each answer; what is cached was sent.

    The bill is the sum at the given prices.
    """
    prices = Prices(cached=0.5, written=2.0, output=3.0)
    told = simulate(store, "talk", policy, prices=prices)
    assert told.requests == 24
    assert 0 < told.tokens_cached < told.tokens_sent
    assert told.largest_request <= told.tokens_sent
    assert told.bill == pytest.approx(bill(told, prices))


def test_raw_requests_are_the_views_of_their_moments(store: Store) -> None:
    """Without rules the tokens sent are those of the views at the positions before each answer."""
    views = [store.view("talk", RAW, at=at, now=START).stats.tokens for at in range(49)]
    answers = [
        stored.seq for stored in store.messages("talk") if stored.message["role"] == "assistant"
    ]
    told = simulate(store, "talk", RAW)
    assert told.tokens_sent == sum(views[seq - 1] for seq in answers)
    assert told.largest_request == views[answers[-1] - 1]
    assert (told.compactions, told.clearings) == (0, 0)


def test_a_warm_cache_holds_the_whole_request_before(store: Store) -> None:
    """Without rules all of a request is in the cache at the next one.

    A cache that lives no time holds nothing.
    """
    told = simulate(store, "talk", RAW)
    answers = [
        stored.seq for stored in store.messages("talk") if stored.message["role"] == "assistant"
    ]
    assert told.tokens_cached == sum(
        store.view("talk", RAW, at=seq - 1).stats.tokens for seq in answers[:-1]
    )
    assert simulate(store, "talk", RAW, prices=Prices(lifetime=0)).tokens_cached == 0


def test_rules_send_less_and_batches_keep_the_cache(store: Store) -> None:
    """Raw sends the most.

    Clearing in batches sends more than clearing always, and more of it from the cache.
    """
    raw, always, batched = (simulate(store, "talk", policy) for policy in (RAW, ALWAYS, BATCHED))
    assert raw.tokens_sent > batched.tokens_sent > always.tokens_sent
    assert batched.tokens_cached / batched.tokens_sent > always.tokens_cached / always.tokens_sent
    assert batched.clearings > 0
    assert always.clearings == raw.clearings == 0


def test_compactions_are_made_as_if_live(store: Store) -> None:
    """A trigger fires in the replay as it would have, and bounds the requests."""
    policy = Policy.named("raw", trigger_messages=20, keep_turns=2)
    told = simulate(store, "talk", policy)
    assert told.compactions > 1
    assert told.largest_request < simulate(store, "talk", RAW).largest_request


def test_the_window_is_what_ratios_are_of(store: Store) -> None:
    """A policy by ratio compacts in a small window, and never where the window is unknown."""
    policy = Policy.named("token_ratio", keep_messages=2)
    assert simulate(store, "talk", policy, max_tokens=1500).compactions > 0
    assert simulate(store, "talk", policy).compactions == 0


def test_the_source_is_only_read(store: Store) -> None:
    """No message, record, usage or move is added to the session that is replayed.

    Progress ends at its head.
    """
    before = (
        store.session("talk"),
        store.messages("talk"),
        store.compactions("talk"),
        store.head_moves("talk"),
    )
    seen: list[int] = []
    simulate(
        store, "talk", Policy.named("raw", trigger_messages=20, keep_turns=2), progress=seen.append
    )
    after = (
        store.session("talk"),
        store.messages("talk"),
        store.compactions("talk"),
        store.head_moves("talk"),
    )
    assert before == after
    assert seen[-1] == 48
    assert store.view("talk", RAW).stats.unchanged_tokens is None


@pytest.mark.parametrize("moment", [10**30, 1e300, 2**63 - 1])
def test_a_moment_that_no_clock_has_is_passed_over(store: Store, moment: float) -> None:
    """The store takes a message of any timestamp.

    Told again it is said when the one before it was.
    """
    before = simulate(store, "talk", RAW)
    store.append(
        "talk",
        [
            {"role": "user", "content": "?", "timestamp": moment},
            {"role": "assistant", "content": "!"},
        ],
    )
    told = simulate(store, "talk", RAW)
    assert (told.requests, told.tokens_cached > before.tokens_cached) == (before.requests + 1, True)


def test_the_kinds_of_tools_are_those_of_the_store(store: Store) -> None:
    """Rows that were added and removed count, as for every view of the session."""
    raw, always = (simulate(store, "talk", policy) for policy in (RAW, ALWAYS))
    with store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE tool_kinds SET name = 'make' WHERE name = 'Bash'")
    assert simulate(store, "talk", ALWAYS)._replace(policy="raw") == raw
    messages = [stored.message for stored in store.messages("talk")]
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["name"] = "make"
    store.create_session("made")
    store.append("made", messages)
    assert simulate(store, "made", ALWAYS) == always
