"""Paged sessions: cleared more, within a bound of the bill, and called back on demand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversations import NOW

from store import Policy, Store
from store.compaction.job import CompactionRequest
from store.compaction.running_bills import BILL, RunningBill
from store.compaction.workflow import choose_clearing, load_stored_cost, record_clearing
from store.history.lines import load_pointer
from store.policy import PROMPT_CACHES
from store.recall import answer, tool

Message = dict[str, Any]
MINUTE = 60_000
HOUR = 60 * MINUTE
STEP = 20_000
PAGED = Policy.named("paged", keep_asked=1_000)
LONG = "".join(f"value_{number} = {number * 1111}\n" for number in range(200))


def step(number: int, text: str | None = None, **arguments: str) -> list[Message]:
    """A call that reads a file of its own, and its result."""
    given = arguments or {"file_path": f"src/part_{number}.py"}
    function = {"name": "Write" if arguments else "Read", "arguments": json.dumps(given)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    content = f"def function_{number}(): return {number * 1111}\n" * 40 if text is None else text
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": content},
    ]


def begun(store: Store) -> str:
    """A session with a question."""
    session = store.create_session().id
    store.append(session, {"role": "user", "content": "Look at function_3."}, now=NOW)
    return session


def bill(store: Store, session: str) -> RunningBill | None:
    """Return the running bills of a session."""
    with store.database.reading() as connection:
        tree = connection.exec_driver_sql(
            f"SELECT tree_id FROM sessions WHERE id = '{session}'"
        ).scalar()
        return BILL.row(connection, tree_id=tree, session_id=session, policy_name="paged")


def known(store: Store, session: str) -> RunningBill:
    """Return running bills that are there."""
    found = bill(store, session)
    assert found is not None
    return found


def work(
    store: Store,
    session: str,
    steps: range,
    policy: Policy = PAGED,
    text: str | None = None,
) -> list[int]:
    """Take steps, a request before each; return how many results were cleared before which."""
    made = []
    for number in steps:
        now = NOW + number * STEP
        done = store.compact_if_needed(session, policy, now=now)
        made.append(len(done.cleared) if done else 0)
        store.append(session, step(number, text), now=now)
    return made


def test_a_warm_cache_is_given_up_while_the_bill_keeps_the_bound(store: Store) -> None:
    """Sessions without a pause gain too; no moment of one costs more than sending everything."""
    session = begun(store)
    made, ratios = [], []
    few = Policy.named("paged", clear_warm_keep=1, keep_asked=0)
    for number in range(30):
        made += work(store, session, range(number, number + 1), few, LONG)
        ratios.append(known(store, session).own_bill / known(store, session).raw_bill)
    assert any(made)
    assert max(ratios) <= PAGED.clear_bound
    assert ratios[-1] < 0.9
    tight = begun(store)
    work(store, tight, range(40), few.model_copy(update={"cache_lifetime": "anthropic-1h"}), LONG)
    assert known(store, tight).own_bill <= 1.02 * known(store, tight).raw_bill


@pytest.mark.sqlite_only
def test_the_bills_are_those_of_the_requests(store: Store) -> None:
    """Everything written first, what is unchanged read from the cache, after a pause all written."""
    session = begun(store)
    work(store, session, range(12))
    at = NOW + 12 * STEP
    store.compact_if_needed(session, PAGED, now=at)
    before, cache = known(store, session), PROMPT_CACHES["anthropic"]
    assert before.own_bill == pytest.approx(before.raw_bill)
    store.append(session, step(12), now=at)
    made = store.compact_if_needed(session, PAGED, now=at + HOUR)
    view = store.view(session, PAGED, now=at + HOUR)
    after = known(store, session)
    assert made is not None
    assert after.sent == view.stats.tokens
    assert after.own_bill - before.own_bill == pytest.approx(view.stats.tokens * cache.written)
    assert after.raw_bill - before.raw_bill == pytest.approx(view.stats.raw_tokens * cache.written)


def test_a_rewind_keeps_the_bills_and_a_fork_begins_at_zero(store: Store) -> None:
    """The money is spent; the requests of another session are not in its bills."""
    session = begun(store)
    work(store, session, range(20))
    spent = known(store, session).raw_bill
    store.rewind(session, to=5)
    work(store, session, range(20, 21))
    assert known(store, session).raw_bill > spent
    fork = store.fork(session).id
    assert bill(store, fork) is None
    work(store, fork, range(21, 22))
    assert known(store, fork).requests == 1
    assert known(store, fork).raw_bill < spent


@pytest.mark.sqlite_only
def test_only_what_is_to_be_sent_is_billed(store: Store) -> None:
    """A view, a check and a plan write nothing."""
    session = begun(store)
    work(store, session, range(20))
    before = bill(store, session)
    store.view(session, PAGED, now=NOW + HOUR)
    store.check(session, PAGED, now=NOW + HOUR)
    assert store.plan_clearing(session, PAGED, now=NOW + HOUR) is not None
    assert bill(store, session) == before


@pytest.mark.sqlite_only
def test_usages_tell_how_long_the_cache_lives(store: Store) -> None:
    """After a pause with cached tokens it lives longer, and the bills are corrected."""
    session = begun(store)
    work(store, session, range(12))
    at = NOW + 12 * STEP
    for pause in (0, 8 * MINUTE, 8 * MINUTE):
        at += pause
        store.compact_if_needed(session, Policy.named("paged", clear_keep=100), now=at)
        told = known(store, session)
        store.record_usage(session, input=told.sent, output=1, cached=told.sent_before, now=at)
        store.append(session, step(int(at - NOW)), now=at)
    store.compact_if_needed(session, PAGED, now=at + STEP)
    after = known(store, session)
    assert after.longest_alive == 8 * MINUTE
    assert not after.is_cold(after.at + 8 * MINUTE, 5 * MINUTE)
    assert after.is_cold(after.at + 9 * MINUTE, 5 * MINUTE)
    assert after.own_bill <= 1.02 * after.raw_bill


@pytest.mark.sqlite_only
def test_a_cache_that_may_still_live_is_given_up_within_the_bound(store: Store) -> None:
    """After less than twice its lifetime, unless a usage has told that such a pause is too long."""
    session = begun(store)
    policy = Policy.named("paged", clear_warm_keep=100)
    work(store, session, range(20), policy)
    last = known(store, session)
    assert store.plan_clearing(session, policy, now=last.at + 6 * MINUTE) is None
    assert store.plan_clearing(session, policy, now=last.at + 10 * MINUTE) is not None
    dear = policy.model_copy(update={"clear_bound": 2.0})
    assert store.plan_clearing(session, dear, now=last.at + 6 * MINUTE) is not None
    told = last._replace(shortest_over=6 * MINUTE)
    pauses = [told.is_surely_cold(last.at + pause * MINUTE, 5 * MINUTE) for pause in (5, 6)]
    assert pauses == [False, True]


@pytest.mark.sqlite_only
def test_what_the_question_asks_for_stays(store: Store) -> None:
    """Of the old results the one with its names; later views follow the record."""
    session = begun(store)
    work(store, session, range(20))
    question = {"role": "user", "content": "Why does function_3 return 3333?"}
    store.append(session, question, now=NOW + HOUR)
    policy = Policy.named("paged", keep_asked=600)
    made = store.compact_if_needed(session, policy, now=NOW + HOUR)
    assert made is not None
    gone = {seq for seq, _ in made.cleared}
    read = [each.seq for each in store.messages(session) if each.message["role"] == "tool"]
    assert read[3] not in gone
    assert {read[2], read[4]} <= gone
    contents = [str(each["content"]) for each in store.view(session, policy).messages]
    assert any("3333\n" in each for each in contents)
    assert store.view(session, policy).messages == store.view(session, policy).messages


@pytest.mark.sqlite_only
def test_plain_words_ask_for_nothing(store: Store) -> None:
    """All old results have them, so they do not tell which one is meant."""
    session = begun(store)
    work(store, session, range(20))
    cleared = []
    for text in ("Why does a function return its value?", "Go on."):
        fork = store.fork(session).id
        store.append(fork, {"role": "user", "content": text}, now=NOW + HOUR)
        made = store.compact_if_needed(fork, PAGED, now=NOW + HOUR)
        cleared.append(made and made.cleared)
    assert cleared[0]
    assert cleared[0] == cleared[1]


@pytest.mark.sqlite_only
def test_names_in_arguments_ask_too(store: Store) -> None:
    """Also at the beginning of a line, after a line end as JSON writes it."""
    session = begun(store)
    work(store, session, range(20))
    edit = step(20, "Done.", file_path="src/new.py", content="import os\nfunction_3()\n\t3333\n")
    store.append(session, edit, now=NOW + 20 * STEP)
    policy = Policy.named("paged", keep_asked=600)
    made = store.compact_if_needed(session, policy, now=NOW + HOUR)
    assert made is not None
    assert store.messages(session)[8].seq not in {seq for seq, _ in made.cleared}


@pytest.mark.sqlite_only
def test_a_cut_argument_says_what_it_has_and_is_called_back(store: Store) -> None:
    """Its beginning, its lines, the names that it defines; by the file the whole comes back."""
    session = begun(store)
    text = "import os\n\n" + "".join(f"def build_{n}(path):\n    return os\n\n" for n in range(40))
    store.append(session, step(900, "written", file_path="src/built.py", content=text), now=NOW)
    work(store, session, range(25))
    assert store.compact_if_needed(session, PAGED, now=NOW + HOUR) is not None
    view = store.view(session, PAGED, now=NOW + HOUR)
    cut = json.loads(view.messages[1]["tool_calls"][0]["function"]["arguments"])
    assert cut["file_path"] == "src/built.py"
    stand_in = cut["content"]
    assert "[the tool recall shows it] [122 lines: build_" in stand_in
    assert len(stand_in) <= 301
    told = answer(store, session, {"names": ["src/built.py"]}, policy=PAGED)
    assert "def build_39(path)" in told


@pytest.mark.sqlite_only
@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini"])
def test_a_request_offers_the_tool_in_its_format(store: Store, wire: str) -> None:
    """Beside the tools of the caller, once."""
    session = begun(store)
    mine = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}}
    given = store.context(session, tools=[mine, tool()], format=wire, policy=PAGED)
    offered = store.context(session, tools=[mine], format=wire, policy=PAGED, recall=True)
    assert offered.tools == given.tools
    again = store.context(session, tools=[mine, tool()], format=wire, policy=PAGED, recall=True)
    assert again.tools == given.tools
    alone = store.context(session, format=wire, policy=PAGED, recall=True)
    assert "recall" in json.dumps(alone.tools)
    text = store.context(session, tools="I can look.", format=wire, policy=PAGED, recall=True)
    assert '"recall"' in json.dumps(text.layered.tools) or "recall" in text.text


@pytest.mark.sqlite_only
def test_a_cache_has_a_name() -> None:
    """Its lifetime and prices follow; a number is of ms, at Anthropic's prices."""
    assert Policy(cache_lifetime="openai").prompt_cache == PROMPT_CACHES["openai"]
    assert Policy(cache_lifetime=7).prompt_cache == PROMPT_CACHES["anthropic"]._replace(lifetime=7)


@pytest.mark.sqlite_only
def test_a_summary_has_the_newest_edits_as_they_are(store: Store) -> None:
    """Line by line, so that a later edit can find them; of a policy without room for them none."""
    session = begun(store)
    for number in range(12):
        text = f"def edited_{number}():\n    return {number}\n"
        edit = {"file_path": f"src/{number}.py", "new_string": text}
        store.append(session, step(number, "Done.", **edit), now=NOW)
    store.append(session, [{"role": "user", "content": each} for each in ("And?", "So?")], now=NOW)
    for policy, lines in ((PAGED, 1), (Policy.named("paged", edits_chars=0), 0)):
        fork = store.fork(session).id
        made = store.compact(fork, policy, now=NOW)
        assert str(made.summary).count("\n    return 11\n") == lines


@pytest.mark.parametrize("change", ["append", "rewind", "redact", "hide", "usage", "nothing"])
def test_a_clearing_is_recorded_for_the_line_as_it_is(store: Store, change: str) -> None:
    """It is chosen while others may write; what they change meanwhile is not overlooked."""
    session = begun(store)
    work(store, session, range(20))
    at = NOW + HOUR
    request = CompactionRequest(session, PAGED, reason="llm_call")
    with store.database.reading() as connection:
        chosen = choose_clearing(
            load_stored_cost(connection, request, load_pointer(connection, session), at)
        )
    assert chosen.freed
    first = min(seq for seq, _ in chosen.freed)
    if change == "append":
        store.append(session, step(20), now=at)
    elif change == "rewind":
        store.rewind(session, to=30)
    elif change == "redact":
        store.redact(session, first, reason="secret")
    elif change == "hide":
        store.hide(session, first - 1, first, now=at)
    elif change == "usage":
        store.record_usage(session, input=9, output=1, now=at - 1)
    planned = store.plan_clearing(session, PAGED, now=at)
    with store.database.writing() as connection:
        made = record_clearing(connection, request, chosen, at)
    recorded = (made.cleared, made.tokens_before, made.tokens_after) if made else None
    assert recorded == planned
    assert (chosen.tokens == planned.tokens_before if planned else False) is (
        change in ("usage", "nothing")
    )


@pytest.mark.sqlite_only
def test_a_writer_reads_no_result_to_clear_it(store: Store) -> None:
    """Others wait meanwhile: many results take as many statements as a few."""
    taken = []
    for results in (12, 40):
        session = begun(store)
        work(store, session, range(results))
        request = CompactionRequest(session, PAGED, reason="llm_call")
        with store.database.reading() as connection:
            pointer = load_pointer(connection, session)
            chosen = choose_clearing(load_stored_cost(connection, request, pointer, NOW + HOUR))
        seen: list[str] = []
        with store.database.writing() as connection:
            driver: Any = connection.connection.driver_connection
            driver.set_trace_callback(seen.append)
            assert record_clearing(connection, request, chosen, NOW + HOUR)
            driver.set_trace_callback(None)
        taken.append(len(seen))
    assert taken[0] == taken[1]


@pytest.mark.sqlite_only
def test_a_view_goes_on_after_a_clearing(url: str) -> None:
    """Only what was cleared is rendered again; calls keep the ids that they were sent with."""
    with Store(url) as store, Store(url, cache_bytes=0) as anew:
        session = begun(store)
        cleared: set[str] = set()
        for number in range(30):
            now = NOW + number * STEP + HOUR * (number // 8)
            if done := store.compact_if_needed(session, PAGED, now=now):
                cleared.update(rule for _, rule in done.cleared)
            sent, expected = (each.view(session, PAGED, now=now) for each in (store, anew))
            assert (sent.messages, sent.entries) == (expected.messages, expected.entries)
            written = {"file_path": f"part_{number}.py", "content": LONG} if number % 2 else {}
            asked, result = step(number, **written)
            asked["tool_calls"][0]["id"] = result["tool_call_id"] = "the only id"
            store.append(session, [asked, result], now=now)
        assert cleared == {"any_tool", "arguments"}
        assert len(store.compactions(session)) == 2
        assert store.metrics().new_views == 1
