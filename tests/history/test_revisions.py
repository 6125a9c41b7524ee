"""Revisions: a session's mark, another one after each change, by which later writers are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from store import Conflict, HeadMoved, Store
from store.errors import InvalidValue, SessionNotFound


def said(*texts: str) -> list[dict[str, Any]]:
    """Messages with these texts."""
    return [{"role": "user", "content": text} for text in texts]


@pytest.fixture
def session(store: Store) -> str:
    """A session with three messages and a rewind to undo."""
    session_id = store.create_session().id
    store.append(session_id, said("a", "b", "c", "d"))
    store.rewind(session_id, 3)
    return session_id


CHANGES: dict[str, Callable[..., object]] = {
    "append": lambda store, session, **known: store.append(session, said("x"), **known),
    "rewind": lambda store, session, **known: store.rewind(session, 1, **known),
    "undo_rewind": lambda store, session, **known: store.undo_rewind(session, **known),
    "rename": lambda store, session, **known: store.rename_session(session, "T", **known),
    "metadata": lambda store, session, **known: store.set_metadata(session, {"a": 1}, **known),
    "merge": lambda store, session, **known: store.set_metadata(
        session, {"a": 1}, merge=True, **known
    ),
}
"""What changes a session."""
OTHERS: dict[str, Callable[..., object]] = {
    "fork": lambda store, session, **known: store.fork(session, **known),
    "delete": lambda store, session, **known: store.delete_session(session, **known),
}
"""What takes an expected revision, too."""


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_gives_another_revision(store: Store, session: str, name: str) -> None:
    """Which is the one that the session then has."""
    seen = {store.session(session).revision}
    for _ in range(2):
        if name != "undo_rewind" or len(seen) == 1:
            CHANGES[name](store, session)
            store.append(session, said("more"))
        seen.add(store.session(session).revision)
    assert len(seen) == (2 if name == "undo_rewind" else 3)


def test_what_changes_nothing_keeps_the_revision(store: Store, session: str) -> None:
    """Reading, forking, usages, a rewind to the head, and an append of what is there already."""
    store.append(session, {**said("known")[0], "id": "m"})
    known = store.session(session)
    store.append(session, {**said("known")[0], "id": "m"})
    store.append(session, [])
    store.rewind(session, known.head)
    store.record_usage(session, input=1, output=1)
    fork = store.fork(session)
    store.view(session)
    assert store.session(session) == known
    assert fork.revision != known.revision


@pytest.mark.parametrize("name", [*CHANGES, *OTHERS])
def test_an_expected_revision_is_checked(store: Store, session: str, name: str) -> None:
    """Another one is refused, naming both, and nothing was done; the right one is taken."""
    change = (CHANGES | OTHERS)[name]
    early = store.session(session).revision
    store.append(session, said("somebody else"))
    now = store.session(session)
    with pytest.raises(Conflict) as caught:
        change(store, session, expected=early)
    assert (caught.value.expected, caught.value.found) == (early, now.revision)
    assert early in str(caught.value)
    assert now.revision in str(caught.value)
    with pytest.raises(InvalidValue):
        change(store, session, expected=3)
    assert store.session(session) == now
    change(store, session, expected=now.revision)


def test_a_head_that_moved_is_a_conflict(store: Store, session: str) -> None:
    """So who catches one catches both."""
    with pytest.raises(Conflict) as caught:
        store.append(session, said("x"), expected_head=1)
    assert isinstance(caught.value, HeadMoved)
    assert (caught.value.expected, caught.value.found, caught.value.head) == (1, 3, 3)


def test_a_head_at_the_same_position_is_told_from_the_one_that_was_seen(
    store: Store, session: str
) -> None:
    """A rewind and another message in the same place: the position is the same, the line is not."""
    seen = store.session(session)
    store.rewind(session, seen.head - 1)
    store.append(session, said("another"))
    assert store.session(session).head == seen.head
    with pytest.raises(Conflict):
        store.append(session, said("an answer to what is gone"), expected=seen.revision)
    store.undo_rewind(session)
    with pytest.raises(Conflict):
        store.append(session, said("too late anyway"), expected=seen.revision)


def test_a_session_made_anew_has_none_of_its_old_revisions(store: Store) -> None:
    """Neither as a root nor as a fork in the same tree."""
    seen = set()
    store.create_session("source")
    for number in range(6):
        made = store.create_session("again") if number % 2 else store.fork("source", 0, "again")
        seen |= {made.revision, store.rename_session("again", "T").revision}
        store.delete_session("again")
    assert len(seen) == 12


def test_what_is_stored_can_be_repeated_whatever_the_revision(store: Store, session: str) -> None:
    """Who does not know whether a call came through repeats it as it was."""
    message = {**said("once")[0], "id": "m"}
    known = store.session(session).revision
    stored = store.append(session, message, expected=known)
    assert store.append(session, message, expected=known) == stored


def test_only_one_session_has_a_revision(store: Store, session: str) -> None:
    """Several are not deleted by one; what is not there is said to be not there."""
    revision = store.session(session).revision
    with pytest.raises(InvalidValue):
        store.delete_session(session, session, expected=revision)
    with pytest.raises(SessionNotFound):
        store.delete_session("none", expected=revision)
    assert store.session(session).revision == revision


def test_counting_up_in_two_processes_loses_nothing(url: str, fork: Callable[..., Any]) -> None:
    """Read, change, write: who was not first reads again, so 200 increments give 200."""
    with Store(url, durability="normal") as store:
        store.create_session("s", metadata={"n": 0})

    def count(times: int) -> None:
        with Store(url, durability="normal") as store:
            while times:
                known = store.session("s")
                changed = {"n": known.metadata["n"] + 1}
                try:
                    store.set_metadata("s", changed, expected=known.revision)
                except Conflict:
                    continue
                times -= 1

    for child in [fork(count, 100) for _ in range(2)]:
        child.result()
    with Store(url) as store:
        assert store.session("s").metadata == {"n": 200}
