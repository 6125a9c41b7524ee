"""Ranges too long for a transcript, or for memory."""

from __future__ import annotations

import gc
import tracemalloc
from functools import partial
from typing import Any

import pytest
from chats import Message, begun, chat

from store import Policy, Store, StoredMessage
from store.compaction import triggers
from store.compaction.job import MESSAGES_AT_ONCE, HiddenMessages
from store.errors import StoreBusy
from store.history import load_session_chat_messages as stored
from store.summaries import SummaryRequest
from store.view import ViewContext


def test_no_more_is_read_than_a_transcript_may_have_room_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the range, reading ends where the transcript is full.

    All that it shows is what is hidden.
    """
    session_id = begun(store, chat(3000))
    read: list[int] = []

    def noting(connection: Any, name: str, start: int, stop: int) -> list[StoredMessage]:
        read.append(stop)
        return stored(connection, name, start, stop)

    monkeypatch.setattr("store.compaction.job.load_session_chat_messages", noting)
    asked: list[SummaryRequest] = []
    policy = Policy(keep_messages=2, transcript_max_chars=10_000)
    made = store.compact(session_id, policy, lambda request: asked.append(request) or "short")
    assert made.hidden
    assert read == [MESSAGES_AT_ONCE]
    assert len(asked[0].messages) == made.hidden[1] < 200
    assert f"消息 {made.hidden[1] - 1} " in asked[0].transcript


def test_a_hosts_summarizer_has_its_garbage_collected(store: Store) -> None:
    """The collector is paused for our own work on many messages, not for that of others."""
    session_id = begun(store, chat(1500))
    collected: list[bool] = []
    policy = Policy(keep_messages=2)
    assert store.compact(
        session_id, policy, lambda request: collected.append(gc.isenabled()) or "short"
    ).hidden
    assert collected == [True]
    assert gc.isenabled()


def told(count: int) -> list[Message]:
    """Large messages, with a system message among them that is not summarised."""
    messages = [{**each, "content": str(each["content"]) + "x" * 8_000} for each in chat(count)]
    return [*messages[:5], {"role": "system", "content": "Be brief."}, *messages[5:]]


def test_messages_that_are_hidden_read_like_a_list(store: Store) -> None:
    """Whole, by number and in slices: all but the system message, which stays."""
    session_id = begun(store, told(30))
    plan = store.plan_compaction(session_id, Policy(keep_messages=3))
    expected = [each.message for each in store.messages(session_id, 1, plan.last) if each.seq != 6]
    hidden = HiddenMessages(plan, partial(store.messages, session_id))
    assert plan.pinned == (6,)
    assert (len(hidden), list(hidden), hidden[:]) == (len(expected), expected, expected)
    assert [hidden[i] for i in range(-len(expected), len(expected))] == expected * 2
    assert hidden[4:9:2] == expected[4:9:2]
    assert hidden.index(expected[7]) == 7
    for beyond in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            hidden[beyond]


class Reads:
    """Notes what a summarizer reads of a line, and fails on request."""

    def __init__(self) -> None:
        self.ranges: list[range] = []
        self.busy = False

    def __call__(
        self, connection: Any, session_id: str, first: int, last: int, **line: Any
    ) -> list[StoredMessage]:
        """Note a range, and read it."""
        if self.busy:
            raise StoreBusy("another transaction was in the way")
        self.ranges.append(range(first, last + 1))
        return stored(connection, session_id, first, last, **line)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Return what notes the reading of summarizers."""
    noting = Reads()
    monkeypatch.setattr("store.compaction.workflow.load_session_chat_messages", noting)
    return noting


@pytest.mark.slow
def test_an_extractive_summary_holds_few_messages_at_a_time(store: Store, reads: Reads) -> None:
    """However long the range, each message is read once, and memory has five hundred of them at
    most.
    """
    session_id = begun(store, told(5 * MESSAGES_AT_ONCE))
    tracemalloc.start()
    made = store.compact(session_id, Policy(keep_messages=2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.outcome == "applied"
    assert made.hidden
    assert [seq for each in reads.ranges for seq in each] == list(range(1, made.hidden[1] + 1))
    assert max(map(len, reads.ranges)) <= MESSAGES_AT_ONCE
    assert peak < 20_000_000 < made.messages_before * 8_000


def test_messages_that_cannot_be_read_are_no_failure_of_a_summary(
    store: Store, reads: Reads
) -> None:
    """The caller hears of it, nothing is hidden in the place of a summary, and the next attempt is
    free.
    """
    policy = Policy(keep_messages=2, on_failure="truncate")
    session_id = begun(store, chat(20))
    reads.busy = True
    with pytest.raises(StoreBusy):
        store.compact(session_id, policy)
    assert [each.outcome for each in store.compactions(session_id)] == ["failed"]
    reads.busy = False
    assert store.compact(session_id, policy).outcome == "applied"


@pytest.mark.parametrize(("said", "found"), [(0, 1), (2, 2)])
def test_what_a_view_costs_is_found_again_only_where_it_changed(
    store: Store, monkeypatch: pytest.MonkeyPatch, said: int, found: int
) -> None:
    """What was appended while the summary was written counts in the record.

    Else nothing is looked at twice.
    """
    session_id = begun(store, chat(20))
    before = store.check(session_id, Policy()).tokens
    looked: list[int] = []
    tokens = triggers.estimate_view_tokens

    def noting(look: ViewContext) -> int:
        cost = tokens(look)
        looked.extend([cost] if look.visible.first_kept == 1 else [])
        return cost

    def summarizer(_: SummaryRequest) -> str:
        store.append(session_id, chat(said, 100))
        return "short"

    monkeypatch.setattr(triggers, "estimate_view_tokens", noting)
    made = store.compact(session_id, Policy(keep_messages=2), summarizer)
    assert (made.outcome, len(looked), made.tokens_before) == ("applied", found, looked[-1])
    assert (made.messages_before, looked[-1] > before) == (20 + said, said > 0)
