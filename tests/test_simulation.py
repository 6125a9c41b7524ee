"""What a session would have cost: a small written session, replayed by several policies."""

from __future__ import annotations

from typing import Any

import pytest

from store import Policy, Store
from store.simulation import PROVIDERS, Prices, Simulated, compare, simulate
from store.simulation.prices import SentRequest

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


@pytest.mark.sampled(3)
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_rules_send_less_and_batches_keep_the_cache(store: Store) -> None:
    """Raw sends the most.

    Clearing in batches sends more than clearing always, and more of it from the cache.
    """
    raw, always, batched = (simulate(store, "talk", policy) for policy in (RAW, ALWAYS, BATCHED))
    assert raw.tokens_sent > batched.tokens_sent > always.tokens_sent
    assert batched.tokens_cached / batched.tokens_sent > always.tokens_cached / always.tokens_sent
    assert batched.clearings > 0
    assert always.clearings == raw.clearings == 0


@pytest.mark.slow
def test_compactions_are_made_as_if_live(store: Store) -> None:
    """A trigger fires in the replay as it would have, and bounds the requests."""
    policy = Policy.named("raw", trigger_messages=20, keep_turns=2)
    told = simulate(store, "talk", policy)
    assert told.compactions > 1
    assert told.largest_request < simulate(store, "talk", RAW).largest_request


@pytest.mark.slow
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
@pytest.mark.sampled(3)
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


@pytest.mark.slow
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


def test_a_bill_is_that_counted_by_hand() -> None:
    """What lives is cheap and the rest is written; what is too short for a cache is neither."""
    requests = [
        SentRequest(1_500, 0, 10, None),
        SentRequest(1_600, 1_500, 20, MINUTE),
        SentRequest(1_700, 1_000, 0, MINUTE),
        SentRequest(1_800, 1_700, 0, 5 * MINUTE),
        SentRequest(900, 800, 0, MINUTE),
    ]
    by_hand = [
        1_500 * 1.25 + 10 * 5,
        1_500 * 0.1 + 100 * 1.25 + 20 * 5,
        1_700 * 1.25,  # the 1,000 that are the same are too few to be cached
        1_800 * 1.25,  # five minutes are too long
        900,
    ]
    bill = sum(request.bill(PROVIDERS["anthropic"]) for request in requests)
    assert bill == pytest.approx(sum(by_hand))
    hour = PROVIDERS["anthropic 1h"]
    assert requests[3].bill(hour) == pytest.approx(1_700 * 0.1 + 100 * 2.0)
    assert requests[1].bill(PROVIDERS["openai 0.5"]) == pytest.approx(750 + 100 + 20 * 4)


def paused(store: Store, minutes: int, fields: int = 12) -> str:
    """A session of many reads, a pause, and an answer that says a name of the first read again."""
    session = store.create_session(now=START)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go.", "timestamp": START}]
    for number in range(fields):
        function = {"name": "Read", "arguments": f'{{"file_path": "part_{number}.py"}}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        text = f"first_{number} = second_{number}\n" + "plain words of no name\n" * 300
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call], "timestamp": START},
            {"role": "tool", "tool_call_id": call["id"], "content": text, "timestamp": START},
        ]
    later = START + minutes * MINUTE
    messages += [
        {"role": "assistant", "content": "read", "timestamp": START},
        {"role": "user", "content": "What of the first?", "timestamp": later},
        {"role": "assistant", "content": "It is first_0, and third_0.", "timestamp": later},
    ]
    store.append(session.id, messages, now=START)
    return session.id


@pytest.mark.slow
def test_a_policy_is_told_how_long_a_cache_lives(store: Store) -> None:
    """So it clears where the cache of the provider is cold; unless it names a lifetime of its own."""
    session_id = paused(store, minutes=7)
    told = compare(store, session_id, Policy.named("agent"), PROVIDERS)
    clearings = {name: each.clearings for name, each in told.items()}
    assert clearings.pop("anthropic") == 1
    assert set(clearings.values()) == {0}
    own = Policy.named("agent", cache_lifetime=MINUTE)
    found = compare(store, session_id, own, PROVIDERS)
    assert {each.clearings for each in found.values()} == {1}
    assert found["anthropic"].bill < simulate(store, session_id, RAW).bill
    assert found["anthropic"].sent[-1] < told["openai 0.1"].sent[-1]


@pytest.mark.slow
def test_reuse_is_what_the_model_says_again_and_has_in_sight(store: Store) -> None:
    """A name that a line tells is in sight, one that nobody told is not needed."""
    session_id = paused(store, minutes=7)
    hidden = Policy.named("agent", any_tool=False, terminal=True, terminal_keep=0)
    named = Policy.named("agent", clear_keep=0)
    assert simulate(store, session_id, RAW).reuse == 1.0
    assert simulate(store, session_id, named).reuse == 1.0
    kinds = {"Read": "terminal"}
    lost = simulate(store, session_id, hidden.model_copy(update={"tool_kinds": kinds})).reuse
    assert lost is not None
    assert lost < 1.0
    assert simulate(store, paused(store, 7, fields=0), RAW).reuse is None


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_entries_are_the_callers(url: str, format: str) -> None:  # noqa: A002
    """Totals are made without copies, and what a caller does to an entry shows nowhere else."""
    with Store(url) as store:
        store.create_session("s")
        store.append("s", turn(1), now=START)
        first = store.view("s", now=START, format=format)
        whole = repr(store.view("s", now=START, format=format).entries)
        for entry in first.entries:
            entry.message.clear()
        assert first.stats == store.view("s", now=START, format=format).stats
        assert repr(store.view("s", now=START, format=format).entries) == whole
        assert store.messages("s")[0].message == turn(1)[0]
