"""The names of what is hidden, which go with every summary where a policy has room for them."""

from __future__ import annotations

import pytest
from chats import Message, begun, query, tool
from conversations import NOW

from store import Policy, Store

ROOM = 2000
POLICY = Policy(index_chars=ROOM, facts_chars=0)


def turn(*words: str) -> list[Message]:
    """Return a turn in which the user says some words, and a model answers at some length."""
    return [
        {"role": "user", "content": " ".join(words)},
        {"role": "assistant", "content": "It is all the same to me. " * 40},
    ]


def told(store: Store, session_id: str, policy: Policy = POLICY) -> list[str]:
    """Compact; return the names that all summaries in the view tell."""
    done = store.compact(session_id, policy, lambda request: "we worked", now=NOW)
    assert done.outcome == "applied", done.error
    lines = [
        line
        for entry in store.view(session_id, policy, now=NOW).entries
        if entry.rule == "summary"
        for line in entry.message["content"].split("\n")
    ]
    return lines[lines.index("出现过的名称：") + 1 :] if "出现过的名称：" in lines else []


def test_names_are_told_whoever_writes_the_summary(store: Store) -> None:
    """Below it, without those that only messages in sight tell."""
    session_id = begun(store, [*turn("mend setUp in a/b.py"), *turn("then a/b.py and tearDown")])
    assert told(store, session_id) == ["setUp"]
    [row] = query(store, session_id, "summaries")
    assert row["facts"] == "出现过的名称：\nsetUp"
    assert "a/b.py" in row["names"]


def test_no_room_means_no_index(store: Store) -> None:
    """As in all policies that do not ask for it."""
    session_id = begun(store, [*turn("mend setUp"), *turn("go on")])
    assert told(store, session_id, Policy(facts_chars=0)) == []
    [row] = query(store, session_id, "summaries")
    assert (row["facts"], row["names"]) == (None, None)


@pytest.mark.parametrize("previous", ["fold", "append"])
def test_names_outlast_every_compaction(store: Store, previous: str) -> None:
    """Also those that were in sight when they were hidden for the first time elsewhere.

    Each is told once, whether summaries replace each other or stand beside each other.
    """
    policy = POLICY.model_copy(update={"previous_summary": previous})
    session_id = begun(store, turn("mend name_0 and shared_name"))
    for number in range(1, 6):
        store.append(session_id, turn(f"mend name_{number} and shared_name"), now=NOW)
        store.compact(session_id, policy, lambda request: "we worked", now=NOW)
    store.append(session_id, turn("thanks"), now=NOW)
    names = [each for each in told(store, session_id, policy) if "_" in each]
    assert sorted(names) == [*(f"name_{number}" for number in range(6)), "shared_name"]


def test_a_name_of_an_earlier_summary_without_an_index_is_found(store: Store) -> None:
    """The policy may have changed meanwhile: then the messages are read again."""
    session_id = begun(store, [*turn("mend old_name"), *turn("go on")])
    store.compact(session_id, Policy(), lambda request: "we worked", now=NOW)
    store.append(session_id, turn("and new_name"), now=NOW)
    store.append(session_id, turn("thanks"), now=NOW)
    assert told(store, session_id) == ["new_name", "old_name"]


def test_what_the_facts_tell_is_not_told_again(store: Store) -> None:
    """A file touched is there already."""
    edit = tool("filesystem-edit", {"filePath": "src/a.ts"}, "renamed old_name", "e")
    session_id = begun(store, [*turn("Go."), *edit, *turn("Thanks.")])
    policy = Policy(index_chars=ROOM)
    assert told(store, session_id, policy) == ["old_name"]
    assert "- src/a.ts (修改)" in query(store, session_id, "summaries")[0]["facts"]


def test_an_undone_compaction_takes_its_names_back(store: Store) -> None:
    """The next one knows each message once."""
    session_id = begun(store, [*turn("mend old_name"), *turn("go on")])
    told(store, session_id)
    store.undo_compaction(session_id, store.compactions(session_id)[0].id or 0, now=NOW)
    assert told(store, session_id) == ["old_name"]
    first, second = query(store, session_id, "summaries")
    assert first["names"] == second["names"]


def test_the_newest_are_looked_through_where_there_is_too_much(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In portions, from the end on."""
    monkeypatch.setattr("store.compaction.job.MOST_SCANNED", 3000)
    monkeypatch.setattr("store.compaction.job.NAMES_AT_ONCE", 3)
    session_id = begun(
        store, [*turn("old_name"), *turn("mid_name"), *turn("new_name"), *turn("go")]
    )
    assert told(store, session_id) == ["new_name", "mid_name"]
