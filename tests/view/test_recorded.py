"""Records of compactions: each is read once, and what is known of it is what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from conftest import Child
from conversations import NOW, Message

from store import Policy, Store
from store.view import visible_set

Fork = Callable[..., Child]

POLICY = Policy(keep_messages=2)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the records that were read."""
    numbers: list[int] = []
    whole = visible_set._parse_record

    def noted(row: tuple[int, ...]) -> object:
        numbers.append(row[0])
        return whole(row)

    monkeypatch.setattr(visible_set, "_parse_record", noted)
    return numbers


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store that keeps what it reads."""
    with Store(url, durability="normal") as opened:
        yield opened


def talk(store: Store, session_id: str, word: str, rounds: int = 3) -> None:
    """Say something, and hide what was said before."""
    said: list[Message] = [
        {"role": role, "content": f"{word} {number} " * 40}
        for number in range(rounds)
        for role in ("user", "assistant")
    ]
    store.append(session_id, said)
    made = store.compact(session_id, POLICY, lambda _: f"So far: {word}.", now=NOW)
    assert made.outcome == "applied"


def test_a_record_is_read_once(store: Store, read: list[int]) -> None:
    """However often a view or a check goes by it; the next one alone is read then."""
    session_id = store.create_session().id
    for word in ("one", "two", "three"):
        talk(store, session_id, word)
    store.view(session_id, POLICY, now=NOW)
    read.clear()
    for _ in range(3):
        store.view(session_id, POLICY, now=NOW)
        store.check(session_id, POLICY, now=NOW)
    assert read == []
    talk(store, session_id, "four")
    read.clear()
    assert "So far: four." in repr(store.view(session_id, POLICY, now=NOW).messages)
    assert {*read} <= {4}


def test_a_store_that_keeps_nothing_reads_each_time(url: str, read: list[int]) -> None:
    """And so does a transaction that writes."""
    with Store(url, durability="normal", cache_bytes=0) as store:
        session_id = store.create_session().id
        talk(store, session_id, "one")
        read.clear()
        for _ in range(2):
            store.view(session_id, POLICY, now=NOW)
        assert read == [1, 1]


def test_a_record_that_ends_is_read_again(store: Store) -> None:
    """A view that is taken while a summary is made knows the record as running."""
    session_id = store.create_session().id
    talk(store, session_id, "one")
    store.append(session_id, [{"role": "user", "content": "more " * 40}] * 4)
    views: list[str] = []

    def summarise(_: object) -> str:
        views.append(repr(store.view(session_id, POLICY, now=NOW).messages))
        return "So far: all."

    assert store.compact(session_id, POLICY, summarise, now=NOW).outcome == "applied"
    assert "So far: one." in views[0]
    assert "So far: all." in repr(store.view(session_id, POLICY, now=NOW).messages)


def test_a_number_that_comes_again_is_of_another_record(store: Store, fork: Fork) -> None:
    """The session of the newest record is erased by another process, and the next one has its number.

    What it hides is more.
    """
    root = store.create_session().id
    store.append(root, {"role": "user", "content": "begin"})
    views = []
    for word, rounds in (("first", 3), ("other", 5)):
        name = store.fork(root).id
        talk(store, name, word, rounds)
        views.append(repr(store.view(name, POLICY, now=NOW).messages))
        assert store.compactions(name)[-1].id == 1
        fork(partial(store.delete_session, name)).result()
    assert "So far: first." in views[0]
    assert "So far: other." in views[1]
    assert "other 3" not in views[1]


def test_what_is_kept_of_records_is_counted(store: Store) -> None:
    """With what they cleared; nothing of it stays when its tree is erased."""
    session_id = store.create_session().id
    talk(store, session_id, "one")
    store.view(session_id, POLICY, now=NOW)
    assert any("records" in key for key in store.database.cache._values)
    assert store.cache_info().bytes > 1_000
    store.delete_session(session_id)
    assert store.cache_info()[2:4] == (0, 0)
