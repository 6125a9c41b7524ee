"""The policies for coding agents: results of any tool are cleared when the cache is cold."""

from __future__ import annotations

import json
from typing import Any

from conversations import NOW
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Policy, Store

Message = dict[str, Any]
MINUTE = 60_000
HOUR = 60 * MINUTE
AGENT = Policy.named("agent")
RAW = Policy.named("raw")
TEXT = "def load_config(path):\n    raise ConfigError(path)  # see src/app/config.py\n" * 20

BEGUN = "[Old result, cleared]"
NAMES = "ConfigError, src/app/config.py, load_config"


def asked(number: int, name: str = "Read", **arguments: str) -> Message:
    """A call of a tool."""
    given = arguments or {"file_path": f"src/part_{number}.py"}
    function = {"name": name, "arguments": json.dumps(given)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answered(number: int, text: object = TEXT, **keys: Any) -> Message:
    """The result of the call of a number; it does not tell its time."""
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text, **keys}


def reads(count: int, text: object = TEXT) -> list[Message]:
    """A turn of so many reads, without times, and its answer."""
    pairs = ((asked(number), answered(number, text)) for number in range(count))
    read = [message for pair in pairs for message in pair]
    question = {"role": "user", "content": "read them"}
    return [question, *read, {"role": "assistant", "content": "read"}]


def begun(store: Store, messages: list[Message]) -> str:
    """A session of messages that were stored at `NOW`."""
    session = store.create_session()
    store.append(session.id, messages, now=NOW)
    return session.id


def cleared(store: Store, session_id: str, policy: Policy = AGENT, **options: Any) -> list[int]:
    """The positions whose results give way to a line."""
    entries = store.view(session_id, policy, **options).entries
    return [entry.seq or 0 for entry in entries if entry.rule == "any_tool"]


def test_a_cold_cache_is_the_moment_to_clear(store: Store) -> None:
    """All results but the newest ten, whatever their age, from the provider's lifetime on."""
    session_id = begun(store, reads(13))
    store.record_usage(session_id, input=9_000, output=1, now=NOW + MINUTE)
    cold = NOW + MINUTE + AGENT.cache_lifetime
    assert store.compact_if_needed(session_id, AGENT, now=cold - 1) is None
    longer = Policy.named("agent", cache_lifetime=10 * MINUTE)
    assert store.compact_if_needed(session_id, longer, now=cold) is None
    assert store.plan_clearing(session_id, AGENT, now=cold - 1) is None
    assert store.plan_clearing(session_id, Policy(), now=cold) is None
    planned = store.plan_clearing(session_id, AGENT, now=cold)
    made = store.compact_if_needed(session_id, AGENT, now=cold)
    assert made is not None
    assert planned == (made.cleared, made.tokens_before, made.tokens_after)
    assert made.cleared == ((3, "any_tool"), (5, "any_tool"), (7, "any_tool"))
    assert cleared(store, session_id) == [3, 5, 7]
    view = store.view(session_id, AGENT)
    assert made.tokens_after == store.check(session_id, AGENT).tokens == view.stats.tokens
    assert store.compact_if_needed(session_id, AGENT, now=cold + HOUR) is None


def test_without_usage_the_newest_answer_tells_the_last_request(store: Store) -> None:
    """By its own time where it has one, else by when it was stored."""
    stored = begun(store, reads(12))
    *before, answer = reads(12)
    dated = begun(store, [*before, answer | {"timestamp": NOW - 4 * MINUTE}])
    then = NOW + 2 * MINUTE
    assert store.compact_if_needed(stored, AGENT, now=then) is None
    assert store.compact_if_needed(dated, AGENT, now=then) is not None
    assert store.compact_if_needed(stored, AGENT, now=NOW + 5 * MINUTE) is not None


def test_errors_running_ones_and_what_was_not_sent_yet_stay(store: Store) -> None:
    """A request of many calls at once is answered by results that no request has had."""
    questions = [{"role": "user", "content": "go"}]
    failed = [
        asked(0),
        answered(0, "Error: " + TEXT),
        asked(1),
        answered(1, messageStatus="pending"),
    ]
    calls = [asked(number)["tool_calls"][0] for number in range(2, 20)]
    at_once = {"role": "assistant", "content": None, "tool_calls": calls}
    results = [answered(number) for number in range(2, 20)]
    session_id = begun(store, [*questions, *failed, at_once, *results])
    assert store.compact_if_needed(session_id, AGENT, now=NOW + HOUR) is None
    reasons = {entry.seq: entry.reason for entry in store.view(session_id, AGENT).entries}
    assert reasons[3] == "errors always stay"
    assert reasons[5] == "the tool is still running"
    assert reasons[7] == "one of the newest 10 tool results, or not sent yet"
    store.append(session_id, {"role": "assistant", "content": "done"}, now=NOW)
    store.compact_if_needed(session_id, AGENT, now=NOW + HOUR)
    assert cleared(store, session_id) == [*range(7, 15)]


def test_a_warm_cache_is_left_alone_unless_very_much_is_freed(store: Store) -> None:
    """So many tokens, and so large a share of the view; then more results stay."""
    session_id = begun(store, reads(25, TEXT * 10))
    changes: list[dict[str, Any]] = [
        {},
        {"clear_warm_freed": 15_000, "clear_warm_share": 0.3},
        {"clear_warm_freed": 10_000, "clear_warm_share": 0.3, "cache_lifetime": HOUR},
    ]
    for fields in changes:
        policy = Policy.named("agent", **fields)
        assert store.compact_if_needed(session_id, policy, now=NOW + MINUTE) is None
    much = Policy.named("agent", clear_warm_freed=15_000, clear_warm_share=0.15)
    made = store.compact_if_needed(session_id, much, now=NOW + MINUTE)
    assert made is not None
    assert [seq for seq, _ in made.cleared] == [3, 5, 7, 9, 11]


def test_a_line_says_what_was_there(store: Store) -> None:
    """The tool, its file or command, how it ended, how long it was, and the best names in it."""
    output = json.dumps({"stdout": TEXT + "\n/home/ada/app/src/x.py:3 E501", "exitCode": 0})
    session = store.create_session(project_root="/home/ada/app")
    run = [asked(0, "Bash", command="cd /home/ada/app && make"), answered(0, output)]
    store.append(session.id, [*run, *reads(1)[1:]], now=NOW)
    policy = Policy.named("agent", clear_keep=0)
    store.compact_if_needed(session.id, policy, now=NOW + HOUR)
    contents = [store.view(session.id, policy).messages[place]["content"] for place in (1, 3)]
    assert contents == [
        f"{BEGUN} Bash cd . && make, exit 0, 42 lines: {NAMES}, E501, src/x.py",
        f"{BEGUN} Read src/part_0.py, 40 lines: {NAMES}",
    ]


@settings(max_examples=30)
@given(st.text(max_size=4_000), st.integers(0, 10**6))
def test_a_line_is_short_and_the_same_in_every_view(store: Store, text: str, pad: int) -> None:
    """Whatever the result says, and whether this store has made it before."""
    session_id = begun(store, reads(1, f"{text} name_{pad}" * 40))
    policy = Policy.named("agent", clear_keep=0)
    store.compact_if_needed(session_id, policy, now=NOW + HOUR)
    first = store.view(session_id, policy).messages
    line = first[2]["content"]
    assert line.startswith("[Old result, cleared] Read src/part_0.py, ")
    assert len(line) <= 500
    assert len(line.splitlines()) == 1
    with Store(store.database.url) as other:
        assert other.view(session_id, policy).messages == first


def test_short_results_stay(store: Store) -> None:
    """A line in the place of a short result would save little, and have less of what it says."""
    session_id = begun(store, reads(13, "The file was updated, and nothing else was done to it."))
    assert store.compact_if_needed(session_id, AGENT, now=NOW + HOUR) is None
    now = Policy.named("agent", clearing="always")
    reasons = {entry.reason for entry in store.view(session_id, now).entries if entry.seq == 3}
    assert reasons == {"replacing it would save too little"}


def test_pictures_are_cleared(store: Store) -> None:
    """They are dear, and a result may be nothing else."""
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    session_id = begun(store, reads(11, picture))
    made = store.compact_if_needed(session_id, AGENT, now=NOW + HOUR)
    assert made is not None
    assert cleared(store, session_id) == [3]


def test_raw_and_other_policies_see_what_was_said(store: Store) -> None:
    """A clearing changes views of policies that clear, and no others; in Chinese where asked."""
    session_id = begun(store, reads(11))
    said = store.view(session_id, RAW).messages
    store.compact_if_needed(session_id, AGENT, now=NOW + HOUR)
    assert store.view(session_id, RAW).messages == said
    batched = Policy(clearing="batched", language="zh")
    assert store.view(session_id, batched).messages[2]["content"].startswith("[旧结果已清除] Read")


def test_a_policy_that_clears_knows_no_age_unless_asked() -> None:
    """How old output is has nothing to do with a cache."""
    assert Policy().terminal_max_age == 900_000
    for clearing in ("batched", "cold"):
        assert Policy(clearing=clearing).terminal_max_age == 0
        assert Policy(clearing=clearing, terminal_max_age=5).terminal_max_age == 5


def test_frugal_compacts_when_the_cache_is_cold(store: Store) -> None:
    """From 20,000 tokens on; in a warm cache not before the share of the window."""
    policy = Policy.named("frugal")
    small, large = begun(store, reads(30, TEXT)), begun(store, reads(60, TEXT * 2))
    assert store.compact_if_needed(large, policy, now=NOW + MINUTE) is None
    assert store.compact_if_needed(small, policy, now=NOW + HOUR) is None
    made = store.compact_if_needed(large, policy, now=NOW + HOUR)
    assert made is not None
    assert (made.kind, made.outcome) == ("summary", "applied")
    assert made.hidden == (1, 101)


def test_a_window_is_kept_to_in_the_middle_of_a_turn(store: Store) -> None:
    """One long turn gives way where its newest groups fit."""
    session_id = begun(store, reads(60, TEXT * 5)[:-1])
    window = 32_000
    made = store.compact_if_needed(session_id, AGENT, max_tokens=window, now=NOW + MINUTE)
    assert made is not None
    assert made.outcome == "applied"
    assert store.check(session_id, AGENT, max_tokens=window, now=NOW + MINUTE).tokens < window


def test_arguments_of_old_calls_are_cut_where_that_is_asked_for(store: Store) -> None:
    """With the results, at the same moments; requests stay valid, and raw messages whole."""
    written = {"file_path": "src/a.py", "content": TEXT, "edits": [TEXT, 1]}
    call = asked(0, "Write") | {"timestamp": NOW}
    call["tool_calls"][0]["function"]["arguments"] = json.dumps(written)
    rest = reads(10)
    for number, message in enumerate(rest):
        if "tool_calls" in message or message["role"] == "tool":
            rest[number] = json.loads(json.dumps(message).replace('"c', '"d'))
    session_id = begun(store, [{"role": "user", "content": "go"}, call, answered(0, "ok"), *rest])
    assert store.compact_if_needed(session_id, AGENT, now=NOW + HOUR) is None
    policy = Policy.named("agent", cut_arguments=True)
    said = store.view(session_id, policy).messages
    made = store.compact_if_needed(session_id, policy, now=NOW + HOUR)
    assert made is not None
    assert made.cleared == ((2, "arguments"),)
    view = store.view(session_id, policy)
    assert made.tokens_after == view.stats.tokens == store.check(session_id, policy).tokens
    assert store.view(session_id, AGENT).messages == said
    entry = view.entries[1]
    assert (entry.rule, entry.reason) == ("arguments", "replaced since the cache was last given up")
    cut = json.loads(view.messages[1]["tool_calls"][0]["function"]["arguments"])
    assert cut["file_path"] == "src/a.py"
    assert cut["content"][90:] == "g(path)... [40 lines]"
    assert cut["edits"] == [cut["content"], 1]
    assert store.view(session_id, RAW).messages == said


def test_fewer_groups_stay_where_the_newest_five_do_not_fit(store: Store) -> None:
    """Half as many, half of these, down to one; without `least_groups` the view stays too large."""
    session_id = begun(store, reads(20, TEXT * 15)[:-1])
    window = 32_000
    fixed = Policy.named("agent", least_groups=None)
    kept = store.fork(session_id).id
    store.compact_if_needed(kept, fixed, max_tokens=window, now=NOW + MINUTE)
    assert store.check(kept, fixed, max_tokens=window, now=NOW + MINUTE).tokens > window * 0.7
    store.compact_if_needed(session_id, AGENT, max_tokens=window, now=NOW + MINUTE)
    assert store.check(session_id, AGENT, max_tokens=window, now=NOW + MINUTE).tokens < window * 0.7


def test_fewer_messages_stay_of_a_frugal_policy_where_the_newest_twenty_do_not_fit(
    store: Store,
) -> None:
    """For the window only: at a cold moment all twenty stay, however many tokens they have."""
    session_id = begun(store, reads(20, TEXT * 15)[:-1])
    cold = store.fork(session_id).id
    frugal = Policy.named("frugal")
    made = store.compact_if_needed(session_id, frugal, max_tokens=32_000, now=NOW + MINUTE)
    assert made is not None
    assert made.tokens_after < 32_000 * 0.7
    made = store.compact_if_needed(cold, frugal, max_tokens=10**6, now=NOW + HOUR)
    assert made is not None
    assert made.first_kept == 22
    assert made.tokens_after > frugal.compact_cold_from
