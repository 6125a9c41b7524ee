"""What happens while a summary is written, and how a compaction ends."""

from __future__ import annotations

import pytest
from chats import COUNT, HEADING, begun, chat, contents, short
from conversations import NOW

from store import Store
from store.compaction.job import CompactionRequest, Job, prepare_job
from store.compaction.lifecycle import begin_compaction
from store.errors import StoreError
from store.summaries import SummaryRequest


def test_appends_go_on_while_a_summary_is_written(store: Store) -> None:
    """A compaction is applied to the range that it was planned for.

    Its record tells of the view that it changed.
    """
    session_id = begun(store, chat(40))

    def slow(request: SummaryRequest) -> str:
        for message in chat(5, 40):
            store.append(session_id, message)
        return "slow"

    made = store.compact(session_id, COUNT, slow, now=NOW)
    assert (made.outcome, made.hidden, made.head) == ("applied", (1, 30), 45)
    assert (made.messages_before, made.messages_after) == (45, 16)
    assert contents(store, session_id)[1:] == [message["content"] for message in chat(45)[30:]]
    assert made.tokens_after == store.check(session_id, COUNT, now=NOW).tokens
    assert store.hidden(session_id, at=44) == {}


@pytest.mark.parametrize("to", [0, 15, 30])
def test_a_rewind_into_the_range_meanwhile_rejects_it(store: Store, to: int) -> None:
    """The messages are gone from the line, or its latest user message would be hidden."""
    session_id = begun(store, chat(40))

    def rewinding(request: SummaryRequest) -> str:
        store.rewind(session_id, to)
        return "of what is gone"

    made = store.compact(session_id, COUNT, rewinding)
    assert (made.outcome, made.hidden) == ("rejected", None)
    assert "rewound" in str(made.error)
    assert contents(store, session_id) == [message["content"] for message in chat(to)]
    store.undo_rewind(session_id)
    assert len(contents(store, session_id)) == 40


def test_a_rewind_and_other_messages_meanwhile_reject_it(store: Store) -> None:
    """The positions are there again, the messages are others."""
    session_id = begun(store, chat(40))

    def rewinding(request: SummaryRequest) -> str:
        store.rewind(session_id, 10)
        store.append(session_id, chat(40, 100))
        return "of what is gone"

    assert store.compact(session_id, COUNT, rewinding).outcome == "rejected"
    assert len(contents(store, session_id)) == 50


def test_a_rewind_behind_the_range_meanwhile_does_no_harm(store: Store) -> None:
    """Nor does one that is undone."""
    session_id = begun(store, chat(44))

    def rewinding(request: SummaryRequest) -> str:
        store.rewind(session_id, 5)
        store.undo_rewind(session_id)
        store.rewind(session_id, 33)
        return "still right"

    made = store.compact(session_id, COUNT, rewinding)
    assert (made.outcome, made.head) == ("applied", 33)
    assert len(contents(store, session_id)) == 4
    store.undo_rewind(session_id)
    assert len(contents(store, session_id)) == 44


def test_an_undo_meanwhile_rejects_it(store: Store) -> None:
    """It was planned upon what is no longer hidden."""
    session_id = begun(store, chat(40))
    first = store.compact(session_id, COUNT, short)
    store.append(session_id, chat(30))

    def undoing(request: SummaryRequest) -> str:
        store.undo_compaction(session_id, first.id)
        return "upon nothing"

    made = store.compact(session_id, COUNT, undoing)
    assert (made.outcome, made.error) == (
        "rejected",
        "the range begins elsewhere by now: a compaction was undone or made meanwhile",
    )
    assert len(contents(store, session_id)) == 70


def test_another_summary_of_the_same_range_meanwhile_rejects_it(store: Store) -> None:
    """It carries on one that the line does not have.

    Erasing the session would find that gone before it.
    """
    session_id = begun(store, chat(80))
    store.compact(session_id, COUNT, short)
    store.rewind(session_id, 78)
    assert store.compact(session_id, COUNT, short).hidden == (1, 30)

    def returning(request: SummaryRequest) -> str:
        store.undo_rewind(session_id)
        return "upon another"

    made = store.compact(session_id, COUNT, returning)
    assert (made.outcome, made.head) == ("rejected", 80)
    assert store.delete_session(session_id)[0].messages == 80


def test_an_erased_session_meanwhile_is_said(store: Store) -> None:
    """There is nothing left to record."""
    session_id = begun(store, chat(40))

    def erasing(request: SummaryRequest) -> str:
        store.delete_session(session_id)
        return "of nothing"

    with pytest.raises(LookupError):
        store.compact(session_id, COUNT, erasing)


def test_nothing_of_an_erased_session_gets_into_one_of_its_id(store: Store) -> None:
    """Though a compaction with the same number is running there."""
    session_id = begun(store, chat(40))

    def replacing(request: SummaryRequest) -> str:
        store.delete_session(session_id)
        store.create_session(session_id)
        store.append(session_id, chat(40, 100))
        asked = CompactionRequest(session_id, COUNT)
        with store.database.writing() as connection:
            job = prepare_job(connection, asked, NOW)
            assert isinstance(job, Job)
            assert begin_compaction(connection, asked, job, NOW) == 1
        return "of what was erased"

    assert store.compact(session_id, COUNT, replacing, now=NOW).outcome == "rejected"
    assert contents(store, session_id) == [message["content"] for message in chat(40, 100)]


def test_a_second_compaction_of_a_session_is_told(store: Store) -> None:
    """A3.21: while another session of the tree may be compacted."""
    session_id = begun(store, chat(40))
    fork = store.fork(session_id).id
    told = []

    def another(request: SummaryRequest) -> str:
        told.append(store.compact(session_id, COUNT, short, reason="llm_call"))
        assert [made.outcome for made in store.compactions(session_id)] == ["running"]
        assert store.compact(fork, COUNT, short).outcome == "applied"
        return "first"

    made = store.compact(session_id, COUNT, another)
    assert made.outcome == "applied"
    assert (told[0].id, told[0].outcome, told[0].reason) == (None, "rejected", "llm_call")
    assert "is still running" in str(told[0].error)
    assert store.compactions(session_id) == [made]


def test_the_database_itself_refuses_a_second_running_record(url: str) -> None:
    """Whoever writes it."""
    with Store(url, durability="normal") as store:
        session_id = begun(store, chat(40))

        def insert(outcome: str) -> None:
            copied = "tree_id, branch, head, reason, created_at, session_id, kind"
            with store.database.writing() as connection:
                connection.exec_driver_sql(
                    f"INSERT INTO compaction_records (compaction, outcome, {copied}) "
                    f"SELECT 7, '{outcome}', {copied} FROM compaction_records"
                )

        def writing(request: SummaryRequest) -> str:
            with pytest.raises(StoreError, match=r"(?i)unique"):
                insert("running")
            insert("failed")
            return "refused"

        assert store.compact(session_id, COUNT, writing).outcome == "applied"


def test_an_abandoned_compaction_is_taken_over(store: Store) -> None:
    """When its time is long over; what comes of it then is rejected."""
    session_id = begun(store, chat(40))
    later = []

    def abandoned(request: SummaryRequest) -> str:
        told = store.compact(session_id, COUNT, short, now=NOW + 180_000 - 1)
        assert told.outcome == "rejected"
        later.append(
            store.compact(session_id, COUNT, lambda request: "took over", now=NOW + 180_000)
        )
        return "too late"

    late = store.compact(session_id, COUNT, abandoned, now=NOW)
    assert later[0].outcome == "applied"
    assert (late.id, late.outcome) == (None, "rejected")
    assert contents(store, session_id)[0] == f"{HEADING}\ntook over"
    first, second = store.compactions(session_id)
    assert (first.outcome, first.error, second.outcome) == ("failed", "it never ended", "applied")
