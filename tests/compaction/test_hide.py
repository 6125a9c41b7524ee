"""Ranges that a caller hides by name: what goes, what stands in its place, what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from chats import HEADING, begun, facts, query, tool, work
from conversations import MINUTE, NOW, Script
from refusals import refusals

from store import AsyncStore, Policy, Store
from store.compaction.record_rows import insert_record
from store.errors import (
    CompactionError,
    Conflict,
    InvalidValue,
    PositionOutOfRange,
    SessionNotFound,
    StoreError,
)
from store.history import lines
from store.inspection import integrity
from store.summaries import SummaryRequest

Message = dict[str, Any]


def user(text: str) -> Message:
    """What a user says."""
    return {"role": "user", "content": text}


def answer(text: str) -> Message:
    """What the assistant says."""
    return {"role": "assistant", "content": text}


def turn(number: int) -> list[Message]:
    """A question, a call, its result, an answer."""
    return [
        user(f"question {number}"),
        *tool("Bash", {"command": f"run {number}"}, f"output {number} " * 40, f"c{number}"),
        answer(f"answer {number}"),
    ]


def five(store: Store) -> str:
    """A session of a system message and five turns: turn n begins at 4 n + 2."""
    line = [{"role": "system", "content": "Be brief."}]
    return begun(store, [*line, *(each for n in range(5) for each in turn(n))], NOW)


def shown(store: Store, session_id: str, **options: Any) -> list[int | str]:
    """Positions of a view, and what stands between them."""
    view = store.view(session_id, now=NOW, **options)
    assert refusals(view.messages) == []
    return [entry.seq or str(entry.message["content"]) for entry in view.entries]


ALL = [*range(1, 22)]
RAW = Policy.named("raw")


# --- what stands where the range was --------------------------------------------------------------


@pytest.mark.parametrize("text", ["They ran it.", None])
def test_a_range_gives_way_to_a_text_or_to_nothing(store: Store, text: str | None) -> None:
    """The text stands where the range was; what is hidden, and since when, is told."""
    session_id = five(store)
    before = store.session(session_id)
    made = store.hide(session_id, 6, 9, text, now=NOW)
    assert (made.kind, made.outcome, made.hidden, made.summary) == ("hide", "applied", (6, 9), text)
    assert shown(store, session_id) == [*ALL[:5], *([text] if text else []), *ALL[9:]]
    assert list(store.hidden(session_id)) == [6, 7, 8, 9]
    assert {each.compacted_at for each in store.hidden(session_id).values()} == {NOW}
    assert store.compactions(session_id) == [made]
    assert store.session(session_id) == before, "a range was hidden, and the revision changed"
    assert [each.seq for each in store.messages(session_id)] == ALL
    undone = store.undo_compaction(session_id, made.id or 0, now=NOW)
    assert undone == made._replace(outcome="undone")
    assert shown(store, session_id) == ALL
    assert store.hidden(session_id) == {}


@pytest.mark.parametrize(
    ("role", "sent"), [("system", "system"), ("user", "user"), ("merge", "system")]
)
def test_the_text_is_sent_as_the_policy_sends_summaries(store: Store, role: Any, sent: str) -> None:
    """With its role and heading; merged, it goes into the one system message."""
    session_id = five(store)
    store.hide(session_id, 6, 9, "They ran it.", now=NOW)
    policy = Policy(summary_role=role, summary_heading=HEADING)
    messages = store.view(session_id, policy, now=NOW).messages
    place = 0 if role == "merge" else 5
    assert messages[place]["role"] == sent
    assert messages[place]["content"].endswith(f"{HEADING}\nThey ran it.")


@pytest.mark.parametrize(
    ("named", "hidden"),
    [((7, 7), (7, 8)), ((8, 8), (7, 8)), ((8, 9), (7, 9)), ((6, 7), (6, 8)), ((5, 11), (5, 12))],
)
def test_a_call_goes_with_its_result(
    store: Store, named: tuple[int, int], hidden: tuple[int, int]
) -> None:
    """Whichever end of it was named."""
    assert store.hide(five(store), *named, now=NOW).hidden == hidden


def test_a_range_grows_until_nothing_is_cut_in_two(store: Store) -> None:
    """Two calls of one message, answered far apart, with another group reaching out of them."""
    first, one = tool("Bash", {}, "one", "a")
    other, two = tool("Bash", {}, "two", "b")
    third, three = tool("Bash", {}, "three", "c")
    first["tool_calls"] += other["tool_calls"]
    line = [user("go"), first, one, user("wait"), third, two, user("and"), three, answer("done")]
    session_id = begun(store, [*line, user("next")], NOW)
    assert store.hide(session_id, 3, 3, now=NOW).hidden == (2, 8)
    assert shown(store, session_id) == [1, 9, 10]


def test_a_text_never_comes_between_a_call_and_its_result(store: Store) -> None:
    """What was hidden stood between them."""
    call, result = tool("Bash", {}, "out", "a")
    line = [user("go"), call, user("between"), answer("them"), result, answer("done"), user("next")]
    session_id = begun(store, line, NOW)
    assert store.hide(session_id, 3, 4, "a talk", now=NOW).hidden == (3, 4)
    assert shown(store, session_id) == [1, 2, 5, "a talk", 6, 7]


@pytest.mark.parametrize("adopts", [True, False])
def test_a_text_stands_before_a_result_without_call(store: Store, adopts: bool) -> None:
    """The call that is made up for it stays with it."""
    orphan = {"role": "tool", "tool_call_id": "x", "content": "lost", "timestamp": NOW}
    session_id = begun(store, [user("a"), answer("b"), orphan, user("c")], NOW)
    store.hide(session_id, 2, 2, "b was said", now=NOW)
    policy = Policy(orphans="adopt" if adopts else "drop")
    roles = [each["role"] for each in store.view(session_id, policy, now=NOW).messages]
    assert roles == ["user", "system", *(["assistant", "tool"] if adopts else []), "user"]


# --- what is refused ------------------------------------------------------------------------------


REFUSED: list[tuple[tuple[int, int], str]] = [
    ((1, 3), "position 1 is a system message"),
    ((17, 18), "position 18 is the latest user message"),
    ((2, 21), "position 18 is the latest user message"),
]


@pytest.mark.parametrize(("named", "problem"), REFUSED)
def test_what_no_view_may_do_without_stays(
    store: Store, named: tuple[int, int], problem: str
) -> None:
    """The error names it, and what to do; nothing is written."""
    session_id = five(store)
    with pytest.raises(CompactionError, match=f"{problem}.*; hide what is before") as caught:
        store.hide(session_id, *named, "gone", now=NOW)
    assert (caught.value.session_id, caught.value.reason) == (session_id, "manual")
    assert store.compactions(session_id) == []
    assert query(store, session_id, "summaries") == []


def test_calls_that_wait_stay(store: Store) -> None:
    """Until their result has come; then both go."""
    call, result = tool("Bash", {}, "out", "a")
    session_id = begun(store, [user("go"), answer("well"), call], NOW)
    with pytest.raises(CompactionError, match="position 3 has calls that wait for a result"):
        store.hide(session_id, 2, 3, now=NOW)
    assert store.hide(session_id, 2, 2, now=NOW).hidden == (2, 2)
    store.append(session_id, result)
    assert store.hide(session_id, 4, 4, now=NOW).hidden == (3, 4)
    assert shown(store, session_id) == [1]


def test_what_a_compaction_hides_is_hidden_already(store: Store) -> None:
    """A range may begin where it ended, not before."""
    session_id = five(store)
    done = store.compact(session_id, Policy(keep_turns=3, facts_chars=0), lambda _: "old", now=NOW)
    assert done.hidden == (1, 9)
    with pytest.raises(CompactionError, match="hides what is before position 10 already; begin"):
        store.hide(session_id, 9, 11, now=NOW)
    assert store.hide(session_id, 10, 11, "new", now=NOW).hidden == (10, 12)
    assert shown(store, session_id) == [1, "old", "new", *ALL[12:]]


WRONG: list[tuple[Any, Any, Any, type[StoreError]]] = [
    (0, 3, None, PositionOutOfRange),
    (3, 22, None, PositionOutOfRange),
    (-3, 4, None, PositionOutOfRange),
    (True, 4, None, PositionOutOfRange),
    ("3", 4, None, PositionOutOfRange),
    (4, None, None, PositionOutOfRange),
    (9, 6, None, InvalidValue),
    (6, 9, "", InvalidValue),
    (6, 9, " \n", InvalidValue),
    (6, 9, "a\0b", InvalidValue),
    (6, 9, "\ud800", InvalidValue),
    (6, 9, "x" * (2**20 + 1), InvalidValue),
    (6, 9, 5, InvalidValue),
]


@pytest.mark.parametrize(("first", "last", "text", "error"), WRONG)
def test_what_is_no_range_and_no_text_is_refused(
    store: Store, first: Any, last: Any, text: Any, error: type[StoreError]
) -> None:
    """With nothing written."""
    session_id = five(store)
    with pytest.raises(error):
        store.hide(session_id, first, last, text)
    assert store.compactions(session_id) == []


def test_an_unknown_session_and_an_old_revision_are_refused(store: Store) -> None:
    """As by other writes; hiding a range is no change of the session, so the revision stays."""
    session_id = five(store)
    with pytest.raises(SessionNotFound):
        store.hide("nobody", 1, 1)
    known = store.session(session_id).revision
    for _ in range(2):
        store.hide(session_id, 6, 9, expected=known, now=NOW)
    store.append(session_id, user("more"))
    with pytest.raises(Conflict):
        store.hide(session_id, 6, 9, expected=known, now=NOW)
    assert len(store.compactions(session_id)) == 2


# --- ranges beside and within each other ----------------------------------------------------------


def test_ranges_stand_beside_each_other_and_go_one_by_one(store: Store) -> None:
    """In any order, whichever was hidden first; the texts stand in the order of the line."""
    session_id = five(store)
    late = store.hide(session_id, 14, 17, "late", now=NOW)
    early = store.hide(session_id, 6, 9, "early", now=NOW)
    near = store.hide(session_id, 10, 10, "near", now=NOW)
    everything = [*ALL[:5], "early", "near", *ALL[10:13], "late", *ALL[17:]]
    assert shown(store, session_id) == everything
    store.undo_compaction(session_id, late.id or 0)
    assert shown(store, session_id) == [*ALL[:5], "early", "near", *ALL[10:]]
    store.undo_compaction(session_id, early.id or 0)
    assert shown(store, session_id) == [*ALL[:9], "near", *ALL[10:]]
    assert list(store.hidden(session_id)) == [10]
    store.undo_compaction(session_id, near.id or 0)
    assert shown(store, session_id) == ALL


def test_a_range_takes_a_whole_one_with_it(store: Store) -> None:
    """Its text gives way; undoing brings it back, and what is within goes last."""
    session_id = five(store)
    inner = store.hide(session_id, 6, 9, "inner", now=NOW)
    outer = store.hide(session_id, 9, 12, "outer", now=NOW + 1)
    assert outer.hidden == (6, 12)
    assert shown(store, session_id) == [*ALL[:5], "outer", *ALL[12:]]
    since = {seq: each.compaction for seq, each in store.hidden(session_id).items()}
    assert since == dict.fromkeys(range(6, 10), inner.id) | dict.fromkeys(range(10, 13), outer.id)
    with pytest.raises(CompactionError, match=f"{outer.id} was made upon compaction {inner.id}"):
        store.undo_compaction(session_id, inner.id or 0)
    store.undo_compaction(session_id, outer.id or 0)
    assert shown(store, session_id) == [*ALL[:5], "inner", *ALL[9:]]
    store.hide(session_id, 6, 6, now=NOW)
    assert shown(store, session_id) == [*ALL[:5], *ALL[9:]], "the same range again, without a text"


# --- forks, rewinds, undoings ---------------------------------------------------------------------


def test_a_range_is_hidden_on_the_line_where_it_was_and_from_there_on(store: Store) -> None:
    """Not before, not beside it; a fork keeps what its past had hidden."""
    session_id = five(store)
    before = store.fork(session_id, session_id="before").id
    with_text = [*ALL[:5], "gone", *ALL[9:]]
    made = store.hide(session_id, 6, 9, "gone", now=NOW)
    after = store.fork(session_id, session_id="after").id
    assert shown(store, before) == ALL
    assert shown(store, after) == with_text
    assert [each.id for each in store.compactions(after)] == [made.id]
    store.rewind(session_id, 17)
    assert shown(store, session_id) == ALL[:17]
    assert store.compactions(session_id) == []
    store.undo_rewind(session_id)
    assert shown(store, session_id) == with_text
    store.append(session_id, user("more"))
    assert shown(store, session_id, at=21) == with_text
    store.undo_compaction(after, made.id or 0)
    assert shown(store, after) == ALL
    assert shown(store, session_id) == [*with_text, 22], "undone on a fork, and gone on its source"


def test_a_fork_hides_for_itself(store: Store) -> None:
    """A range of messages that it has from its source."""
    session_id = five(store)
    fork = store.fork(session_id, at=17).id
    store.hide(fork, 6, 9, "gone", now=NOW)
    assert shown(store, fork) == [*ALL[:5], "gone", *ALL[9:17]]
    assert shown(store, session_id) == ALL


# --- compactions that grow over ranges ------------------------------------------------------------


def test_a_compaction_carries_the_text_on_and_tells_nothing_of_the_messages(store: Store) -> None:
    """Neither to the summariser nor in facts and names; undoing it brings the range back."""
    line = [each for number in range(6) for each in work(number)]
    session_id = begun(store, line, NOW)
    store.hide(session_id, 12, 22, "They tried file7 in vain.", now=NOW)
    asked: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> str:
        asked.append(request)
        return "What was done."

    hidden = shown(store, session_id)
    policy = Policy(keep_turns=2, index_chars=4000, facts_chars=4000)
    done = store.compact(session_id, policy, summarizer, now=NOW)
    (request,) = asked
    assert done.hidden == (1, 44)
    assert request.previous_summary == "They tried file7 in vain."
    assert [*request.messages] == [*line[:11], *line[22:44]]
    text = str(store.view(session_id, policy, now=NOW).messages[0]["content"])
    for fact in facts(range(1)) + facts(range(2, 4)):
        assert fact in text
    for word in ("file1.", "npm test 1", "rocket 1"):
        assert word not in text + request.transcript
    assert shown(store, session_id)[1:] == [*range(45, 67)]
    with pytest.raises(CompactionError, match="undo 2 first"):
        store.undo_compaction(session_id, 1)
    store.undo_compaction(session_id, done.id or 0)
    assert shown(store, session_id) == hidden
    store.undo_compaction(session_id, 1)
    assert shown(store, session_id) == [*range(1, 67)]


def test_the_next_compaction_does_not_tell_of_it_either(store: Store) -> None:
    """Though the facts of all that is hidden are gathered anew."""
    session_id = begun(store, [each for number in range(6) for each in work(number)], NOW)
    store.hide(session_id, 12, 22, "in vain", now=NOW)
    for keeps in (3, 1):
        policy = Policy(keep_turns=keeps, index_chars=4000, facts_chars=4000)
        store.compact(session_id, policy, lambda _: "What was done.", now=NOW)
    text = str(store.view(session_id, policy, now=NOW).messages[0]["content"])
    assert "file0." in text
    assert "file4." in text
    assert "file1." not in text


@pytest.mark.parametrize("previous", ["fold", "append"])
def test_a_text_stands_in_one_place_only(store: Store, previous: Any) -> None:
    """Before the compaction where the range was, behind it in the new summary."""
    session_id = five(store)
    store.hide(session_id, 6, 9, "hidden early", now=NOW)
    store.hide(session_id, 14, 17, "hidden late", now=NOW)
    policy = Policy(keep_turns=3, previous_summary=previous, facts_chars=0)
    store.compact(session_id, policy, lambda r: f"<{r.previous_summary}>", now=NOW)
    assert shown(store, session_id) == [1, "<hidden early>", *ALL[9:13], "hidden late", *ALL[17:]]
    policy = policy.model_copy(update={"keep_turns": 1})
    store.compact(session_id, policy, lambda r: f"[{r.previous_summary}]", now=NOW)
    told = {
        "fold": ["[<hidden early>\n\nhidden late]"],
        "append": ["<hidden early>", "[hidden late]"],
    }
    assert shown(store, session_id) == [1, *told[previous], *ALL[17:]]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("boundary", ["turn", "group"])
@pytest.mark.parametrize("hidden", [(4, 9), (6, 8), (7, 11), (8, 13)])
@pytest.mark.parametrize("window", [1, 4, 5, 6, 9, 12, None])
def test_no_cut_falls_into_a_range(
    store: Store, boundary: Any, hidden: tuple[int, int], window: int | None
) -> None:
    """Wherever the policy wishes it; what the plan says is what is hidden."""
    session_id = five(store)
    first, last = store.hide(session_id, *hidden, "gone", now=NOW).hidden or (0, 0)
    policy = Policy(window_messages=window, boundary=boundary, keep_turns=1, facts_chars=0)
    plan = store.plan_compaction(session_id, policy, now=NOW)
    assert not first <= plan.last < last
    assert plan.messages == len({*range(2, plan.last + 1)} - {*range(first, last + 1)}) > 0
    asked: list[int] = []
    done = store.compact(
        session_id, policy, lambda r: asked.append(len(r.messages)) or "x", now=NOW
    )
    assert (done.hidden, asked) == ((1, plan.last), [plan.messages])
    assert shown(store, session_id).count("gone") == (plan.last < first)


def test_a_range_hidden_while_a_summary_is_made_is_seen(store: Store) -> None:
    """Within the plan it ends the compaction as rejected, behind it it stays."""
    for named, outcome in (((6, 9), "rejected"), ((14, 17), "applied")):
        session_id = five(store)

        def summarizer(_: SummaryRequest, at: tuple[int, int] = named, of: str = session_id) -> str:
            store.hide(of, *at, "gone", now=NOW)
            return "summary"

        done = store.compact(session_id, Policy(keep_turns=3, facts_chars=0), summarizer, now=NOW)
        assert done.outcome == outcome
        assert shown(store, session_id).count("gone") == 1
        assert store.verify() == []


@pytest.mark.parametrize("chars", [0, 400])
def test_a_hard_limit_loses_no_text(store: Store, chars: int) -> None:
    """Without a summary the oldest turns go, and what stood for a range is told on."""
    session_id = five(store)
    store.hide(session_id, 6, 9, "hidden early", now=NOW)
    policy = Policy(on_failure="trim", hard_limit=10, keep_turns=2, facts_chars=chars)

    def broken(_: SummaryRequest) -> str:
        raise RuntimeError("no model")

    done = store.compact(session_id, policy, broken, now=NOW)
    assert done.outcome == "applied"
    view = store.view(session_id, policy, now=NOW)
    assert len(view.messages) <= 10
    assert sum("hidden early" in str(each["content"]) for each in view.messages) == 1


def test_extractive_summaries_and_transcripts_pass_over_ranges(store: Store) -> None:
    """The built-in summary is made of messages that it reads by their index."""
    session_id = five(store)
    store.hide(session_id, 6, 9, "They ran it.", now=NOW)
    store.compact(session_id, Policy(keep_turns=2), now=NOW)
    (summary,) = (each for each in shown(store, session_id) if isinstance(each, str))
    assert "question 0" in summary
    assert "question 2" in summary
    assert "question 1" not in summary


# --- rules, counts, requests ----------------------------------------------------------------------


def script(commands: int) -> list[Message]:
    """Commands of an hour ago and later, and what the user says in the end."""
    said = Script()
    said.user("begin")
    said.commands(commands)
    said.user("go on")
    return said.messages


def test_rules_rank_what_can_be_seen(store: Store) -> None:
    """So a result takes the place of a newer one that is hidden (X.8)."""
    policy = Policy(terminal_keep=3, terminal_max_age=0)
    session_id = begun(store, script(8), NOW)
    before = store.replaced(session_id, policy, now=NOW)
    assert [each.seq for each in before] == [3, 5, 7, 9, 11]
    store.hide(session_id, 10, 13, "gone", now=NOW)
    replaced = store.replaced(session_id, policy, now=NOW)
    assert [each.seq for each in replaced] == [3, 5, 7]
    view = store.view(session_id, policy, now=NOW)
    assert view.stats.replaced == {"terminal": 3, "summary": 1}


@pytest.mark.parametrize(
    "policy", [Policy(terminal_keep=3, terminal_max_age=0), Policy(any_tool=True, clear_keep=3)]
)
def test_results_before_a_range_are_judged_as_without_it(store: Store, policy: Policy) -> None:
    """Those of a line whose last ones all come before the range, too; and a check knows it."""
    session_id = begun(store, script(8), NOW)
    store.append(session_id, [user("and"), answer("so"), user("more")], now=NOW)
    before = store.replaced(session_id, policy, now=NOW)
    assert before
    store.hide(session_id, 19, 20, now=NOW)
    assert store.replaced(session_id, policy, now=NOW) == before
    tokens = store.view(session_id, policy, now=NOW).stats.tokens
    assert store.check(session_id, policy, now=NOW).tokens == tokens


def test_a_hidden_read_covers_no_lines(store: Store) -> None:
    """By a policy that goes by lines: what is not in sight is no replacement."""
    said = Script()
    said.user("begin")
    said.reads("src/a.ts", 3, content="1→" + "x" * 300)
    said.user("go on")
    session_id = begun(store, said.messages, NOW)
    policy = Policy(file_read_keep=1, range_aware=True)
    assert [each.seq for each in store.replaced(session_id, policy, now=NOW)] == [3, 5]
    store.hide(session_id, 6, 7, now=NOW)
    assert [each.seq for each in store.replaced(session_id, policy, now=NOW)] == [3]
    store.hide(session_id, 4, 5, now=NOW)
    assert store.replaced(session_id, policy, now=NOW) == []


POLICIES = [
    RAW,
    Policy(),
    Policy(terminal_keep=1, terminal_max_age=0),
    Policy(terminal_keep=1, terminal_max_age=0, judge_at="turn"),
    Policy(file_read_keep=1, range_aware=True),
    Policy.named("agent", clear_keep=1),
    Policy(any_tool=True, clear_keep=1),
    Policy(cut_arguments=True, clear_keep=1),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_check_counts_what_a_view_has(store: Store, policy: Policy) -> None:
    """Ranges and their texts included, with and without a prefix before them."""
    session_id = begun(store, [*work(0), *script(6), *work(1), user("end")], NOW)
    store.hide(session_id, 20, 23, "two commands", now=NOW)
    store.hide(session_id, 30, 30, now=NOW)
    for _ in range(2):
        view = store.view(session_id, policy, now=NOW + 90 * MINUTE)
        said = store.check(session_id, policy, now=NOW + 90 * MINUTE)
        assert said.tokens == sum(each.tokens for each in view.entries)
        assert view.stats.hidden_messages == len(store.hidden(session_id))
        hidden = view.stats.raw_tokens - view.stats.tokens - view.stats.tokens_saved
        assert hidden == 0
        fewer = policy.model_copy(update={"keep_turns": 3, "facts_chars": 0})
        store.compact(session_id, fewer, lambda _: "what was done", now=NOW)
    assert {each.outcome for each in store.compactions(session_id)} == {"applied"}
    assert [each.kind for each in store.compactions(session_id)][:3] == ["hide", "hide", "summary"]


def test_the_record_says_what_the_view_has(store: Store) -> None:
    """Before and after, in messages and tokens of a view that no rule changes."""
    session_id = five(store)
    before = store.view(session_id, RAW, now=NOW)
    made = store.hide(session_id, 6, 9, "They ran it.", now=NOW)
    after = store.view(session_id, RAW, now=NOW)
    told = (made.messages_before, made.messages_after, made.tokens_before, made.tokens_after)
    sent = (len(before.messages), len(after.messages), before.stats.tokens, after.stats.tokens)
    assert told == sent
    assert made.policy is None


def test_triggers_count_what_is_in_sight(store: Store) -> None:
    """And a compaction is checked anew after a range was hidden, whatever the last request had."""
    session_id = five(store)
    policy = Policy(trigger_messages=20)
    assert store.check(session_id, policy, now=NOW).should_compact
    store.record_usage(session_id, input=90_000, output=1, now=NOW)
    store.hide(session_id, 6, 9, "gone", now=NOW + 1)
    said = store.check(session_id, policy, 100_000, now=NOW + 2)
    assert (said.should_compact, said.reason) == (False, "below every trigger of the policy")


def test_clearings_and_ranges_do_not_know_of_each_other(store: Store) -> None:
    """What is hidden is not cleared; what was cleared stays so when it comes back."""
    policy = Policy(clearing="batched", clear_min_freed=0, terminal_keep=1)
    session_id = begun(store, script(6), NOW)
    made = store.hide(session_id, 4, 5, now=NOW)
    cleared = store.compact_if_needed(session_id, policy, now=NOW)
    assert cleared
    assert [seq for seq, _ in cleared.cleared] == [3, 7, 9, 11]
    store.hide(session_id, 6, 7, now=NOW)
    assert [each.seq for each in store.replaced(session_id, policy, now=NOW)] == [3, 9, 11]
    store.undo_compaction(session_id, made.id or 0, now=NOW)
    assert [each.seq for each in store.replaced(session_id, policy, now=NOW)] == [3, 9, 11]
    more = store.compact_if_needed(session_id, policy, now=NOW)
    assert more
    assert [seq for seq, _ in more.cleared] == [5]


@pytest.mark.parametrize("role", ["system", "merge"])
def test_a_cache_keeps_what_stands_before_the_range(store: Store, role: Any) -> None:
    """And all of the view once a request was made with it."""
    policy = RAW.model_copy(update={"summary_role": role})
    session_id = five(store)
    store.record_usage(session_id, input=1, output=1, now=NOW)
    store.hide(session_id, 6, 9, "gone", now=NOW + 1)
    view = store.view(session_id, policy, now=NOW + 2)
    before = 0 if role == "merge" else 5
    assert view.stats.unchanged_tokens == sum(each.tokens for each in view.entries[:before])
    store.record_usage(session_id, input=1, output=1, now=NOW + 3)
    store.append(session_id, user("more"), now=NOW + 4)
    view = store.view(session_id, policy, now=NOW + 5)
    assert view.stats.unchanged_tokens == sum(each.tokens for each in view.entries[:-1])


def test_a_request_has_the_ranges_too(store: Store) -> None:
    """What `context` gives is the view, and the input behind it."""
    session_id = five(store)
    store.hide(session_id, 6, 9, "gone", now=NOW)
    context = store.context(session_id, user_input="next", now=NOW)
    assert [each.seq for each in context.pieces] == [*ALL[:5], None, *ALL[9:], None]
    assert refusals(context.messages) == []


# --- redaction, erasure, other faces --------------------------------------------------------------


def test_a_redaction_names_the_text_that_stood_for_a_message(store: Store) -> None:
    """It may tell of it; what has no text tells nothing."""
    session_id = five(store)
    made = store.hide(session_id, 6, 9, "question 1 was asked", now=NOW)
    store.hide(session_id, 10, 13, now=NOW)
    assert store.redact(session_id, 6, "a name", now=NOW).compactions == (made.id,)
    assert store.redact(session_id, 10, "a name", now=NOW).compactions == ()
    assert store.verify() == []


def test_ranges_go_with_their_session(store: Store) -> None:
    """The records and the texts; a fork that has them keeps them."""
    session_id = five(store)
    store.hide(session_id, 6, 9, "gone", now=NOW)
    store.append(session_id, user("more"))
    store.hide(session_id, 10, 13, "gone too", now=NOW)
    fork = store.fork(session_id, at=21).id
    store.delete_session(session_id)
    assert shown(store, fork) == [*ALL[:5], "gone", *ALL[9:]]
    (record,) = query(store, fork, "compaction_records")
    assert (record["hidden_first"], record["hidden_last"]) == (6, 9)
    tree = record["tree_id"]
    assert store.verify() == []
    store.delete_session(fork)
    with store.database.reading() as connection:
        of_tree = f"FROM summaries WHERE tree_id = {tree}"
        left = connection.exec_driver_sql(f"SELECT COUNT(*) {of_tree}").scalar()
    assert left == 0


def test_whoever_asks_sql_finds_them(store: Store) -> None:
    """Hidden by the same records as `hidden` says."""
    session_id = five(store)
    store.hide(session_id, 6, 9, "gone", now=NOW)
    store.hide(session_id, 9, 11, "more", now=NOW)
    store.compact(session_id, Policy(keep_turns=2), lambda _: "x", now=NOW)
    store.hide(session_id, 14, 14, now=NOW)
    place = f"WHERE session_id = '{session_id}'"
    with store.database.reading() as connection:
        hidden = f"SELECT seq, compaction FROM hidden_messages {place}"
        found = dict(map(tuple, connection.exec_driver_sql(hidden)))
        kinds = f"SELECT kind FROM compaction_log {place} ORDER BY compaction"
        recorded = [kind for (kind,) in connection.exec_driver_sql(kinds)]
    assert found == {seq: each.compaction for seq, each in store.hidden(session_id).items()}
    assert recorded == ["hide", "hide", "summary", "hide"]


def test_owners_and_steps_hide_as_everybody_does(store: Store) -> None:
    """Somebody else's session is not there; steps that fail leave nothing."""
    mine = store.create_session(owner="ada").id
    store.append(mine, [user("a"), answer("b"), user("c")])
    with pytest.raises(SessionNotFound):
        store.scoped("bob").hide(mine, 2, 2)
    assert store.scoped("ada").hide(mine, 2, 2, now=NOW).hidden == (2, 2)

    def work_on(t: Any) -> None:
        t.hide(mine, 1, 2, "both")
        assert shown(t, mine) == ["both", 3]
        raise RuntimeError("taken back")

    with pytest.raises(RuntimeError):
        store.atomically(work_on)
    assert len(store.compactions(mine)) == 1


@pytest.mark.slow
def test_two_processes_hide_at_once(url: str, fork: Callable[..., Any]) -> None:
    """Every range of both is recorded and none shows; a session's revision tells none of it."""
    count = 20
    with Store(url, durability="normal") as store:
        store.create_session("s")
        store.append("s", [*(answer(f"answer {n}") for n in range(2 * count)), user("next")])
        before = store.session("s")

    def hide(odd: int) -> list[int]:
        with Store(url, durability="normal") as store:
            places = range(1 + odd, 2 * count + 1, 2)
            return [store.hide("s", n, n, expected=before.revision).id or 0 for n in places]

    made = [each for child in [fork(hide, odd) for odd in range(2)] for each in child.result()]
    assert len({*made}) == 2 * count
    with Store(url) as store:
        assert sorted(made) == [each.id for each in store.compactions("s")]
        assert [each.seq for each in store.view("s").entries] == [2 * count + 1]
        assert store.session("s") == before
        for each in made:
            store.undo_compaction("s", each)
        assert len(store.view("s").entries) == 2 * count + 1
        assert store.verify() == []


def test_it_is_awaited_too(store: Store) -> None:
    """With the same parameters."""
    session_id = five(store)

    async def hide() -> Any:
        async with AsyncStore(store) as awaited:
            return await awaited.hide(session_id, 6, 9, "gone", now=NOW)

    assert asyncio.run(hide()) == store.compactions(session_id)[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("span", [(9, 6), (6, 99), (0, 3), (None, None)])
def test_verify_finds_a_range_that_is_none(
    store: Store, span: tuple[int | None, int | None]
) -> None:
    """Though its record has the seal of one."""
    session_id = five(store)
    first, last = span
    found = []
    with suppress(RuntimeError), store.database.writing() as connection:
        record = {"kind": "hide", "outcome": "applied", "reason": "manual", "created_at": NOW}
        pointer = lines.load_pointer(connection, session_id)
        insert_record(connection, pointer, None, **record, hidden_first=first, hidden_last=last)
        found += integrity.examine_store(connection)
        raise RuntimeError("taken back")
    assert any("which are no range before its head" in each.problem for each in found), found
