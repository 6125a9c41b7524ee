"""Batched clearing.

Replaced at recorded moments only, so that a prompt cache keeps what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import ne
from typing import Any

import pytest
from conversations import NOW, conversations
from hypothesis import given, settings
from hypothesis import strategies as st

from store import Policy, Store
from store.summaries import Summarizer, SummaryRequest

Message = dict[str, Any]
MINUTE = 60_000
ALWAYS = Policy(terminal_keep=2)
BATCHED = Policy(terminal_keep=2, clearing="batched", clear_min_freed=2_000)


def command(number: int, size: int = 2_000) -> list[Message]:
    """A turn with a command, at minute ``number``."""
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "terminal-execute", "arguments": "{}"},
    }
    output = json.dumps({"stdout": f"{number} " + "x" * size, "exitCode": 0})
    return [
        {"role": "user", "content": f"run {number}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": f"c{number}",
            "content": output,
            "timestamp": NOW + number * MINUTE,
        },
    ]


def begun(store: Store, count: int, size: int = 2_000) -> str:
    """A session with commands at its first minutes."""
    session_id = store.create_session().id
    store.append(
        session_id, [message for number in range(count) for message in command(number, size)]
    )
    return session_id


def late(minutes: int = 60) -> int:
    """A moment when all commands are old."""
    return NOW + minutes * MINUTE


def replaced(store: Store, session_id: str, policy: Policy = BATCHED, **options: Any) -> list[int]:
    """The positions that a view replaces."""
    options.setdefault("now", late())
    return [
        each.seq or 0
        for each in store.view(session_id, policy, **options).entries
        if each.rule == "terminal"
    ]


def test_nothing_is_replaced_before_a_clearing_is_recorded(store: Store) -> None:
    """However old it is; the same rules without batching replace it at once."""
    session_id = begun(store, 6)
    assert replaced(store, session_id) == []
    assert replaced(store, session_id, ALWAYS) == [3, 6, 9, 12]
    reasons = {
        each.reason for each in store.view(session_id, BATCHED, now=late()).entries if each.seq == 3
    }
    assert reasons == {"to be replaced when the cache is cold or enough is to be freed"}


def test_a_clearing_is_made_when_enough_would_be_freed(store: Store) -> None:
    """With what it cleared, its moment and its numbers; it hides nothing."""
    session_id = begun(store, 5)
    assert (
        store.compact_if_needed(session_id, BATCHED, now=late()) is None
    )  # three of about 500 tokens
    store.append(session_id, [message for number in range(5, 8) for message in command(number)])
    before = store.check(session_id, BATCHED, now=late())
    made = store.compact_if_needed(session_id, BATCHED, reason="tool_execution", now=late())
    assert made is not None
    assert (made.kind, made.outcome, made.reason, made.created_at) == (
        "clear",
        "applied",
        "tool_execution",
        late(),
    )
    assert made.cleared == tuple((seq, "terminal") for seq in (3, 6, 9, 12, 15, 18))
    assert (made.hidden, made.summary, made.messages_before, made.messages_after) == (
        None,
        None,
        24,
        24,
    )
    assert made.tokens_before == before.tokens
    assert made.tokens_after == store.check(session_id, BATCHED, now=late()).tokens
    assert made.tokens_after == store.view(session_id, BATCHED, now=late()).stats.tokens
    assert made.tokens_before - made.tokens_after >= BATCHED.clear_min_freed  # type: ignore[operator]
    assert replaced(store, session_id) == [3, 6, 9, 12, 15, 18]
    assert store.compactions(session_id) == [made]
    assert store.hidden(session_id) == {}
    assert store.compact_if_needed(session_id, BATCHED, now=late()) is None


def test_a_clearing_is_made_when_the_cache_is_cold(store: Store) -> None:
    """However little is freed: what is not in the cache costs nothing to change."""
    session_id = begun(store, 3)
    store.record_usage(session_id, input=2_000, output=1, now=late())
    cold = late() + BATCHED.cache_lifetime
    assert store.compact_if_needed(session_id, BATCHED, now=cold - 1) is None
    made = store.compact_if_needed(session_id, BATCHED, now=cold)
    assert made is not None
    assert made.cleared == ((3, "terminal"),)
    assert store.compact_if_needed(session_id, BATCHED, now=cold + 1) is None


def test_without_batching_nothing_is_recorded(store: Store) -> None:
    """The rules apply by themselves."""
    session_id = begun(store, 30)
    assert store.compact_if_needed(session_id, ALWAYS, now=late()) is None
    assert store.compactions(session_id) == []


def test_the_view_is_stable_between_two_clearings(store: Store) -> None:
    """Byte for byte, as time passes and messages are appended.

    S0 alone changes old messages at any moment (A0.18).
    """
    session_id = begun(store, 8)
    store.compact_if_needed(session_id, BATCHED, now=late())
    first = store.view(session_id, BATCHED, now=late()).messages
    unstable = 0
    sent = store.view(session_id, ALWAYS, now=late(9)).messages
    for number in range(8, 12):
        store.append(session_id, command(number, 100))
        for now in (late(number + 1), late(number + 30), late(10_000)):
            view = store.view(session_id, BATCHED, now=now)
            assert json.dumps(view.messages[: len(first)]) == json.dumps(first)
            now_sent = store.view(session_id, ALWAYS, now=now).messages
            unstable += now_sent[: len(sent)] != sent
            sent = now_sent
    assert unstable


def test_a_second_clearing_adds_to_the_first(store: Store) -> None:
    """What was cleared stays so."""
    session_id = begun(store, 8)
    store.compact_if_needed(session_id, BATCHED, now=late())
    store.append(session_id, [message for number in range(8, 14) for message in command(number)])
    made = store.compact_if_needed(session_id, BATCHED, now=late())
    assert made is not None
    assert made.cleared == tuple((seq, "terminal") for seq in (21, 24, 27, 30, 33, 36))
    assert replaced(store, session_id) == [*range(3, 39, 3)]
    store.undo_compaction(session_id, made.id)
    assert replaced(store, session_id) == [*range(3, 19, 3)]


def test_forks_rewinds_undos_and_moments_follow_the_records(store: Store) -> None:
    """Like any other compaction."""
    session_id = begun(store, 8)
    before = store.fork(session_id).id
    made = store.compact_if_needed(session_id, BATCHED, now=late())
    assert made is not None
    after = store.fork(session_id).id
    cleared = [*range(3, 19, 3)]
    store.append(session_id, command(8))
    assert [replaced(store, each) for each in (session_id, before, after)] == [cleared, [], cleared]
    assert replaced(store, session_id, at=24) == cleared
    assert replaced(store, session_id, at=23) == []
    store.rewind(session_id, 22)
    assert replaced(store, session_id) == []
    store.undo_rewind(session_id)
    assert replaced(store, session_id) == cleared
    store.undo_compaction(session_id, made.id)
    assert [replaced(store, each) for each in (session_id, after)] == [[], cleared]
    assert store.verify() == []


def test_a_clearing_and_a_summary_are_undone_apart(store: Store) -> None:
    """Neither was made upon the other."""
    session_id = begun(store, 12)
    policy = BATCHED.model_copy(update={"trigger_messages": 20, "keep_messages": 15})
    made = store.compact_if_needed(
        session_id, policy, lambda request: "twelve commands", now=late()
    )
    clearing, summary = store.compactions(session_id)
    assert (made, clearing.kind, summary.kind) == (summary, "clear", "summary")
    assert summary.hidden is not None
    kept = [seq for seq, _ in clearing.cleared if seq > summary.hidden[1]]
    assert replaced(store, session_id, policy) == kept
    store.undo_compaction(session_id, clearing.id)
    assert replaced(store, session_id, policy) == []
    store.undo_compaction(session_id, summary.id)
    assert len(store.view(session_id, policy, now=late()).messages) == 36


# --- what a cache still holds ---------------------------------------------------------------------


def unchanged(store: Store, session_id: str, policy: Policy, now: int) -> int | None:
    """The tokens of a view that were the same in the last request."""
    return store.view(session_id, policy, now=now).stats.unchanged_tokens


def test_without_a_request_nothing_is_known(store: Store) -> None:
    """None is not 0."""
    session_id = begun(store, 2)
    assert unchanged(store, session_id, BATCHED, late()) is None
    store.record_usage(session_id, input=1, output=1, now=late())
    assert (
        unchanged(store, session_id, BATCHED, late())
        == store.view(session_id, BATCHED, now=late()).stats.tokens
    )


def test_what_is_appended_leaves_the_request_unchanged(store: Store) -> None:
    """Batched, however much time passes; without batching the first replaced result breaks it."""
    session_id = begun(store, 4)
    sent = store.view(session_id, BATCHED, now=late(5)).stats.tokens
    store.record_usage(session_id, input=sent, output=1, now=late(5))
    store.append(session_id, command(5))
    assert unchanged(store, session_id, BATCHED, late(90)) == sent
    first = store.view(session_id, ALWAYS, now=late(90)).entries[:2]
    assert unchanged(store, session_id, ALWAYS, late(90)) == sum(entry.tokens for entry in first)


def test_a_clearing_changes_from_the_first_cleared_on(store: Store) -> None:
    """And a summary from where it stands."""
    session_id = store.create_session().id
    store.append(session_id, {"role": "system", "content": "the rules of this house"})
    store.append(session_id, [message for number in range(8) for message in command(number)])
    store.record_usage(session_id, input=5_000, output=1, now=late())
    store.compact_if_needed(session_id, BATCHED, now=late() + 1)
    entries = store.view(session_id, BATCHED, now=late() + 1).entries
    assert unchanged(store, session_id, BATCHED, late() + 1) == sum(
        entry.tokens for entry in entries[:3]
    )
    store.compact(session_id, BATCHED, lambda request: "commands", now=late() + 2)
    assert unchanged(store, session_id, BATCHED, late() + 2) == entries[0].tokens
    store.record_usage(session_id, input=500, output=1, now=late() + 3)
    store.append(session_id, command(9))
    view = store.view(session_id, BATCHED, now=late() + 4)
    assert view.stats.unchanged_tokens == sum(entry.tokens for entry in view.entries[:-3])


def failing(request: SummaryRequest) -> str:
    """No model answers."""
    raise ConnectionError("no route to host")


@pytest.mark.parametrize(
    ("policy", "summarizer"),
    [
        (Policy(on_failure="trim", hard_limit=6, facts_chars=0), failing),
        (Policy(), lambda request: "commands"),
        (Policy(summary_role="merge"), lambda request: "commands"),
    ],
    ids=["trimmed", "summarised", "merged"],
)
def test_what_moved_to_the_beginning_was_not_there(
    store: Store, policy: Policy, summarizer: Summarizer
) -> None:
    """What a request had in another place is no part of its beginning, before a compaction and
    after its undoing.
    """
    session_id = store.create_session().id
    first, *more = [
        [{"role": "system", "content": f"rule {number}"}, *command(number, 40)]
        for number in range(4)
    ]
    store.append(session_id, [*first, *(message for each in more for message in each)])

    changes: list[Callable[[int], object]] = [
        lambda now: store.compact(session_id, policy, summarizer, now=now),
        lambda now: store.undo_compaction(session_id, 1, now=now),
    ]
    for minute, change in enumerate(changes):
        now = late(60 + minute)
        before = store.view(session_id, policy, now=now).messages
        store.record_usage(session_id, input=1, output=1, now=now)
        change(now + 1)
        view = store.view(session_id, policy, now=now + 1)
        same = next(
            place
            for place, pair in enumerate(zip(view.messages, before, strict=False))
            if ne(*pair)
        )
        assert view.stats.unchanged_tokens == sum(entry.tokens for entry in view.entries[:same])


def test_behind_a_summary_nothing_hidden_is_judged_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request had the whole history, the view has a summary of it.

    No result tells more about that.
    """
    session_id = store.create_session().id
    store.append(session_id, {"role": "system", "content": "the rules of this house"})
    store.append(session_id, [message for number in range(8) for message in command(number)])
    store.record_usage(session_id, input=5_000, output=1, now=late())
    store.compact(session_id, ALWAYS, lambda request: "commands", now=late() + 1)
    monkeypatch.setattr(
        "store.view.explanation.load_judged_line",
        lambda *_, **__: pytest.fail("the whole history was judged"),
    )
    entries = store.view(session_id, ALWAYS, now=late() + 2).entries
    assert unchanged(store, session_id, ALWAYS, late() + 2) == entries[0].tokens


# --- any conversation -----------------------------------------------------------------------------


@settings(max_examples=25)
@given(conversations, conversations, st.integers(0, 10**7), st.integers(0, 10**7))
def test_no_view_changes_between_clearings(
    store: Store, messages: list[Message], more: list[Message], first: int, second: int
) -> None:
    """A clearing replaces what the rules say at its moment, and then nothing else is, until the
    next one.
    """
    policy = Policy(
        terminal_keep=1, terminal_max_age=0, file_read_keep=1, clearing="batched", clear_min_freed=0
    )
    always = policy.model_copy(update={"clearing": "always"})
    session_id = store.create_session().id
    store.append(session_id, messages)
    raw = store.view(session_id, Policy.named("raw"), now=NOW)
    assert store.view(session_id, policy, now=NOW + first).messages == raw.messages
    uncleared, clear = (
        store.check(session_id, each, now=NOW + first).tokens for each in (policy, always)
    )
    made = store.compact_if_needed(session_id, policy, now=NOW + first)
    then = store.view(session_id, policy, now=NOW + first)
    ruled = store.view(session_id, always, now=NOW + first)
    replaces = any(entry.rule in ("terminal", "file_read") for entry in ruled.entries)
    assert (made is not None) == (replaces and clear <= uncleared)
    assert then.messages == (ruled if made else raw).messages
    store.append(session_id, more)
    assert (
        store.view(session_id, policy, at=len(messages), now=NOW + second).messages == then.messages
    )
    cleared = {entry.seq for entry in then.entries if entry.rule in ("terminal", "file_read")}
    later = store.view(session_id, policy, now=NOW + second)
    assert {
        entry.seq for entry in later.entries if entry.rule in ("terminal", "file_read")
    } == cleared
