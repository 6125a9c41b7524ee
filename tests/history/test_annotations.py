"""Notes beside messages: set, taken away, seen on lines, listed, erased."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from store import Store
from store.errors import InvalidValue, PositionOutOfRange, SessionNotFound

NOW = 1_800_000_000_000


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store with a session of four messages."""
    with Store(url, durability="normal") as opened:
        chat(opened, "s")
        yield opened


def chat(store: Store, session_id: str, owner: str | None = None) -> None:
    """Create a session with some messages."""
    store.create_session(session_id, owner=owner, now=NOW)
    store.append(session_id, [said(str(each)) for each in range(4)], now=NOW)


def said(text: str) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": text}


def seen(store: Any, *args: Any, **options: Any) -> list[tuple[int, str, Any]]:
    """Return notes by position, key and value."""
    return [(each.seq, each.key, each.value) for each in store.annotations(*args, **options)]


@pytest.mark.parametrize(
    "value", [5, 0, False, "", "gut", 0.5, [], {}, {"a": [1, None, {"b": "\ud800"}]}], ids=repr
)
def test_a_note_is_any_json(store: Store, value: Any) -> None:
    """It comes back equal, also where it is nothing much."""
    kept = store.annotate("s", 2, "rating", value, now=NOW)
    assert kept is not None
    assert kept._asdict() == {
        "session_id": "s",
        "branch": 1,
        "seq": 2,
        "key": "rating",
        "value": value,
        "at": NOW,
    }
    assert store.annotations("s") == store.annotations() == [kept]


def test_the_newest_of_a_key_stands(store: Store) -> None:
    """Other keys and other messages stay; None takes a note away, twice is as well as once."""
    store.annotate("s", 2, "rating", 1, now=NOW)
    store.annotate("s", 2, "read", True, now=NOW)
    store.annotate("s", 3, "rating", 3, now=NOW)
    store.annotate("s", 2, "rating", 2, now=NOW + 1)
    assert seen(store, "s") == [(2, "rating", 2), (2, "read", True), (3, "rating", 3)]
    assert seen(store, "s", key="rating") == [(2, "rating", 2), (3, "rating", 3)]
    for _ in range(2):
        assert store.annotate("s", 2, "rating", None, now=NOW) is None
    assert seen(store, "s", key="rating") == [(3, "rating", 3)]
    assert store.verify() == []


def test_raw_and_revision_stay(store: Store) -> None:
    """Neither the messages nor the session are others for it."""
    before = store.session("s"), store.messages("s")
    store.annotate("s", 1, "k", "v", now=NOW + 5)
    assert (store.session("s"), store.messages("s")) == before


def test_lines_have_the_notes_of_their_messages(store: Store) -> None:
    """A fork those of what it shares, also later ones; a rewind leaves them, and they come back."""
    store.annotate("s", 2, "rating", 2, now=NOW)
    store.annotate("s", 4, "rating", 4, now=NOW)
    store.fork("s", 3, session_id="f", now=NOW)
    assert seen(store, "f") == [(2, "rating", 2)]
    store.annotate("f", 2, "rating", "of f", now=NOW + 1)
    assert seen(store, "s") == [(2, "rating", "of f"), (4, "rating", 4)]
    assert [(each.session_id, each.branch) for each in store.annotations("s")] == [
        ("f", 1),
        ("s", 1),
    ]
    store.rewind("s", 1, now=NOW)
    store.append("s", said("instead"), now=NOW)
    assert seen(store, "s") == []
    store.annotate("s", 2, "rating", "other", now=NOW)
    assert seen(store, "s") == [(2, "rating", "other")]
    store.switch("s", 1, now=NOW)
    assert seen(store, "s") == [(2, "rating", "of f"), (4, "rating", 4)]
    assert len(store.annotations()) == 3


def test_owners_do_not_see_each_others(store: Store) -> None:
    """Though they share messages: each has a note of its own."""
    chat(store, "b", "bob")
    store.annotate("b", 1, "rating", "his", now=NOW)
    store.fork("b", session_id="a", owner="ann", now=NOW)
    assert seen(store, "a") == []
    store.annotate("a", 1, "rating", "hers", now=NOW)
    store.annotate("a", 2, "rating", None, now=NOW)
    assert seen(store, "a") == [(1, "rating", "hers")]
    assert seen(store, "b") == [(1, "rating", "his")]
    assert seen(store, owner="ann") == seen(store.scoped("ann")) == [(1, "rating", "hers")]
    assert seen(store, "b", owner="ann") == []
    assert seen(store, key="rating", owner="bob") == [(1, "rating", "his")]
    assert len(store.annotations(key="rating")) == 2
    with pytest.raises(SessionNotFound):
        store.scoped("ann").annotate("b", 1, "rating", 1)


@pytest.mark.parametrize("size", [1, 3, 9])
@pytest.mark.parametrize("asked", [{}, {"key": "k"}, {"owner": "ann"}], ids=str)
def test_pages_give_each_once(store: Store, size: int, asked: dict[str, Any]) -> None:
    """Those of one moment, too."""
    chat(store, "a", "ann")
    for name in ("a", "s"):
        for seq in range(1, 5):
            store.annotate(name, seq, "k", seq, now=NOW + seq // 3)
            store.annotate(name, seq, "other", seq, now=NOW)
    whole = store.annotations(**asked)
    assert len(whole) == {"owner": 8, "key": 8}.get(next(iter(asked), ""), 16)
    paged: list[Any] = []
    while page := store.annotations(**asked, limit=size, after=paged[-1] if paged else None):
        paged += page
    assert paged == whole


def test_notes_are_erased_with_their_message(store: Store) -> None:
    """Where a fork keeps the message, the note stays with it; a redaction leaves it."""
    store.annotate("s", 2, "k", 2, now=NOW)
    store.annotate("s", 4, "k", 4, now=NOW)
    store.redact("s", 2, "asked for", now=NOW)
    store.fork("s", 3, session_id="f", now=NOW)
    store.delete_session("s", now=NOW)
    assert seen(store, "f") == [(2, "k", 2)]
    assert rows(store) == 1
    store.delete_session("f", now=NOW)
    assert rows(store) == 0


def test_what_an_erased_session_noted_elsewhere_goes(store: Store) -> None:
    """Nobody could see it any more: the messages are another owner's."""
    store.fork("s", session_id="a", owner="ann", now=NOW)
    store.annotate("a", 1, "k", "secret", now=NOW)
    store.annotate("s", 1, "k", "stays", now=NOW)
    store.delete_session("a", now=NOW)
    assert rows(store) == 1
    assert seen(store, "s") == [(1, "k", "stays")]
    assert store.verify() == []


def rows(store: Store) -> int:
    """Return how many rows there are."""
    with store.database.reading() as connection:
        return int(connection.exec_driver_sql("SELECT COUNT(*) FROM notes").scalar_one())


@pytest.mark.parametrize(
    ("seq", "key", "value", "error"),
    [
        (0, "k", 1, PositionOutOfRange),
        (5, "k", 1, PositionOutOfRange),
        ("1", "k", 1, PositionOutOfRange),
        (True, "k", 1, PositionOutOfRange),
        (1, "", 1, InvalidValue),
        (1, None, 1, InvalidValue),
        (1, "a\0", 1, InvalidValue),
        (1, "k", float("nan"), InvalidValue),
        (1, "k", {1: 2}, InvalidValue),
        (1, "k", object(), InvalidValue),
    ],
)
def test_what_is_no_note_is_refused(
    store: Store, seq: Any, key: Any, value: Any, error: type[Exception]
) -> None:
    """Nothing is written."""
    with pytest.raises(error):
        store.annotate("s", seq, key, value)
    assert store.annotations() == []


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"after": 3}, {"key": ""}, {"owner": 5}], ids=str)
def test_what_cannot_be_asked(store: Store, wrong: dict[str, Any]) -> None:
    """An error of the store's own."""
    with pytest.raises(InvalidValue):
        store.annotations(**wrong)
    with pytest.raises(SessionNotFound):
        store.annotations("nobody")
