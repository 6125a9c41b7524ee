"""What an append does with ids it knows, sessions it does not, and metadata that come along."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from store import Conflict, Store
from store.errors import InvalidMessage, InvalidValue, SessionNotFound


def said(text: str, message_id: str | None = None) -> dict[str, Any]:
    """A message, with an id or without."""
    message = {"role": "user", "content": text}
    return message if message_id is None else {**message, "id": message_id}


def texts(store: Store, session: str) -> str:
    """The texts of a line."""
    return "".join(each.message["content"] for each in store.messages(session))


@pytest.fixture
def session(store: Store) -> str:
    """A session whose line is a message a with the id m."""
    session_id = store.create_session().id
    store.append(session_id, said("a", "m"))
    return session_id


def test_another_message_of_a_known_id_is_ignored(store: Store, session: str) -> None:
    """What is there is returned; of two in a batch the first is stored."""
    batch = [said("b", "m"), said("c", "n"), said("d", "n"), said("e")]
    stored = store.append(session, batch, dedupe="ignore")
    assert [each.message["content"] for each in stored] == ["a", "c", "c", "e"]
    assert stored == [store.messages(session)[at] for at in (0, 1, 1, 2)]
    with pytest.raises(InvalidMessage):
        store.append(session, batch)


def test_ids_need_be_no_keys(store: Store, session: str) -> None:
    """One id for all messages, as some frameworks give it: all are stored, each time."""
    for _ in range(2):
        stored = store.append(session, [said("b", "m"), said("b", "m")], dedupe="off")
        assert stored == store.messages(session, start=-2)
    assert texts(store, session) == "abbbb"
    assert store.append(session, said("b", "m"))[0].seq == 5


def test_a_session_is_made_where_there_is_none(store: Store) -> None:
    """Unless the append is refused, or nobody asked for it."""
    for options in ({}, {"create": True, "expected_head": 1}, {"create": True, "expected": "x"}):
        with pytest.raises((SessionNotFound, Conflict)):
            store.append("made", said("a"), **options)
    with pytest.raises(InvalidMessage):
        store.append("made", {"role": 5}, create=True)
    with pytest.raises(SessionNotFound):
        store.append(None, said("a"), create=True)  # type: ignore[arg-type]
    with pytest.raises(SessionNotFound):
        store.session("made")
    for text in "ab":
        store.append("made", said(text), create=True, expected_head="ab".index(text))
    assert texts(store, "made") == "ab"


def test_metadata_come_along(store: Store, session: str) -> None:
    """Merged, in the transaction of the messages: both or none; without messages, too."""
    store.set_metadata(session, {"kept": 1, "gone": 2})
    store.append(session, said("b"), metadata={"gone": None, "new": 3})
    store.append(session, [], metadata={"more": 4})
    expected = {"kept": 1, "new": 3, "more": 4}
    assert store.session(session).metadata == expected
    with pytest.raises(InvalidValue):
        store.append(session, said("c"), metadata={"x": object()})
    with pytest.raises(Conflict):
        store.append(session, said("a", "m"), metadata={"x": 1}, expected="of another")
    assert store.session(session).metadata == expected
    assert texts(store, session) == "ab"


def test_any_mapping_is_a_message(store: Store, session: str) -> None:
    """One is one message, not several; it comes back as a dict."""
    hi = {"role": "user", "content": "hi"}
    store.append(session, MappingProxyType(hi))
    store.append(session, [MappingProxyType(hi), hi])
    assert [each.message for each in store.messages(session)][1:] == [hi] * 3


def test_an_unknown_way_is_refused(store: Store, session: str) -> None:
    """With what there is to choose from."""
    with pytest.raises(InvalidValue, match="refuse, ignore, off"):
        store.append(session, said("b"), dedupe="on")  # type: ignore[arg-type]


def test_two_processes_make_one_session(url: str, fork: Callable[..., Any]) -> None:
    """Whoever is first makes it; what both said is on one line."""

    def talk(name: str) -> None:
        with Store(url, durability="normal") as store:
            for number in range(10):
                for text in (f"{name}{number}", "."):
                    store.append(f"s{number}", said(text), create=True)

    for child in [fork(talk, name) for name in "ab"]:
        child.result()
    with Store(url) as store:
        for number in range(10):
            told = [each.message["content"] for each in store.messages(f"s{number}")]
            assert sorted(told) == [".", ".", f"a{number}", f"b{number}"]
