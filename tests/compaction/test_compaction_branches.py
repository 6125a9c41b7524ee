"""Which compactions count on a fork and behind a rewind."""

from __future__ import annotations

from chats import COUNT, HEADING, begun, chat, contents, query, short, tool
from conversations import NOW

from store import Store
from store.summaries import SummaryRequest


def test_a_fork_has_the_compactions_of_its_past(store: Store) -> None:
    """And copies no row for it; one of before has none, whatever its source does later."""
    session_id = begun(store, chat(40))
    before = store.fork(session_id).id
    earlier = store.fork(session_id, at=39).id
    store.compact(session_id, COUNT, short)
    rows = {
        name: len(query(store, session_id, name))
        for name in ("messages", "compaction_records", "summaries")
    }
    after = store.fork(session_id).id
    assert rows == {name: len(query(store, session_id, name)) for name in rows}
    assert contents(store, after) == contents(store, session_id)
    assert contents(store, before) == [message["content"] for message in chat(40)]
    assert contents(store, earlier) == [message["content"] for message in chat(39)]
    assert store.compactions(after) == store.compactions(session_id)
    assert store.compactions(before) == store.compactions(earlier) == []
    store.append(after, chat(1))
    assert len(contents(store, after)) == 12


def test_what_a_fork_undoes_stays_in_its_source(store: Store) -> None:
    """And the other way round."""
    session_id = begun(store, chat(40))
    made = store.compact(session_id, COUNT, short)
    fork, other = store.fork(session_id).id, store.fork(session_id).id
    store.undo_compaction(fork, made.id)
    assert [len(contents(store, each)) for each in (session_id, fork, other)] == [11, 40, 11]
    store.undo_compaction(session_id, made.id)
    assert [len(contents(store, each)) for each in (session_id, fork, other)] == [40, 40, 11]


def test_siblings_compact_for_themselves(store: Store) -> None:
    """At the same head, each over the same messages."""
    session_id = begun(store, chat(40))
    forks = [store.fork(session_id).id for _ in range(3)]
    for fork in forks[:2]:
        assert (
            store.compact(fork, COUNT, lambda request, fork=fork: f"by {fork}").outcome == "applied"
        )  # type: ignore[misc]
    assert [contents(store, fork)[0] for fork in forks[:2]] == [
        f"{HEADING}\nby {fork}" for fork in forks[:2]
    ]
    assert [len(contents(store, each)) for each in (*forks, session_id)] == [11, 11, 40, 40]


def test_a_fork_made_while_a_summary_is_written_stays_apart(store: Store) -> None:
    """It was made before the compaction counted, at the same head."""
    session_id = begun(store, chat(40))
    made = store.compact(
        session_id,
        COUNT,
        lambda request: f"x{store.fork(session_id, session_id=f'{session_id}-f').id}",
    )
    assert made.outcome == "applied"
    assert len(contents(store, session_id)) == 11
    assert len(contents(store, f"{session_id}-f")) == 40
    assert store.compactions(session_id) == [made]
    assert store.undo_compaction(session_id, made.id).outcome == "undone"


def test_a_branch_hangs_on_no_compaction_that_still_runs(store: Store) -> None:
    """Made where its line began, a compaction counts where the line is when it ends."""
    session_id = begun(store, chat(43))
    store.rewind(session_id, 42)

    def moving(request: SummaryRequest) -> str:
        store.fork(session_id)
        store.rewind(session_id, 41)
        return "a summary"

    assert store.compact(session_id, COUNT, moving).outcome == "applied"
    assert store.verify() == []


def test_a_fork_of_a_fork_has_what_the_fork_compacted(store: Store) -> None:
    """Though no message was appended between.

    The position is the grandparent's, the compaction is not.
    """
    fork = store.fork(begun(store, chat(40))).id
    store.compact(fork, COUNT, short)
    assert len(contents(store, store.fork(fork).id)) == 11


def test_a_fork_of_a_fork_has_not_what_its_grandparent_compacted_later(store: Store) -> None:
    """The fork did not have it either."""
    session_id = begun(store, chat(40))
    fork = store.fork(session_id).id
    store.compact(session_id, COUNT, short)
    assert len(contents(store, store.fork(fork).id)) == 40


def test_a_rewind_to_where_a_fork_began_has_what_it_compacted_there(store: Store) -> None:
    """The compaction was recorded at this very head."""
    fork = store.fork(begun(store, chat(40))).id
    store.compact(fork, COUNT, short)
    store.append(fork, chat(4))
    store.rewind(fork, 40)
    assert len(contents(store, fork)) == 11


def test_a_rewind_to_where_a_fork_began_has_not_what_its_source_compacted_later(
    store: Store,
) -> None:
    """A sibling is never affected."""
    session_id = begun(store, chat(40))
    fork = store.fork(session_id).id
    store.compact(session_id, COUNT, short)
    store.append(fork, chat(4))
    store.rewind(fork, 40)
    assert len(contents(store, fork)) == 40


def test_a_rewind_to_before_it_brings_the_messages_back(store: Store) -> None:
    """X.16: and undoing the rewind hides them again; a rewind to its own head keeps it."""
    session_id = begun(store, chat(40))
    store.compact(session_id, COUNT, short)
    store.append(session_id, chat(6))
    compacted = contents(store, session_id)
    store.rewind(session_id, 40)
    assert len(contents(store, session_id)) == 11
    store.rewind(session_id, 39)
    assert contents(store, session_id) == [message["content"] for message in chat(39)]
    assert (store.hidden(session_id), store.compactions(session_id)) == ({}, [])
    store.undo_rewind(session_id)
    assert len(contents(store, session_id)) == 11
    store.undo_rewind(session_id)
    assert contents(store, session_id) == compacted


def test_a_line_that_was_left_is_shown_with_its_compactions(store: Store) -> None:
    """By the branch that the head left."""
    session_id = begun(store, chat(44))
    store.compact(session_id, COUNT, short, now=NOW)
    compacted = store.view(session_id, COUNT, now=NOW)
    store.rewind(session_id, 20)
    assert store.view(session_id, COUNT, branch=compacted.branch, now=NOW) == compacted


def test_a_view_of_before_a_compaction_is_that_of_then(store: Store) -> None:
    """At each position; at its own head it is the compacted one."""
    session_id = store.create_session().id
    seen = {}
    for place, message in enumerate(chat(70), 1):
        store.append(session_id, message)
        store.compact_if_needed(session_id, COUNT, short, now=NOW)
        seen[place] = store.view(session_id, COUNT, now=NOW)
    assert len(store.compactions(session_id)) == 2
    for place, view in seen.items():
        assert store.view(session_id, COUNT, at=place, now=NOW) == view


def test_a_greeting_before_a_long_turn_holds_nothing_up(store: Store) -> None:
    """By messages, as if live: the turn is hidden with it as soon as it is over.

    The window alone would never pay.
    """
    session_id = begun(
        store, [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    )
    made = []
    for turn in range(3):
        store.append(session_id, {"role": "user", "content": f"do the work {turn}"})
        for step in range(30):
            store.append(
                session_id,
                tool("terminal-execute", {"command": "make x"}, "out " * 100, f"c{turn}-{step}"),
            )
            made += [store.compact_if_needed(session_id, COUNT, short, now=NOW)]
    assert [each.hidden for each in made if each and each.outcome == "applied"] == [
        (1, 63),
        (64, 124),
    ]
